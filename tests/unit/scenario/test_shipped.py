"""Every scenario that is shipped, and the one to start from, fits the published schema, says why, and holds in memory."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from arecall.scenario.loader import load
from arecall_adapters.casbin import ADAPTER as CASBIN
from arecall_adapters.memory import ADAPTER as MEMORY
from unit.scenario.adapters import problems, replayed

REPOSITORY = Path(__file__).parents[3]
SHIPPED = sorted(REPOSITORY.glob("scenarios/*/*.yaml"))
SCHEMA: dict[str, Any] = json.loads((REPOSITORY / "docs" / "schemas" / "scenario-1.json").read_text("utf-8"))


def names(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", SHIPPED, ids=names)
def test_a_shipped_scenario_fits_the_published_schema(path: Path) -> None:
    jsonschema.validate(YAML(typ="safe", pure=True).load(path.read_text("utf-8")), SCHEMA)


@pytest.mark.parametrize("path", SHIPPED, ids=names)
def test_a_shipped_scenario_says_in_two_sentences_why_one_runs_it(path: Path) -> None:
    assert load(path).scenario.why.strip().count(". ") == 1


@pytest.mark.parametrize("path", SHIPPED, ids=names)
def test_a_shipped_scenario_holds_on_backends_in_this_process(tmp_path: Path, path: Path) -> None:
    verdicts, _ = replayed(path, tmp_path, MEMORY, CASBIN)
    for backend, of in verdicts.scenarios[0].backends.items():
        assert of.status in ("holds", "cannot")
        assert [problem for problem in problems(verdicts, backend) if not problem.startswith("cannot")] == []


def test_the_scenario_to_start_from_fits_and_holds(tmp_path: Path) -> None:
    content = resources.files("arecall.scenario").joinpath("starting.yaml").read_bytes()
    jsonschema.validate(YAML(typ="safe", pure=True).load(content), SCHEMA)
    path = tmp_path / "starting.yaml"
    path.write_bytes(content)
    assert replayed(path, tmp_path, MEMORY, CASBIN)[0].exit_status == 0
