"""Servers behind TLS: nothing is asked, and no password sent, before it is proved who answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from arecall.adapter import Adapter
from arecall.capture import capture
from arecall.errors import BackendUnavailable, UsageError
from arecall.world import Principal, World
from arecall_adapters import elasticsearch, openfga, opensearch
from certificates import Authority
from proxies import Recorder
from servers import Server

pytestmark = pytest.mark.live

WORLD = World(
    principals=frozenset({"ann", "bob"}),
    documents=frozenset({"d1", "d2"}),
    grants=frozenset({(Principal("ann"), "d1")}),
)


@dataclass
class Backend:
    """A server with something to ask about, and the way to ask about it at another address.

    Attributes:
        server: where it is, without TLS.
        connect: opens an adapter at a URL, with further options.
        principals: what `ann` and `bob` are called.
    """

    server: Server
    connect: Callable[..., Adapter]
    principals: list[str]


@pytest.fixture(scope="module", params=["elasticsearch", "opensearch", "openfga"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    server: Server = request.getfixturevalue(request.param)
    if request.param == "openfga":
        with openfga.empty(server.url) as made:
            made.provision(WORLD)
            options = {"store": made.store.id}
            yield Backend(
                server, lambda url, **more: openfga.connect({"api_url": url, **options, **more}), ["ann", "bob"]
            )
        return
    module: Any = {"elasticsearch": elasticsearch, "opensearch": opensearch}[request.param]
    with module.empty(server.url, server.user, server.password) as made:
        made.provision(WORLD)
        options = {"index": made.question.access_path, "user": server.user, "password": server.password}
        users = [made.asking.user(person) for person in ("ann", "bob")]
        yield Backend(server, lambda url, **more: module.connect({"url": url, **options, **more}), users)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


Behind = Callable[[str], Recorder]


@pytest.fixture
def behind(backend: Backend, authority: Authority) -> Iterator[Behind]:
    """Put a server of TLS before the backend, with a certificate for a name."""
    with ExitStack() as stack:

        def behind(host: str) -> Recorder:
            recorder = Recorder(backend.server.url, tls=authority.serving(host))
            return stack.enter_context(recorder.running())

        yield behind


def test_a_server_whose_authority_is_named_is_asked(backend: Backend, authority: Authority, behind: Behind) -> None:
    recorder = behind("127.0.0.1")
    with backend.connect(recorder.url, ca_file=authority.file) as adapter:
        taken = capture(adapter, backend.principals, ["d1", "d2"])
    assert [set(taken.authorized(person)) for person in backend.principals] == [{"d1"}, set()]
    assert len(recorder.requests) > 3


@pytest.mark.parametrize("trusted", ["the system's authorities", "another authority"])
def test_a_server_whose_authority_is_not_trusted_is_sent_nothing(
    backend: Backend, behind: Behind, trusted: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = {} if trusted.startswith("the") else {"ca_file": Authority(tmp_path_factory.mktemp("other")).file}
    refused(backend, behind("127.0.0.1"), "certificate verify failed", **other)


def test_a_server_of_another_name_is_sent_nothing(backend: Backend, authority: Authority, behind: Behind) -> None:
    refused(backend, behind("search.example.org"), "127.0.0.1", ca_file=authority.file)


def refused(backend: Backend, recorder: Recorder, said: str, **options: Any) -> None:
    with (
        pytest.raises(BackendUnavailable, match="no trusted connection") as caught,
        backend.connect(recorder.url, **options) as adapter,
    ):
        capture(adapter, backend.principals, ["d1", "d2"])
    assert said in caught.value.cause
    assert "--ca-file" in caught.value.fix
    assert "the name that the certificate is for" in caught.value.fix
    assert recorder.requests == []


def test_a_server_without_tls_is_sent_nothing_where_tls_is_asked_for(backend: Backend) -> None:
    recorder = Recorder(backend.server.url)
    with recorder.running():
        recorder.url = recorder.url.replace("http:", "https:")
        refused(backend, recorder, "SSL")


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_without_authorities_is_refused(backend: Backend, tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "none.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=r"none\.pem cannot be loaded"):
        backend.connect("https://127.0.0.1:9", ca_file=file)
