"""Requests, tokens and failures, against servers that are not OpenFGA."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from arecall.errors import BackendUnavailable
from arecall_adapters.openfga.drift import Watch
from arecall_adapters.openfga.question import Question
from arecall_adapters.openfga.store import Store
from arecall_adapters.openfga.transport import Access, Refused, Transport
from proxies import Recorder, Reply, Request

JSON = {"Content-Type": "application/json"}
SECRET = "opensesame-4711"


@pytest.fixture
def serving() -> Iterator[Callable[[Callable[[Request], Reply]], Recorder]]:
    running: list[Any] = []

    def serving(answer: Callable[[Request], Reply]) -> Recorder:
        recorder = Recorder("", lambda request, _: answer(request))
        running.append(recorder.running())
        running[-1].__enter__()
        return recorder

    yield serving
    for each in running:
        each.__exit__(None, None, None)


def reply(document: Any, status: int = 200) -> Reply:
    return Reply(status, dict(JSON), json.dumps(document).encode())


def issuing(tokens: Iterator[str]) -> Callable[[Request], Reply]:
    """An issuer, and a server that takes the last token alone."""
    valid = {"token": ""}

    def answer(request: Request) -> Reply:
        if request.path.endswith("/oauth/token"):
            valid["token"] = next(tokens)
            return reply({"access_token": valid["token"], "expires_in": 3600})
        if request.headers.get("Authorization") != f"Bearer {valid['token']}":
            return reply({"code": "bearer_token_invalid", "message": "no"}, 401)
        return reply({"ok": True})

    return answer


def with_client(url: str) -> Transport:
    return Transport(Access(url, client_id="me", client_secret=SECRET, issuer=url, audience="fga", timeout=5))


def test_client_credentials_are_exchanged_for_a_token_once(serving: Any) -> None:
    server = serving(issuing(iter(["one"])))
    client = with_client(server.url)
    assert [client.get("/x"), client.get("/x")] == [{"ok": True}] * 2
    asked = [request for request in server.requests if request.path.endswith("/oauth/token")]
    assert len(asked) == 1
    assert b"client_credentials" in asked[0].body
    assert b"audience=fga" in asked[0].body


def test_a_token_that_is_taken_back_is_renewed(serving: Any) -> None:
    answer = issuing(iter(["one", "other", "two"]))
    server = serving(answer)
    client = with_client(server.url)
    client.get("/x")
    answer(Request("POST", "/oauth/token", b"", {}))  # from now on another token is the valid one
    assert client.get("/x") == {"ok": True}


def test_a_server_that_takes_no_token_is_not_asked_for_ever(serving: Any) -> None:
    def answer(request: Request) -> Reply:
        if request.path.endswith("/oauth/token"):
            return reply({"access_token": SECRET, "expires_in": 3600})
        return reply({"code": "bearer_token_invalid", "message": "no"}, 401)

    server = serving(answer)
    with pytest.raises(BackendUnavailable, match="does not accept our credentials") as caught:
        with_client(server.url).get("/x")
    assert len([request for request in server.requests if request.path == "/x"]) == 2
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_an_issuer_that_gives_no_token_is_an_error_without_the_secret(serving: Any) -> None:
    server = serving(lambda _: reply({"error": "invalid_client", "secret": SECRET}, 401))
    with pytest.raises(BackendUnavailable, match="gave no token") as caught:
        with_client(server.url).get("/x")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_no_representation_shows_a_secret() -> None:
    access = Access("http://localhost:1", token=SECRET, client_secret=SECRET)
    transport = Transport(Access("http://localhost:1", token=SECRET))
    assert SECRET not in repr(access) + repr(transport) + repr(transport._headers()) + str(transport)


def test_a_refusal_is_told_by_its_code(serving: Any) -> None:
    server = serving(lambda _: reply({"code": "validation_error", "message": "no such thing"}, 400))
    with pytest.raises(Refused) as caught:
        Transport(Access(server.url)).post("/x", {})
    assert (caught.value.status, caught.value.code) == (400, "validation_error")


def test_a_refusal_of_a_stream_is_one_too(serving: Any) -> None:
    said = {"error": {"grpc_code": 2000, "http_code": 400, "message": "no context", "http_status": "Bad Request"}}
    server = serving(lambda _: reply(said, 400))
    with pytest.raises(Refused, match="no context"):
        Transport(Access(server.url)).lines("/x", {})


def test_a_write_is_not_repeated_when_its_answer_is_lost(serving: Any) -> None:
    server = serving(lambda _: Reply(200, dict(JSON), b'{"ok": true}', cut=3))
    with pytest.raises(BackendUnavailable):
        Transport(Access(server.url)).post("/x", {}, repeatable=False)
    assert len(server.requests) == 1


def test_the_clock_of_the_server_is_told_from_its_answers(serving: Any) -> None:
    server = serving(lambda _: reply({}))
    transport = Transport(Access(server.url))
    transport.get("/x")
    assert abs(transport._behind) < timedelta(seconds=3)


# -- drift, where no server can be made to behave so ---------------------------------------------------------------------


def tuple_of(document: str, written: str) -> dict[str, Any]:
    key = {"user": "user:ann", "relation": "viewer", "object": f"document:{document}"}
    return {"key": key, "timestamp": written}


def watching(serving: Any, tuples: list[Any], changes: list[Any], forbid: str = "") -> Watch:
    def answer(request: Request) -> Reply:
        if forbid and forbid in request.path:
            return reply({"code": "forbidden", "message": "no"}, 403)
        if request.path.endswith("/read"):
            return reply({"tuples": tuples})
        given = "continuation_token" in request.path
        return reply({"changes": [] if given else changes, "continuation_token": "end"})

    return Watch(Store(Transport(Access(serving(answer).url)), "s", Question("document", "viewer")))


OLD, NEW = "2026-01-01T00:00:00.123456789Z", "2026-01-01T01:00:00Z"


def test_a_feed_that_has_the_newest_tuple_is_relied_on(serving: Any) -> None:
    tuples = [tuple_of("a", OLD), tuple_of("b", NEW)]
    watch = watching(serving, tuples, [{"timestamp": NEW}])
    first = watch.look()
    assert first.doubt == ""
    assert watch.look() == first
    tuples.append(tuple_of("c", NEW))
    assert watch.look().digest != first.digest


def test_a_feed_that_lacks_the_newest_tuple_withholds_it(serving: Any) -> None:
    watch = watching(serving, [tuple_of("a", OLD), tuple_of("b", NEW)], [{"timestamp": OLD}])
    assert "withholds" in watch.look().doubt


def test_an_empty_feed_of_a_store_with_tuples_proves_nothing(serving: Any) -> None:
    assert "empty" in watching(serving, [tuple_of("a", OLD)], []).look().doubt


@pytest.mark.parametrize(
    ("forbidden", "said"), [("/read", "the tuples may not be read"), ("/changes", "feed may not be read")]
)
def test_what_may_not_be_read_proves_nothing(serving: Any, forbidden: str, said: str) -> None:
    assert said in watching(serving, [], [], forbidden).look().doubt
