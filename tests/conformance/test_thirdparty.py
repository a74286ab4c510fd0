"""A stranger's adapter: built and installed as its own distribution, found by entry point, held against the kit."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path

import pytest

from arecall import registry

SOURCE = Path(__file__).parent.parent / "thirdparty"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Build the distribution without a network, install it aside, and return what runs Python beside it."""
    folder = tmp_path_factory.mktemp("thirdparty")
    source, wheels, site = folder / "source", folder / "wheels", folder / "site"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    subprocess.run([*pip, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", wheels, source], check=True)
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--target", site, *wheels.glob("*.whl")], check=True)
    (source / "ids").write_text("ann\nbob\n")
    (source / "arecall_notebook.py").unlink()  # what is tested is what was installed

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": ""}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)

    return start


def test_it_is_found_beside_the_first_party_adapters_and_traced_to_its_distribution(run: Run) -> None:
    found = run(
        "-c",
        "from arecall import registry; print(*registry.names()); origin = registry.origin('notebook');"
        "print(origin.distribution, origin.version, registry.load('notebook').summary)",
    )
    own = {point.name for point in distribution("arecall").entry_points if point.group == registry.GROUP}
    assert found.stdout.splitlines() == [
        " ".join(sorted({*own, "notebook"})),
        "arecall-notebook 0.3.0 Readers, written down in a notebook",
    ], found.stderr


def test_the_command_line_lists_it(run: Run) -> None:
    listed = run("-m", "arecall", "adapters", "--format", "json")
    found = {one["name"]: one for one in json.loads(listed.stdout)}
    assert found["notebook"]["status"] == "ready"
    assert found["notebook"]["distribution"] == "arecall-notebook 0.3.0"
    assert found["notebook"]["capabilities"]["list"] == {
        "supported": False,
        "reason": "a notebook has to be leafed through",
    }


def test_the_command_line_takes_a_snapshot_through_it(run: Run) -> None:
    taken = run(
        "-m", "arecall", "snapshot", "notebook", "--principals", "ids", "--documents", "ids", "-o", "taken.json"
    )
    assert taken.returncode == 0, taken.stderr
    read = run("-c", "import arecall.snapshot_file as f; print(f.read_snapshot('taken.json').record.adapter)")
    assert "name='notebook', distribution='arecall-notebook', version='0.3.0'" in read.stdout


def test_it_conforms_with_ten_lines(run: Run) -> None:
    lines = [line for line in (SOURCE / "test_notebook.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 10
    ran = run("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test_notebook.py")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed[1]) > 150, "most of the kit is about what every adapter must do"
    assert "GROUPS: a notebook names readers one by one" in ran.stdout
