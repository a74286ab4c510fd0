"""Random worlds that change step by step: after each step a backend agrees with the oracle, and so with every other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from arecall.adapter import Adapter
from arecall_adapters import casbin, memory
from arecall_adapters import elasticsearch as es
from arecall_adapters import openfga as fga
from arecall_adapters import opensearch as os
from conformance.machine import on
from conformance.test_kept import FINDS, differences
from servers import Server
from unit.scenario.adapters import Time
from unit.scenario.wrong import WRONG

LEAST = 200
"""Steps on each backend."""


def take_steps(
    empty: Callable[[], AbstractContextManager[Adapter]], examples: int, record: Callable[[str, object], None]
) -> None:
    """Change so many worlds 50 times each, and count what was really done."""
    machine = on(empty)
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=50))
    record("steps", len(machine.taken))
    record("kinds", dict(Counter(machine.taken)))
    print(f"{len(machine.taken)} steps: {dict(Counter(machine.taken))}")
    assert len(machine.taken) >= LEAST


@pytest.mark.parametrize("name", FINDS.values())
def test_a_wrong_backend_is_found_and_told_as_a_scenario_that_shows_it(tmp_path: Path, name: str) -> None:
    wrong = WRONG[name]
    once = settings(max_examples=300, stateful_step_count=30, phases=[Phase.generate], derandomize=True, database=None)
    with pytest.raises(AssertionError, match="keep it under tests/conformance/kept") as caught:
        run_state_machine_as_test(on(lambda: wrong.adapter(Time())), settings=once)
    told = tmp_path / "told.yaml"
    told.write_text(str(caught.value).partition("kept:\n")[2], "utf-8")
    assert differences(told, wrong.adapter(Time())) != []
    assert differences(told, memory.empty()) == []


def test_memory_agrees_with_the_oracle(record_property: Callable[[str, object], None]) -> None:
    take_steps(memory.empty, 30, record_property)


def test_casbin_agrees_with_the_oracle(record_property: Callable[[str, object], None]) -> None:
    take_steps(casbin.empty, 12, record_property)


@pytest.mark.live
def test_openfga_agrees_with_the_oracle(openfga: Server, record_property: Callable[[str, object], None]) -> None:
    take_steps(lambda: fga.empty(openfga.url), 8, record_property)


@pytest.mark.live
def test_elasticsearch_agrees_with_the_oracle(
    elasticsearch: Server, record_property: Callable[[str, object], None]
) -> None:
    server = elasticsearch
    take_steps(lambda: es.empty(server.url, server.user, server.password), 6, record_property)


@pytest.mark.live
def test_opensearch_agrees_with_the_oracle(opensearch: Server, record_property: Callable[[str, object], None]) -> None:
    server = opensearch
    take_steps(lambda: os.empty(server.url, server.user, server.password), 6, record_property)
