"""Servers of tests: apart from each other, and gone when the run is, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import servers
from servers import Server

pytestmark = pytest.mark.live

TESTS = Path(__file__).parents[1]
RUN = """
import sys, time
sys.path.insert(0, sys.argv[1])
import servers
with servers.openfga() as server:
    print(server.container.id, flush=True)
    time.sleep(60)
"""


def containers_of(process: int) -> str:
    command = ["docker", "ps", "-aq", "--no-trunc", "--filter", f"label={servers.RUN_LABEL}={process}"]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout.strip()


@pytest.fixture
def other(openfga: Server) -> subprocess.Popen[str]:
    """Another run, with a server of its own."""
    del openfga  # whatever makes live tests impossible is said there
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(TESTS)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    )
    assert process.stdout is not None
    with process.stdout:
        container = process.stdout.readline().strip()
    assert containers_of(process.pid) == container != ""
    return process


def test_an_interrupted_run_leaves_nothing(other: subprocess.Popen[str], openfga: Server) -> None:
    other.send_signal(signal.SIGINT)
    other.wait(30)
    assert containers_of(other.pid) == ""
    with urllib.request.urlopen(f"{openfga.url}/healthz") as answer:
        assert answer.status == 200


def test_what_a_killed_run_left_is_stopped_by_the_next(other: subprocess.Popen[str], openfga: Server) -> None:
    other.kill()
    other.wait(30)
    servers.stop_orphans.__wrapped__()
    deadline = time.monotonic() + 20
    while containers_of(other.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert containers_of(other.pid) == ""
    with urllib.request.urlopen(f"{openfga.url}/healthz") as answer:
        assert answer.status == 200


def test_a_server_is_reached_from_this_machine_alone(openfga: Server) -> None:
    ports = openfga.container.attrs["NetworkSettings"]["Ports"]["8080/tcp"]
    assert {port["HostIp"] for port in ports} == {"127.0.0.1"}
