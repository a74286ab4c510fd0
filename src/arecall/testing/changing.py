"""Tests of what changes: a change holds from the next read, for those it concerns, in whatever order it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from arecall.adapter import Adapter, Capability, Empty
from arecall.testing import worlds
from arecall.testing.kit import Kit
from arecall.testing.roads import Road, take
from arecall.testing.worlds import Step
from arecall.world import AddMember, Change, Exclude, Grant, World


class Changes(Kit):
    """One change at a time, read before and after on the same road."""

    @pytest.mark.parametrize("name", worlds.REVOCATIONS)
    def test_revocation_holds_from_the_next_read(self, adapter: Adapter, road: Road, name: str) -> None:
        """What was taken away is gone at once: no cache, no stale replica, no token of before."""
        self._follows(adapter, road, worlds.REVOCATIONS[name])

    @pytest.mark.parametrize("name", worlds.LEFT_ALONE)
    def test_revocation_leaves_other_grants_alone(self, adapter: Adapter, road: Road, name: str) -> None:
        """Who has another reason to read a document keeps it."""
        self._follows(adapter, road, worlds.LEFT_ALONE[name])

    @pytest.mark.parametrize("name", worlds.ADDITIONS)
    def test_grant_holds_from_the_next_read(self, adapter: Adapter, road: Road, name: str) -> None:
        """What was given is there at once: a scenario that reads too early would see a loss that is none."""
        self._follows(adapter, road, worlds.ADDITIONS[name])

    def test_revision_follows_changes(self, adapter: Adapter) -> None:
        """A revision that stays the same through a revocation would hide that the policy drifted."""
        self.need(Capability.APPLY)
        step = worlds.REVOCATIONS["grant"]
        self.prepare(adapter, step.world)
        before = adapter.describe().revision
        self.apply(adapter, step)
        if before is not None and adapter.describe().revision == before:
            pytest.fail(f"the revision is {before!r} before and after {step.change}", pytrace=False)

    @pytest.mark.parametrize("name", ["direct", "groups add up", "nested", "exclusion of a group"])
    def test_order_of_insertion_does_not_matter(self, empty: Empty, name: str) -> None:
        """The same grants, memberships and exclusions, put in backwards, are the same access."""
        self.need(Capability.APPLY)
        world = worlds.TRUTH_TABLES[name].world
        bare = replace(
            world, grants=frozenset(), exclusions=frozenset(), groups={group: frozenset() for group in world.groups}
        )
        digests = []
        for changes in (_insertions(world), _insertions(world)[::-1]):
            with empty() as adapter:
                self.prepare(adapter, bare)
                at = bare
                for change in changes:
                    step = Step(at, change)
                    self.apply(adapter, step)
                    at = step.after
                for road in self.roads:
                    self.agrees(adapter, road, world, f"after {[str(change) for change in changes]}")
                digests.append(take(adapter, sorted(world.principals), sorted(world.documents)).access_digest)
        if digests[0] != digests[1]:
            pytest.fail(f"equal access, and two digests of it: {digests}", pytrace=False)

    def _follows(self, adapter: Adapter, road: Road, step: Step) -> None:
        __tracebackhide__ = True
        self.need(Capability.APPLY)
        self.prepare(adapter, step.world)
        self.agrees(adapter, road, step.world, "before")
        self.apply(adapter, step)
        self.agrees(adapter, road, step.after, f"after {step.change}")


def _insertions(world: World) -> Sequence[Change]:
    return [
        *(Grant(subject, document) for subject, document in sorted(world.grants, key=str)),
        *(Exclude(subject, document) for subject, document in sorted(world.exclusions, key=str)),
        *(
            AddMember(group, member)
            for group in sorted(world.groups)
            for member in sorted(world.groups[group], key=str)
        ),
    ]
