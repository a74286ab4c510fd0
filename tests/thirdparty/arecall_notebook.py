"""A notebook in which the readers of each document are written down: the least that an adapter can be.

It checks single pairs and cannot list; it knows no groups and no exclusions, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arecall.adapter import Adapter, AdapterSpec, Capability, Support, within_process
from arecall.decisions import ALLOWED, DENIED, Outcome
from arecall.errors import BackendUnavailable, PolicyError
from arecall.record import Backend, Policy
from arecall.world import Change, Everyone, Grant, Principal, Revoke, Subject, World

NO_GROUPS = "a notebook names readers one by one"
NO_EXCLUSIONS = "a notebook names who may read, not who may not"


class Notebook:
    """The backend."""

    def __init__(self) -> None:
        self.readers: dict[str, set[Principal | Everyone]] = {}
        self.edits = 0


class NotebookAdapter(Adapter):
    def __init__(self, notebook: Notebook) -> None:
        self.notebook: Notebook | None = notebook

    def describe(self) -> Backend:
        return Backend(
            kind="notebook",
            version="1",
            identity="a notebook in memory",
            missing_acl="deny",
            missing_identity="public_only",
            policy=Policy(),
            revision=str(self._opened().edits),
        )

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        readers = self._opened().readers
        return [ALLOWED if readers.get(d, set()) & {Principal(principal), Everyone()} else DENIED for d in documents]

    def provision(self, world: World) -> str:
        if world.exclusions:
            raise PolicyError(NO_EXCLUSIONS)
        if world.groups:
            raise PolicyError(NO_GROUPS)
        for subject, document in world.grants:
            self._write(subject, document)
        return str(self._opened().edits)

    def apply(self, change: Change) -> str:
        notebook = self._opened()
        match change:
            case Grant(subject, document):
                self._write(subject, document)
            case Revoke(Principal() | Everyone() as subject, document) if subject in notebook.readers.get(document, ()):
                notebook.readers[document].remove(subject)
                notebook.edits += 1
            case _:
                raise PolicyError(
                    f"a notebook cannot {change}", "use an adapter of a backend with groups and exclusions"
                )
        return str(notebook.edits)

    def lose(self) -> None:
        """Lose the notebook; there is no copy."""
        self.notebook = None

    def _write(self, subject: Subject, document: str) -> None:
        if not isinstance(subject, Principal | Everyone):
            raise PolicyError(NO_GROUPS)
        self._opened().readers.setdefault(document, set()).add(subject)
        self._opened().edits += 1

    def _opened(self) -> Notebook:
        if self.notebook is None:
            raise BackendUnavailable("the notebook is lost", "look under the sofa")
        return self.notebook


def empty() -> NotebookAdapter:
    return NotebookAdapter(Notebook())


def connect(options: Mapping[str, Any]) -> NotebookAdapter:
    return empty()


ADAPTER = AdapterSpec(
    name="notebook",
    summary="Readers, written down in a notebook",
    connect=connect,
    capabilities={
        Capability.CHECK: Support(True),
        Capability.LIST: Support(False, "a notebook has to be leafed through"),
        Capability.PROVISION: Support(True),
        Capability.APPLY: Support(True, "grants and revocations; there are no groups and no exclusions"),
        Capability.GROUPS: Support(False, NO_GROUPS),
        Capability.NESTED_GROUPS: Support(False, NO_GROUPS),
        Capability.PUBLIC: Support(True),
        Capability.EXCLUSION: Support(False, NO_EXCLUSIONS),
        Capability.SEARCH: Support(False, "a notebook ranks nothing"),
        Capability.EXPLAIN: Support(False, "a notebook keeps no reasons"),
    },
    sandbox=within_process("notebook", empty),
)
