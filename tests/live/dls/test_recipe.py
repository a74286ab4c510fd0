"""The integration test that users are told to write: it is run as it stands on the page, and finds a leak that is put in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import servers
from arecall.errors import BackendUnavailable
from arecall.testing import unavailable
from arecall_adapters import containers

pytestmark = pytest.mark.live

PAGE = Path(__file__).parents[3] / "docs" / "integration-test.md"


def recipe() -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(code)


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run it in a folder of its own, as its user does; on the image that this test run is for."""
    try:
        image = containers.image("elasticsearch")
    except BackendUnavailable as error:
        unavailable(str(error))
    (told,) = re.findall(r'^IMAGE, ADMIN = "([^"]+)"', code, re.MULTILINE)
    if "ARECALL_ELASTICSEARCH_IMAGE" not in os.environ:
        assert told == image
    (folder / "test_search.py").write_text(code.replace(told, image), "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    if not servers.reaper():
        environment["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_search.py"],
        check=False,
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=environment,
    )


def test_the_recipe_passes_as_it_stands(tmp_path: Path) -> None:
    done = run(tmp_path, recipe())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_recipe_fails_where_the_application_forgets_who_asks(tmp_path: Path) -> None:
    code = recipe()
    forgetful = code.replace('client.options(headers={"es-security-runas-user": user})', "client")
    assert forgetful != code
    done = run(tmp_path, forgetful)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "any principal U@10 > 0: fails" in done.stdout
