"""What the kit says to an author who left a hook out: never a skip of what is required."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

HEAD = """
import pytest
from arecall.adapter import AdapterSpec, Capability, Support
from arecall.testing import AdapterConformance
from arecall_adapters import memory, table
"""


def run(pytester: pytest.Pytester, body: str, *chosen: str) -> pytest.RunResult:
    pytester.makepyfile(test_mine=HEAD + body)
    return pytester.runpytest_subprocess("-rs", *(f"test_mine.py::TestMine::{test}" for test in chosen))


def test_without_a_backend_to_open_every_test_fails_and_says_what_to_override(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        "class TestMine(AdapterConformance): spec = memory.ADAPTER",
        "test_direct_grants",
        "test_backends_are_apart",
    )
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(["override the fixture `empty` in TestMine *"])


def test_a_reason_for_one_backend_skips_only_what_needs_two(pytester: pytest.Pytester) -> None:
    body = """
class TestMine(AdapterConformance):
    spec = memory.ADAPTER
    only_one_backend = "one licence"
    @pytest.fixture
    def adapter(self):
        return memory.empty()
"""
    result = run(pytester, body, "test_direct_grants", "test_backends_are_apart")
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * one licence"])


def test_a_reason_for_one_backend_is_no_way_round_the_rest(pytester: pytest.Pytester) -> None:
    body = """
class TestMine(AdapterConformance):
    spec = memory.ADAPTER
    only_one_backend = "one licence"
"""
    run(pytester, body, "test_direct_grants").assert_outcomes(errors=3)


def test_without_a_way_to_kill_the_backend_or_a_reason_the_test_fails(pytester: pytest.Pytester) -> None:
    body = """
class TestMine(AdapterConformance):
    spec = memory.ADAPTER
    @pytest.fixture
    def empty(self):
        return memory.empty
"""
    result = run(pytester, body, "test_dead_backend_is_an_error[check]")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["override `kill` in TestMine, or say in `cannot_be_killed` why *"])


def test_without_a_way_to_put_a_world_into_the_backend_required_tests_fail(pytester: pytest.Pytester) -> None:
    body = """
@pytest.fixture
def grants(tmp_path):
    (tmp_path / "grants.csv").write_text("principal,document\\nann,memo\\n")
    return tmp_path / "grants.csv"

class TestMine(AdapterConformance):
    spec = table.ADAPTER
    @pytest.fixture
    def empty(self, grants):
        return lambda: table.TableAdapter(grants)
"""
    result = run(pytester, body, "test_direct_grants[check]", "test_groups[check]")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["override `provision` in TestMine: *a table is read, not written*"])
