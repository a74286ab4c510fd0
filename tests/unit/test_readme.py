"""The README is true: its commands and its Python are run as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from arecall.snapshot_file import read_snapshot

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")

LIVE = ("openfga", "elasticsearch", "opensearch")

FAILS_ITS_GATE = "--fail-on 'U@10 > 0'"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", *shlex.split(command)]
    return subprocess.run(arguments, check=False, cwd=folder, capture_output=True, encoding="utf-8")


def commands(text: str) -> list[str]:
    """The commands of a page, but for those of live servers: tests/live/*/test_docs.py runs them."""
    blocks = re.findall(r"^```\n(.*?)^```", text.replace("\\\n", " "), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("arecall ")]
    return [line for line in lines if not any(f" {backend} " in line for backend in LIVE)]


@pytest.mark.parametrize("page", ["README.md", "scenarios/demo/README.md"])
def test_every_command_works_on_the_demo(demo: Path, tmp_path: Path, page: str) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(demo, folder)
    told = commands((ROOT / page).read_text("utf-8"))
    assert len(told) >= 3
    made = run(told[0], folder)
    assert made.returncode == 0, made.stderr
    before = read_snapshot(folder / "before.json")
    grants = "".join(f"{p}\t{d}\n" for p in before.principals for d in sorted(before.authorized(p)))
    (folder / "grants.tsv").write_text(grants, "utf-8")
    after = run(told[0].replace("policy.csv", "policy-after.csv").replace("before.json", "after.json"), folder)
    assert after.returncode == 0, after.stderr
    for command in told[1:]:
        done = run(command, folder)
        assert done.returncode == (1 if FAILS_ITS_GATE in command else 0), (command, done.stderr)
        assert done.stdout, command


def test_its_python_works() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    subprocess.run([sys.executable, "-c", code], check=True)


def test_its_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "scenarios").rglob("*.md")]:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page}: {link}"


def test_make_says_what_there_is_to_make() -> None:
    told = subprocess.run(["make", "help"], check=True, cwd=ROOT, capture_output=True, encoding="utf-8").stdout
    assert {"demo", "test", "lint", "help"} <= {
        line.split()[1] for line in told.splitlines() if line.startswith("  make ")
    }
