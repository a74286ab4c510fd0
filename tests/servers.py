"""Live servers in containers, for one test run each; whatever was started is stopped when the run ends.

The processes of one run (of pytest-xdist) share a server of each backend; a test that needs settings of its own, or that
stops its server, has one to itself.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import functools
import json
import os
import random
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any

from docker.client import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from arecall.errors import BackendUnavailable
from arecall.testing import unavailable
from arecall_adapters import containers
from arecall_adapters.opensearch import QUICK

READY_SECONDS = 300
"""A Java server is ready in 10 s on an idle machine; a busy one has taken more than 60."""

ATTEMPTS = 3
RUN_LABEL = "arecall.test-run"

BCRYPT_ROUNDS = "4"
"""The fewest that OpenSearch takes; the default of 12 is for passwords that somebody could guess."""

PASSWORD = "Wander-copper-47-lantern"
"""Of every administrator; OpenSearch refuses weak ones."""


@dataclass(frozen=True)
class Server:
    """A running container and where it answers; `user` and `password` are those of the administrator."""

    container: Container
    url: str
    user: str = ""
    password: str = field(default="", repr=False)

    def docker(self, command: str) -> None:
        """Do what `docker <command>` does to the container: pause, unpause, kill."""
        getattr(self.container, command)()

    def ask(
        self, path: str, body: object = None, *, method: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request as the administrator and return what the JSON says; a status that is an error is an OSError."""
        request = urllib.request.Request(
            f"{self.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **(headers or {})},
        )
        if self.user:
            credentials = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            request.add_header("Authorization", f"Basic {credentials}")
        for attempt in range(20):
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                # Of OpenSearch's security all of a kind is one document: two processes that write at once conflict.
                if error.code != 409 or attempt == 19:
                    raise
                time.sleep(random.uniform(0.05, 0.5))
        raise AssertionError


@dataclass(frozen=True)
class Kind:
    """How a backend's image is started, be it the official one or ours, and when the server in it is ready."""

    port: int
    environment: Mapping[str, str]
    ready: Callable[[Server], bool]
    command: str | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    account: Callable[[Server], Server] = lambda server: server


def _quick_account(server: Server) -> Server:
    """Return the server with an administrator whose password is checked in no time.

    OpenSearch forgets who has logged in at each change of its security, and checks the password anew with the next request. The
    hash of `admin` is made to take a second of a busy machine; this one's is made as BCRYPT_ROUNDS says.
    """
    path = f"/_plugins/_security/api/internalusers/{QUICK}"
    try:
        server.ask(path)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        server.ask(path, {"password": server.password, "backend_roles": ["admin"]}, method="PUT")
    return replace(server, user=QUICK)


KINDS = {
    "openfga": Kind(
        port=8080,
        command="run",
        environment={"OPENFGA_LOG_LEVEL": "warn", "OPENFGA_PLAYGROUND_ENABLED": "false"},
        ready=lambda server: server.ask("/healthz")["status"] == "SERVING",
    ),
    "elasticsearch": Kind(
        port=9200,
        user="elastic",
        password=PASSWORD,
        environment={
            "ELASTIC_PASSWORD": PASSWORD,
            # A server of a few minutes never earns back what the second compiler costs.
            "ES_JAVA_OPTS": "-Xms512m -Xmx512m -XX:TieredStopAtLevel=1",
            "discovery.type": "single-node",
            # A full disk of the machine that tests is none of theirs.
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "xpack.security.enabled": "true",
            "xpack.security.http.ssl.enabled": "false",
            "xpack.license.self_generated.type": "trial",
        },
        # It answers before it knows its licence, and says then that it may do nothing.
        ready=lambda server: server.ask("/_license")["license"]["status"] == "active",
    ),
    "opensearch": Kind(
        port=9200,
        user="admin",
        password=PASSWORD,
        environment={
            "OPENSEARCH_INITIAL_ADMIN_PASSWORD": PASSWORD,
            "OPENSEARCH_JAVA_OPTS": "-Xms512m -Xmx512m -XX:TieredStopAtLevel=1",
            "DISABLE_PERFORMANCE_ANALYZER_AGENT_CLI": "true",
            "discovery.type": "single-node",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "plugins.security.ssl.http.enabled": "false",
            # A node reads these at its start only.
            "plugins.security.authcz.rest_impersonation_user.admin": "*",
            f"plugins.security.authcz.rest_impersonation_user.{QUICK}": "*",
            "plugins.security.password.hashing.bcrypt.rounds": BCRYPT_ROUNDS,
        },
        ready=lambda server: server.ask("/_plugins/_security/health")["status"] == "UP",
        account=_quick_account,
    ),
}


@contextlib.contextmanager
def openfga(environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run an OpenFGA of its own; skip, or fail where live tests are required, if none can be. Likewise the others."""
    with _own("openfga", environment or {}) as server:
        yield server


@contextlib.contextmanager
def elasticsearch(environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run an Elasticsearch of its own; a variable with a dot in its name is a node setting."""
    with _own("elasticsearch", environment or {}) as server:
        yield server


@contextlib.contextmanager
def opensearch(environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run an OpenSearch of its own; a variable with a dot in its name is a node setting."""
    with _own("opensearch", environment or {}) as server:
        yield server


@contextlib.contextmanager
def shared(backend: str, run: Path) -> Iterator[Server]:
    """Run the one server of `backend` that all processes with the folder `run` share; the last of them stops it.

    A file there names the container. Who uses it holds a lock, which the system lets go when a process ends in any way.
    """
    told = run / f"{backend}.container"
    with (run / f"{backend}.using").open("w") as using:
        try:
            with _locked(run / f"{backend}.lock"):
                container = _told(told)
                if container is None or container.status != "running":
                    # Under pytest-xdist, the run lasts as long as the parent of this process does.
                    owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
                    container = _started(backend, {}, owner)
                    told.write_text(str(container.id), "utf-8")
                fcntl.flock(using, fcntl.LOCK_SH)
            yield _ready(backend, container)
        finally:
            with _locked(run / f"{backend}.lock"), contextlib.suppress(BlockingIOError):
                fcntl.flock(using, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if left := _told(told):
                    _remove(left)


def _told(file: Path) -> Container | None:
    with contextlib.suppress(FileNotFoundError, NotFound):
        return DockerClient.from_env().containers.get(file.read_text("utf-8"))
    return None


@contextlib.contextmanager
def _own(backend: str, environment: Mapping[str, str]) -> Iterator[Server]:
    container = _started(backend, environment, os.getpid())
    try:
        yield _ready(backend, container)
    finally:
        _remove(container)


def _started(backend: str, environment: Mapping[str, str], owner: int) -> Container:
    """Start a container that is for the process `owner` to stop, or for the next test run on this machine if it can't."""
    try:
        image = containers.image(backend)
    except BackendUnavailable as error:
        unavailable(str(error))
    reaper()
    stop_orphans()
    kind = KINDS[backend]
    for attempt in range(ATTEMPTS):
        container = DockerContainer(image, command=kind.command, env={**kind.environment, **environment})
        container.with_kwargs(labels={RUN_LABEL: str(owner)})
        # On loopback only; the engine chooses a free port, which another process may be quicker to take.
        container.ports = {f"{kind.port}/tcp": ("127.0.0.1", None)}  # type: ignore[dict-item]
        try:
            return container.start().get_wrapped_container()
        except BaseException as error:
            container.stop()
            if not isinstance(error, APIError) or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError


def _ready(backend: str, container: Container) -> Server:
    kind = KINDS[backend]
    container.reload()
    (binding,) = container.attrs["NetworkSettings"]["Ports"][f"{kind.port}/tcp"]
    server = Server(container, f"http://127.0.0.1:{binding['HostPort']}", kind.user, kind.password)
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with contextlib.suppress(OSError, HTTPException):
            if kind.ready(server):
                return kind.account(server)
        container.reload()
        if container.status != "running" or time.monotonic() > deadline:
            told = container.logs(tail=20).decode("utf-8", "replace")
            raise AssertionError(f"the server is {container.status} and does not answer: {told}")
        time.sleep(0.05)


def _remove(container: Container) -> None:
    with contextlib.suppress(NotFound):
        container.remove(force=True, v=True)


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does, too."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


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


@functools.cache
def stop_orphans() -> None:
    """Stop containers of earlier test runs on this machine that were killed before they could."""
    for container in DockerClient.from_env().containers.list(all=True, filters={"label": RUN_LABEL}):
        if not alive(int(container.labels[RUN_LABEL])):
            with contextlib.suppress(APIError):
                _remove(container)
