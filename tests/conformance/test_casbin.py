"""The Casbin adapter against the kit, and against the oracle on random worlds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from arecall.adapter import Empty
from arecall.testing import AdapterConformance, Road
from arecall.testing.roads import hold
from arecall.world import Change, World, authorized, changed
from arecall_adapters import casbin
from conformance.worlds import histories


class TestCasbin(AdapterConformance):
    spec = casbin.ADAPTER
    cannot_be_killed = "the engine runs in this process; there is no backend to go away"

    @pytest.fixture
    def empty(self) -> Empty:
        return casbin.empty


@settings(deadline=None)
@given(histories())
def test_random_worlds_are_decided_as_the_oracle_does(history: tuple[World, list[Change]]) -> None:
    world, changes = history
    with casbin.empty() as adapter:
        adapter.provision(world)
        for change in [None, *changes]:
            if change is not None:
                adapter.apply(change)
                world = changed(world, change)
            readable = {principal: authorized(world, principal) for principal in [*world.principals, "stranger"]}
            for road in Road:
                hold(road.ask(adapter, sorted(readable), sorted(world.documents)), readable, road.value)
