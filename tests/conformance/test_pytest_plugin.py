"""What the pytest plugin and `unavailable` do to a test run, seen from a run of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

RESULT = """
import pytest
from arecall.evaluate import evaluate
from arecall.snapshot import Snapshot

@pytest.fixture
def result():
    return evaluate(
        snapshot=Snapshot.from_sets({"ann": ["memo"]}, universe=["memo", "plan"]),
        qrels={"q": {"memo": 1}},
        run={"q": ["plan", "memo"]},
        delivered={("ann", "q"): ["plan", "memo"]},
        ks=[2],
        draws=0,
    )
"""


def test_the_plugin_is_light() -> None:
    program = (
        "import sys, arecall.pytest_plugin;"
        "heavy = {'numpy', 'pyarrow', 'scipy', 'msgspec', 'rich', 'arecall.evaluate'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_but_the_plugin_and_the_kit_needs_pytest() -> None:
    program = (
        "import sys; sys.modules['pytest'] = None;"
        "import arecall.capture, arecall.cli, arecall.evaluate, arecall.gates, arecall.registry as registry;"
        "[registry.load(name) for name in registry.names()]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_markers_are_registered_with_their_meaning(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.live\n@pytest.mark.data\ndef test_it(): pass")
    pytester.runpytest_subprocess("--strict-markers").assert_outcomes(passed=1)
    pytester.runpytest_subprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.live: *", "@pytest.mark.data: *"])


def test_a_gate_lets_through_what_meets_every_condition(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        RESULT + "def test_it(arecall_gate, result): arecall_gate(result, 'U@2 > 0.5', 'ARecall@2 < 1')"
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_gate_fails_the_test_with_every_figure_that_failed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        RESULT + "def test_it(arecall_gate, result): arecall_gate(result, 'U@2 > 0', 'ARecall@2 < 1', 'Leak@2 > 0')"
    )
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["U@2 > 0: fails, *", "Leak@2 > 0: fails, *"])
    run.stdout.no_fnmatch_line("ARecall@2 < 1: *")


def test_a_gate_without_conditions_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RESULT + "def test_it(arecall_gate, result): arecall_gate(result)")
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["*UsageError: arecall_gate needs at least one condition*"])


UNAVAILABLE = "from arecall.testing import unavailable\ndef test_it(): unavailable('no server at hand')"


def test_what_is_not_there_skips_with_the_reason(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARECALL_REQUIRE_LIVE", raising=False)
    pytester.makepyfile(UNAVAILABLE)
    run = pytester.runpytest_subprocess("-rs")
    run.assert_outcomes(skipped=1)
    run.stdout.fnmatch_lines(["*no server at hand"])


def test_what_is_not_there_fails_where_it_is_required(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARECALL_REQUIRE_LIVE", "1")
    pytester.makepyfile(UNAVAILABLE)
    run = pytester.runpytest_subprocess()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["*no server at hand (ARECALL_REQUIRE_LIVE=1 forbids to skip)"])
