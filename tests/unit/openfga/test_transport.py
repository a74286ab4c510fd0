"""Requests, tokens and failures, against servers that are not OpenFGA."""

from __future__ import annotations

import itertools
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any

import pytest

from arecall.errors import BackendUnavailable, UsageError
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


def test_authorities_for_a_server_without_tls_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"--ca-file is for https://, and nothing proves who answers at http://localhost:1"
    ):
        Transport(Access("http://localhost:1", ca_file=__file__))


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
    behind = formatdate(time.time() - 3600, usegmt=True)
    server = serving(lambda _: Reply(200, {**JSON, "Date": behind}, b"{}"))
    transport = Transport(Access(server.url))
    assert abs(datetime.now(UTC) - transport.server_time()) < timedelta(seconds=1)
    transport.get("/x")
    told = datetime.now(UTC) - transport.server_time()
    assert timedelta(seconds=3595) < told < timedelta(seconds=3605)


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 30 Nov 2026 00:00:00"])
def test_a_server_that_tells_no_time_is_taken_to_have_ours(serving: Any, date: str) -> None:
    server = serving(lambda _: Reply(200, {**JSON, "Date": date}, b"{}"))
    transport = Transport(Access(server.url))
    transport.get("/x")
    assert abs(datetime.now(UTC) - transport.server_time()) < timedelta(seconds=1)


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


class Paged:
    """A store with two tuples on a page; how many pages were asked for at once, and which.

    A page's place is its first tuple, as servers on a database have it; with `anew`, places are named otherwise each time.
    """

    def __init__(self, documents: str, *, anew: bool = False) -> None:
        self.documents = list(documents)
        self.anew = anew
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def __call__(self, request: Request) -> Reply:
        if "changes" in request.path:
            given = "continuation_token" in request.path
            return reply({"changes": [] if given else [{"timestamp": NEW}], "continuation_token": "end"})
        place = json.loads(request.body).get("continuation_token", "").partition("#")[0]
        with self._lock:
            self.asked.append(place)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(0.02)
        following = [document for document in sorted(self.documents) if document >= place]
        token = following[2] if len(following) > 2 else ""
        if token and self.anew:
            token = f"{token}#{next(self._numbers)}"
        with self._lock:
            self.at_once -= 1
        return reply({"tuples": [tuple_of(each, OLD) for each in following[:2]], "continuation_token": token})

    def watched(self, serving: Any, concurrency: int = 3) -> Watch:
        store = Store(Transport(Access(serving(self).url)), "s", Question("document", "viewer"))
        return Watch(store, concurrency=concurrency)


PAGES = ["", "c", "e", "g", "i", "k", "m"]


def test_pages_whose_places_are_known_are_asked_for_at_once_but_not_beyond_the_concurrency(serving: Any) -> None:
    store = Paged("abcdefghijklmn")
    watch = store.watched(serving)
    first = watch.look()
    assert (store.asked, store.most_at_once) == (PAGES, 1)
    store.asked.clear()
    assert watch.look() == first
    assert sorted(store.asked) == PAGES
    assert 1 < store.most_at_once <= 3


@pytest.mark.parametrize("concurrency", [1, 3, 50])
@pytest.mark.parametrize(
    "after",
    [
        pytest.param("acdefghijklmn", id="one less at the beginning"),
        pytest.param("abcdefghijkln", id="one less at the end"),
        pytest.param("abcdefgijklmn", id="one less in the middle"),
        pytest.param("abdefghijklmn", id="one less where a page begins"),
        pytest.param("abcdefghijklmnop", id="a page more"),
        pytest.param("abcdefghijkl", id="a page less"),
        pytest.param("abcddefghijklmn", id="one more at the end of a page"),
        pytest.param("", id="all gone"),
    ],
)
def test_whatever_changed_is_seen_though_pages_are_asked_for_ahead(serving: Any, after: str, concurrency: int) -> None:
    store = Paged("abcdefghijklmn")
    watch = store.watched(serving, concurrency)
    first = watch.look()
    store.documents[:] = after
    second = watch.look()
    assert second.digest != first.digest
    assert second.digest == watch.look().digest
    assert store.most_at_once <= concurrency
    store.documents[:] = "abcdefghijklmn"
    assert watch.look().digest == first.digest


def test_a_tuple_between_two_pages_that_are_as_they_were_is_seen(serving: Any) -> None:
    store = Paged("abdefg")  # the pages begin with a, d and f: what comes after b stands on none of them
    watch = store.watched(serving)
    first = watch.look()
    store.documents.append("c")
    assert watch.look().digest != first.digest


def test_a_server_that_names_places_anew_each_time_is_walked_page_by_page(serving: Any) -> None:
    store = Paged("abcdefghijklmn", anew=True)
    watch = store.watched(serving)
    first = watch.look()
    assert watch.look() == first
    assert store.most_at_once <= 3
    store.documents.remove("h")
    assert watch.look().digest != first.digest
