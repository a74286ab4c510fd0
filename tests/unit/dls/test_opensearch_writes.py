"""Roles and users of OpenSearch are one document of a kind each, which several write at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from arecall.errors import BackendError
from arecall_adapters.dls.wire import CAPTURING, Refused, Requester
from arecall_adapters.opensearch.engine import OpenSearchEngine


class Contended:
    """A wire whose security index another writer changes whenever a request is large, and at its first `quarrels` requests."""

    def __init__(self, largest: int, quarrels: int = 0) -> None:
        self.largest, self.quarrels = largest, quarrels
        self.users: dict[str, Any] = {}

    def ask(self, method: str, path: str, body: Any = None, *, requester: Requester = CAPTURING) -> Mapping[str, Any]:
        if method == "GET":
            return self.users
        self.quarrels -= 1
        if len(body) > self.largest or self.quarrels >= 0:
            raise Refused(409, {"status": "CONFLICT"})
        for operation in body:
            name = operation["path"][1:]
            if operation["op"] == "add":
                self.users[name] = operation["value"]
            else:
                del self.users[name]
        return {}

    def close(self) -> None:
        """There is nothing to close."""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)


def test_many_users_are_written_and_removed_beside_somebody_who_writes_all_the_time() -> None:
    wire = Contended(largest=100, quarrels=15)
    engine = OpenSearchEngine(wire)  # type: ignore[arg-type]
    users = {f"user-{number}": ["role"] for number in range(1_001)}
    engine.put_users(users)
    assert wire.users.keys() == users.keys()
    engine.remove_users([*users, "somebody-else"])
    assert wire.users == {}


def test_a_conflict_that_stays_is_an_error() -> None:
    with pytest.raises(BackendError, match="409"):
        OpenSearchEngine(Contended(largest=0)).put_users({"ann": ["role"]})  # type: ignore[arg-type]
