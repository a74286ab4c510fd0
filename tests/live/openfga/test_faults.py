"""Whatever goes wrong on the way: an error that says what and what to do, never a short set, and no file."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import servers
from arecall.capture import capture
from arecall.decisions import Decision
from arecall.errors import BackendError, BackendTimeout, BackendUnavailable, InputError, PolicyError, UsageError
from arecall.snapshot import Snapshot
from arecall.world import Grant, Principal, World
from arecall_adapters import openfga as fga
from arecall_adapters.openfga import transport
from arecall_adapters.openfga.options import open_store
from live.openfga.running import arecall
from proxies import Recorder, Reply, Request, Rule, honest
from servers import Server

pytestmark = pytest.mark.live

PEOPLE = [f"p{number}" for number in range(8)]
DOCUMENTS = [f"d{number}" for number in range(120)]
READS = {
    person: {document for number, document in enumerate(DOCUMENTS) if number % (at + 2) == 0}
    for at, person in enumerate(PEOPLE)
}
WORLD = World(
    frozenset(PEOPLE),
    frozenset(DOCUMENTS),
    grants=frozenset((Principal(person), document) for person, documents in READS.items() for document in documents),
)
READING = ("/check", "/batch-check", "/streamed-list-objects", "/list-objects", "/expand", "/read")
"""What a POST may end with that writes nothing."""


@pytest.fixture(scope="module")
def store(openfga: Server) -> Iterator[str]:
    with fga.empty(openfga.url) as adapter:
        adapter.provision(WORLD)
        yield adapter.store.id


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LONGEST_WAIT", 2.0)


@pytest.fixture
def through(openfga: Server, store: str) -> Iterator[Callable[..., tuple[Recorder, Any]]]:
    """Open the store through a proxy that answers by a rule."""
    running: list[Any] = []

    def through(rule: Rule = honest, **options: Any) -> tuple[Recorder, Any]:
        recorder = Recorder(openfga.url)
        running.append(recorder.running())
        running[-1].__enter__()
        adapter = open_store({"timeout": 2.0, **options}, recorder.url, store)
        running.append(adapter)
        recorder.rule = rule
        return recorder, adapter

    yield through
    for each in reversed(running):
        each.__exit__(None, None, None)


def some(request: Request) -> bool:
    """Whether a request is one of the decisions, not of the first look at the store."""
    return request.path.endswith(("/batch-check", "/streamed-list-objects"))


def asked_first(path: str) -> Callable[[Request], bool]:
    """Whether a request is the first of its kind."""
    seen: list[Request] = []

    def first(request: Request) -> bool:
        if request.path.endswith(path):
            seen.append(request)
        return request.path.endswith(path) and len(seen) == 1

    return first


def take(adapter: Any, people: Sequence[str] = tuple(PEOPLE)) -> Snapshot:
    """Capture with a small sample: every pair of it goes through a proxy written in Python."""
    return capture(adapter, people, DOCUMENTS, sample=40)


def right(adapter: Any) -> None:
    taken = take(adapter)
    assert {person: set(taken.authorized(person)) for person in PEOPLE} == READS


@pytest.mark.parametrize("road", ["stream", "check"])
def test_nothing_is_written_to_a_store_that_is_read(through: Any, road: str) -> None:
    recorder, adapter = through(road=road)
    right(adapter)
    adapter.explain("p0", "d0")
    adapter.close()
    assert len(recorder.requests) > 20
    for request in recorder.requests:
        path = request.path.partition("?")[0]
        assert request.method == "GET" or (request.method == "POST" and path.endswith(READING)), request


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_are_under_way_than_are_allowed(through: Any, concurrency: int) -> None:
    under_way: list[Request] = []
    most: list[int] = []

    def counted(request: Request, ask: Callable[[], Reply]) -> Reply:
        under_way.append(request)
        most.append(len(under_way))
        reply = ask()
        under_way.remove(request)
        return reply

    # Lists are completed by checks here, so that both are asked for side by side.
    recorder, adapter = through(counted, road="stream", concurrency=concurrency)
    right(adapter)
    assert {"batch-check", "streamed-list-objects"} <= {r.path.rpartition("/")[2] for r in recorder.requests}
    assert max(most) == concurrency


def test_the_recorder_would_show_a_write(openfga: Server) -> None:
    recorder = Recorder(openfga.url)
    with recorder.running(), fga.empty(recorder.url) as adapter:
        adapter.provision(WORLD)
    kinds = {(request.method, request.path.rpartition("/")[2]) for request in recorder.requests}
    assert ("POST", "write") in kinds
    assert ("POST", "stores") in kinds
    assert any(request.method == "DELETE" for request in recorder.requests)


PASSING: dict[str, Callable[[Reply], None]] = {
    "too many": lambda reply: reply.__dict__.update(status=429, headers={"Retry-After": "0"}, body=b"{}"),
    "broken": lambda reply: reply.__dict__.update(status=500, body=b'{"code":"internal_error","message":"oops"}'),
    "bad gateway": lambda reply: reply.__dict__.update(
        status=502, headers={"Content-Type": "text/html"}, body=b"<html>"
    ),
    "cut": lambda reply: reply.__dict__.update(cut=max(0, len(reply.body) - 7)),
    "html": lambda reply: reply.__dict__.update(headers={"Content-Type": "text/html"}, body=b"<html>welcome</html>"),
    "no json": lambda reply: reply.__dict__.update(body=reply.body[:-9]),
}


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("path", ["/batch-check", "/streamed-list-objects", "/check"])
def test_a_fault_that_passes_is_got_over(through: Any, fault: str, path: str) -> None:
    first = asked_first(path)
    hurt: list[Request] = []

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if first(request):
            hurt.append(request)
            PASSING[fault](reply)
        return reply

    right(through(rule, road="stream")[1])
    assert len(hurt) == 1


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("road", ["stream", "check"])
def test_a_fault_that_stays_is_an_error(through: Any, fault: str, road: str) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if some(request):
            PASSING[fault](reply)
        return reply

    _, adapter = through(rule, road=road)
    with pytest.raises(BackendUnavailable) as caught:
        take(adapter)
    assert caught.value.cause
    assert caught.value.fix


def test_a_stream_that_ends_between_two_lines_is_completed_by_checks(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if request.path.endswith("/streamed-list-objects"):
            reply.body = b"".join(reply.body.splitlines(keepends=True)[:3])
        return reply

    right(through(rule, road="stream")[1])


def test_a_batch_that_leaves_pairs_out_is_an_error(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if request.path.endswith("/batch-check"):
            results = json.loads(reply.body)["result"]
            results.popitem()
            reply.body = json.dumps({"result": results}).encode()
        return reply

    with pytest.raises(BackendError, match="at once, the server decided"):
        take(through(rule, road="check")[1])


def test_a_pair_that_a_batch_had_no_time_for_is_asked_alone(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if request.path.endswith("/batch-check"):
            results = json.loads(reply.body)["result"]
            results["0"] = {"error": {"internal_error": "deadline_exceeded", "message": "slow"}}
            reply.body = json.dumps({"result": results}).encode()
        return reply

    right(through(rule, road="check")[1])


def test_a_denial_without_a_word_is_no_denial(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if request.path.endswith("/batch-check"):
            reply.body = json.dumps({"result": {name: {} for name in json.loads(reply.body)["result"]}}).encode()
        return reply

    with pytest.raises(BackendError, match="without a decision"):
        take(through(rule, road="check")[1])


def test_a_server_that_takes_smaller_batches_gets_them(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        if request.path.endswith("/batch-check") and len(json.loads(request.body)["checks"]) > 7:
            said = {"code": "validation_error", "message": "batchCheck received 50 checks, the maximum allowed is 7"}
            return Reply(400, {"Content-Type": "application/json"}, json.dumps(said).encode())
        return ask()

    right(through(rule, road="check")[1])


def test_a_server_without_batches_is_asked_pair_by_pair(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        if request.path.endswith("/batch-check"):
            said = {"code": "undefined_endpoint", "message": "Not Found"}
            return Reply(404, {"Content-Type": "application/json"}, json.dumps(said).encode())
        return ask()

    adapter = through(rule, road="check")[1]
    taken = take(adapter, PEOPLE[:3])
    assert {person: set(taken.authorized(person)) for person in PEOPLE[:3]} == {p: READS[p] for p in PEOPLE[:3]}


def test_a_slow_drip_is_too_late_however_steady(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        reply = ask()
        if some(request):
            reply.drip = 0.2
        return reply

    _, adapter = through(rule, timeout=0.7, concurrency=2)
    started = time.monotonic()
    with pytest.raises(BackendTimeout, match="within"):
        take(adapter, PEOPLE[:2])
    assert time.monotonic() - started < 20


def test_a_pause_that_is_asked_for_is_kept(through: Any) -> None:
    first = asked_first("/batch-check")
    when: list[float] = []

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        if request.path.endswith("/batch-check"):
            when.append(time.monotonic())
        if first(request):
            return Reply(429, {"Retry-After": "1"}, b"{}")
        return ask()

    capture(through(rule, road="check", concurrency=1)[1], ["p0"], DOCUMENTS[:40])
    assert when[1] - when[0] >= 1


def test_a_pause_that_is_too_long_is_not_waited_for(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        return Reply(503, {"Retry-After": "3600"}, b"{}") if some(request) else ask()

    _, adapter = through(rule)
    started = time.monotonic()
    with pytest.raises(BackendUnavailable, match="asks to wait 3600 s"):
        take(adapter)
    assert time.monotonic() - started < 5


def test_a_token_that_expires_leaves_nothing(through: Any, tmp_path: Path) -> None:
    count = 0

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        nonlocal count
        count += some(request)
        if count > 3:
            said = {"code": "bearer_token_invalid", "message": "token expired"}
            return Reply(401, {"Content-Type": "application/json"}, json.dumps(said).encode())
        return ask()

    _, adapter = through(rule, token="opensesame-4711")
    with pytest.raises(BackendUnavailable, match="does not accept our credentials: token expired") as caught:
        take(adapter)
    shown = "".join(traceback.format_exception(caught.value)) + repr(adapter) + repr(vars(adapter.store))
    assert "opensesame" not in shown


def test_who_may_not_read_the_store_is_told_so(through: Any) -> None:
    said = json.dumps({"code": "forbidden", "message": "the principal is not authorized"}).encode()

    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        return Reply(403, {"Content-Type": "application/json"}, said) if some(request) else ask()

    with pytest.raises(BackendUnavailable, match="forbids this to us"):
        take(through(rule)[1])


def test_who_may_not_read_the_stores_name_may_read_the_rest(openfga: Server, store: str) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        said = b'{"code": "forbidden", "message": "no"}'
        if request.path.endswith(store):
            return Reply(403, {"Content-Type": "application/json"}, said)
        return ask()

    recorder = Recorder(openfga.url, rule)
    with recorder.running(), open_store({}, recorder.url, store) as adapter:
        assert store in adapter.describe().identity


def test_a_redirect_is_not_followed(through: Any) -> None:
    def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
        return Reply(307, {"Location": "http://127.0.0.1:1/"}, b"") if some(request) else ask()

    with pytest.raises(BackendUnavailable, match="another address"):
        take(through(rule)[1])


# -- wrong settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"relation": "viewr"}, "has no relation 'viewr' .did you mean 'viewer'"),
        ({"type": "documents"}, "has no type 'documents' .did you mean 'document'"),
        ({"model": "01HXXXXXXXXXXXXXXXXXXXXXXX"}, "has no model"),
    ],
)
def test_a_wrong_model_type_or_relation_is_refused_with_the_near_ones(
    openfga: Server, store: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(PolicyError, match=said):
        fga.connect({"api_url": openfga.url, "store": store, **options})


def test_a_store_that_is_not_there_is_refused(openfga: Server) -> None:
    with pytest.raises(PolicyError, match="FGA_STORE_ID"):
        fga.connect({"api_url": openfga.url, "store": "01HXXXXXXXXXXXXXXXXXXXXXXX"})


def test_an_address_where_nobody_answers_is_an_error() -> None:
    with pytest.raises(BackendUnavailable, match=r"127\.0\.0\.1:9.* failed"):
        fga.connect({"api_url": "http://127.0.0.1:9", "store": "01HXXXXXXXXXXXXXXXXXXXXXXX"})


def test_a_server_without_tls_is_an_error_where_tls_is_asked_for(openfga: Server, store: str) -> None:
    with pytest.raises(BackendUnavailable, match="no trusted connection"):
        fga.connect({"api_url": openfga.url.replace("http:", "https:"), "store": store})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"api_url": "http://ann:secret@localhost:1"}, "holds a name or password"),
        ({"api_url": "localhost:8080"}, "is no URL"),
        ({"client_id": "ann"}, "client credentials are incomplete"),
        ({"token": "t", "client_id": "ann"}, "a token and client credentials"),
        ({"principal_template": "user:"}, "must hold {id} once"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        fga.connect({"api_url": "http://127.0.0.1:9", "store": "s", **options})
    assert "secret@" not in str(caught.value)


def test_ids_that_openfga_cannot_hold_are_named(through: Any) -> None:
    _, adapter = through()
    with pytest.raises(InputError) as caught:
        capture(adapter, ["ann", "a b", "x#y"], DOCUMENTS)
    assert "'a b'" in str(caught.value)
    assert "'x#y'" in str(caught.value)


# -- a server of its own, which is harmed --------------------------------------------------------------------------------


def snapshot(url: str, store: str, folder: Path, **more: str) -> Any:
    (folder / "principals.txt").write_text("\n".join(PEOPLE))
    (folder / "documents.txt").write_text("\n".join(DOCUMENTS))
    options = {"principals": str(folder / "principals.txt"), "documents": str(folder / "documents.txt"), **more}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    environment = {"FGA_API_URL": url, "FGA_STORE_ID": store, "FGA_API_TOKEN": "opensesame-4711"}
    return arecall("snapshot", "openfga", *arguments, "-o", str(folder / "now.json"), **environment)


@pytest.mark.parametrize("harm", ["kill", "pause"])
def test_a_server_that_is_lost_in_the_middle_leaves_no_file(tmp_path: Path, harm: str) -> None:
    with servers.openfga() as own, fga.empty(own.url) as made:
        made.provision(WORLD)
        recorder = Recorder(own.url)
        harmed = threading.Event()

        def rule(request: Request, ask: Callable[[], Reply]) -> Reply:
            if sum(map(some, recorder.requests)) > 3 and not harmed.is_set():
                harmed.set()
                own.docker(harm)
            return ask()

        recorder.rule = rule
        with recorder.running():
            try:
                done = snapshot(recorder.url, made.store.id, tmp_path, timeout="1", concurrency="2")
            finally:
                if harm == "pause":
                    own.docker("unpause")
    assert harmed.is_set()
    assert done.returncode == 3, done.stderr
    assert "fix:" in done.stderr
    assert "opensesame" not in done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents.txt", "principals.txt"]


def test_a_snapshot_holds_no_secret(openfga: Server, store: str, tmp_path: Path) -> None:
    done = snapshot(openfga.url, store, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "opensesame" not in done.stdout + done.stderr + (tmp_path / "now.json").read_text()


def test_a_shared_key_opens_a_server_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    keys = {"OPENFGA_AUTHN_METHOD": "preshared", "OPENFGA_AUTHN_PRESHARED_KEYS": "opensesame-4711"}
    with servers.openfga(keys) as own, fga.empty(own.url, token="opensesame-4711") as made:
        made.provision(WORLD)
        done = snapshot(own.url, made.store.id, tmp_path)
        assert done.returncode == 0, done.stderr
        with pytest.raises(BackendUnavailable, match="does not accept our credentials"):
            fga.connect({"api_url": own.url, "store": made.store.id, "token": "wrong-4711"})


def test_a_change_is_seen_by_the_next_check(openfga: Server) -> None:
    with fga.empty(openfga.url) as adapter:
        adapter.provision(World(frozenset({"ann"}), frozenset({"memo"})))
        assert adapter.check("ann", ["memo"])[0].decision is Decision.DENY
        adapter.apply(Grant(Principal("ann"), "memo"))
        assert adapter.check("ann", ["memo"])[0].decision is Decision.ALLOW
