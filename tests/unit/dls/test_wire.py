"""Requests by the clients of both engines, to a server that is neither: how often they are made, and what is refused before."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from arecall.errors import BackendTimeout, BackendUnavailable, UsageError
from arecall_adapters.dls.wire import ATTEMPTS, SCROLL, Access, Refused, Wire
from arecall_adapters.elasticsearch.wire import ElasticsearchWire
from arecall_adapters.opensearch.wire import OpenSearchWire
from proxies import Recorder, Reply, Request

JSON = {"Content-Type": "application/json"}
WIRES = [ElasticsearchWire, OpenSearchWire]

Serving = Callable[[Callable[[Request], Reply]], Recorder]


@pytest.fixture
def serving() -> Iterator[Serving]:
    with ExitStack() as stack:

        def serving(answer: Callable[[Request], Reply]) -> Recorder:
            return stack.enter_context(Recorder("", lambda request, _: answer(request)).running())

        yield serving


@pytest.fixture(params=WIRES)
def opened(request: pytest.FixtureRequest) -> Iterator[Callable[..., Wire]]:
    with ExitStack() as stack:

        def opened(url: str, **settings: Any) -> Wire:
            wire: Wire = request.param(Access(url, **settings))
            stack.callback(wire.close)
            return wire

        yield opened


def lost(_: Request) -> Reply:
    """Nobody knows whether the request was carried out."""
    return Reply(200, dict(JSON), b"{}", cut=0)


def gateway(_: Request) -> Reply:
    return Reply(504, dict(JSON), b"{}")


@pytest.mark.parametrize(
    ("method", "path", "failure", "times"),
    [
        ("GET", "/docs", lost, ATTEMPTS),
        ("POST", "/docs/_search?size=1", lost, ATTEMPTS),
        ("POST", "/_security/_query/api_key?with_limited_by=true", lost, ATTEMPTS),
        ("PUT", "/docs", lost, 1),
        ("POST", "/_bulk?refresh=true", lost, 1),
        ("POST", "/docs/_search/point_in_time", lost, 1),
        ("GET", "/docs", gateway, ATTEMPTS),
        ("PUT", "/docs", gateway, ATTEMPTS),
        ("POST", SCROLL, lost, 1),
        ("POST", SCROLL, gateway, 1),
    ],
)
def test_a_request_is_made_again_where_that_does_no_harm(
    opened: Callable[..., Wire],
    serving: Serving,
    method: str,
    path: str,
    failure: Callable[[Request], Reply],
    times: int,
) -> None:
    server = serving(failure)
    with pytest.raises(BackendUnavailable) as caught:
        opened(server.url).ask(method, path, None if method == "GET" else {})
    assert [(each.method, each.path) for each in server.requests] == [(method, path)] * times
    assert caught.value.fix


def test_an_answer_may_take_as_long_as_was_said(serving: Serving) -> None:
    def late(_: Request) -> Reply:
        time.sleep(11)  # the client of Elasticsearch waits for ten seconds, unless it is told otherwise at each request
        return Reply(200, dict(JSON), b'{"late": true}')

    server = serving(late)
    with ThreadPoolExecutor() as pool, ExitStack() as stack:
        wires = [wire(Access(server.url, timeout=60)) for wire in WIRES]
        for wire in wires:
            stack.callback(wire.close)
        answers = list(pool.map(lambda wire: wire.ask("POST", "/docs/_search", {}), wires))
    assert answers == [{"late": True}] * 2
    assert len(server.requests) == 2


def test_an_answer_may_not_take_longer(opened: Callable[..., Wire], serving: Serving) -> None:
    def late(_: Request) -> Reply:
        time.sleep(2)
        return Reply(200, dict(JSON), b"{}")

    server = serving(late)
    with pytest.raises(BackendTimeout, match=r"did not answer GET /docs within 0\.5 s"):
        opened(server.url, timeout=0.5).ask("GET", "/docs")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, dict(JSON), b"[]"),
        Reply(200, dict(JSON), b""),
        Reply(200, dict(JSON), b'{"cut":'),
        Reply(200, {"Content-Type": "text/html"}, b"<html>"),
    ],
)
def test_an_answer_that_is_none_is_an_error(opened: Callable[..., Wire], serving: Serving, reply: Reply) -> None:
    with pytest.raises(BackendUnavailable, match="no whole JSON object"):
        opened(serving(lambda _: reply).url).ask("GET", "/docs")


@pytest.mark.parametrize("status", [301, 400, 403, 404, 500])
def test_no_status_but_a_success_is_an_answer(opened: Callable[..., Wire], serving: Serving, status: int) -> None:
    body = json.dumps({"hits": {}, "error": {"type": "t", "reason": "r"}}).encode()
    with pytest.raises(Refused, match=f"{status}: r") as caught:
        opened(serving(lambda _: Reply(status, {**JSON, "Location": "/"}, body)).url).ask("GET", "/docs")
    assert caught.value.status == status


def test_a_wire_that_was_closed_asks_nothing(opened: Callable[..., Wire], serving: Serving) -> None:
    server = serving(lambda _: Reply(200, dict(JSON), b"{}"))
    wire = opened(server.url)
    wire.close()
    wire.close()
    with pytest.raises(BackendUnavailable, match="was closed"):
        wire.ask("GET", "/docs")
    assert server.requests == []


def test_an_address_where_nobody_answers_is_an_error(opened: Callable[..., Wire]) -> None:
    with pytest.raises(BackendUnavailable, match=r"http://127\.0\.0\.1:9 cannot be reached") as caught:
        opened("http://127.0.0.1:9").ask("PUT", "/docs", {})
    assert "--url" in caught.value.fix


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "localhost:9200"}, "is no URL of a server"),
        ({"url": "http://localhost:port"}, "reach no"),
        ({"url": "http://ann:secret@localhost:9200"}, "holds a user or password"),
        ({"user": "ann"}, "go together"),
        ({"user": "ann", "api_key": "secret"}, "not both"),
        ({"ca_file": __file__}, "--ca-file is for https"),
        ({"ca_file": __file__, "url": "https://localhost:9200"}, "cannot be loaded"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    opened: Callable[..., Wire], settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        opened(**{"url": "http://localhost:9200", **settings})
    assert "secret" not in str(caught.value)


def test_opensearch_takes_no_api_key() -> None:
    with pytest.raises(UsageError, match="has no API keys"):
        OpenSearchWire(Access("http://localhost:9200", api_key="id:key"))
