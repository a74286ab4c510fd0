"""Whatever goes wrong on the way to a cluster: an error that says what and what to do, never a short set, and no file."""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import servers
from arecall.capture import capture
from arecall.errors import BackendTimeout, BackendUnavailable, IncompleteAnswer
from arecall.world import World as Neutral
from arecall_adapters import elasticsearch, opensearch
from arecall_adapters.dls.adapter import DlsAdapter
from arecall_adapters.dls.wire import SCROLL
from live.dls.clusters import Cluster, open_cluster, seen
from live.openfga.running import arecall
from proxies import Recorder, Reply, Request, Rule, Wire, honest
from servers import Server

pytestmark = pytest.mark.live

PEOPLE = [f"p{number}" for number in range(6)]
DOCUMENTS = [f"d{number}" for number in range(60)]
READS = {
    person: {document for number, document in enumerate(DOCUMENTS) if number % (at + 2) == 0}
    for at, person in enumerate(PEOPLE)
}
ENGINES = ["elasticsearch", "opensearch"]


class World:
    """An index of several pages, and people of whom each is shown another part of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.docs, self.alias = f"{cluster.prefix}docs", f"{cluster.prefix}alias"
        documents = {
            document: {"readers": [person for person in PEOPLE if document in READS[person]]} for document in DOCUMENTS
        }
        cluster.index(self.docs, documents, {"properties": {"readers": {"type": "keyword"}}}, {self.alias: {}})
        cluster.roles({self.name(person): self.role(person) for person in PEOPLE})
        cluster.users({self.name(person): {"roles": [self.name(person)]} for person in PEOPLE})
        self.people = [self.name(person) for person in PEOPLE]

    def name(self, person: str) -> str:
        return self.cluster.prefix + person

    def role(self, person: str) -> dict[str, Any]:
        query = json.dumps({"term": {"readers": person}})
        names = [self.docs, self.alias]
        if self.cluster.elastic:
            return {"indices": [{"names": names, "privileges": ["read"], "query": query}]}
        return {"index_permissions": [{"index_patterns": names, "allowed_actions": ["read"], "dls": query}]}


@pytest.fixture(scope="module", params=ENGINES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    server = request.getfixturevalue(request.param)
    with open_cluster(server, request.param, tmp_path_factory.mktemp("faults")) as cluster:
        yield World(cluster)


Through = Callable[..., tuple[Recorder, DlsAdapter]]


@pytest.fixture
def through(world: World) -> Iterator[Through]:
    """Open the index through a proxy that answers by a rule."""
    with ExitStack() as stack:

        def through(rule: Rule = honest, path: str = "", **options: Any) -> tuple[Recorder, DlsAdapter]:
            recorder = stack.enter_context(Recorder(world.cluster.server.url).running())
            given = {"url": recorder.url, "timeout": 20.0, "page_size": 10, **options}
            adapter = stack.enter_context(world.cluster.connect(path or world.docs, **given))
            recorder.rule = rule
            return recorder, adapter

        yield through


def searches(request: Request) -> bool:
    return request.method == "POST" and request.path.partition("?")[0].endswith("/_search")


def right(world: World, adapter: DlsAdapter) -> None:
    taken = capture(adapter, world.people, adapter.documents(), sample=20)
    assert {person: seen(taken, world.name(person)) for person in PEOPLE} == READS


# -- reading only --------------------------------------------------------------------------------------------------------


def reads(request: Request) -> bool:
    """Whether a request changes nothing, but for points in time that are opened and given back."""
    path = request.path.partition("?")[0]
    last = path.rpartition("/")[2]
    if request.method == "GET":
        return True
    if request.method == "POST":
        return last in ("_search", "_pit", "point_in_time", "_mget") or path.endswith("/_validate/query")
    return request.method == "DELETE" and path in ("/_pit", "/_search/point_in_time")


def test_nothing_is_written_to_a_cluster_that_is_read(world: World, through: Through) -> None:
    recorder, adapter = through(compare_paths=f"{world.alias},get")
    right(world, adapter)
    adapter.close()
    assert len(recorder.requests) > 60
    assert [request for request in recorder.requests if not reads(request)] == []
    opened = sum(
        request.method == "POST" and request.path.partition("?")[0].endswith(("_pit", "point_in_time"))
        for request in recorder.requests
    )
    closed = sum(request.method == "DELETE" for request in recorder.requests)
    assert opened == closed > 1


def test_the_recorder_would_show_a_write(world: World, through: Through) -> None:
    role = world.name("p0")
    recorder, adapter = through(roles=[role], allow_temporary_principals=True)
    capture(adapter, [role], adapter.documents())
    adapter.close()
    assert any(not reads(request) and "security" in request.path for request in recorder.requests)


# -- what passes, and what stays -----------------------------------------------------------------------------------------

HTML = {"Content-Type": "text/html"}
JSON = {"Content-Type": "application/json"}

FAULTS: dict[str, Callable[[Reply], None]] = {
    "too many": lambda reply: reply.__dict__.update(status=429, headers={**JSON, "Retry-After": "0"}, body=b"{}"),
    "unavailable": lambda reply: reply.__dict__.update(status=503, headers=JSON, body=b"{}"),
    "bad gateway": lambda reply: reply.__dict__.update(status=502, headers=HTML, body=b"<html>"),
    "cut": lambda reply: reply.__dict__.update(cut=max(0, len(reply.body) - 7)),
    "html": lambda reply: reply.__dict__.update(headers=HTML, body=b"<html>welcome</html>"),
    "no json": lambda reply: reply.__dict__.update(body=reply.body[:-9]),
}

PASSING = ["too many", "unavailable", "bad gateway", "cut"]


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("path", ["index", "alias"])
def test_a_fault_that_passes_is_got_over(world: World, through: Through, fault: str, path: str) -> None:
    hurt: list[Request] = []

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if searches(request) and not hurt:
            hurt.append(request)
            FAULTS[fault](reply)
        return reply

    right(world, through(rule, path=world.docs if path == "index" else world.alias)[1])
    assert len(hurt) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_an_error(world: World, through: Through, fault: str) -> None:
    count = 0

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        nonlocal count
        reply = ask()
        count += searches(request)
        # Not the first page: what came before it must not be taken for the whole.
        if searches(request) and count > 9:
            FAULTS[fault](reply)
        return reply

    _, adapter = through(rule)
    with pytest.raises(BackendUnavailable) as caught:
        right(world, adapter)
    assert caught.value.cause
    assert caught.value.fix


def test_a_pause_that_is_too_long_is_not_waited_for(world: World, through: Through) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        return Reply(429, {**JSON, "Retry-After": "3600"}, b"{}") if searches(request) else ask()

    _, adapter = through(rule)
    started = time.monotonic()
    with pytest.raises(BackendUnavailable):
        right(world, adapter)
    assert time.monotonic() - started < 20


def test_a_slow_drip_is_too_late_however_steady(world: World, through: Through) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if searches(request):
            reply.drip = 0.2
        return reply

    _, adapter = through(rule, timeout=3.0)
    started = time.monotonic()
    with pytest.raises(BackendTimeout, match="within"):
        right(world, adapter)
    assert time.monotonic() - started < 40


def test_a_point_in_time_that_is_gone_is_an_error(world: World, through: Through) -> None:
    count = 0

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        nonlocal count
        count += searches(request)
        if searches(request) and count == 9:
            name = json.loads(request.body)["pit"]["id"]
            if world.cluster.elastic:
                world.cluster.ask("DELETE", "/_pit", {"id": name})
            else:
                world.cluster.ask("DELETE", "/_search/point_in_time", {"pit_id": [name]})
        return ask()

    _, adapter = through(rule)
    with pytest.raises(IncompleteAnswer, match="is gone"):
        right(world, adapter)
    assert count >= 9


@pytest.mark.parametrize("fault", ["unavailable", "bad gateway", "cut"])
def test_a_page_of_a_scroll_that_is_lost_is_an_error_and_not_left_out(
    world: World, through: Through, fault: str
) -> None:
    hurt: list[Request] = []

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if request.path == SCROLL and request.method == "POST" and not hurt:
            hurt.append(request)
            FAULTS[fault](reply)
        return reply

    _, adapter = through(rule)
    wire, reader = adapter.engine.wire, adapter.engine.as_user(world.name("p0"))
    body = {"size": 10, "track_total_hits": True}
    first = wire.ask("POST", f"/{world.docs}/_search?scroll=1m", body, requester=reader)
    assert len(first["hits"]["hits"]) < first["hits"]["total"]["value"] == len(READS["p0"])
    with pytest.raises(BackendUnavailable):
        wire.ask("POST", SCROLL, {"scroll": "1m", "scroll_id": first["_scroll_id"]}, requester=reader)
    assert len(hurt) == 1
    wire.ask("DELETE", SCROLL, {"scroll_id": [first["_scroll_id"]]})


def test_what_was_made_is_removed_when_the_search_fails(world: World, through: Through) -> None:
    role = world.name("p0")

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        return Reply(503, JSON, b"{}") if searches(request) else ask()

    recorder, adapter = through(roles=[role], allow_temporary_principals=True)
    documents = adapter.documents()
    capture(adapter, [role], documents)
    made = list(adapter.asking._names)
    assert made
    assert set(made) <= set(adapter.engine.temporaries())
    recorder.rule = rule
    with pytest.raises(BackendUnavailable):
        capture(adapter, [role], documents)
    adapter.close()
    with world.cluster.connect(world.docs) as again:
        assert not set(made) & set(again.engine.temporaries())


def forbids_removal(request: Request, ask: Callable[[], Reply]) -> Reply:
    """Let everything be made, and no key, user or index be removed."""
    place = request.path.partition("?")[0]
    removes = (request.method == "DELETE" and place not in ("/_pit", "/_search/point_in_time")) or (
        request.method == "PATCH" and b'"remove"' in request.body
    )
    if not removes:
        return ask()
    return Reply(403, JSON, json.dumps({"error": {"type": "security_exception", "reason": "not you"}}).encode())


def test_what_may_not_be_removed_is_told_by_name(world: World, tmp_path: Path) -> None:
    engine, server = world.cluster.engine, world.cluster.server
    arguments = ["--index", world.docs, "--roles", world.name("p0"), "--allow-temporary-principals", "--quiet"]
    if not world.cluster.elastic:
        arguments += ["--dfm-empty-overrides-all", "false"]
    recorder = Recorder(server.url, forbids_removal)
    with recorder.running():
        done = arecall(
            "snapshot",
            engine,
            *arguments,
            "-o",
            str(tmp_path / "now.json"),
            **{
                f"{engine.upper()}_URL": recorder.url,
                f"{engine.upper()}_USERNAME": server.user,
                f"{engine.upper()}_PASSWORD": server.password,
            },
        )
    assert done.returncode == 0, done.stderr
    (told,) = (line for line in done.stderr.splitlines() if line.startswith("arecall left"))
    assert "not you" in told
    assert f"arecall cleanup {engine}" in done.stderr.partition(told)[2].splitlines()[1]
    assert server.password not in done.stderr
    with world.cluster.connect(world.docs) as again:
        left = {name for name in again.engine.temporaries() if name in told}
        assert len(left) == 1
        again.engine.dismiss(list(left))


def test_what_a_cluster_that_is_gone_keeps_is_told_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    parts = urllib.parse.urlsplit(world.cluster.server.url)
    wire = Wire((parts.hostname or "", parts.port or 0))
    role = world.name("p0")
    adapter = world.cluster.connect(world.docs, url=wire.url, roles=[role], allow_temporary_principals=True)
    capture(adapter, [role], adapter.documents())
    (made,) = adapter.asking._names
    wire.cut()
    adapter.close()
    adapter.close()
    (told,) = messages(caplog)
    assert f"the temporary principals {made} at {wire.url}" in told
    assert f"arecall cleanup {world.cluster.engine}" in told
    with world.cluster.connect(world.docs) as again:
        assert made in again.engine.temporaries()
        again.engine.dismiss([made])


def test_an_index_that_may_not_be_deleted_keeps_nothing_else(world: World, caplog: pytest.LogCaptureFixture) -> None:
    cluster = world.cluster

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        return forbids_removal(request, ask) if request.path.startswith("/arecall-world-") else ask()

    recorder = Recorder(cluster.server.url, rule)
    module = elasticsearch if cluster.elastic else opensearch
    with recorder.running(), module.empty(recorder.url, cluster.server.user, cluster.server.password) as adapter:
        adapter.provision(Neutral(principals=frozenset({"ann"}), documents=frozenset({"d1"})))
        index = adapter.question.access_path
        made = adapter.engine.policy([index])
        assert adapter.asking.user("ann") in made.holders
    (told,) = messages(caplog)
    assert f"the index {index} at {recorder.url}" in told
    assert "delete" in told.partition("fix:")[2]
    with cluster.connect(index) as again:
        kept = again.engine.policy([index])
        assert not [name for name in (*kept.roles, *kept.holders) if name.startswith(index)]
    cluster.ask("DELETE", f"/{index}")


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("arecall")]


# -- a server of its own, which is harmed --------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ENGINES)
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with getattr(servers, request.param)() as server:
        cluster = Cluster(server, request.param, tmp_path_factory.mktemp("own"))
        yield World(cluster)
        cluster.wire.close()


@pytest.mark.parametrize("harm", ["pause", "kill"])
def test_a_server_that_is_lost_in_the_middle_leaves_no_file(own: World, tmp_path: Path, harm: str) -> None:
    server: Server = own.cluster.server
    harmed = threading.Event()
    recorder = Recorder(server.url)

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        if sum(map(searches, recorder.requests)) > 9 and not harmed.is_set():
            harmed.set()
            server.docker(harm)
        return ask()

    recorder.rule = rule
    (tmp_path / "principals.txt").write_text("\n".join(own.people))
    engine = own.cluster.engine
    credentials = {
        f"{engine.upper()}_URL": "",
        f"{engine.upper()}_USERNAME": server.user,
        f"{engine.upper()}_PASSWORD": server.password,
    }
    arguments = ["--index", own.docs, "--principals", str(tmp_path / "principals.txt"), "--page-size", "10"]
    with recorder.running():
        credentials[f"{engine.upper()}_URL"] = recorder.url
        try:
            more = ["--timeout", "5", "-o", str(tmp_path / "now.json")]
            done = arecall("snapshot", engine, *arguments, *more, **credentials)
        finally:
            if harm == "pause" and harmed.is_set():
                server.docker("unpause")
    assert harmed.is_set()
    assert done.returncode == 3, done.stderr
    assert "fix:" in done.stderr
    assert server.password not in done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["principals.txt"]
