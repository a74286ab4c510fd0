"""Backends that are wrong on purpose, each as real ones have been, and the shipped scenario that is there to find it.

Each is a right adapter with one defect. `passes` names neighbours that the defect does not touch: a backend which is merely
broken would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from arecall.adapter import Adapter, Listing, Native, Progress
from arecall.decisions import ALLOWED, DENIED, Decision, Outcome
from arecall.record import Backend
from arecall.world import (
    AddDocument,
    Change,
    Everyone,
    Grant,
    Group,
    Lift,
    RemoveDocument,
    RemoveMember,
    Revoke,
    Subject,
    World,
    authorized,
)
from arecall_adapters import casbin
from arecall_adapters.memory import MemoryAdapter
from conformance.mutants import DropsNestedGroups, IntersectsRoles, Stale
from unit.scenario.adapters import Time


@dataclass(frozen=True)
class Wrong:
    """A wrong backend.

    Attributes:
        adapter: opens it, with the time that its reader lives in.
        scenario: which finds it.
        says: what is said of it there: each a stage, the check that fails, and the words that it must hold.
        passes: scenarios that hold on it all the same.
        backend: the name of the backend that it passes for, where a native world is made for it.
    """

    adapter: Callable[[Time], Adapter]
    scenario: str
    says: Sequence[tuple[str, str, str]]
    passes: Sequence[str]
    backend: str = "wrong"


SEES = "everyone sees what the oracle says"
EXACT = "what was granted and revoked is exact"


class StaleCache(Stale):
    """Takes grants back in its policy and goes on serving from its cache."""

    kinds = (Revoke,)


class KeepsWhatWasPublic(MemoryAdapter):
    """Shares one cached entry for everyone, which nobody's revocation clears."""

    def apply(self, change: Change) -> str:
        if isinstance(change, Revoke) and change.subject == Everyone():
            return self._hold(self._current())
        return super().apply(change)


class OverGrants(MemoryAdapter):
    """Opens to everyone what is given to a group."""

    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        grants = {(Everyone() if isinstance(who, Group) else who, document) for who, document in world.grants}
        return authorized(replace(world, grants=frozenset(grants)), principal)


def is_chunk(document: str) -> bool:
    """To a backend a chunk is a document; in scenarios that are shipped a slash is in its name."""
    return "/" in document


class ForgetsChunks(MemoryAdapter):
    """Indexes the first chunk of a document again, and calls that done."""

    def apply(self, change: Change) -> str:
        if isinstance(change, Revoke) and is_chunk(change.document) and not change.document.endswith("/1"):
            return self._hold(self._current())
        return super().apply(change)


class HidesChunks(MemoryAdapter):
    """Gives chunks no access of their own, and so shows them to nobody."""

    def _readable(self, principal: str) -> frozenset[str]:
        return frozenset(document for document in super()._readable(principal) if not is_chunk(document))


class KeepsTheAccessOfWhatItDeletes(MemoryAdapter):
    """Deletes a document and not its list of readers, which waits for the id to come back."""

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[str, World] = {}

    def apply(self, change: Change) -> str:
        if isinstance(change, RemoveDocument):
            self._left[change.document] = self._current()
        revision = super().apply(change)
        if isinstance(change, AddDocument) and change.document in self._left:
            old, world = self._left.pop(change.document), self._current()
            kept = {grant for grant in old.grants if grant[1] == change.document}
            return self._hold(replace(world, grants=world.grants | kept))
        return revision


class Behind(MemoryAdapter):
    """Reads from a copy that learns of members who left `lag` seconds late."""

    lag = 20.0

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time
        self._left: list[tuple[float, World]] = []

    def apply(self, change: Change) -> str:
        if isinstance(change, RemoveMember):
            self._left.append((self._time.now(), self._current()))
        return super().apply(change)

    def _shown(self) -> World:
        """Return the world before the first change that the copy has not heard of."""
        unheard = (world for at, world in self._left if self._time.now() < at + self.lag)
        return next(unheard, self._current())

    def _readable(self, principal: str) -> frozenset[str]:
        self._current()
        return authorized(self._shown(), principal)


class Flapping(Behind):
    """Asks now the copy and now the original, as a balancer before two nodes does."""

    turn = 0.25

    def _shown(self) -> World:
        return super()._shown() if int(self._time.now() / self.turn) % 2 else self._current()


class IntersectsRolesOfCasbin(Adapter):
    """A gate before a right engine, which asks it once for each role of a person and wants every answer to be yes."""

    def __init__(self) -> None:
        self._right = casbin.empty()

    def describe(self) -> Backend:
        return self._right.describe()

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        roles: list[str] = self._right.engine.enforcer.get_roles_for_user(principal)
        answers = [self._right.check(role, documents) for role in roles] or [self._right.check(principal, documents)]
        return [
            ALLOWED if all(outcome.decision is Decision.ALLOW for outcome in of_each) else DENIED
            for of_each in zip(*answers, strict=True)
        ]

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for principal in principals:
            decided = zip(universe, self.check(principal, universe), strict=True)
            yield Listing(principal, [document for document, outcome in decided if outcome is ALLOWED])

    def provision_native(self, native: Native) -> str:
        return self._right.provision_native(native)

    def apply_native(self, change: Mapping[str, Any]) -> str:
        return self._right.apply_native(change)


class RefusesForGood(MemoryAdapter):
    """Remembers who was refused, and goes on refusing when the grant is given again."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: set[tuple[Subject, str]] = set()

    def apply(self, change: Change) -> str:
        if isinstance(change, Revoke):
            self._taken.add((change.subject, change.document))
        if isinstance(change, Grant) and (change.subject, change.document) in self._taken:
            return self._hold(self._current())
        return super().apply(change)


class LiftsAllAtOnce(MemoryAdapter):
    """Ends a suspension by forgetting everything that somebody was kept from."""

    def __init__(self) -> None:
        super().__init__()
        self._back: set[Subject] = set()

    def apply(self, change: Change) -> str:
        if isinstance(change, Lift):
            self._back.add(change.subject)
        return super().apply(change)

    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        exclusions = frozenset(pair for pair in world.exclusions if pair[0] not in self._back)
        return authorized(replace(world, exclusions=exclusions), principal)


def without_time(adapter: Callable[[], Adapter]) -> Callable[[Time], Adapter]:
    """Open an adapter to which time is nothing."""
    return lambda _: adapter()


WRONG: Mapping[str, Wrong] = {
    "stale cache": Wrong(
        without_time(StaleCache),
        "revocation/direct-grant",
        [
            (
                "the file is no longer shared",
                SEES,
                "bob sees offer (too much): before, bob is a reader of offer; the stage took that, and now nothing grants",
            ),
            ("the file is no longer shared", EXACT, "bob - offer: not revoked, and should be: before, bob is a reader"),
            ("the file is no longer shared", "check shows the change", "it is never; bob at"),
            ("the file is no longer shared", "list shows the change", "was still shown offer"),
        ],
        passes=["revocation/group-membership", "revocation/nested-group", "role_union/roles-through-groups"],
    ),
    "keeps what was public": Wrong(
        without_time(KeepsWhatWasPublic),
        "revocation/public-made-private",
        [
            (
                "closed",
                SEES,
                "bob sees incident (too much): before, everyone is a reader of incident; the stage took that",
            )
        ],
        passes=["revocation/direct-grant", "revocation/nested-group", "revocation/role-removed"],
    ),
    "drops nested groups": Wrong(
        without_time(DropsNestedGroups),
        "revocation/nested-group",
        [
            (
                "at the start",
                SEES,
                "ann does not see budget (too little): ann -> group team -> group department is a reader of the folder plans",
            ),
            (
                "the trainees come back",
                EXACT,
                "bob - budget: not granted, and should be: bob -> group trainees -> group",
            ),
        ],
        passes=["revocation/direct-grant", "revocation/group-membership", "chunks/left-behind", "role_union/two-roles"],
    ),
    "intersects roles": Wrong(
        without_time(IntersectsRoles),
        "role_union/roles-through-groups",
        [
            (
                "at the start",
                SEES,
                (
                    "bob does not see apac-plan (too little): bob -> group apac-desk holds the role apac, which gives what has"
                    " region = apac"
                ),
            ),
            ("one joins a second desk", "the transition is as stated", "ann - emea-report: revoked, and should not be"),
        ],
        passes=["revocation/direct-grant", "revocation/nested-group", "chunks/left-behind"],
    ),
    "intersects roles, before an engine that unites them": Wrong(
        without_time(IntersectsRolesOfCasbin),
        "role_union/one-to-four-roles",
        [
            ("before", "bob sees what is stated", "bob does not see a-plan (too little)"),
            ("one role less", "the transition is as stated", "cat - b-plan: not revoked, and should be"),
        ],
        passes=[],
        backend="casbin",
    ),
    "forgets chunks when it indexes again": Wrong(
        without_time(ForgetsChunks),
        "chunks/left-behind",
        [
            (
                "the chunks are indexed again",
                SEES,
                (
                    "ann sees minutes/2 (too much): before, ann -> group board is in the copy that minutes/2 holds of the"
                    " access of minutes; the stage took that, and now nothing grants it"
                ),
            ),
        ],
        passes=["revocation/direct-grant", "revocation/nested-group", "chunks/added-again", "chunks/group-left"],
    ),
    "shows chunks to nobody": Wrong(
        without_time(HidesChunks),
        "chunks/left-behind",
        [
            (
                "at the start",
                SEES,
                (
                    "ann does not see minutes/1 (too little): ann -> group board is in the copy that minutes/1 holds of"
                    " the access of minutes"
                ),
            ),
        ],
        passes=["revocation/direct-grant", "revocation/nested-group", "role_union/two-roles"],
    ),
    "over-grants": Wrong(
        without_time(OverGrants),
        "revocation/group-membership",
        [
            (
                "both leave sales",
                SEES,
                (
                    "ann sees leads (too much): before, ann -> group sales is a reader of leads; the stage took that, and now"
                    " nothing grants it"
                ),
            ),
            ("both leave sales", EXACT, "bob - prices: not revoked, and should be"),
        ],
        passes=["revocation/direct-grant", "role_union/two-roles", "chunks/added-again"],
    ),
    "keeps the access of what it deletes": Wrong(
        without_time(KeepsTheAccessOfWhatItDeletes),
        "revocation/replaced-by-another-version",
        [
            (
                "the final version",
                SEES,
                "bob sees paper (too much): before, everyone is a reader of paper; the stage took that, and now nothing",
            ),
        ],
        passes=["revocation/direct-grant", "revocation/nested-group", "chunks/left-behind", "role_union/two-roles"],
    ),
    "hears of a revocation late": Wrong(
        Behind,
        "revocation/group-membership",
        [
            ("both leave sales", "check shows the change", "it is late: there for good after"),
            ("both leave sales", "list shows the change", "was still shown leads, prices"),
        ],
        passes=["revocation/direct-grant", "revocation/role-removed", "chunks/left-behind", "role_union/two-roles"],
    ),
    "flaps": Wrong(
        Flapping,
        "revocation/nested-group",
        [("the team leaves", "check shows the change", "it is flapping: there for good after")],
        passes=["revocation/direct-grant", "revocation/role-removed", "chunks/left-behind", "role_union/two-roles"],
    ),
    "refuses for good": Wrong(
        without_time(RefusesForGood),
        "revocation/re-grant",
        [("given again", SEES, "ann does not see sketch (too little): ann is a reader of sketch")],
        passes=["revocation/direct-grant", "revocation/group-membership", "revocation/nested-group"],
    ),
    "lifts all at once": Wrong(
        without_time(LiftsAllAtOnce),
        "revocation/suspended-and-excluded",
        [("reinstated", SEES, "bob sees inquiry (too much): bob is excluded from inquiry")],
        passes=["revocation/direct-grant", "revocation/group-membership", "chunks/left-behind"],
    ),
}
"""All of them, by what is wrong with them."""
