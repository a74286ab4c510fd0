"""What starting up costs, and what help says."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from unit.cli.running import Run

HEAVY = (
    "numpy",
    "scipy",
    "pyarrow",
    "rich",
    "casbin",
    "pytest",
    "hypothesis",
    "openfga_sdk",
    "elasticsearch",
    "opensearchpy",
)

COMMANDS = (
    ("evaluate", ["-k", "--fail-on", "any principal", "Exit status"]),
    ("diff", ["BEFORE", "AFTER", "--format"]),
    ("verify", ["--expect-digest"]),
    ("adapters", ["extra"]),
    ("schema", ["snapshot", "result"]),
    ("snapshot", ["table", "casbin", "Examples"]),
    ("snapshot table", ["--documents", "from:run", "--principals"]),
    ("snapshot casbin", ["--model", "--policy", "--action"]),
)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["evaluate", "--help"], ["verify", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nsys.argv = ['arecall', *sys.argv[1:]]\nfrom arecall.cli import main\n"
        f"try:\n    main()\nexcept SystemExit:\n    pass\nprint('LOADED', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.rstrip().endswith("LOADED []"), done.stdout


def test_import_loads_nothing_heavy() -> None:
    code = f"import arecall, sys\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_help_takes_less_than_three_tenths_of_a_second_of_cpu(arecall: Run) -> None:
    arecall("--help")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = arecall("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    # CPU time of the child, not time on the clock: other work on the machine does not count.
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.3


@pytest.mark.parametrize(("command", "taught"), COMMANDS)
def test_each_command_teaches_itself(arecall: Run, command: str, taught: list[str]) -> None:
    done = arecall(*command.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert not [word for word in taught if word not in done.stdout]


def test_readme_names_only_options_that_there_are(arecall: Run) -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
    told = re.findall(r"^arecall ((?:snapshot )?\w+) (.*)$", readme.replace("\\\n", " "), re.MULTILINE)
    assert told
    for command, rest in told:
        helped = arecall(*command.split(), "--help").stdout
        options = re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", rest)
        assert not [option for option in options if option not in helped], command


def test_an_unknown_adapter_is_refused_with_those_that_there_are(arecall: Run) -> None:
    done = arecall("snapshot", "casbim", "--documents", "x", "-o", "y.json")
    assert done.returncode == 2
    assert "casbin" in done.stderr
