"""`arecall cleanup`, with an adapter of another distribution that keeps what it made in a file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from unit.cli.running import Run

ADAPTER = """
import json, pathlib
from arecall.adapter import AdapterSpec, Cleanup, Option, OptionKind
from arecall.errors import BackendUnavailable

PLACE = Option("place", "Where it is.", OptionKind.FILE, required=True)

def remove(options, at_least_seconds, dry_run):
    made = json.loads(options["place"].read_text())
    if made is None:
        raise BackendUnavailable("the place is shut", "open it")
    old = [name for name, age in made.items() if age >= at_least_seconds]
    if not dry_run:
        options["place"].write_text(json.dumps({name: age for name, age in made.items() if name not in old}))
    return old

ADAPTER = AdapterSpec(
    "leaving", "an adapter that leaves things behind", dict, {},
    options=(PLACE, Option("index", "What is asked.")), cleanup=Cleanup((PLACE,), remove),
)
"""

Cleanup = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place.json"
    place.write_text(json.dumps({"old": 7200, "older": 9000, "young": 10}))
    return place


@pytest.fixture
def cleanup(tmp_path: Path, arecall: Run) -> Cleanup:
    installed = tmp_path / "installed"
    info = installed / "leaving-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leaving\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[arecall.adapters]\nleaving = leaving_adapter:ADAPTER\n")
    (installed / "leaving_adapter.py").write_text(ADAPTER)
    return lambda *arguments: arecall("cleanup", *arguments, PYTHONPATH=str(installed))


def test_what_old_runs_left_is_removed_and_named(cleanup: Cleanup, place: Path) -> None:
    done = cleanup("leaving", "--place", place)
    assert (done.returncode, done.stdout) == (0, "old\nolder\n")
    assert "2 removed" in done.stderr
    assert json.loads(place.read_text()) == {"young": 10}


def test_the_age_can_be_chosen(cleanup: Cleanup, place: Path) -> None:
    done = cleanup("leaving", "--place", place, "--min-age", "8000", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "older\n", "")
    assert cleanup("leaving", "--place", place, "--min-age", "0").stdout == "old\nyoung\n"
    assert json.loads(place.read_text()) == {}
    nothing = cleanup("leaving", "--place", place)
    assert (nothing.returncode, nothing.stdout) == (0, "")


def test_a_dry_run_removes_nothing(cleanup: Cleanup, place: Path) -> None:
    before = place.read_text()
    done = cleanup("leaving", "--place", place, "--dry-run")
    assert (done.returncode, done.stdout) == (0, "old\nolder\n")
    assert "would be removed" in done.stderr
    assert place.read_text() == before


def test_a_backend_that_fails_is_no_empty_answer(cleanup: Cleanup, place: Path) -> None:
    place.write_text("null")
    done = cleanup("leaving", "--place", place)
    assert (done.returncode, done.stdout) == (3, "")
    assert "the place is shut" in done.stderr


@pytest.mark.parametrize("wrong", [["--min-age", "-1"], ["--min-age", "soon"], ["--index", "docs"]])
def test_what_cannot_be_meant_is_refused(cleanup: Cleanup, place: Path, wrong: list[str]) -> None:
    before = place.read_text()
    assert cleanup("leaving", "--place", place, *wrong).returncode == 2
    assert place.read_text() == before


def test_only_adapters_that_leave_something_have_a_command(cleanup: Cleanup) -> None:
    told = cleanup("--help").stdout
    assert "leaving" in told
    assert "elasticsearch" in told
    assert "casbin" not in told
    assert cleanup("casbin").returncode == 2
