"""From what a principal is shown to what it may read of the universe that was asked about."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from arecall.decisions import Decision, Outcome
from arecall.errors import IncompleteAnswer
from arecall.record import Finding
from arecall_adapters.dls.documents import ORPHAN, Documents, Hit, outcome
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.findings import Positions
from arecall_adapters.dls.point_in_time import ID, PointInTime
from arecall_adapters.dls.principals import Resolved, refusal
from arecall_adapters.dls.wire import Refused, Requester

REMEMBERED_IDS = 500_000
"""How many ids of authorized sets are remembered, so that principals who see the same share one."""

NOBODY: Positions = np.empty(0, np.uint32)

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Of the documents of hits."""

Shown = set[tuple[str, str]]
"""Where what is shown lies: index and `_id`."""

Comparison = Callable[[str, Requester, Shown], Iterable[Finding]]
"""Asks the same principal in another way, and tells what differs."""


@dataclass(frozen=True)
class Answer:
    """What one principal may read.

    Attributes:
        allowed: positions in the universe.
        undecided: documents without a plain decision.
        findings: what was odd.
    """

    allowed: Positions = field(default_factory=lambda: NOBODY)
    undecided: Mapping[str, Outcome] = field(default_factory=dict)
    findings: Sequence[Finding] = ()


class Lister:
    """Lists principals in one index state; may be used from several threads."""

    def __init__(
        self,
        engine: Engine,
        pit: PointInTime,
        documents: Documents,
        universe: Sequence[str],
        resolve: Callable[[str], Resolved],
        comparisons: Sequence[Comparison] = (),
    ) -> None:
        self._engine = engine
        self._pit = pit
        self._documents = documents
        self._universe = universe
        self._resolve = resolve
        self._comparisons = comparisons
        at = {document: position for position, document in enumerate(universe)}
        self._positions = np.array([at.get(document, ORPHAN) for document in documents.ids], np.int64)
        self._parts = np.array(documents.parts, np.int64)
        self._sets: OrderedDict[bytes, list[str]] = OrderedDict()
        self._remembered = 0
        self._lock = threading.Lock()

    def one(self, principal: str) -> Answer:
        """Ask for one principal.

        Raises:
            IncompleteAnswer: what is shown is not whole, or not part of what the capturing account is shown.
            PolicyError: document-level security is not in the licence.
            BackendError: the engine cannot be asked.
        """
        found = self._resolve(principal)
        if found.requester is None:
            return self._without(found)
        shown: Shown = set()
        numbers: list[Numbers] = []
        try:
            for page in self._pit.shown(found.requester):
                numbers.append(self._numbers(page, found.requester))
                if self._comparisons:
                    shown.update((hit["_index"], hit[ID]) for hit in page)
        except Refused as refused:
            return self._without(refusal(self._engine, principal, refused))
        requester = found.requester
        compared = [f for comparison in self._comparisons for f in comparison(principal, requester, shown)]
        return self._answer(principal, numbers, compared)

    def shared(self, allowed: Positions) -> list[str]:
        """The documents at these positions; the same list for equal positions, as long as it is remembered."""
        key = hashlib.sha256(allowed.tobytes()).digest()
        with self._lock:
            known = self._sets.get(key)
            if known is None:
                known = self._sets[key] = list(map(self._universe.__getitem__, allowed.tolist()))
                self._remembered += len(known)
                while self._remembered > REMEMBERED_IDS and len(self._sets) > 1:
                    self._remembered -= len(self._sets.popitem(last=False)[1])
            self._sets.move_to_end(key)
            return known

    def _numbers(self, page: Sequence[Hit], requester: Requester) -> Numbers:
        try:
            return np.array(self._documents.numbers(page), np.int64)
        except KeyError as error:
            raise more_than_everything(requester, str(error.args[0])) from None

    def _without(self, found: Resolved) -> Answer:
        findings = [found.finding] if found.finding is not None else []
        if found.outcome.decision is Decision.DENY:
            return Answer(findings=findings)
        return Answer(undecided=dict.fromkeys(self._universe, found.outcome), findings=findings)

    def _answer(self, principal: str, numbers: Sequence[Numbers], findings: Sequence[Finding]) -> Answer:
        of_documents = np.concatenate([np.empty(0, np.int64), *numbers])
        counts = np.bincount(of_documents[of_documents != ORPHAN], minlength=len(self._parts))
        if np.any(counts > self._parts):
            twice = self._documents.ids[int(np.argmax(counts > self._parts))]
            raise IncompleteAnswer(f"asked as {principal}, the engine shows {twice} twice in one list", "ask again")
        asked = self._positions != ORPHAN
        allowed = self._positions[(counts == self._parts) & asked]
        allowed.sort()
        undecided = {}
        for number in np.flatnonzero((counts > 0) & (counts < self._parts) & asked).tolist():
            undecided[self._documents.ids[number]] = outcome(int(counts[number]), int(self._parts[number]))
        partly = [
            Finding(
                kind="partly shown",
                what=f"{document}: {principal}: {why.reason}",
                principal=principal,
                document=document,
            )
            for document, why in undecided.items()
        ]
        return Answer(allowed.astype(np.uint32), undecided, [*partly, *findings])


def more_than_everything(requester: Requester, what: str) -> IncompleteAnswer:
    """The error for a hit that the capturing account was not shown: what it sees is not everything."""
    return IncompleteAnswer(
        f"{requester.name} is shown {what}, which the capturing account is not",
        "the capturing account needs to read everything: no role of its own may hold a query",
    )
