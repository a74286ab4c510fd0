"""Random sets of roles: what the engine shows is what its own rule of combination says, and the adapter tells it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arecall.capture import capture
from arecall_adapters import elasticsearch as es
from arecall_adapters import opensearch as osearch
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.wire import Access
from arecall_adapters.elasticsearch.engine import ElasticsearchEngine
from arecall_adapters.elasticsearch.wire import ElasticsearchWire
from arecall_adapters.opensearch.engine import OpenSearchEngine
from arecall_adapters.opensearch.wire import OpenSearchWire
from servers import Server

pytestmark = pytest.mark.live

TENANTS = {"1": "a", "2": "a", "3": "b", "4": "b", "5": "c", "6": "c"}
EVERYTHING = frozenset(TENANTS)


@dataclass(frozen=True)
class Entry:
    """One entry of a role: which names, whether it lets read, and which tenant's documents (None: no query)."""

    names: tuple[str, ...]
    reads: bool
    tenant: str | None

    def covers(self, index: str) -> bool:
        return any(
            fnmatchcase(index, name.replace("docs", index)) for name in self.names if not name.startswith("other")
        )

    @property
    def documents(self) -> frozenset[str]:
        return frozenset(d for d, tenant in TENANTS.items() if self.tenant in (None, tenant))


Role = tuple[Entry, ...]

entries = st.builds(
    Entry,
    st.sampled_from([("docs",), ("docs", "other"), ("docs*",), ("other",)]),
    st.sampled_from([True, True, True, False]),
    st.sampled_from(["a", "b", "c", None]),
)


def sets_of_roles(apart: Callable[[Entry], object]) -> st.SearchStrategy[tuple[Role, ...]]:
    """One to four roles of one or two entries; no two in a role are one by `apart`."""
    roles = st.lists(entries, min_size=1, max_size=2, unique_by=apart).map(tuple)
    return st.lists(roles, min_size=1, max_size=4).map(tuple)


def names(entry: Entry) -> object:
    return entry.names


def index(entry: Entry) -> object:
    """Of two entries of one OpenSearch role that cover an index, one silently replaces the other: which depends on order."""
    return entry.names[0] == "other"


def elasticsearch_shows(roles: Sequence[Role], index: str) -> frozenset[str]:
    """Entries of the same names are one, which a missing query opens; of others, those that let read add up."""
    merged: dict[frozenset[str], list[Entry]] = {}
    for entry in (entry for role in roles for entry in role):
        merged.setdefault(frozenset(entry.names), []).append(entry)
    shown: set[str] = set()
    for entries in merged.values():
        if not entries[0].covers(index) or not any(entry.reads for entry in entries):
            continue
        shown.update(*(entry.documents for entry in entries))
    return frozenset(shown)


def opensearch_shows(roles: Sequence[Role], index: str, *, overrides: bool) -> frozenset[str]:
    """Whatever entries let do: queries add up, and one without a query counts where there is no other, or overrides all."""
    entries = [entry for role in roles for entry in role if entry.covers(index)]
    if not any(entry.reads for entry in entries):
        return frozenset()
    queries = [entry for entry in entries if entry.tenant is not None]
    if not queries or (overrides and len(queries) < len(entries)):
        return EVERYTHING
    return frozenset[str]().union(*(entry.documents for entry in queries))


class Cluster:
    """An index with the six documents, and roles that come and go."""

    def __init__(self, server: Server, engine: Engine) -> None:
        self.server, self.engine = server, engine
        self.index = f"arecall-roles-{secrets.token_hex(4)}"

    def make(self) -> None:
        mappings = {"properties": {"tenant": {"type": "keyword"}}}
        body = {"mappings": mappings, "settings": {"number_of_shards": 2, "number_of_replicas": 0}}
        for name in (self.index, f"other-{self.index}"):
            self.engine.wire.ask("PUT", f"/{name}", body)
        lines: list[dict[str, Any]] = []
        for document, tenant in TENANTS.items():
            lines += [{"index": {"_index": self.index, "_id": document}}, {"tenant": tenant}]
        self.engine.wire.ask("POST", "/_bulk?refresh=true", lines)

    def remove(self) -> None:
        for name in (self.index, f"other-{self.index}"):
            self.engine.wire.ask("DELETE", f"/{name}")
        self.engine.wire.close()

    def names(self, entry: Entry) -> list[str]:
        return [f"other-{self.index}" if name == "other" else name.replace("docs", self.index) for name in entry.names]

    def put(self, roles: Sequence[Role]) -> list[str]:
        """Put roles, and name them."""
        names = [f"{self.index}-{number}" for number in range(len(roles))]
        if isinstance(self.engine, ElasticsearchEngine):
            body = {
                name: {"indices": [self._es(entry) for entry in role]} for name, role in zip(names, roles, strict=True)
            }
            self.engine.wire.ask("POST", "/_security/role?refresh=true", {"roles": body})
            return names
        self.engine.put_descriptors(
            {
                name: {"index_permissions": [self._os(entry) for entry in role]}
                for name, role in zip(names, roles, strict=True)
            }
        )
        return names

    def _es(self, entry: Entry) -> dict[str, Any]:
        query = {} if entry.tenant is None else {"query": {"term": {"tenant": entry.tenant}}}
        return {"names": self.names(entry), "privileges": ["read" if entry.reads else "monitor"], **query}

    def _os(self, entry: Entry) -> dict[str, Any]:
        query = {} if entry.tenant is None else {"dls": f'{{"term": {{"tenant": "{entry.tenant}"}}}}'}
        actions = ["read"] if entry.reads else ["indices_monitor"]
        return {"index_patterns": self.names(entry), "allowed_actions": actions, **query}

    def seen(self, names: Sequence[str], options: dict[str, Any] | None = None) -> dict[str, frozenset[str]]:
        """What a snapshot says of each set of roles."""
        module = es if self.engine.kind == "elasticsearch" else osearch
        given = {
            "url": self.server.url,
            "user": self.server.user,
            "password": self.server.password,
            "index": self.index,
            "roles": (",".join(names),),
            "allow_temporary_principals": True,
            **(options or {}),
        }
        with module.connect(given) as adapter:
            snapshot = capture(adapter, adapter.principals(), adapter.documents(), sample=20)
            self.findings = adapter.findings()
        return {name: snapshot.authorized(name) for name in names}


@pytest.fixture(scope="module")
def on_elasticsearch(elasticsearch: Server) -> Iterator[Cluster]:
    server = elasticsearch
    cluster = Cluster(server, ElasticsearchEngine(ElasticsearchWire(Access(server.url, server.user, server.password))))
    cluster.make()
    yield cluster
    cluster.remove()


@pytest.fixture(scope="module")
def on_opensearch(opensearch: Server) -> Iterator[Cluster]:
    yield from made_on_opensearch(opensearch)


@pytest.fixture(scope="module")
def on_opensearch_that_overrides(opensearch_set: Server) -> Iterator[Cluster]:
    yield from made_on_opensearch(opensearch_set)


def made_on_opensearch(server: Server) -> Iterator[Cluster]:
    cluster = Cluster(server, OpenSearchEngine(OpenSearchWire(Access(server.url, server.user, server.password))))
    cluster.make()
    yield cluster
    cluster.remove()


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sets_of_roles(names))
def test_elasticsearch_merges_entries_of_the_same_names_and_adds_up_the_others(
    on_elasticsearch: Cluster, roles: tuple[Role, ...]
) -> None:
    cluster = on_elasticsearch
    together = "+".join(cluster.put(roles))
    assert cluster.seen([together]) == {together: elasticsearch_shows(roles, cluster.index)}


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sets_of_roles(index))
def test_opensearch_adds_up_queries_and_passes_over_roles_without_one(
    on_opensearch: Cluster, roles: tuple[Role, ...]
) -> None:
    cluster = on_opensearch
    together = "+".join(cluster.put(roles))
    options = {"dfm_empty_overrides_all": "false"}
    assert cluster.seen([together], options) == {together: opensearch_shows(roles, cluster.index, overrides=False)}


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sets_of_roles(index))
def test_opensearch_is_opened_by_any_role_without_a_query_where_it_is_set_so(
    on_opensearch_that_overrides: Cluster, roles: tuple[Role, ...]
) -> None:
    cluster = on_opensearch_that_overrides
    together = "+".join(cluster.put(roles))
    options = {"dfm_empty_overrides_all": "true"}
    assert cluster.seen([together], options) == {together: opensearch_shows(roles, cluster.index, overrides=True)}


def test_more_roles_that_see_less_are_named_pair_by_pair(on_opensearch: Cluster) -> None:
    cluster = on_opensearch
    everything: Role = (Entry(("docs",), True, None),)
    tenant: Role = (Entry(("docs",), True, "a"),)
    one, two = cluster.put([everything, tenant])
    seen = cluster.seen([one, two, f"{one}+{two}"], {"dfm_empty_overrides_all": "false"})
    assert seen == {one: EVERYTHING, two: {"1", "2"}, f"{one}+{two}": {"1", "2"}}
    told = {(finding.kind, finding.principal, finding.document) for finding in cluster.findings}
    assert told == {("more roles see less", f"{one}+{two}", document) for document in ("3", "4", "5", "6")}


def test_elasticsearch_has_no_such_pair_where_a_role_without_a_query_joins(on_elasticsearch: Cluster) -> None:
    cluster = on_elasticsearch
    one, two = cluster.put([(Entry(("docs",), True, None),), (Entry(("docs",), True, "a"),)])
    seen = cluster.seen([one, two, f"{one}+{two}"])
    assert seen == {one: EVERYTHING, two: {"1", "2"}, f"{one}+{two}": EVERYTHING}
    assert cluster.findings == ()
