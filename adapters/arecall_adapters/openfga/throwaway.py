"""A server for the time being: the `openfga` on the PATH, else a container; in memory, on loopback, gone afterwards."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import NamedTuple

from arecall.errors import BackendUnavailable
from arecall_adapters import containers

READY_SECONDS = 60.0


class Server(NamedTuple):
    """Where a server answers, and the image that it runs from ("" for a binary)."""

    url: str
    image: str


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """Run a server until the end of the block.

    Raises:
        BackendUnavailable: there is neither a binary nor a container engine with the image, or it does not start.
    """
    binary = shutil.which("openfga")
    with _process(binary) if binary else _container() as running:
        yield running


@contextlib.contextmanager
def _container() -> Iterator[Server]:
    image = containers.image("openfga")
    command = [
        "docker",
        "run",
        "--detach",
        "--rm",
        "--publish",
        "127.0.0.1::8080",
        image,
        "run",
        "--playground-enabled=false",
    ]
    started = _run(command)
    try:
        address = _run(["docker", "port", started, "8080/tcp"]).splitlines()[0]
        url = f"http://{address}"
        _await(url, lambda: _run(["docker", "logs", started]))
        yield Server(url, containers.identity(image))
    finally:
        subprocess.run(["docker", "rm", "--force", started], check=False, capture_output=True)  # noqa: S603, S607


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")  # noqa: S603 -- no shell
    if done.returncode:
        raise BackendUnavailable(f"no server could be started: {done.stderr.strip()}", "see what docker says")
    return done.stdout.strip()


@contextlib.contextmanager
def _process(binary: str) -> Iterator[Server]:
    http, grpc = _free_port(), _free_port()
    command = [binary, "run", f"--http-addr=127.0.0.1:{http}", f"--grpc-addr=127.0.0.1:{grpc}"]
    command += ["--playground-enabled=false", "--metrics-enabled=false"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603 -- no shell

        def logged() -> str:
            log.seek(0)
            return log.read().decode("utf-8", "replace")

        try:
            url = f"http://127.0.0.1:{http}"
            _await(url, logged, process)
            yield Server(url, "")
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _await(url: str, logged: Callable[[], str], process: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):  # noqa: S310 -- http, on loopback
                return
        except OSError:
            if time.monotonic() > deadline or (process is not None and process.poll() is not None):
                raise BackendUnavailable(
                    f"the throw-away server does not answer: {logged()[-500:]}", "see what it says"
                ) from None
            time.sleep(0.05)
