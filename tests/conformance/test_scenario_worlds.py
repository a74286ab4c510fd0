"""Random worlds of scenarios, changed step by step: each backend agrees with the oracle after each change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import HealthCheck, given, settings

from arecall.adapter import Adapter
from arecall.scenario import schema
from arecall.scenario.compiling import compiled, steps
from arecall.scenario.oracle import readable
from arecall.scenario.state import State
from arecall.testing.roads import take
from arecall_adapters import casbin, memory
from arecall_adapters import openfga as fga
from servers import Server
from unit.scenario.worlds import PEOPLE, histories

History = list[tuple[schema.Change, State, State]]


def agrees(empty: Callable[[], AbstractContextManager[Adapter]], history: History) -> None:
    """Provision the first state and make all changes; after each, everyone sees exactly what the oracle says."""
    if not history:
        return
    everything = sorted(frozenset().union(*(state.items for _, before, after in history for state in (before, after))))
    with empty() as adapter:
        adapter.provision(compiled(history[0][1]))
        for change, before, after in history:
            for step in steps(change, before, after):
                adapter.apply(step)
            snapshot = take(adapter, PEOPLE, everything)
            assert {who: snapshot.authorized(who) for who in PEOPLE} == {who: readable(after, who) for who in PEOPLE}


@given(histories())
def test_memory_agrees_with_the_oracle(history: History) -> None:
    agrees(memory.empty, history)


@settings(max_examples=50)
@given(histories())
def test_casbin_agrees_with_the_oracle(history: History) -> None:
    agrees(casbin.empty, history)


@pytest.mark.live
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories())
def test_openfga_agrees_with_the_oracle(openfga: Server, history: History) -> None:
    agrees(lambda: fga.empty(openfga.url), history)
