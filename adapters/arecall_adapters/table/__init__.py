"""The table adapter: decisions that somebody has written down already, one a pair.

For access data that was exported from elsewhere. Nothing is decided here, so a table is only as right as its export: a
pair without a row is denied, as is a principal without any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from arecall._version import VERSION
from arecall.adapter import Adapter, AdapterSpec, Capability, Listing, Option, OptionKind, Progress, Support
from arecall.decisions import ALLOWED, DENIED, Decision, Outcome
from arecall.errors import BackendUnavailable, InputError, PolicyError
from arecall.inputs import read_grants
from arecall.record import Backend, Policy

_OUTCOMES = {
    Decision.ALLOW: ALLOWED,
    Decision.DENY: DENIED,
    Decision.CONDITIONAL: Outcome(Decision.CONDITIONAL, "so written in the table"),
    Decision.ERROR: Outcome(Decision.ERROR, "so written in the table"),
}


class TableAdapter(Adapter):
    """A table of grants, read whole when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._grants = read_grants(path)

    def describe(self) -> Backend:
        """Name the table by its digest; one that changed since is read anew, so that answers are of what is named."""
        revision = self._digest_on_disk()
        if revision not in (None, self._grants.source.digest):
            try:
                self._grants = read_grants(self.path)
            except InputError as error:
                raise PolicyError(f"{self.path} was changed, and cannot be read any more: {error}") from error
        return Backend(
            kind="table",
            version=VERSION,
            identity=self.path.name,
            missing_acl="deny",
            missing_identity="deny",
            policy=Policy(identity={"grants": self.path.name}, digest=self._grants.source.digest),
            consistency="as of when the table was read",
            revision=revision,
        )

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        """Look each pair up."""
        rows = self._grants.principals.get(principal, {})
        return [_OUTCOMES[rows.get(document, Decision.DENY)] for document in documents]

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        """Give out the rows of each principal, and say which rows nobody asked for."""
        asked = frozenset(universe)
        self._note_unasked(principals, asked, progress)
        progress.total(len(principals), "principals")
        shared: dict[frozenset[str], frozenset[str]] = {}
        for principal in principals:
            rows = {d: decision for d, decision in self._grants.principals.get(principal, {}).items() if d in asked}
            allowed = frozenset(d for d, decision in rows.items() if decision is Decision.ALLOW)
            undecided = {d: _OUTCOMES[decision] for d, decision in rows.items() if not decision.plain}
            yield Listing(principal, shared.setdefault(allowed, allowed), undecided)
            progress.advance()

    def principals(self) -> Sequence[str]:
        """All whom a row names."""
        return sorted(self._grants.principals)

    def method(self) -> str:
        """There is one road."""
        return "lookup"

    def _note_unasked(self, principals: Sequence[str], universe: frozenset[str], progress: Progress) -> None:
        """A table and a question that hardly meet are likely of two exports, or spell their ids in two ways."""
        known, asked = self._grants.principals, set(principals)
        outside = sum(document not in universe for principal in asked for document in known.get(principal, ()))
        others = sum(len(rows) for principal, rows in known.items() if principal not in asked)
        strangers = sum(principal not in known for principal in asked)
        if outside:
            progress.note(f"{outside} rows of {self.path.name} name documents outside of the universe")
        if others:
            progress.note(f"{others} rows of {self.path.name} are of principals who were not asked about")
        if strangers:
            progress.note(
                f"{strangers} of {len(asked)} principals have no row in {self.path.name}: all is denied to them"
            )

    def _digest_on_disk(self) -> str | None:
        """The digest of the file as it is now; None for a pipe, which cannot be read twice."""
        if self.path.exists() and not self.path.is_file():
            return None
        try:
            with self.path.open("rb") as stream:
                return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
        except OSError as error:
            raise BackendUnavailable(
                f"cannot read {self.path} again: {error.strerror}", "leave the table in place while it is captured"
            ) from error


def _connect(options: Mapping[str, Any]) -> TableAdapter:
    return TableAdapter(options["grants"])


_ONE_PAIR = "a row is of one principal; expand groups and public grants before you write the table"

ADAPTER = AdapterSpec(
    name="table",
    summary="A table of (principal, document[, decision]); a pair without a row is denied.",
    connect=_connect,
    capabilities={
        Capability.CHECK: Support(True),
        Capability.LIST: Support(True),
        Capability.PROVISION: Support(False, "a table is read, not written"),
        Capability.APPLY: Support(False, "a table is read, not written"),
        Capability.GROUPS: Support(False, _ONE_PAIR),
        Capability.NESTED_GROUPS: Support(False, _ONE_PAIR),
        Capability.PUBLIC: Support(False, _ONE_PAIR),
        Capability.EXCLUSION: Support(False, "a pair has one decision; write DENY, or no row"),
        Capability.SEARCH: Support(False, "a table has access rules but no text to rank"),
        Capability.EXPLAIN: Support(False, "a row is all the reason that a table has"),
    },
    options=(
        Option(
            "grants",
            "TSV, CSV, JSON Lines or Parquet with the columns principal, document and optionally decision",
            kind=OptionKind.FILE,
            required=True,
            positional=True,
        ),
    ),
    examples=("arecall snapshot table grants.tsv --documents documents.txt -o before.json",),
)
