"""Transitions: what differs between two snapshots, in access and in the policy behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from arecall.decisions import Decision
from arecall.snapshot import Snapshot

MOMENTARY = ("started", "ended", "sample", "arecall", "notes", "completeness", "universe_digest")
"""Fields of the record that say when and how well it was asked, not of what."""


@dataclass(frozen=True, slots=True)
class ChangedPair:
    """One (principal, document) pair whose decision is another one."""

    principal: str
    document: str
    before: Decision
    after: Decision


@dataclass(frozen=True, slots=True)
class ChangedField:
    """One field of the record that differs, by its path; None where it is absent."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Transition:
    """From one snapshot to another, over the pairs that both were asked about.

    Attributes:
        granted: pairs that became ALLOW from DENY, sorted by principal and document.
        revoked: pairs that became DENY from ALLOW.
        unclear: pairs that changed to or from a decision that is not plain: neither granted nor revoked is known.
        undecided: pairs that are not plainly decided on at least one side, changed or not.
        principals_added, principals_removed, documents_added, documents_removed: what only one side was asked about.
        policy: what differs in the record, apart from times, samples and counts.
    """

    granted: tuple[ChangedPair, ...]
    revoked: tuple[ChangedPair, ...]
    unclear: tuple[ChangedPair, ...]
    undecided: int
    principals_added: tuple[str, ...]
    principals_removed: tuple[str, ...]
    documents_added: tuple[str, ...]
    documents_removed: tuple[str, ...]
    policy: tuple[ChangedField, ...]

    def document(self) -> dict[str, Any]:
        """The transition as the object that is written as JSON."""
        whole = {"schema": "arecall/transition/1", **dataclasses.asdict(self)}
        for kind in ("granted", "revoked", "unclear"):
            for pair in whole[kind]:
                pair["before"], pair["after"] = pair["before"].value, pair["after"].value
        return whole


def transition(before: Snapshot, after: Snapshot) -> Transition:
    """Compare two snapshots pair by pair, and their records field by field."""
    principals = sorted(set(before.principals) & set(after.principals))
    shared = sorted(set(before.documents) & set(after.documents))
    pairs: list[ChangedPair] = []
    to_shared = [_renumbered(snapshot, shared) for snapshot in (before, after)]
    # Principals are grouped by the pair of sets that they have, so that equal ones are compared once.
    differences: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    numbers = [dict(zip(s.principals, s.set_of.tolist(), strict=True)) for s in (before, after)]
    open_before, open_after = (_undecided_by_principal(s) for s in (before, after))
    undecided = 0
    shared_set = set(shared)
    for principal in principals:
        key = (numbers[0][principal], numbers[1][principal])
        if key not in differences:
            old, new = to_shared[0][key[0]], to_shared[1][key[1]]
            differences[key] = (
                np.setdiff1d(new, old, assume_unique=True).tolist(),
                np.setdiff1d(old, new, assume_unique=True).tolist(),
            )
        still_open = (open_before.get(principal, set()) | open_after.get(principal, set())) & shared_set
        undecided += len(still_open)
        changed = {shared[at] for side in differences[key] for at in side} | still_open
        for document in sorted(changed):
            was = before.decision(principal, document).decision
            now = after.decision(principal, document).decision
            if was is not now:
                pairs.append(ChangedPair(principal, document, was, now))
    plain = [pair for pair in pairs if pair.before.plain and pair.after.plain]
    return Transition(
        granted=tuple(pair for pair in plain if pair.after is Decision.ALLOW),
        revoked=tuple(pair for pair in plain if pair.after is Decision.DENY),
        unclear=tuple(pair for pair in pairs if not (pair.before.plain and pair.after.plain)),
        undecided=undecided,
        principals_added=tuple(sorted(set(after.principals) - set(before.principals))),
        principals_removed=tuple(sorted(set(before.principals) - set(after.principals))),
        documents_added=tuple(sorted(set(after.documents) - set(before.documents))),
        documents_removed=tuple(sorted(set(before.documents) - set(after.documents))),
        policy=tuple(_changed_fields(_asked(before), _asked(after))),
    )


def _renumbered(snapshot: Snapshot, shared: list[str]) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    position = {document: at for at, document in enumerate(shared)}
    to_shared = np.array([position.get(document, -1) for document in snapshot.documents], np.int64)
    return [mapped[mapped >= 0] for mapped in (to_shared[indices] for indices in snapshot.sets)]


def _undecided_by_principal(snapshot: Snapshot) -> dict[str, set[str]]:
    by_principal: dict[str, set[str]] = {}
    for principal, document in snapshot.undecided:
        by_principal.setdefault(principal, set()).add(document)
    return by_principal


def _asked(snapshot: Snapshot) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(snapshot.record)
    return {field: value for field, value in record.items() if field not in MOMENTARY}


def _changed_fields(before: Any, after: Any, path: str = "") -> Iterator[ChangedField]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _changed_fields(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif before != after:
        yield ChangedField(path, before, after)
