"""Which image is used, and what is said where there is none: with a `docker` that only pretends."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from arecall.errors import BackendUnavailable
from arecall_adapters import containers

ROOT = Path(__file__).parents[2]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that has nothing and can pull nothing; what it was asked is in the file that is returned."""
    log = tmp_path / "log"
    script = tmp_path / "bin" / "docker"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\ncase "$1" in info) exit 0;; *) echo "no such thing" >&2; exit 1;; esac\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    monkeypatch.delenv("ARECALL_OPENFGA_IMAGE", raising=False)
    monkeypatch.setattr(containers, "RECIPES", tmp_path / "no recipes")
    return log


def test_the_image_is_the_pinned_one_unless_a_variable_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARECALL_OPENFGA_IMAGE", raising=False)
    assert re.fullmatch(r"openfga/openfga:v\d+\.\d+\.\d+(@sha256:[0-9a-f]{64})?", containers.name("openfga"))
    monkeypatch.setenv("ARECALL_OPENFGA_IMAGE", "mine:1")
    assert containers.name("openfga") == "mine:1"


def test_no_other_file_pins_a_version() -> None:
    version = containers.pinned()["OPENFGA_VERSION"]
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout
    holders = [
        name
        for name in files.splitlines()
        if (ROOT / name).is_file() and version in (ROOT / name).read_text("utf-8", "ignore")
    ]
    assert {Path(name).resolve() for name in map(ROOT.joinpath, holders)} <= {containers.IMAGES.resolve()}


def test_compose_and_build_read_the_same_pins() -> None:
    assert (ROOT / "docker" / ".env").resolve() == containers.IMAGES.resolve()
    assert "${OPENFGA_IMAGE}:${OPENFGA_VERSION}" in (ROOT / "docker" / "compose.yaml").read_text("utf-8")
    assert '/../.env"' in (ROOT / "docker" / "openfga" / "build.sh").read_text("utf-8")


def test_what_is_neither_here_nor_to_be_pulled_nor_built_is_an_error_with_the_fix(docker: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"cannot be pulled: no such thing") as caught:
        containers.image("openfga")
    assert "make images" in caught.value.fix
    assert [line.split()[0] for line in docker.read_text().splitlines()] == ["info", "image", "pull"]


def test_what_cannot_be_pulled_is_built(docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tmp_path / "recipes" / "openfga" / "build.sh"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(f'#!/bin/sh\necho "built $1" >> {docker}\n')
    recipe.chmod(0o755)
    monkeypatch.setattr(containers, "RECIPES", tmp_path / "recipes")
    wanted = containers.image("openfga")
    assert docker.read_text().splitlines()[-1] == f"built {wanted}"


def test_an_image_that_was_named_is_never_built(docker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del docker
    monkeypatch.setenv("ARECALL_OPENFGA_IMAGE", "mine:1")
    monkeypatch.setattr(containers, "RECIPES", ROOT / "docker")
    with pytest.raises(BackendUnavailable, match="mine:1"):
        containers.image("openfga")


def test_without_an_engine_the_reason_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendUnavailable, match="install Docker"):
        containers.image("openfga")
