"""The images of live backends: which they are, and how one comes to be on this machine (present, pulled or built).

Only the `docker` command is needed. Nothing is pulled or built until `image` is called.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from arecall.errors import BackendUnavailable

IMAGES = Path(__file__).with_name("images.env")
"""Names, versions and digests; the one place that has them."""

RECIPES = Path(__file__).parents[3] / "docker"
"""How images are built; only a checkout has it."""

PULL_SECONDS = 300


@functools.cache
def pinned() -> dict[str, str]:
    """Return what `images.env` says."""
    lines = (line.strip() for line in IMAGES.read_text("utf-8").splitlines())
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def name(backend: str) -> str:
    """Name the image of a backend: `ARECALL_<BACKEND>_IMAGE`, or the pinned one."""
    key = backend.upper()
    if override := os.environ.get(f"ARECALL_{key}_IMAGE"):
        return override
    image, version, digest = (pinned()[f"{key}_{part}"] for part in ("IMAGE", "VERSION", "DIGEST"))
    return f"{image}:{version}@{digest}" if digest else f"{image}:{version}"


def engine_problem() -> str | None:
    """Say why no container can be started here, and what to do; None if one can."""
    if shutil.which("docker") is None:
        return "there is no container engine: install Docker, or run docker/engine.sh as root on Debian"
    if _docker("info").returncode:
        return (
            "no container engine answers: start Docker (on Debian as root, docker/engine.sh does), or set DOCKER_HOST"
        )
    return None


def image(backend: str) -> str:
    """Return the name of a backend's image once it is here: if it is not, it is pulled; if it cannot be, it is built.

    Raises:
        BackendUnavailable: no engine, or the image can neither be pulled nor built; says why, and what to do.
    """
    if problem := engine_problem():
        raise BackendUnavailable(problem)
    if here := _here(backend):
        return here
    # Test runs start many processes at once, and each of them asks: the first one makes the image, the others wait for it.
    with _alone(backend):
        return _here(backend) or _made(backend)


def backends() -> list[str]:
    """Return the names of all backends that have an image."""
    return [key.removesuffix("_IMAGE").lower() for key in pinned() if key.endswith("_IMAGE")]


def _here(backend: str) -> str | None:
    wanted = name(backend)
    # An image that was built here has no digest; its tag is the same.
    return next((image for image in dict.fromkeys([wanted, wanted.partition("@")[0]]) if _present(image)), None)


def _made(backend: str) -> str:
    wanted = name(backend)
    tagged = wanted.partition("@")[0]
    _say(f"pulling {wanted}")
    pulled = _docker("pull", "--quiet", wanted, seconds=PULL_SECONDS)
    if pulled.returncode == 0:
        return wanted
    recipe = RECIPES / backend / "build.sh"
    if os.environ.get(f"ARECALL_{backend.upper()}_IMAGE") or not recipe.exists():
        raise BackendUnavailable(
            f"the image {wanted} is not here and cannot be pulled: {pulled.stderr.strip()}",
            f"name another with ARECALL_{backend.upper()}_IMAGE, or build it in a checkout with make images",
        )
    _say(f"{wanted} cannot be pulled: building it, which takes a minute or two")
    built = subprocess.run(  # noqa: S603 -- our own script, and no shell
        [str(recipe), tagged], check=False, capture_output=True, encoding="utf-8"
    )
    if built.returncode:
        raise BackendUnavailable(
            f"the image {wanted} cannot be pulled ({pulled.stderr.strip()}) and its build failed:"
            f" {built.stderr.strip()[-2000:]}",
            f"correct {recipe}, or name another image with ARECALL_{backend.upper()}_IMAGE",
        )
    return tagged


@contextlib.contextmanager
def _alone(backend: str) -> Iterator[None]:
    """Hold off other processes of this user that would make the same image."""
    import fcntl  # not on every system; elsewhere nothing needs it, as importing this module must not

    with (Path(tempfile.gettempdir()) / f"arecall-{os.getuid()}-{backend}-image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(what: str) -> None:
    # A person waits for minutes, or a test run seems to hang.
    print(f"arecall: {what}", file=sys.stderr, flush=True)


def identity(image: str) -> str:
    """Name an image that is here by what it holds: its name and the digest of its content."""
    found = _docker("image", "inspect", "--format", "{{.Id}}", image)
    return f"{image.partition('@')[0]}@{found.stdout.strip()}" if found.returncode == 0 else image


def _present(wanted: str) -> bool:
    return _docker("image", "inspect", wanted).returncode == 0


def _docker(*arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    command = ["docker", *arguments]
    try:
        return subprocess.run(  # noqa: S603 -- no shell
            command, check=False, capture_output=True, encoding="utf-8", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {seconds:g} s")


def main() -> None:
    """Make sure that all images are here, side by side, and name them: `make images`. Ends with 1 if one cannot be had."""
    failures = []
    with ThreadPoolExecutor() as makers:
        for making in [makers.submit(image, backend) for backend in backends()]:
            try:
                print(making.result(), flush=True)
            except BackendUnavailable as error:
                failures.append(str(error))
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
