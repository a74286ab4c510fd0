"""A cluster of one node for the time being, in a container on loopback, gone afterwards."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import NamedTuple

from arecall.adapter import Empty
from arecall.errors import ArecallError, BackendUnavailable, UsageError
from arecall_adapters import containers
from arecall_adapters.dls.adapter import DlsAdapter
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.options import empty_adapter
from arecall_adapters.dls.product import Kind
from arecall_adapters.dls.wire import Access, Refused

READY_SECONDS = 180.0
"""A JVM starts slowly on a busy machine."""


class Server(NamedTuple):
    """Where a cluster answers, its administrator, and the image that it runs from ("" for one that is not ours)."""

    url: str
    user: str
    password: str
    image: str = ""


@contextlib.contextmanager
def sandbox(kind: Kind, make: Callable[[Access], Engine], url: str | None) -> Iterator[Empty]:
    """Open indices of their own on the cluster at `url` (with the administrator in it), or on a throw-away one.

    Raises:
        UsageError: the URL does not say who the administrator is.
        BackendUnavailable: no cluster can be started.
    """
    with contextlib.ExitStack() as stack:
        server = _named(url) if url is not None else stack.enter_context(_started(kind, make))
        yield lambda: open_empty(make, server)


def open_empty(make: Callable[[Access], Engine], server: Server) -> DlsAdapter:
    """Make an index of its own, to provision a world in; closing the adapter removes it.

    Raises:
        BackendError: the cluster cannot be asked, or the account may make no index.
    """
    engine = make(Access(server.url, server.user, server.password))
    try:
        return empty_adapter(engine, server.image)
    except BaseException:
        engine.wire.close()
        raise


def _named(url: str) -> Server:
    parts = urllib.parse.urlsplit(url)
    if not parts.username or not parts.password:
        raise UsageError("say who may make roles and users there: http://user:password@host:9200")
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return Server(bare, urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password))


@contextlib.contextmanager
def _started(kind: Kind, make: Callable[[Access], Engine]) -> Iterator[Server]:
    image = containers.image(kind.name)
    # The engine wants a character of each kind.
    password = f"aA1-{secrets.token_urlsafe(24)}"
    settings = {**kind.environment, kind.password_variable: password}
    variables = [argument for name, value in settings.items() for argument in ("--env", f"{name}={value}")]
    started = _run(["docker", "run", "--detach", "--rm", "--publish", "127.0.0.1::9200", *variables, image])
    try:
        address = _run(["docker", "port", started, "9200/tcp"]).splitlines()[0]
        server = Server(f"http://{address}", kind.user, password, containers.identity(image))
        yield server._replace(user=_await(kind, make, server, started))
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", started], check=False, capture_output=True)  # noqa: S603, S607


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")  # noqa: S603 -- no shell
    if done.returncode:
        raise BackendUnavailable(f"no cluster could be started: {done.stderr.strip()}", "see what docker says")
    return done.stdout.strip()


def _await(kind: Kind, make: Callable[[Access], Engine], server: Server, container: str) -> str:
    """Wait until the server answers; return the name of the administrator to ask as."""
    engine = make(Access(server.url, server.user, server.password, timeout=5))
    deadline = time.monotonic() + READY_SECONDS
    try:
        while True:
            with contextlib.suppress(ArecallError, Refused, KeyError):
                if kind.ready(engine):
                    return kind.account(engine, server.password) if kind.account is not None else kind.user
            running = _run(["docker", "ps", "--quiet", "--no-trunc", "--filter", f"id={container}"])
            if not running or time.monotonic() > deadline:
                told = _run(["docker", "logs", "--tail", "20", container]) if running else "it ended"
                raise BackendUnavailable(
                    f"the throw-away {kind.name} does not answer: {told[-500:]}", "see what it says"
                )
            time.sleep(0.2)
    finally:
        engine.wire.close()
