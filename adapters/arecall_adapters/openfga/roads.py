"""Two roads to what a principal may read: ask about every document, or list first and ask about what was not listed.

A list is never the whole. OpenFGA ends StreamedListObjects at a deadline of its own (3 seconds unless it is set) and says
nothing of it, so a document that is missing may have come too late. The one exception is a deadline that the user states
(`--list-deadline`): the server's clock starts after ours and stops before ours, so a list that took us less than the
deadline was not cut by it. ListObjects, which stops at a number of results too, is not used at all.

Which road is cheaper depends on how many documents a principal may read: both are measured on the first principals.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from arecall.adapter import Listing, Progress
from arecall.decisions import Decision, Outcome
from arecall_adapters.openfga.model import Model
from arecall_adapters.openfga.store import SmallerBatch, Store

AHEAD = 4
"""How many principals, for each request that may be made at once, are begun before the oldest of them is done."""

PROBES = 3
"""On how many principals a list is tried before the road is chosen."""

AGAIN = 2
"""How often a denial is asked for again, where it may be an error that lost a race."""


@dataclass
class Costs:
    """What lists have cost so far, and what they have saved."""

    lists: int = 0
    seconds: float = 0.0
    saved: int = 0
    checks: int = 0
    check_seconds: float = 0.0

    def worth_listing(self) -> bool:
        """Whether a list costs less than the checks that it spares."""
        if self.lists < PROBES or not self.checks:
            return True
        return self.seconds < self.saved * (self.check_seconds / self.checks)


@dataclass
class Road:
    """Decides whole universes, some requests at a time.

    Attributes:
        store: what is asked.
        model: under which model.
        concurrency: how many requests are made at once.
        choice: `auto`, `stream` or `check`.
        deadline: the server's deadline for lists in seconds, where the user states it.
        racing: whether a denial may be an error that lost a race: a condition without its context is involved.
    """

    store: Store
    model: Model
    concurrency: int
    choice: str
    deadline: float | None
    racing: bool
    costs: Costs = field(default_factory=Costs)
    listed: bool = False
    checked: bool = False
    slots: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.slots = threading.Semaphore(self.concurrency)

    def listings(self, users: Mapping[str, str], objects: Mapping[str, str], progress: Progress) -> Iterator[Listing]:
        """Yield what each principal may read, in order, with as many principals under way as keep the server busy."""
        documents = {thing: document for document, thing in objects.items()}
        progress.total(len(users), "principals")
        waiting: deque[Future[Listing]] = deque()
        # Principals wait in one pool while their batches run in the other; a list is asked for by the principal's own
        # thread, for handing over costs as much as a short list. The slots see to it that no more than `concurrency`
        # requests are ever under way. Some principals are begun before the oldest is done, so that a slow one holds up
        # nobody, but not many: what they may read is held in memory.
        with ThreadPoolExecutor(self.concurrency) as requests, ThreadPoolExecutor(self.concurrency) as principals:
            try:
                for principal, user in users.items():
                    waiting.append(principals.submit(self._one, requests, principal, user, objects, documents))
                    if len(waiting) > AHEAD * self.concurrency:
                        yield waiting.popleft().result()
                        progress.advance()
                while waiting:
                    yield waiting.popleft().result()
                    progress.advance()
            finally:
                principals.shutdown(wait=False, cancel_futures=True)
                requests.shutdown(wait=False, cancel_futures=True)

    @property
    def name(self) -> str:
        """What was done, for the record."""
        parts = [part for part, taken in (("stream", self.listed), ("batch check", self.checked)) if taken]
        return "+".join(parts) or "batch check"

    def _one(
        self,
        requests: ThreadPoolExecutor,
        principal: str,
        user: str,
        objects: Mapping[str, str],
        documents: Mapping[str, str],
    ) -> Listing:
        allowed: list[str] = []
        whole = False
        if objects and self._lists():
            with self.slots:
                started = time.monotonic()
                listed = self.store.stream(self.model, principal, user)
                took = time.monotonic() - started
            if listed is not None:
                allowed = [documents[thing] for thing in listed if thing in documents]
                whole = self.deadline is not None and took < self.deadline
                self.listed = True
            self.costs.lists += 1
            self.costs.seconds += took
            self.costs.saved += len(objects) if whole else len(allowed)
        if whole:
            return Listing(principal, allowed)
        have = set(allowed)
        rest = [(principal, user, thing) for document, thing in objects.items() if document not in have]
        started = time.monotonic()
        outcomes = self._decided(requests, rest)
        self.costs.checks += len(rest)
        self.costs.check_seconds += time.monotonic() - started
        undecided: dict[str, Outcome] = {}
        for (_, _, thing), outcome in zip(rest, outcomes, strict=True):
            if outcome.decision is Decision.ALLOW:
                allowed.append(documents[thing])
            elif outcome.decision is not Decision.DENY:
                undecided[documents[thing]] = outcome
        self.checked = self.checked or bool(rest)
        return Listing(principal, allowed, undecided)

    def _lists(self) -> bool:
        if self.racing:  # what a list leaves out for want of context, and what it names without it, is not a decision
            return False
        if self.choice == "auto":
            return self.costs.worth_listing()
        return self.choice == "stream"

    def _decided(self, requests: ThreadPoolExecutor, pairs: Sequence[tuple[str, str, str]]) -> list[Outcome]:
        outcomes = self._batched(requests, pairs)
        if self.racing:
            for _ in range(AGAIN):
                denied = [number for number, outcome in enumerate(outcomes) if outcome.decision is Decision.DENY]
                again = self._batched(requests, [pairs[number] for number in denied])
                for number, outcome in zip(denied, again, strict=True):
                    outcomes[number] = firmer(outcomes[number], outcome)
        return outcomes

    def _batched(self, requests: ThreadPoolExecutor, pairs: Sequence[tuple[str, str, str]]) -> list[Outcome]:
        size = self.store.batch
        parts = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        futures = [requests.submit(self._batch, part) for part in parts]
        try:
            return [outcome for future in futures for outcome in future.result()]
        finally:
            for future in futures:
                future.cancel()

    def _batch(self, pairs: Sequence[tuple[str, str, str]]) -> list[Outcome]:
        try:
            with self.slots:
                return self.store.batch_check(self.model, pairs)
        except SmallerBatch:
            size = self.store.batch
            return [o for start in range(0, len(pairs), size) for o in self._batch(pairs[start : start + size])]


def firmer(first: Outcome, second: Outcome) -> Outcome:
    """Of two answers to one question, where the first was a denial: anything that says otherwise stands."""
    if second.decision is Decision.ALLOW:
        return Outcome(Decision.ERROR, "asked twice, the engine denied and allowed")
    return second if second.decision is not Decision.DENY else first


def each(
    check: Callable[[tuple[str, str, str]], Outcome], pairs: Sequence[tuple[str, str, str]], concurrency: int
) -> list[Outcome]:
    """Decide pairs one by one, some at a time."""
    if len(pairs) <= 1:
        return [check(pair) for pair in pairs]
    with ThreadPoolExecutor(min(concurrency, len(pairs))) as pool:
        try:
            return list(pool.map(check, pairs))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
