"""Live servers in containers, for one test run each; whatever was started is stopped when the run ends."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from docker.errors import APIError
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from arecall.errors import BackendUnavailable
from arecall.testing import unavailable
from arecall_adapters import containers

READY_SECONDS = 60
ATTEMPTS = 3


@dataclass(frozen=True)
class Server:
    """A running container and where it answers."""

    container: DockerContainer
    url: str

    def docker(self, command: str) -> None:
        """Do what `docker <command>` does to the container: pause, unpause, kill."""
        getattr(self.container.get_wrapped_container(), command)()


@functools.cache
def reaper() -> bool:
    """Whether Testcontainers' reaper can be had: where its image is neither here nor can be pulled, we do without.

    Containers are then stopped by us alone, which a killed test run cannot do; see `stop_orphans`.
    """
    if "TESTCONTAINERS_RYUK_DISABLED" in os.environ:
        return not testcontainers_config.ryuk_disabled
    image = testcontainers_config.ryuk_image
    here = subprocess.run(["docker", "image", "inspect", image], check=False, capture_output=True).returncode == 0
    if not here:
        try:
            pulled = subprocess.run(["docker", "pull", "-q", image], check=False, capture_output=True, timeout=60)
            here = pulled.returncode == 0
        except subprocess.TimeoutExpired:
            here = False
    testcontainers_config.ryuk_disabled = not here
    return here


RUN_LABEL = "arecall.test-run"


@functools.cache
def stop_orphans() -> None:
    """Stop containers of earlier test runs on this machine that were killed before they could."""
    told = subprocess.run(
        [
            "docker",
            "ps",
            "-a",
            "--filter",
            f"label={RUN_LABEL}",
            "--format",
            f'{{{{.ID}}}} {{{{.Label "{RUN_LABEL}"}}}}',
        ],
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout
    for line in told.splitlines():
        container, _, process = line.partition(" ")
        if not Path(f"/proc/{process}").exists() and Path("/proc/self").exists():
            subprocess.run(["docker", "rm", "-f", container], check=False, capture_output=True)


@contextlib.contextmanager
def openfga(environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run a server of its own; skip, or fail where live tests are required, if none can be."""
    try:
        image = containers.image("openfga")
    except BackendUnavailable as error:
        unavailable(str(error))
    reaper()
    stop_orphans()
    settings = {"OPENFGA_LOG_LEVEL": "warn", "OPENFGA_PLAYGROUND_ENABLED": "false", **(environment or {})}
    container = _started(image, settings)
    try:
        server = Server(container, f"http://127.0.0.1:{container.get_exposed_port(8080)}")
        _await(server)
        yield server
    finally:
        container.stop()


def _started(image: str, environment: Mapping[str, str]) -> DockerContainer:
    for attempt in range(ATTEMPTS):
        container = DockerContainer(image).with_command("run")
        container.with_kwargs(labels={RUN_LABEL: str(os.getpid())})
        # On loopback only; the engine chooses a free port, which another process may be quicker to take.
        container.ports = {"8080/tcp": ("127.0.0.1", None)}  # type: ignore[dict-item]
        for name, value in environment.items():
            container.with_env(name, value)
        try:
            container.start()
        except APIError:
            container.stop()
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return container
    raise AssertionError


def _await(server: Server) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{server.url}/healthz", timeout=5):
                return
        except OSError:
            container = server.container.get_wrapped_container()
            container.reload()
            if container.status != "running" or time.monotonic() > deadline:
                told = container.logs(tail=20).decode("utf-8", "replace")
                raise AssertionError(f"the server is {container.status} and does not answer: {told}") from None
            time.sleep(0.05)
