"""The page for users says what is so: its options exist, and its commands and programs run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from arecall_adapters.casbin import ADAPTER
from unit.casbin.differential import SHAPES

PAGE = (Path(__file__).parents[3] / "docs" / "casbin.md").read_text("utf-8")


def _block(language: str) -> str:
    """Return the one block of a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files of the page."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rbac.conf").write_text(_block("ini"))
    (tmp_path / "policy.csv").write_text(_block("csv"))
    (tmp_path / "people.txt").write_text("ann\nbob\n")
    (tmp_path / "ids.txt").write_text("memo-7\ndiary\n")
    return tmp_path


def test_every_option_is_described() -> None:
    described = {
        name for row in re.findall(r"^\| (`--.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"--([a-z-]+)", row)
    }
    assert described == {option.name for option in ADAPTER.options}


@pytest.mark.usefixtures("folder")
def test_the_commands_run() -> None:
    snapshot, explain = (shlex.split(command) for command in _block("sh").splitlines())
    assert snapshot[0] == explain[0] == "arecall"
    subprocess.run([sys.executable, "-m", *snapshot], check=True)
    assert Path("s.json").is_file()
    found = subprocess.run([sys.executable, "-m", *explain], check=True, capture_output=True, text=True)
    assert found.stdout == _block("text")


@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore")
def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(_block("python"), {})
    assert capsys.readouterr().out == _block("text")


def test_every_shape_is_described() -> None:
    (road,) = re.findall(r"\*\*`fast:\.\.\.`\*\*.*?(?=^\* )", PAGE, re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"`(equality|membership|link|pattern)`", road))
    assert named == {"equality", "membership", "link", "pattern"} <= set(SHAPES)
