"""The published corpus and a real organisation once more, from both engines: the same access, and so the same numbers."""

from __future__ import annotations

import gzip
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from authorized_recall import experiment
from authorized_recall.corpus import build

from arecall.capture import capture
from arecall.evaluate import evaluate
from arecall.snapshot import Snapshot
from arecall_adapters import elasticsearch as es
from arecall_adapters import opensearch as osearch
from arecall_adapters.dls.wire import Access
from arecall_adapters.elasticsearch.engine import ElasticsearchEngine
from arecall_adapters.elasticsearch.wire import ElasticsearchWire
from arecall_adapters.opensearch.engine import OpenSearchEngine
from arecall_adapters.opensearch.wire import OpenSearchWire
from servers import Server
from unit.evaluate.shared_data import read_authorized, read_qrels, read_run
from unit.evaluate.test_published_backends import of_casbin, of_table
from unit.evaluate.test_published_table import KS, Corpus, corpus, evaluated, of_sets

__all__ = ["corpus"]

pytestmark = pytest.mark.live


@dataclass
class Cluster:
    """A server, as its administrator: holders (a profile, a permission) are roles, and whoever holds one is a user."""

    engine: ElasticsearchEngine | OpenSearchEngine
    server: Server

    @contextmanager
    def loaded(
        self, documents: Mapping[str, Mapping[str, Any]], roles: Set[str], users: Mapping[str, Sequence[str]]
    ) -> Iterator[str]:
        """Index documents, each with the holders it names, and make a role a holder and the users that hold them."""
        index = f"published-{secrets.token_hex(4)}"
        mappings = {"properties": {"holders": {"type": "keyword"}}}
        self.engine.wire.ask("PUT", f"/{index}", {"settings": {"number_of_shards": 3}, "mappings": mappings})
        operations = [
            line for name, source in documents.items() for line in ({"index": {"_id": name, "_index": index}}, source)
        ]
        answer = self.engine.wire.ask("POST", "/_bulk?refresh=true", operations)
        assert not answer["errors"]
        names = {role: f"{index}-{role}" for role in roles}
        try:
            self._put_roles({names[role]: {"term": {"holders": role}} for role in roles}, index)
            self.engine.put_users({user: [names[role] for role in held] for user, held in users.items()})
            yield index
        finally:
            self.engine.remove_users(list(users))
            self.engine.remove_roles(list(names.values()))
            self.engine.wire.ask("DELETE", f"/{index}")

    def _put_roles(self, queries: Mapping[str, Any], index: str) -> None:
        if isinstance(self.engine, ElasticsearchEngine):
            roles = {
                name: {"indices": [{"names": [index], "privileges": ["read"], "query": query}]}
                for name, query in queries.items()
            }
            self.engine.wire.ask("POST", "/_security/role?refresh=true", {"roles": roles})
            return
        entries = {
            name: {
                "index_permissions": [
                    {"index_patterns": [index], "allowed_actions": ["read"], "dls": json.dumps(query)}
                ]
            }
            for name, query in queries.items()
        }
        self.engine.put_descriptors(entries)

    def taken(self, index: str, users: Sequence[str], documents: Sequence[str]) -> Snapshot:
        """Ask as each user, by the administrator's right to do so."""
        module = es if isinstance(self.engine, ElasticsearchEngine) else osearch
        options = {
            "url": self.server.url,
            "user": self.server.user,
            "password": self.server.password,
            "index": index,
            "page_size": 500,
        }
        with module.connect(options) as adapter:
            states: list[str] = []
            opened = adapter.engine.open_point_in_time

            def counted(access_path: str, *rest: Any) -> str:
                states.append(access_path)
                return str(opened(access_path, *rest))

            adapter.engine.open_point_in_time = counted
            assert sorted(adapter.documents()) == sorted(documents)
            snapshot = capture(adapter, users, documents, sample=500)
        assert states == [index]  # the universe, the listing and the sample: all in one
        assert snapshot.record.drift == "none_seen"
        assert not snapshot.record.findings
        return snapshot


@pytest.fixture(params=["elasticsearch", "opensearch"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    server: Server = request.getfixturevalue(request.param)
    access = Access(server.url, server.user, server.password)
    engine = (
        ElasticsearchEngine(ElasticsearchWire(access))
        if request.param == "elasticsearch"
        else OpenSearchEngine(OpenSearchWire(access))
    )
    yield Cluster(engine, server)
    engine.wire.close()


def test_the_published_table_is_that_of_profiles_as_roles(cluster: Cluster, corpus: Corpus, tmp_path: Path) -> None:
    _, _, profiles = build()
    documents: dict[str, dict[str, Any]] = {name: {"holders": []} for name in corpus.universe}
    for profile, described in profiles.items():
        for granted in described["grants"]:
            documents[granted]["holders"].append(profile)
    with cluster.loaded(documents, set(profiles), {profile: [profile] for profile in profiles}) as index:
        snapshot = cluster.taken(index, list(profiles), corpus.universe)
    assert snapshot.access_digest == of_sets(corpus).access_digest
    assert snapshot.access_digest == of_casbin(tmp_path, corpus.grants, corpus.universe).access_digest
    result, table = evaluated(corpus, snapshot), experiment.run()
    assert list(result.rows()) == list(evaluated(corpus, of_sets(corpus)).rows())
    for k in KS:
        for name, filtering in (("arecall_post", "post"), ("arecall_pre", "pre"), ("gap", "gap")):
            found = result.value(f"ARecall@{k}", filter=filtering, mean="full", level="pooled")
            assert found == pytest.approx(table["k"][k][name], abs=1e-12)


def test_a_real_organisation_is_the_same_from_an_engine_casbin_and_a_table(
    cluster: Cluster, shared: Path, tmp_path: Path
) -> None:
    upa, cranfield = shared / "data" / "upa" / "hc.tsv.gz", shared / "data" / "cranfield"
    authorized = read_authorized(upa, 1_400)
    held: dict[str, list[str]] = {}
    for line in gzip.decompress(upa.read_bytes()).decode().splitlines()[1:]:
        user, permission = line.split("\t")
        held.setdefault(f"u{user}", []).append(f"p{permission}")
    permissions = sorted({permission for own in held.values() for permission in own}, key=lambda p: int(p[1:]))
    assert (len(held), len(permissions)) == (46, 46)
    assert max(map(len, held.values())) > 10
    documents = {}
    for line in (cranfield / "corpus.jsonl").read_text("utf-8").splitlines():
        each = json.loads(line)
        need = permissions[(int(each["_id"]) - 1) % len(permissions)]
        documents[each["_id"]] = {"title": each["title"], "text": each["text"], "holders": [need]}
    with cluster.loaded(documents, set(permissions), held) as index:
        snapshot = cluster.taken(index, sorted(held), list(documents))
    expected = Snapshot.from_sets(authorized, universe=documents)
    assert snapshot.access_digest == expected.access_digest
    for other in (of_table, of_casbin):
        assert snapshot.access_digest == other(tmp_path, authorized, list(documents)).access_digest
    run, qrels = read_run(cranfield / "bm25.trec.gz"), read_qrels(cranfield / "qrels.trec")
    found, wanted = (evaluate(snapshot=each, run=run, qrels=qrels, ks=[10], draws=0) for each in (snapshot, expected))
    assert list(found.rows()) == list(wanted.rows())
