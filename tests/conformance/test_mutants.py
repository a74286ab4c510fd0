"""The kit tests itself: every mutant is found by the tests that are named for it, and every kit test finds a mutant."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from arecall.testing import AdapterConformance
from conformance.mutants import MUTANTS

TESTS = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], str]:
    """Run, in one pytest, the kit tests that a mutant is about: (mutant, test) -> passed, failure, error or skipped."""
    report = tmp_path_factory.mktemp("mutants") / "report.xml"
    runs = TESTS / "conformance" / "mutant_runs.py"
    chosen = [
        f"{runs}::Test{name}::{test}" for name, mutant in MUTANTS.items() for test in mutant.fails + mutant.passes
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", f"--junit-xml={report}", *chosen],
        cwd=TESTS.parent,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout[-3000:] + run.stderr[-3000:]
    return {
        (case.attrib["classname"].rpartition(".Test")[2], case.attrib["name"]): case[0].tag if len(case) else "passed"
        for case in ElementTree.parse(report).iter("testcase")
    }


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found_by_the_test_named_for_it(outcomes: Mapping[tuple[str, str], str], name: str) -> None:
    mutant = MUTANTS[name]
    found = {test: outcomes[name, test] for test in mutant.fails + mutant.passes}
    assert found == dict.fromkeys(mutant.fails, "failure") | dict.fromkeys(mutant.passes, "passed")


def test_every_test_of_the_kit_finds_a_mutant() -> None:
    kit = {name for name in dir(AdapterConformance) if name.startswith("test_")}
    assert {test.partition("[")[0] for mutant in MUTANTS.values() for test in mutant.fails} == kit
