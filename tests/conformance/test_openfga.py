"""The OpenFGA adapter against the kit, on a running server, and against the oracle on random worlds."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings

from arecall.adapter import Adapter, Empty
from arecall.testing import AdapterConformance, Road
from arecall.testing.reading import Completeness, Decisions
from arecall.testing.roads import hold
from arecall.world import Change, World, authorized, changed
from arecall_adapters import openfga as fga
from conformance.worlds import histories
from proxies import Wire
from servers import Server

pytestmark = pytest.mark.live


class TestOpenFga(AdapterConformance):
    """Each backend is a store of its own, reached over a wire that can be cut."""

    spec = fga.ADAPTER

    @pytest.fixture
    def empty(self, openfga: Server) -> Iterator[Empty]:
        parts = urllib.parse.urlsplit(openfga.url)
        wires: list[Wire] = []

        def empty() -> Adapter:
            wire = Wire((parts.hostname or "", parts.port or 0))
            wires.append(wire)
            adapter = fga.empty(wire.url)
            adapter.wire = wire  # type: ignore[attr-defined]
            return adapter

        yield empty
        for wire in wires:
            wire.cut()

    def kill(self, adapter: Adapter) -> None:
        adapter.wire.cut()  # type: ignore[attr-defined]


class Reads(Decisions, Completeness):
    """The part of the kit that reads, for what changes how it is read."""

    spec = fga.ADAPTER
    options: ClassVar[dict[str, Any]] = {}

    @pytest.fixture
    def empty(self, openfga: Server) -> Empty:
        return lambda: fga.empty(openfga.url, **self.options)


class TestListsFirst(Reads):
    options: ClassVar = {"road": "stream"}


class TestTrustsTheDeadlineThatIsStated(Reads):
    options: ClassVar = {"road": "stream", "list_deadline": 3.0}


class TestAsksAboutEveryPair(Reads):
    options: ClassVar = {"road": "check"}


class TestMayReadCaches(Reads):
    options: ClassVar = {"consistency": "MINIMIZE_LATENCY"}


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories())
def test_random_worlds_are_decided_as_the_oracle_does(openfga: Server, history: tuple[World, list[Change]]) -> None:
    world, changes = history
    with fga.empty(openfga.url) as adapter:
        adapter.provision(world)
        for change in [None, *changes]:
            if change is not None:
                adapter.apply(change)
                world = changed(world, change)
            readable = {principal: authorized(world, principal) for principal in [*world.principals, "stranger"]}
            for road in Road:
                hold(road.ask(adapter, sorted(readable), sorted(world.documents)), readable, road.value)
