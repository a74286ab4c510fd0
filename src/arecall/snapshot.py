"""The snapshot: who may read what, frozen, with the record of how that was learnt.

Authorized sets are kept once for all principals that share them, as sorted indices into the sorted universe.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import rfc8785
from numpy.typing import NDArray

from arecall._version import VERSION
from arecall.decisions import Decision, Outcome, id_problem
from arecall.errors import InputError, Problem
from arecall.record import AdapterVersion, Backend, Completeness, Policy, Record

if TYPE_CHECKING:
    from hashlib import _Hash

Indices = NDArray[np.uint32]


class Snapshot:
    """An immutable answer to "which of these documents may each of these principals read?".

    Attributes:
        principals: ids, sorted by bytes.
        documents: the universe, sorted by bytes.
        undecided: every (principal, document) whose decision is CONDITIONAL or ERROR.
        record: what was asked of what, when and how.
        sets: the distinct authorized sets, each the sorted indices into `documents` (read-only arrays).
        set_of: for each principal, the index of its set in `sets`; shape (len(principals),).
    """

    __slots__ = ("__dict__", "documents", "principals", "record", "set_of", "sets", "undecided")

    principals: tuple[str, ...]
    documents: tuple[str, ...]
    undecided: Mapping[tuple[str, str], Outcome]
    record: Record
    sets: tuple[Indices, ...]
    set_of: NDArray[np.int32]

    def __init__(
        self,
        *,
        documents: Collection[str],
        allowed: Mapping[str, Indices],
        undecided: Mapping[tuple[str, str], Outcome],
        record: Record,
    ) -> None:
        """Freeze an answer.

        Args:
            documents: the universe; sorted and without repeats.
            allowed: for each principal the sorted indices of what it may read. The same array may be given for many
                principals; equal ones are stored once.
            undecided: pairs without a plain decision; none of them may be in `allowed`.
            record: the record; its digest of the universe and its counts are the caller's to get right.
        """
        set_field = object.__setattr__
        set_field(self, "documents", tuple(documents))
        set_field(self, "principals", tuple(sorted(allowed)))
        numbers: dict[bytes, int] = {}
        seen: dict[int, int] = {}
        sets: list[Indices] = []
        set_of = np.empty(len(self.principals), np.int32)
        for position, principal in enumerate(self.principals):
            indices = allowed[principal]
            number = seen.get(id(indices))
            if number is None:
                key = indices.astype("<u4").tobytes()
                number = numbers.setdefault(key, len(sets))
                if number == len(sets):
                    frozen = np.array(indices, np.uint32)
                    frozen.flags.writeable = False
                    sets.append(frozen)
                seen[id(indices)] = number
            set_of[position] = number
        set_of.flags.writeable = False
        set_field(self, "sets", tuple(sets))
        set_field(self, "set_of", set_of)
        set_field(self, "undecided", MappingProxyType(dict(sorted(undecided.items()))))
        set_field(self, "record", record)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a snapshot is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a snapshot is immutable: {name!r} cannot be deleted")

    def __repr__(self) -> str:
        return (
            f"<Snapshot of {self.record.backend.kind}: {len(self.principals)} principals x "
            f"{len(self.documents)} documents, {self.access_digest[:19]}...>"
        )

    # -- making one ---------------------------------------------------------------------------------------------------

    @classmethod
    def from_sets(
        cls,
        authorized: Mapping[str, Collection[str]],
        *,
        universe: Iterable[str],
        undecided: Mapping[tuple[str, str], str | Decision | Outcome] | None = None,
    ) -> Snapshot:
        """Freeze sets that the caller knows: `{principal: documents}`.

        Args:
            authorized: the authorized set of each principal; an empty one is a principal that may read nothing.
            universe: every document that was asked about; what is outside of it has no decision.
            undecided: pairs that are CONDITIONAL or ERROR.

        Raises:
            InputError: an id that is none, a document outside of the universe, a pair both allowed and undecided.
        """
        documents = checked_ids(universe, "universe")
        position = {document: index for index, document in enumerate(documents)}
        checked_ids(authorized, "authorized")
        problems: list[Problem] = []
        open_pairs: dict[tuple[str, str], Outcome] = {}
        for (principal, document), given in (undecided or {}).items():
            outcome = given if isinstance(given, Outcome) else Outcome(Decision(given))
            where = f"undecided[{principal!r}, {document!r}]"
            if principal not in authorized:
                problems.append(Problem(where, "the principal is not among the authorized sets"))
            elif document not in position:
                problems.append(Problem(where, "the document is outside of the universe"))
            elif document in authorized[principal]:
                problems.append(Problem(where, "the pair is both allowed and undecided"))
            elif outcome.decision.plain:
                problems.append(Problem(where, f"{outcome.decision.value} is a plain decision"))
            open_pairs[principal, document] = outcome
        allowed: dict[str, Indices] = {}
        for principal, granted in authorized.items():
            unknown = [document for document in granted if document not in position]
            problems += [Problem(f"authorized[{principal!r}]", f"{d!r} is outside of the universe") for d in unknown]
            known = sorted({position[d] for d in granted if d in position})
            allowed[principal] = np.array(known, np.uint32)
        if problems:
            raise InputError(problems)
        return cls(
            documents=documents,
            allowed=allowed,
            undecided=open_pairs,
            record=_python_record(documents, allowed, open_pairs),
        )

    @classmethod
    def from_predicates(cls, predicates: Mapping[str, Callable[[str], bool]], *, universe: Iterable[str]) -> Snapshot:
        """Freeze what each principal's predicate says of each document of the universe.

        Raises:
            InputError: a predicate that answers anything but a bool (`numpy.bool_` included), or an id that is none.
        """
        documents = checked_ids(universe, "universe")
        authorized: dict[str, list[str]] = {}
        for principal, predicate in predicates.items():
            answers = [(document, predicate(document)) for document in documents]
            wrong = [(d, a) for d, a in answers if type(a) not in (bool, np.bool_)]
            if wrong:
                raise InputError(
                    Problem(f"predicates[{principal!r}]", f"answered {a!r} for {d!r}, not a bool") for d, a in wrong
                )
            authorized[principal] = [document for document, answer in answers if answer]
        return cls.from_sets(authorized, universe=documents)

    # -- asking it ----------------------------------------------------------------------------------------------------

    @cached_property
    def _position_of_principal(self) -> dict[str, int]:
        return {principal: index for index, principal in enumerate(self.principals)}

    @cached_property
    def position_of_document(self) -> Mapping[str, int]:
        """The index of each document in `documents`."""
        return MappingProxyType({document: index for index, document in enumerate(self.documents)})

    def indices(self, principal: str) -> Indices:
        """The authorized set of `principal` as sorted indices into `documents`; `KeyError` if it was not asked about."""
        return self.sets[int(self.set_of[self._position_of_principal[principal]])]

    def authorized(self, principal: str) -> frozenset[str]:
        """The authorized set A_p of `principal`; `KeyError` if it was not asked about."""
        return frozenset(self.documents[index] for index in self.indices(principal))

    def decision(self, principal: str, document: str) -> Outcome:
        """The decision on one pair.

        Raises:
            KeyError: the snapshot was not asked about this principal, or not about this document.
        """
        index = self.position_of_document[document]
        indices = self.indices(principal)
        if (principal, document) in self.undecided:
            return self.undecided[principal, document]
        at = int(np.searchsorted(indices, index))
        return Outcome(Decision.ALLOW if at < len(indices) and indices[at] == index else Decision.DENY)

    def predicate(self, principal: str) -> Callable[[str], bool]:
        """Give back the predicate of `principal`: does it read this document?

        The predicate raises `KeyError` for a document outside of the universe and `ValueError` for a pair without a
        plain decision: neither is an answer.
        """
        self.indices(principal)

        def may_read(document: str) -> bool:
            outcome = self.decision(principal, document)
            if not outcome.decision.plain:
                raise ValueError(f"no plain decision for ({principal!r}, {document!r}): {outcome.decision.value}")
            return outcome.decision is Decision.ALLOW

        return may_read

    # -- digests ------------------------------------------------------------------------------------------------------

    @cached_property
    def access_digest(self) -> str:
        """SHA-256 over who may read what: equal for two snapshots exactly when their access is.

        Hashed in this order, every number as 8 bytes big-endian and every string as its length and its UTF-8: the tag,
        the universe, then for each principal in order its id and the SHA-256 of its set (count, then each index as 4
        bytes), then the undecided pairs in order as principal, document, decision. Reasons and the record are left out.
        """
        digest = hashlib.sha256(b"arecall/access/1")
        _hash_ids(digest, self.documents)
        of_set = [hashlib.sha256(_number(len(s)) + s.astype(">u4").tobytes()).digest() for s in self.sets]
        digest.update(_number(len(self.principals)))
        for principal, number in zip(self.principals, self.set_of.tolist(), strict=True):
            digest.update(_text(principal) + of_set[number])
        digest.update(_number(len(self.undecided)))
        for (principal, document), outcome in self.undecided.items():
            digest.update(_text(principal) + _text(document) + _text(outcome.decision.value))
        return f"sha256:{digest.hexdigest()}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON (RFC 8785) of the access digest, the record and the reasons.

        It detects damage. It does not prove who wrote the file: compare it with one that came by another road.
        """
        whole = {
            "access_digest": self.access_digest,
            "record": msgspec.to_builtins(self.record),
            "reasons": [[p, d, outcome.reason] for (p, d), outcome in self.undecided.items()],
        }
        return f"sha256:{hashlib.sha256(rfc8785.dumps(whole)).hexdigest()}"

    @property
    def complete(self) -> bool:
        """Whether every pair has a plain decision."""
        return not self.undecided


def checked_ids(ids: Iterable[Any], where: str) -> tuple[str, ...]:
    """Return `ids` sorted by bytes.

    Raises:
        InputError: there is none, one is no id (`id_problem`), or one is given twice; every culprit is named.
    """
    listed = list(ids)
    if not listed:
        raise InputError.single(where, "is empty")
    problems = [Problem(f"{where}[{at}]", reason) for at, value in enumerate(listed) if (reason := id_problem(value))]
    if problems:
        raise InputError(problems)
    ordered = sorted(listed)
    twice = {a for a, b in itertools.pairwise(ordered) if a == b}
    if twice:
        raise InputError(Problem(where, f"{value!r} is given twice") for value in sorted(twice))
    return tuple(ordered)


def universe_digest(documents: Iterable[str]) -> str:
    """SHA-256 over the sorted, length-prefixed document ids."""
    digest = hashlib.sha256(b"arecall/universe/1")
    _hash_ids(digest, sorted(documents))
    return f"sha256:{digest.hexdigest()}"


def count_decisions(
    documents: Collection[str], allowed: Mapping[str, Indices], undecided: Mapping[tuple[str, str], Outcome]
) -> Completeness:
    """Count the decisions over all pairs."""
    pairs = len(documents) * len(allowed)
    allow = sum(len(indices) for indices in allowed.values())
    conditional = sum(1 for outcome in undecided.values() if outcome.decision is Decision.CONDITIONAL)
    error = len(undecided) - conditional
    return Completeness(
        principals=len(allowed),
        documents=len(documents),
        decisions={
            "ALLOW": allow,
            "DENY": pairs - allow - conditional - error,
            "CONDITIONAL": conditional,
            "ERROR": error,
        },
        complete=not undecided,
    )


def now() -> str:
    """The time in UTC, RFC 3339, to the millisecond."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _python_record(
    documents: tuple[str, ...], allowed: Mapping[str, Indices], undecided: Mapping[tuple[str, str], Outcome]
) -> Record:
    moment = now()
    return Record(
        backend=Backend(
            kind="python",
            version=VERSION,
            identity="given by the caller",
            missing_acl="deny",
            missing_identity="error",
            policy=Policy(),
        ),
        adapter=AdapterVersion(name="python", distribution="arecall", version=VERSION),
        method="given",
        universe_digest=universe_digest(documents),
        started=moment,
        ended=moment,
        drift="unverifiable",
        completeness=count_decisions(documents, allowed, undecided),
        arecall=VERSION,
    )


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _number(len(encoded)) + encoded


def _hash_ids(digest: _Hash, ids: Collection[str]) -> None:
    digest.update(_number(len(ids)))
    for identifier in ids:
        digest.update(_text(identifier))
