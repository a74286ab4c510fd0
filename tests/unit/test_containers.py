"""Which image is used, and what is said where there is none: with a `docker` that only pretends."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arecall.errors import BackendUnavailable
from arecall_adapters import containers

ROOT = Path(__file__).parents[2]
BACKENDS = ["elasticsearch", "openfga", "opensearch"]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that has what was `built` and can pull nothing; what it was asked is in the file that is returned."""
    log = tmp_path / "log"
    script = tmp_path / "bin" / "docker"
    script.parent.mkdir()
    script.write_text(
        f"""#!/bin/sh
echo "$@" >> {log}
case "$1" in
  info) exit 0 ;;
  image) grep -qx "built $3" {log} && exit 0 ;;
esac
echo "no such thing" >&2
exit 1
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    for backend in BACKENDS:
        monkeypatch.delenv(f"ARECALL_{backend.upper()}_IMAGE", raising=False)
    monkeypatch.setattr(containers, "RECIPES", tmp_path / "recipes")
    return log


def recipe(docker: Path, backend: str, does: str) -> None:
    script = docker.parent / "recipes" / backend / "build.sh"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)


def asked(docker: Path) -> list[str]:
    return [line.split()[0] for line in docker.read_text().splitlines()]


def test_every_backend_has_an_image() -> None:
    assert sorted(containers.backends()) == BACKENDS


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_image_is_the_pinned_one_unless_a_variable_names_another(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"ARECALL_{backend.upper()}_IMAGE"
    monkeypatch.delenv(variable, raising=False)
    assert re.fullmatch(rf"\S*{backend}:v?\d+\.\d+\.\d+(@sha256:[0-9a-f]{{64}})?", containers.name(backend))
    monkeypatch.setenv(variable, "mine:1")
    assert containers.name(backend) == "mine:1"


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_other_file_pins_a_version(backend: str) -> None:
    version = containers.pinned()[f"{backend.upper()}_VERSION"]
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8").stdout
    holders = [
        name
        for name in files.splitlines()
        if (ROOT / name).is_file() and version in (ROOT / name).read_text("utf-8", "ignore")
    ]
    # A recipe to copy names what it was run with; a test of its own holds it to the pin.
    recipe = ROOT / "docs" / "integration-test.md"
    assert {Path(name).resolve() for name in map(ROOT.joinpath, holders)} <= {containers.IMAGES.resolve(), recipe}


@pytest.mark.parametrize("backend", BACKENDS)
def test_compose_and_build_read_the_same_pins(backend: str) -> None:
    key = backend.upper()
    assert (ROOT / "docker" / ".env").resolve() == containers.IMAGES.resolve()
    compose = (ROOT / "docker" / "compose.yaml").read_text("utf-8")
    assert f"${{ARECALL_{key}_IMAGE:-${{{key}_IMAGE}}:${{{key}_VERSION}}}}" in compose
    build = (ROOT / "docker" / backend / "build.sh").read_text("utf-8")
    assert f"${{1:-${key}_IMAGE:$" in build


def test_what_is_neither_here_nor_to_be_pulled_nor_built_is_an_error_with_the_fix(docker: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"cannot be pulled: no such thing") as caught:
        containers.image("openfga")
    assert "make images" in caught.value.fix
    assert list(dict.fromkeys(asked(docker))) == ["info", "image", "pull"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_cannot_be_pulled_is_built_and_who_waits_is_told(
    backend: str, docker: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recipe(docker, backend, f'echo noise; echo "built $1" >> {docker}')
    wanted = containers.image(backend)
    assert docker.read_text().splitlines()[-1] == f"built {wanted}"
    out, err = capfd.readouterr()
    assert out == ""
    assert f"{wanted} cannot be pulled: building it" in err


def test_what_is_here_is_neither_pulled_nor_built(docker: Path, capfd: pytest.CaptureFixture[str]) -> None:
    docker.write_text(f"built {containers.name('opensearch')}\n")
    assert containers.image("opensearch") == containers.name("opensearch")
    assert asked(docker) == ["built", "info", "image"]
    assert capfd.readouterr().err == ""


def test_many_at_once_build_an_image_once(docker: Path) -> None:
    recipe(docker, "elasticsearch", f'sleep 0.3; echo "built $1" >> {docker}')
    with ThreadPoolExecutor(4) as askers:
        assert len(set(askers.map(containers.image, ["elasticsearch"] * 4))) == 1
    assert asked(docker).count("built") == 1


def test_a_build_that_fails_is_an_error_that_says_how(docker: Path) -> None:
    recipe(docker, "opensearch", "echo a JDK 25 is missing >&2; exit 1")
    with pytest.raises(BackendUnavailable, match=r"no such thing.*its build failed: a JDK 25 is missing") as caught:
        containers.image("opensearch")
    assert "ARECALL_OPENSEARCH_IMAGE" in caught.value.fix


def test_a_digest_is_what_is_pulled_and_a_build_has_none(docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = "sha256:" + "0" * 64
    monkeypatch.setattr(
        containers,
        "pinned",
        lambda: {"OPENFGA_IMAGE": "some/openfga", "OPENFGA_VERSION": "v1.2.3", "OPENFGA_DIGEST": digest},
    )
    recipe(docker, "openfga", f'echo "built $1" >> {docker}')
    assert containers.image("openfga") == "some/openfga:v1.2.3"
    assert f"pull --quiet some/openfga:v1.2.3@{digest}" in docker.read_text().splitlines()
    # It is found again although it does not have the digest.
    docker.write_text("built some/openfga:v1.2.3\n")
    assert containers.image("openfga") == "some/openfga:v1.2.3"
    assert "pull" not in asked(docker)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_image_that_was_named_is_never_built(backend: str, docker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe(docker, backend, f'echo "built $1" >> {docker}')
    monkeypatch.setenv(f"ARECALL_{backend.upper()}_IMAGE", "mine:1")
    with pytest.raises(BackendUnavailable, match="mine:1"):
        containers.image(backend)
    assert "built" not in asked(docker)


def test_making_all_images_names_each_and_says_which_cannot_be_had(
    docker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe(docker, "elasticsearch", f'echo "built $1" >> {docker}')
    recipe(docker, "openfga", "echo broken recipe >&2; exit 1")
    recipe(docker, "opensearch", f'echo "built $1" >> {docker}')
    with pytest.raises(SystemExit, match="broken recipe"):
        containers.main()
    assert capsys.readouterr().out.split() == [containers.name("elasticsearch"), containers.name("opensearch")]


@pytest.mark.parametrize("backend", ["elasticsearch", "opensearch"])
def test_a_build_without_its_tools_names_what_to_install(backend: str, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "dirname", "mktemp", "rm"):
        (tools / tool).symlink_to(f"/bin/{tool}")
    build = ROOT / "docker" / backend / "build.sh"
    ran = subprocess.run([build], env={"PATH": str(tools)}, check=False, capture_output=True, encoding="utf-8")
    assert ran.returncode == 1
    assert "install what is missing: maven docker.io util-linux" in ran.stderr


def test_without_an_engine_the_reason_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendUnavailable, match="install Docker"):
        containers.image("openfga")
