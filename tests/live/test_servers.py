"""Servers of tests: one for all processes of a run, apart from other runs, and gone when the run is, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError

import pytest

import servers
from servers import Server

pytestmark = pytest.mark.live

TESTS = Path(__file__).parents[1]
BACKENDS = ["elasticsearch", "openfga", "opensearch"]
SECONDS = 120

RUN = """
import os, pathlib, time
import pytest

FOLDER = pathlib.Path(__file__).parent

@pytest.mark.parametrize("number", range(2))
def test_that_waits(number, openfga):
    told = FOLDER / f"{os.getpid()}.told"
    told.with_suffix(".telling").write_text(openfga.container.id)
    told.with_suffix(".telling").rename(told)
    while not (FOLDER / "end").exists():
        time.sleep(0.05)
"""


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def containers_of(process: int) -> list[str]:
    command = ["docker", "ps", "-aq", "--no-trunc", "--filter", f"label={servers.RUN_LABEL}={process}"]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout.split()


class Run:
    """Another test run, of two processes; each is in a test that waits for `end`, on the server of the run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "test_run.py").write_text(RUN)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self.folder = folder
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "--numprocesses", "2"),
                *("--config-file", os.devnull, "--rootdir", folder, f"--basetemp={folder}/temporary", folder),
            ],
            cwd=folder,
            env={**environment, "PYTHONPATH": str(TESTS)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        until(lambda: len(self.told()) == 2 or self.process.poll() is not None)
        self.workers = [int(told.stem) for told in self.told()]
        (self.container,) = {told.read_text() for told in self.told()}
        assert containers_of(self.process.pid) == [self.container]

    def told(self) -> list[Path]:
        return list(self.folder.glob("*.told"))

    def signal(self, number: signal.Signals) -> None:
        """Do what Ctrl-C does: signal each of its processes."""
        os.killpg(self.process.pid, number)

    def end(self) -> int:
        (self.folder / "end").touch()
        return self.process.wait(SECONDS)


@pytest.fixture
def run(openfga: Server, tmp_path: Path) -> Iterator[Callable[[str], Run]]:
    del openfga  # whatever makes live tests impossible is said there
    runs = []

    def start(name: str) -> Run:
        runs.append(Run(tmp_path / name))
        return runs[-1]

    yield start
    for started in runs:
        if started.process.poll() is None:
            started.signal(signal.SIGKILL)
            started.process.wait(SECONDS)
    servers.stop_orphans.__wrapped__()


def test_a_run_that_ends_leaves_nothing(run: Callable[[str], Run]) -> None:
    ending = run("ending")
    assert ending.end() == 0
    assert containers_of(ending.process.pid) == []


def test_an_interrupted_run_leaves_nothing(run: Callable[[str], Run]) -> None:
    interrupted = run("interrupted")
    interrupted.signal(signal.SIGINT)
    assert interrupted.process.wait(SECONDS) != 0
    until(lambda: containers_of(interrupted.process.pid) == [])


def test_what_a_killed_run_left_is_stopped_by_the_next(run: Callable[[str], Run], openfga: Server) -> None:
    killed = run("killed")
    killed.signal(signal.SIGKILL)
    killed.process.wait(SECONDS)
    until(lambda: not any(servers.alive(worker) for worker in killed.workers))
    servers.stop_orphans.__wrapped__()
    until(lambda: containers_of(killed.process.pid) == [])
    assert openfga.ask("/healthz")


def test_a_process_that_is_killed_takes_no_server_from_the_others(run: Callable[[str], Run]) -> None:
    run_of_one = run("one")
    os.kill(run_of_one.workers[0], signal.SIGKILL)
    time.sleep(1)
    assert containers_of(run_of_one.process.pid) == [run_of_one.container]
    assert run_of_one.end() == 1  # the test that was killed has failed
    assert containers_of(run_of_one.process.pid) == []


def test_runs_at_the_same_time_have_servers_of_their_own(run: Callable[[str], Run], openfga: Server) -> None:
    first, second = run("first"), run("second")
    assert len({first.container, second.container, openfga.container.id}) == 3
    assert first.end() == 0
    assert containers_of(first.process.pid) == []
    assert containers_of(second.process.pid) == [second.container]
    assert second.end() == 0
    assert openfga.ask("/healthz")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_server_is_reached_from_this_machine_alone(backend: str, request: pytest.FixtureRequest) -> None:
    ports = request.getfixturevalue(backend).container.attrs["NetworkSettings"]["Ports"]
    assert {published["HostIp"] for port in ports.values() for published in port or []} == {"127.0.0.1"}


def test_elasticsearch_has_a_licence_for_document_level_security(elasticsearch: Server) -> None:
    licence = elasticsearch.ask("/_license")["license"]
    assert (licence["type"], licence["status"]) == ("trial", "active")


def test_an_elasticsearch_of_its_own_can_have_a_basic_licence() -> None:
    with servers.elasticsearch({"xpack.license.self_generated.type": "basic"}) as own:
        assert own.ask("/_license")["license"]["type"] == "basic"


def test_a_template_of_a_role_gets_the_users_own_text(elasticsearch: Server) -> None:
    text = 'a"b\\c\n{{d}}'
    index = "servers-template"
    try:
        for number, group in enumerate([text, "other"]):
            elasticsearch.ask(f"/{index}/_doc/{number}?refresh=true", {"group": group}, method="PUT")
        templates = {
            "field": '{"term": {"group.keyword": "{{_user.metadata.group}}"}}',
            "list": '{"terms": {"group.keyword": {{#toJson}}_user.metadata.groups{{/toJson}}}}',
        }
        for name, source in templates.items():
            query = {"template": {"source": source}}
            role = {"indices": [{"names": [index], "privileges": ["read"], "query": query}]}
            elasticsearch.ask(f"/_security/role/{index}-{name}", role, method="PUT")
            user = {
                "password": servers.PASSWORD,
                "roles": [f"{index}-{name}"],
                "metadata": {"group": text, "groups": [text]},
            }
            elasticsearch.ask(f"/_security/user/{index}-{name}", user, method="PUT")
            seen = elasticsearch.ask(f"/{index}/_search", headers={"es-security-runas-user": f"{index}-{name}"})
            assert [hit["_id"] for hit in seen["hits"]["hits"]] == ["0"], name
    finally:
        elasticsearch.ask(f"/{index}?ignore_unavailable=true", method="DELETE")


def test_the_administrator_of_opensearch_may_impersonate(opensearch: Server) -> None:
    user = "/_plugins/_security/api/internalusers/servers-ann"
    opensearch.ask(user, {"password": servers.PASSWORD}, method="PUT")
    try:
        headers = {"opendistro_security_impersonate_as": "servers-ann"}
        assert opensearch.ask("/_plugins/_security/authinfo", headers=headers)["user_name"] == "servers-ann"
    finally:
        opensearch.ask(user, method="DELETE")


def seen_through_a_role_with_and_one_without_a_query(server: Server) -> int:
    """Count the documents, of two, that a user sees whose one role has a query for the first, and whose other has none."""
    index = "servers-two-roles"
    api = "/_plugins/_security/api"
    made = [f"{api}/roles/{index}-some", f"{api}/roles/{index}-all", f"{api}/internalusers/{index}", f"/{index}"]
    try:
        for number in range(2):
            server.ask(f"/{index}/_doc/{number}?refresh=true", {"number": number}, method="PUT")
        for name, query in zip(made, ['{"term": {"number": 0}}', ""], strict=False):
            grant = {"index_patterns": [index], "allowed_actions": ["read"], "dls": query}
            server.ask(name, {"index_permissions": [grant]}, method="PUT")
        roles = [f"{index}-some", f"{index}-all"]
        server.ask(made[2], {"password": servers.PASSWORD, "opendistro_security_roles": roles}, method="PUT")
        headers = {"opendistro_security_impersonate_as": index}
        return int(server.ask(f"/{index}/_count", headers=headers)["count"])
    finally:
        for name in made:
            with contextlib.suppress(HTTPError):
                server.ask(name, method="DELETE")


def test_on_opensearch_a_role_without_a_query_lifts_no_other_ones(opensearch: Server) -> None:
    assert seen_through_a_role_with_and_one_without_a_query(opensearch) == 1


def test_an_opensearch_of_its_own_can_be_set_to_lift_them() -> None:
    with servers.opensearch({"plugins.security.dfm_empty_overrides_all": "true"}) as own:
        assert seen_through_a_role_with_and_one_without_a_query(own) == 2
