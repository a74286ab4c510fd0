"""The pages on both engines, and what the README says of them: every request and command is run, on the demo's data."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import servers
from arecall.capture import capture
from arecall.snapshot import Snapshot
from arecall.snapshot_file import read_snapshot
from arecall_adapters import casbin
from arecall_adapters.dls.wire import Access, Refused
from arecall_adapters.elasticsearch.engine import ElasticsearchEngine
from arecall_adapters.elasticsearch.wire import ElasticsearchWire
from arecall_adapters.opensearch.engine import API, OpenSearchEngine
from arecall_adapters.opensearch.wire import OpenSearchWire
from live.openfga.running import arecall
from servers import Server

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[3]
PASSWORD = "Wander-copper-49-lantern"
STALE = "finance-bank-loan"
"""The document whose chunk has a wrong copy of its ACL: Jude may not read it."""

ACCOUNTS = ("arecall-capture", "arecall-roles")
FILTERED = {"term": {"folder": "handbook"}}


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(text: str, language: str = "") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for named, block in found if named == language]


def commands(text: str, of: str = "") -> list[str]:
    lines = [line for block in blocks(text) for line in block.splitlines()]
    return [line for line in lines if line.startswith("arecall ") and of in line]


def requests(text: str) -> list[tuple[str, str, Any]]:
    """The requests of a page, as they are typed into a console: method and path, then a JSON object."""
    typed = [each for block in blocks(text, "console") for each in re.split(r"^(?=PUT )", block, flags=re.MULTILINE)]
    parts = [each.split(maxsplit=2) for each in typed if each]
    return [(method, path, json.loads(body)) for method, path, body in parts]


def node_settings(text: str) -> dict[str, str]:
    """The node settings of a page, as variables of a container."""
    (block,) = blocks(text, "yaml")
    settings: dict[str, str] = {}
    for line in block.splitlines():
        name, _, value = line.partition(": ")
        each = json.loads(value)
        if "endpoints_disabled" in name:
            # The plugin wants a list, which a variable with commas is not.
            settings |= {f"{name}.{number}": method for number, method in enumerate(each)}
        else:
            settings[name] = ",".join(each)
    return settings


@dataclass
class Cluster:
    """A server that holds the demo's documents, chunks, roles and people, and the accounts that its page grants.

    Attributes:
        granted: the access that the roles give, as Casbin has it.
    """

    engine: ElasticsearchEngine | OpenSearchEngine
    server: Server
    folder: Path
    granted: Snapshot

    @property
    def elastic(self) -> bool:
        return isinstance(self.engine, ElasticsearchEngine)

    def done(self, command: str, user: str) -> subprocess.CompletedProcess[str]:
        variable = self.engine.kind.upper()
        environment = {
            f"{variable}_URL": self.server.url,
            f"{variable}_USERNAME": user,
            f"{variable}_PASSWORD": PASSWORD,
        }
        return arecall(*shlex.split(command)[1:], **environment)

    def run(self, command: str, user: str) -> str:
        done = self.done(command, user)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout + done.stderr

    def make(self, page: str) -> None:
        """Put everything there, and make the accounts as the page says."""
        wire = self.engine.wire
        documents = {
            document: {
                "acl": [p for p in self.granted.principals if document in self.granted.authorized(p)],
                "folder": document.partition("-")[0],
            }
            for document in self.granted.documents
        }
        keyword = {"type": "keyword"}
        mappings = {"properties": {"acl": keyword, "folder": keyword, "doc_id": keyword}}
        alias = {"docs-alias": {"filter": FILTERED}}
        wire.ask("PUT", "/docs", {"mappings": mappings, "aliases": alias})
        wire.ask("PUT", "/chunks", {"mappings": mappings})
        lines: list[dict[str, Any]] = []
        for document, source in documents.items():
            lines += [{"index": {"_index": "docs", "_id": document}}, source]
            copy = {"doc_id": document, "acl": source["acl"] if document != STALE else [*source["acl"], "jude"]}
            lines += [{"index": {"_index": "chunks", "_id": f"{document}#1"}}, copy]
        assert not wire.ask("POST", "/_bulk?refresh=true", lines)["errors"]
        self._put_roles()
        for method, path, body in requests(page):
            wire.ask(method, path, body)
        self.engine.put_users({principal: ["reads-own"] for principal in self.granted.principals})
        roles = ["arecall-capture", *([] if self.elastic else ["arecall-reads-security"])]
        self._put_user("arecall-capture", roles)
        also = "arecall-roles" if self.elastic else "security_rest_api_access"
        self._put_user("arecall-roles", ["arecall-capture", also])
        self._put_user("bot", ["staff"])
        bots = [{"principal": "bot", "user": "bot", "password": PASSWORD}]
        if self.elastic:
            descriptors = {"any": {"indices": [{"names": ["docs"], "privileges": ["read"], "query": FILTERED}]}}
            key = wire.ask("POST", "/_security/api_key", {"name": "bot", "role_descriptors": descriptors})
            bots.append({"principal": "key", "api_key": f"{key['id']}:{key['api_key']}"})
        (self.folder / "bots.jsonl").write_text("".join(json.dumps(bot) + "\n" for bot in bots))

    def _put_roles(self) -> None:
        own = {"term": {"acl": self.engine.own_user}}
        # As text: a query with a template in it is JSON only when it is filled.
        queries: dict[str, Any] = {
            "reads-own": {"template": {"source": json.dumps(own)}} if self.elastic else own,
            "staff": {"terms": {"folder": ["handbook", "yard"]}},
            "accounts": {"terms": {"folder": ["finance"]}},
        }
        for name, query in queries.items():
            indices = ["docs", "docs-alias", "chunks"]
            if self.elastic:
                entry = {"names": indices, "privileges": ["read"], "query": query}
                self.engine.wire.ask("PUT", f"/_security/role/{name}", {"indices": [entry]})
            else:
                entry = {"index_patterns": indices, "allowed_actions": ["read"], "dls": json.dumps(query)}
                self.engine.put_descriptors({name: {"index_permissions": [entry]}})

    def _put_user(self, name: str, roles: list[str]) -> None:
        if self.elastic:
            self.engine.wire.ask("PUT", f"/_security/user/{name}", {"password": PASSWORD, "roles": roles})
        else:
            body = {"password": PASSWORD, "opendistro_security_roles": roles}
            self.engine.wire.ask("PUT", f"{API}/internalusers/{name}", body)


@pytest.fixture(scope="module", params=["elasticsearch", "opensearch"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A server of its own: the pages call things by names that other tests may use."""
    folder = tmp_path_factory.mktemp(request.param) / "demo"
    shutil.copytree(ROOT / "scenarios" / "demo", folder)
    principals, documents = ((folder / name).read_text().split() for name in ("principals.txt", "documents.txt"))
    with casbin.ADAPTER.connect({"model": folder / "rbac.conf", "policy": folder / "policy.csv"}) as adapter:
        granted = capture(adapter, principals, documents)
    told = page(f"docs/{request.param}.md")
    started = servers.elasticsearch() if request.param == "elasticsearch" else servers.opensearch(node_settings(told))
    with started as server:
        access = Access(server.url, server.user, server.password)
        engine = (
            ElasticsearchEngine(ElasticsearchWire(access))
            if request.param == "elasticsearch"
            else OpenSearchEngine(OpenSearchWire(access))
        )
        made = Cluster(engine, server, folder, granted)
        made.make(told)
        yield made
        engine.wire.close()


@pytest.fixture(autouse=True)
def in_the_folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "cluster" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("cluster").folder)


def test_every_command_of_the_pages_works_with_the_rights_that_they_name(cluster: Cluster) -> None:
    kind = cluster.engine.kind
    told = commands(page(f"docs/{kind}.md"))
    assert len(told) == 7
    said: dict[str, str] = {}
    for command in told:
        account = (
            "arecall-roles" if "--roles" in command or command.startswith("arecall cleanup") else "arecall-capture"
        )
        said[command] = cluster.run(command, account)
    now = read_snapshot("now.json")
    assert now.access_digest == cluster.granted.access_digest
    assert now.record.drift == "none_seen"
    assert set(now.record.backend.settings["sequence_numbers"]) == {"docs"}
    bots, roles = read_snapshot("bots.json"), read_snapshot("roles.json")
    assert bots.authorized("bot") == roles.authorized("staff") == _in_folders(cluster, "handbook", "yard")
    if cluster.elastic:
        assert bots.authorized("key") == _in_folders(cluster, "handbook")
    assert roles.authorized("staff+accounts") == _in_folders(cluster, "handbook", "yard", "finance")
    assert not cluster.engine.temporaries()
    paths = read_snapshot("paths.json")
    hidden = {f.document for f in paths.record.findings["paths disagree"].first if f.document}
    assert hidden
    assert not hidden & _in_folders(cluster, "handbook")
    chunks = read_snapshot("chunks.json")
    (stale,) = chunks.record.findings["chunk shown, document hidden"].first
    assert (stale.principal, stale.document) == ("jude", STALE)
    assert chunks.record.findings.keys() == {"chunk shown, document hidden"}
    assert "jude is shown the chunk" in Path("chunks.jsonl").read_text()
    both = commands(page("docs/document-level-security.md"))
    assert len(both) == 3
    for command in both:
        said[command] = cluster.run(command, "nobody")
    assert "leak" in said[both[1]].lower()
    for command in commands(page("README.md"), of=kind):
        cluster.run(command, "arecall-capture")
        assert read_snapshot("before.json").access_digest == cluster.granted.access_digest


def test_the_least_rights_are_the_least(cluster: Cluster) -> None:
    told = [each for each in requests(page(f"docs/{cluster.engine.kind}.md")) if each[1].endswith("/arecall-capture")]
    ((method, path, body),) = told
    (entry,) = body["indices" if cluster.elastic else "index_permissions"]
    rights = entry["privileges" if cluster.elastic else "allowed_actions"]
    optional = {"monitor", "indices:monitor/stats"}
    (command,) = [each for each in commands(page(f"docs/{cluster.engine.kind}.md")) if each.endswith(" now.json")]
    for right in [right for right in list(rights) if right not in optional]:
        rights.remove(right)
        cluster.engine.wire.ask(method, path, body)
        done = cluster.done(command, "arecall-capture")
        assert (done.returncode, "the capturing account" in done.stderr) == (3, True), (right, done.stderr)
        rights.append(right)
    cluster.engine.wire.ask(method, path, body)
    cluster.run(command, "arecall-capture")


def test_reading_the_configuration_is_not_changing_it(cluster: Cluster) -> None:
    changes: list[tuple[str, str, Any]]
    if cluster.elastic:
        place, roles = "/_security", {"roles": ["superuser"]}
        changes = [("PUT", f"{place}/user/eve", {"password": PASSWORD, **roles}), ("PUT", f"{place}/role/eve", {})]
    else:
        role, mapping = {"cluster_permissions": ["*"]}, {"users": ["arecall-capture"]}
        changes = [
            ("PUT", f"{API}/roles/arecall-capture", role),
            ("PUT", f"{API}/rolesmapping/all_access", mapping),
            ("PATCH", f"{API}/rolesmapping", [{"op": "add", "path": "/all_access", "value": mapping}]),
            ("PUT", f"{API}/internalusers/eve", {"password": PASSWORD, "opendistro_security_roles": ["all_access"]}),
            ("PUT", f"{API}/actiongroups/read", {"allowed_actions": ["*"]}),
            ("PUT", f"{API}/tenants/eve", {"description": "hers"}),
            ("PUT", f"{API}/securityconfig/config", {"dynamic": {}}),
        ]
    access = Access(cluster.server.url, "arecall-capture", PASSWORD)
    wire = ElasticsearchWire(access) if cluster.elastic else OpenSearchWire(access)
    for method, path, body in changes:
        with pytest.raises(Refused) as refused:
            wire.ask(method, path, body)
        assert refused.value.forbidden, (path, refused.value)
    wire.close()


def _in_folders(cluster: Cluster, *folders: str) -> set[str]:
    return {document for document in cluster.granted.documents if document.partition("-")[0] in folders}


def test_the_pages_explain_every_finding_and_no_other() -> None:
    sources = (ROOT / "adapters" / "arecall_adapters" / "dls").glob("*.py")
    made = {
        kind
        for file in sources
        for kind in re.findall(r'kind="([^"]+)"(?: if stale else "([^"]+)")?', file.read_text())
    }
    kinds = {kind for pair in made for kind in pair if kind}
    told = page("docs/document-level-security.md")
    table = told[told.index("| finding |") : told.index("The record counts")]
    assert set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)) == kinds
