"""What the kit needs to know of both engines with document-level security."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator

import pytest

from arecall.adapter import Adapter, Empty
from arecall.testing import AdapterConformance, Road
from arecall.testing.roads import hold
from arecall.world import authorized, changed
from arecall_adapters.dls.adapter import DlsAdapter
from conformance.worlds import History
from proxies import Wire
from servers import Server


class DlsConformance(AdapterConformance):
    """Each backend is an index of its own, with its own roles and users, reached over a wire that can be cut."""

    def open_empty(self, url: str, user: str, password: str) -> DlsAdapter:
        raise NotImplementedError

    @pytest.fixture
    def empty(self, server: Server) -> Iterator[Empty]:
        parts = urllib.parse.urlsplit(server.url)
        wires: list[Wire] = []
        opened: list[Adapter] = []

        def empty() -> Adapter:
            wire = Wire((parts.hostname or "", parts.port or 0))
            wires.append(wire)
            adapter = self.open_empty(wire.url, server.user, server.password)
            opened.append(adapter)
            adapter.wire = wire  # type: ignore[attr-defined]
            return adapter

        yield empty
        for adapter in opened:
            adapter.close()
        for wire in wires:
            wire.cut()

    def kill(self, adapter: Adapter) -> None:
        adapter.wire.cut()  # type: ignore[attr-defined]


def agrees_with_the_oracle(adapter: Adapter, history: History) -> None:
    """Build the world, make its changes one by one, and hold every road against the oracle after each."""
    world, changes = history
    adapter.provision(world)
    for change in [None, *changes]:
        if change is not None:
            adapter.apply(change)
            world = changed(world, change)
        readable = {principal: authorized(world, principal) for principal in world.principals}
        for road in Road:
            hold(road.ask(adapter, sorted(readable), sorted(world.documents)), readable, road.value)
