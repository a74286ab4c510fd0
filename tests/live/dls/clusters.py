"""A running cluster of either engine, its administrator's tools, and snapshots that are taken of it."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arecall.capture import capture
from arecall.decisions import Decision
from arecall.record import Finding
from arecall.snapshot import Snapshot
from arecall_adapters import elasticsearch, opensearch
from arecall_adapters.dls.adapter import DlsAdapter
from arecall_adapters.dls.wire import Access, Refused, Wire
from arecall_adapters.elasticsearch.wire import ElasticsearchWire
from arecall_adapters.opensearch.wire import OpenSearchWire
from servers import Server

ADMIN = "the administrator"
"""The principal that is the capturing account itself, with credentials of its own."""


@dataclass
class Cluster:
    """Makes indices, roles and users as the administrator, and removes them.

    Attributes:
        server: where.
        engine: `elasticsearch` or `opensearch`.
        folder: where files of credentials are written.
        prefix: begins every name that is made, so that tests can share a server.
    """

    server: Server
    engine: str
    folder: Path
    prefix: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}-")

    def __post_init__(self) -> None:
        access = Access(self.server.url, self.server.user, self.server.password, timeout=120)
        self.wire: Wire = (ElasticsearchWire if self.elastic else OpenSearchWire)(access)
        self._indices: list[str] = []
        self._roles: set[str] = set()
        self._users: set[str] = set()

    @property
    def elastic(self) -> bool:
        return self.engine == "elasticsearch"

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return self.wire.ask(method, path, body)

    def index(
        self,
        name: str,
        documents: Mapping[str, Mapping[str, Any]],
        mappings: Mapping[str, Any] | None = None,
        aliases: Mapping[str, Any] | None = None,
        routing: Mapping[str, str] | None = None,
    ) -> None:
        body = {
            "settings": {"number_of_shards": 2, "number_of_replicas": 0},
            "mappings": mappings or {},
            "aliases": aliases or {},
        }
        self.ask("PUT", f"/{name}", body)
        self._indices.append(name)
        lines: list[dict[str, Any]] = []
        for document, source in documents.items():
            target = {"_index": name, "_id": document}
            if routing and document in routing:
                target["routing"] = routing[document]
            lines += [{"index": target}, dict(source)]
        if lines:
            answer = self.ask("POST", "/_bulk?refresh=true", lines)
            assert not answer["errors"], answer

    def roles(self, roles: Mapping[str, Mapping[str, Any]]) -> None:
        if not roles:
            return
        if self.elastic:
            answer = self.ask("POST", "/_security/role?refresh=true", {"roles": dict(roles)})
            assert "errors" not in answer, answer
        else:
            self._patch("roles", roles)
        self._roles.update(roles)

    def users(self, users: Mapping[str, Mapping[str, Any]]) -> None:
        """Make users: `roles`, and what else the engine knows of one. Without a password nobody can log in as one."""
        bodies = {}
        for name, user in users.items():
            body = dict(user)
            if not self.elastic:
                body["opendistro_security_roles"] = body.pop("roles")
            if "password" not in body:
                # Hashing one takes both engines a tenth of a second.
                body["password_hash" if self.elastic else "hash"] = "$2a$10$" + "x" * 53
            bodies[name] = body
        if not bodies:
            return
        if self.elastic:
            for name, body in bodies.items():
                self.ask("PUT", f"/_security/user/{name}", body)
        else:
            self._patch("internalusers", bodies)
        self._users.update(users)

    def remove_users(self, names: Iterable[str]) -> None:
        if self.elastic:
            for name in names:
                self.ask("DELETE", f"/_security/user/{name}")
        else:
            self._patch("internalusers", dict.fromkeys(names))

    def forget_users(self, names: Iterable[str]) -> None:
        """Leave these alone: they are gone."""
        self._users.difference_update(names)

    def remove_roles(self, names: Iterable[str]) -> None:
        if self.elastic:
            self.ask("DELETE", "/_security/role?refresh=true", {"names": list(names)})
        else:
            self._patch("roles", dict.fromkeys(names))

    def _patch(self, what: str, values: Mapping[str, Any]) -> None:
        """Change several at once; one a request takes seconds. None removes."""
        operations = [
            {"op": "remove", "path": f"/{name}"} if value is None else {"op": "add", "path": f"/{name}", "value": value}
            for name, value in values.items()
        ]
        # All of a kind is one document: two processes that write at once conflict.
        for attempt in range(20):
            try:
                self.ask("PATCH", f"/_plugins/_security/api/{what}", operations)
            except Refused as refused:
                if refused.status != 409 or attempt == 19:
                    raise
                time.sleep(random.uniform(0.05, 0.5))
            else:
                return

    def key(self, descriptors: Mapping[str, Any], owner: str | None = None) -> str:
        """Make an API key, and return it as `id:key`."""
        body: dict[str, Any] = {"name": f"{self.prefix}key", "role_descriptors": descriptors}
        if owner is None:
            made = self.ask("POST", "/_security/api_key?refresh=true", body)
        else:
            grant = {"grant_type": "password", "username": self.server.user, "password": self.server.password}
            asked = {**grant, "run_as": owner, "api_key": body}
            made = self.ask("POST", "/_security/api_key/grant?refresh=true", asked)
        return f"{made['id']}:{made['api_key']}"

    def clear(self) -> None:
        """Remove all that was made."""
        if self._users:
            self.remove_users(self._users)
        if self._roles:
            self.remove_roles(self._roles)
        for name in self._indices:
            self.ask("DELETE", f"/{name}")

    # -- snapshots --------------------------------------------------------------------------------------------------------

    def connect(self, index: str, credentials: Mapping[str, Any] | None = None, **options: Any) -> DlsAdapter:
        """Open an access path; `credentials` are API keys, or pairs of user and password, by principal."""
        given: dict[str, Any] = {
            "url": self.server.url,
            "user": self.server.user,
            "password": self.server.password,
            "index": index,
        }
        if credentials is not None:
            given["credentials"] = self.file(credentials)
        options = {**given, **options}
        return elasticsearch.connect(options) if self.elastic else opensearch.connect(options)

    def file(self, credentials: Mapping[str, Any]) -> Path:
        lines = []
        for principal, each in credentials.items():
            own = {"api_key": each} if isinstance(each, str) else {"user": each[0], "password": each[1]}
            lines.append(json.dumps({"principal": principal, **own}))
        file = self.folder / f"{self.prefix}{secrets.token_hex(4)}.jsonl"
        file.write_text("\n".join(lines), "utf-8")
        return file

    def take(
        self,
        index: str,
        principals: Sequence[str],
        documents: Sequence[str] | None = None,
        *,
        credentials: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Snapshot:
        """Take a snapshot of all documents on a path, or of `documents`."""
        with self.connect(index, credentials, **options) as adapter:
            return capture(adapter, principals, adapter.documents() if documents is None else documents)

    @property
    def admin(self) -> tuple[str, str]:
        return self.server.user, self.server.password


@contextmanager
def open_cluster(server: Server, engine: str, folder: Path) -> Iterator[Cluster]:
    """Use a server; what is made there is removed."""
    cluster = Cluster(server, engine, folder)
    try:
        yield cluster
    finally:
        cluster.clear()
        cluster.wire.close()


def seen(snapshot: Snapshot, principal: str) -> set[str] | str:
    """What a snapshot says of one principal: the documents; or why there is no telling, or nothing to tell.

    Someone who may see nothing is the empty set; someone whom the engine refused, or failed on, never is.
    """
    undecided = [
        decision
        for document in snapshot.documents
        if not (decision := snapshot.decision(principal, document)).decision.plain
    ]
    if undecided:
        assert {each.decision for each in undecided} == {Decision.ERROR}, undecided
        assert len(undecided) == len(snapshot.documents), undecided
        return f"ERROR: {undecided[0].reason}"
    allowed = set(snapshot.authorized(principal))
    for kind in ("refused", "disabled"):
        if any(each.principal == principal for each in findings(snapshot, kind)):
            assert not allowed
            return kind
    return allowed


def findings(snapshot: Snapshot, kind: str) -> Sequence[Finding]:
    """The findings of one kind; the record names all of them as long as they are few."""
    found = snapshot.record.findings.get(kind)
    if found is None:
        return ()
    assert found.count == len(found.first)
    return found.first
