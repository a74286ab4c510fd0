"""Tests of a backend that fails: an error that says so, and never an empty or a full answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from arecall.adapter import Adapter, Capability, Silent
from arecall.errors import ArecallError, BackendError
from arecall.testing import worlds
from arecall.testing.kit import Kit
from arecall.testing.roads import Road, hold, take

STEP = worlds.REVOCATIONS["grant"]

CALLS: Mapping[str, tuple[Callable[[Adapter], object], Capability | None]] = {
    "describe": (lambda adapter: adapter.describe(), None),
    "check": (lambda adapter: adapter.check("ann", ["memo", "none"]), None),
    "list": (lambda adapter: list(adapter.list_authorized(["ann"], ["memo", "none"], Silent())), Capability.LIST),
    "snapshot": (lambda adapter: take(adapter, ["ann"], ["memo", "none"]), None),
    "principals": (lambda adapter: adapter.principals(), None),
    "apply": (lambda adapter: adapter.apply(STEP.change), Capability.APPLY),
    "search": (lambda adapter: adapter.search("ann", "memo", 10), Capability.SEARCH),
    "explain": (lambda adapter: adapter.explain("ann", "memo"), Capability.EXPLAIN),
}
"""Every way to ask a backend, and what it takes."""


class Failures(Kit):
    """The backend goes away."""

    @pytest.mark.parametrize("call", CALLS)
    def test_dead_backend_is_an_error(self, adapter: Adapter, call: str) -> None:
        """An outage must not be taken for a denial, nor for a principal who may read nothing."""
        ask, capability = CALLS[call]
        if capability is not None:
            self.need(capability)
        if call == "principals" and type(adapter).principals is Adapter.principals:
            pytest.skip("the adapter names no principals")
        self.prepare(adapter, STEP.world)
        self.kill(adapter)
        try:
            answer = ask(adapter)
        except BackendError as error:
            if not error.cause.strip():
                pytest.fail(f"the {type(error).__name__} does not say what happened", pytrace=False)
            return
        pytest.fail(f"the backend is dead, and {call} answered {answer!r:.200}", pytrace=False)

    def test_closed_adapter_gives_no_wrong_answer(self, adapter: Adapter, road: Road) -> None:
        """After `close` an adapter may still answer rightly, or raise; it must not answer for a backend it has left."""
        table = worlds.DIRECT
        self.prepare(adapter, table.world)
        adapter.close()
        try:
            answers = road.ask(adapter, sorted(table.readable), sorted(table.world.documents))
        except ArecallError:
            return
        hold(answers, table.readable, f"closed, {road.value}")
