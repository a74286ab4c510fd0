"""Wrong backends are caught: each by the shipped scenario that is named for it, which says what is wrong, and by no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from arecall.scenario.judging import OnBackend
from arecall_adapters.casbin import ADAPTER as CASBIN
from arecall_adapters.memory import ADAPTER as MEMORY
from unit.scenario.adapters import Time, replayed, spec
from unit.scenario.wrong import WRONG, Wrong

SCENARIOS = Path(__file__).parents[3] / "scenarios"
RIGHT = {"wrong": MEMORY, "casbin": CASBIN}


def on(wrong: Wrong, scenario: str, folder: Path) -> OnBackend:
    """Replay a shipped scenario on a wrong backend."""
    time = Time()
    backend = spec(wrong.backend, lambda: wrong.adapter(time))
    verdicts, _ = replayed(SCENARIOS / f"{scenario}.yaml", folder, backend, clock=time.clock)
    return verdicts.scenarios[0].backends[wrong.backend]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_backend_fails_the_scenario_that_is_named_for_it_and_is_told_why(tmp_path: Path, name: str) -> None:
    wrong = WRONG[name]
    found = on(wrong, wrong.scenario, tmp_path)
    assert found.status == "fails"
    failing = [check for check in found.checks if check.status == "fails"]
    for stage, what, words in wrong.says:
        told = [c.message for c in failing if c.stage == stage and c.what.startswith(what)]
        assert any(words in message for message in told), "\n".join(
            f"{c.stage}: {c.what}: {c.message}" for c in failing
        )


@pytest.mark.parametrize("name", WRONG)
def test_the_right_backend_passes_that_scenario(tmp_path: Path, name: str) -> None:
    wrong = WRONG[name]
    time, right = Time(), RIGHT[wrong.backend]
    verdicts, _ = replayed(SCENARIOS / f"{wrong.scenario}.yaml", tmp_path, right, clock=time.clock)
    assert verdicts.scenarios[0].backends[right.name].status == "holds"


NEIGHBOURS = [(name, scenario) for name, wrong in WRONG.items() for scenario in wrong.passes]


@pytest.mark.parametrize(("name", "scenario"), NEIGHBOURS)
def test_a_wrong_backend_passes_scenarios_that_its_fault_does_not_touch(
    tmp_path: Path, name: str, scenario: str
) -> None:
    found = on(WRONG[name], scenario, tmp_path)
    assert [f"{c.stage}: {c.what}: {c.message}" for c in found.checks if c.status == "fails"] == []
    assert found.status == "holds"
