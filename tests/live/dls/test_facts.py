"""What the engines were seen to do, asked for through the adapter: six documents, two to a tenant, and who is shown which."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import servers
from arecall.capture import capture
from arecall.decisions import Decision
from arecall.errors import BackendError, IncompleteAnswer, PolicyError
from arecall.snapshot import Snapshot
from arecall_adapters.dls import principals
from arecall_adapters.dls.wire import Refused
from live.dls.clusters import ADMIN, Cluster, findings, open_cluster, seen
from proxies import Recorder
from servers import PASSWORD, Server

pytestmark = pytest.mark.live

DOCUMENTS = {
    str(number): {"tenant": tenant, "owner": owner, "level": number, "doc_id": f"d{number}", "code": f"x{number}"}
    for number, tenant, owner in zip(range(1, 7), "aabbcc", ["ann", "ann", "", "bob", "bob", "cyd"], strict=True)
}
KEYWORDS = {name: {"type": "keyword"} for name in ("tenant", "owner", "doc_id", "code")}
ALL = set(DOCUMENTS)
A, AB = {"1", "2"}, {"1", "2", "3", "4"}


class World:
    """The documents, in `docs` and again (some of them) in `more`, and roles and users by short names."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.docs, self.more = self("docs"), self("more")
        mappings = {"properties": {**KEYWORDS, "level": {"type": "integer"}}}
        some = {"term": {"tenant": "a"}}
        cluster.index(self.docs, DOCUMENTS, mappings, {self("all"): {}, self("some"): {"filter": some}})
        # A query for a word fails on a number.
        numbers = {"properties": {**KEYWORDS, "code": {"type": "integer"}}}
        cluster.index(self.more, {each: {"tenant": "a", "code": 7} for each in ("1", "9")}, numbers)

    def __call__(self, name: str) -> str:
        return self.cluster.prefix + name

    def roles(self, **roles: Any) -> None:
        self.cluster.roles({self(name): role for name, role in roles.items()})

    def users(self, **users: Any) -> None:
        """Make users from lists of roles, or from all that is to be said of them."""
        bodies = {}
        for name, user in users.items():
            body = dict(user) if isinstance(user, dict) else {"roles": user}
            bodies[self(name)] = {**body, "roles": [self(role) for role in body["roles"]]}
        self.cluster.users(bodies)

    def role(self, *entries: Mapping[str, Any]) -> dict[str, Any]:
        return {("indices" if self.cluster.elastic else "index_permissions"): list(entries)}

    def entry(
        self, name: str, query: Any = None, *, may: str = "read", hidden: str = "", template: bool = False
    ) -> dict[str, Any]:
        """What a role says of an index, alias or pattern."""
        if self.cluster.elastic:
            entry: dict[str, Any] = {"names": [self(name)], "privileges": [may]}
            if query is not None:
                entry["query"] = {"template": {"source": query}} if template else query
            if hidden:
                entry["field_security"] = {"grant": ["*"], "except": [hidden]}
            return entry
        entry = {"index_patterns": [self(name)], "allowed_actions": [may]}
        if query is not None:
            entry["dls"] = query if isinstance(query, str) else json.dumps(query)
        if hidden:
            entry["fls"] = [f"~{hidden}"]
        return entry

    def take(self, path: str, *users: str, **options: Any) -> Snapshot:
        return self.cluster.take(self(path), [self(user) for user in users], **options)

    def seen(self, snapshot: Snapshot, *users: str) -> dict[str, set[str] | str]:
        return {user: seen(snapshot, self(user)) for user in users}


def of(tenant: str) -> dict[str, Any]:
    return {"term": {"tenant": tenant}}


def built(cluster: Cluster) -> World:
    world = World(cluster)
    mine = "{{_user.username}}" if cluster.elastic else "${user.name}"
    owner = "{{_user.metadata.owner}}" if cluster.elastic else "${attr.internal.owner}"
    level = "{{_user.metadata.level}}" if cluster.elastic else "${attr.internal.level}"
    world.roles(
        a=world.role(world.entry("docs", of("a"))),
        b=world.role(world.entry("docs", of("b"))),
        all=world.role(world.entry("docs")),
        other=world.role(world.entry("more")),
        hidden=world.role(world.entry("docs", of("a"), hidden="doc_id")),
        alias=world.role(world.entry("all", of("b"))),
        some=world.role(world.entry("some")),
        pattern=world.role(world.entry("d*s", of("b"))),
        now=world.role(world.entry("docs", {"range": {"level": {"lte": "now"}}})),
        code=world.role(world.entry("docs", {"term": {"code": "x1"}}), world.entry("more", {"term": {"code": "x1"}})),
        mine=world.role(world.entry("docs", json.dumps({"term": {"owner": mine}}), template=True)),
        owner=world.role(world.entry("docs", json.dumps({"term": {"owner": owner}}), template=True)),
        level=world.role(world.entry("docs", json.dumps({"term": {"level": level}}), template=True)),
    )
    one = {"owner": "bob"}
    world.users(
        a=["a"],
        ab=["a", "b"],
        a_all=["a", "all"],
        a_other=["a", "other"],
        hidden=["hidden"],
        alias=["alias"],
        some=["some"],
        pattern=["pattern"],
        nobody=[],
        other=["other"],
        now=["now"],
        code=["code"],
        owner={"roles": ["owner"], **({"metadata": one} if cluster.elastic else {"attributes": one})},
        no_owner=["owner"],
        no_level=["level"],
    )
    return world


@pytest.fixture(scope="module", params=["elasticsearch", "opensearch"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    server = request.getfixturevalue(request.param)
    with open_cluster(server, request.param, tmp_path_factory.mktemp("facts")) as cluster:
        yield built(cluster)


@pytest.fixture(scope="module")
def elastic(elasticsearch: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with open_cluster(elasticsearch, "elasticsearch", tmp_path_factory.mktemp("facts")) as cluster:
        yield built(cluster)


@pytest.fixture
def forgiving(opensearch_set: Server, tmp_path: Path) -> Iterator[World]:
    """An OpenSearch that leaves out of several indices those that one may not read."""
    with open_cluster(opensearch_set, "opensearch", tmp_path) as cluster:
        forgive(cluster, True)
        try:
            yield built(cluster)
        finally:
            forgive(cluster, False)


def forgive(cluster: Cluster, forgiven: bool) -> None:
    change = {"op": "add", "path": "/config/dynamic/do_not_fail_on_forbidden", "value": forgiven}
    cluster.ask("PATCH", "/_plugins/_security/api/securityconfig", [change])


@pytest.fixture(scope="module")
def opened(opensearch: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with open_cluster(opensearch, "opensearch", tmp_path_factory.mktemp("facts")) as cluster:
        yield built(cluster)


# -- roles ---------------------------------------------------------------------------------------------------------------


def test_roles_are_put_together_as_the_engine_does(world: World) -> None:
    users = [
        "a",
        "ab",
        "a_all",
        "a_other",
        "hidden",
        "pattern",
        "some",
        "other",
        "nobody",
        "alias",
        "owner",
        "no_owner",
    ]
    snapshot = world.take("docs", *users)
    found = world.seen(snapshot, *users)
    elastic = world.cluster.elastic
    # What the engine fills in where a user lacks the attribute: nothing, which is what the document 3 says; or an error.
    without = found.pop("no_owner")
    assert without == {"3"} if elastic else str(without).startswith("ERROR: ")
    assert found == {
        "a": A,
        "ab": AB,
        # The two differ here, and nobody may average them.
        "a_all": ALL if elastic else A,
        "a_other": A,
        "hidden": A,
        "pattern": {"3", "4"},
        # A grant on an alias: nothing on the index; or all of the index, whatever the alias leaves out.
        "some": "refused" if elastic else ALL,
        "alias": "refused" if elastic else {"3", "4"},
        "other": "refused",
        "nobody": "refused",
        "owner": {"4", "5"},
    }
    assert snapshot.record.drift == "none_seen"
    assert snapshot.record.backend.settings["roles"][world("a")]


def test_a_query_that_cannot_be_run_is_an_error_and_never_an_empty_set(world: World) -> None:
    snapshot = world.take("docs", "a", "now", "no_level")
    assert not snapshot.complete
    assert seen(snapshot, world("a")) == A
    for user in ("now", "no_level"):
        assert str(seen(snapshot, world(user))).startswith("ERROR: "), user


def test_a_user_whom_nobody_knows_is_an_error(world: World) -> None:
    snapshot = world.take("docs", "ghost")
    assert str(seen(snapshot, world("ghost"))).startswith("ERROR: unknown to the cluster")


def test_a_query_that_fails_on_one_of_two_indices_never_makes_a_shorter_set(world: World) -> None:
    paths = f"{world.docs},{world.more}"
    snapshot = world.cluster.take(paths, [world("code"), world("a_other")])
    assert str(seen(snapshot, world("code"))).startswith("ERROR: ")
    assert seen(snapshot, world("a_other")) == {
        f"{world.docs}/1",
        f"{world.docs}/2",
        f"{world.more}/1",
        f"{world.more}/9",
    }


def test_opensearch_names_the_role_whose_query_it_took_and_cannot_run(opened: World) -> None:
    opened.roles(broken=opened.role(opened.entry("docs", {"nonsense": {}})))
    opened.users(broken=["broken"], a_broken=["a", "broken"])
    snapshot = opened.take("docs", "broken", "a_broken", "a")
    for user in ("broken", "a_broken"):
        assert f"the query of the role {opened('broken')} cannot be run" in str(seen(snapshot, opened(user)))
    assert seen(snapshot, opened("a")) == A


def test_elasticsearch_merges_what_is_said_of_the_same_names_whatever_it_grants(elastic: World) -> None:
    elastic.roles(
        monitor=elastic.role(elastic.entry("docs", may="monitor")),
        monitors=elastic.role(elastic.entry("doc*", may="monitor")),
    )
    elastic.users(monitor=["a", "monitor"], monitors=["a", "monitors"])
    snapshot = elastic.take("docs", "monitor", "monitors")
    assert elastic.seen(snapshot, "monitor", "monitors") == {"monitor": ALL, "monitors": A}


def test_a_disabled_user_is_told_apart_from_one_who_sees_nothing(elastic: World) -> None:
    elastic.users(gone={"roles": ["a"], "enabled": False})
    assert seen(elastic.take("docs", "gone"), elastic("gone")) == "disabled"


@pytest.mark.parametrize("settings", ["default", "overriding"])
def test_opensearch_is_asked_whether_a_role_without_a_query_lifts_others(
    request: pytest.FixtureRequest, tmp_path: Path, settings: str
) -> None:
    server = request.getfixturevalue("opensearch" if settings == "default" else "opensearch_set")
    with open_cluster(server, "opensearch", tmp_path) as cluster:
        world = World(cluster)
        world.roles(a=world.role(world.entry("docs", of("a"))), write=world.role(world.entry("docs", may="write")))
        world.users(both=["a", "write"])
        told = world.take("docs", "both").record.backend.settings["dfm_empty_overrides_all"]
        assert told.startswith("not known")
        snapshot = world.take("docs", "both", allow_temporary_principals=True)
        overriding = settings == "overriding"
        assert snapshot.record.backend.settings["dfm_empty_overrides_all"] == f"{str(overriding).lower()} (measured)"
        # Even one that may only write.
        assert seen(snapshot, world("both")) == (ALL if overriding else A)


# -- access paths --------------------------------------------------------------------------------------------------------


def test_an_alias_shows_what_was_granted_on_its_name_or_on_its_index(world: World) -> None:
    elastic = world.cluster.elastic
    users = ["a", "alias", "some", "pattern"]
    assert world.seen(world.take("all", *users), *users) == {
        "a": "refused" if elastic else A,
        "alias": {"3", "4"},
        "some": "refused" if elastic else ALL,
        "pattern": "refused" if elastic else {"3", "4"},
    }
    assert world.seen(world.take("some", "some", "a"), "some", "a") == {"some": A, "a": "refused" if elastic else A}


def test_fetching_by_id_leaks_what_the_filter_of_an_alias_hides(world: World) -> None:
    snapshot = world.take("some", "some", compare_paths="get")
    assert seen(snapshot, world("some")) == A
    leaked = {each.document.rpartition("/")[2] for each in findings(snapshot, "paths disagree")}
    assert leaked == ALL - A


def test_paths_are_compared_as_each_is_asked(world: World) -> None:
    snapshot = world.take("docs", "a", "pattern", compare_paths=f"{world('all')},{world('some')},get")
    told = {
        (each.kind, each.principal, each.document)
        for kind in snapshot.record.findings
        for each in findings(snapshot, kind)
    }
    if world.cluster.elastic:
        assert told == {("refused on another path", world(user), "") for user in ("a", "pattern")}
    else:
        assert told == {("paths disagree", world("pattern"), document) for document in ("3", "4")}


def test_a_pattern_opens_what_it_may_or_nothing(world: World) -> None:
    pattern = f"{world.cluster.prefix}*"
    snapshot = world.cluster.take(pattern, [world("a"), world("a_other")])
    own = {f"{world.docs}/1", f"{world.docs}/2"}
    both = own | {f"{world.more}/1", f"{world.more}/9"}
    # Elasticsearch leaves out the index that is not granted; OpenSearch, as it is set up by default, refuses.
    assert seen(snapshot, world("a")) == (own if world.cluster.elastic else "refused")
    assert seen(snapshot, world("a_other")) == both


def test_an_opensearch_that_forgives_shows_what_may_be_read_of_several_indices(forgiving: World) -> None:
    own = {f"{forgiving.docs}/1", f"{forgiving.docs}/2"}
    other = {f"{forgiving.more}/1", f"{forgiving.more}/9"}
    users = ["a", "other", "a_other", "nobody"]
    for several in (f"{forgiving.cluster.prefix}*", f"{forgiving.docs},{forgiving.more}"):
        snapshot = forgiving.cluster.take(several, [forgiving(user) for user in users])
        assert forgiving.seen(snapshot, *users) == {
            "a": own,
            "other": other,
            "a_other": own | other,
            "nobody": "refused",
        }
        assert set(snapshot.record.findings) == {"refused"}
        assert snapshot.record.backend.settings["do_not_fail_on_forbidden"] is True
    # One index is asked for by its name, and there is nothing to leave out.
    assert forgiving.seen(forgiving.take("docs", "a", "other"), "a", "other") == {"a": A, "other": "refused"}
    forgive(forgiving.cluster, False)
    snapshot = forgiving.cluster.take(several, [forgiving(user) for user in users])
    assert forgiving.seen(snapshot, *users) == {
        "a": "refused",
        "other": "refused",
        "a_other": own | other,
        "nobody": "refused",
    }


@pytest.mark.parametrize("engine", ["elastic", "forgiving"])
def test_an_index_that_the_capturing_account_is_not_shown_is_an_error_and_never_left_out(
    request: pytest.FixtureRequest, engine: str
) -> None:
    world: World = request.getfixturevalue(engine)
    world.cluster.index(world("unseen"), {"77": {"tenant": "a"}})
    world.roles(limited=reading(world, None), unseen=world.role(world.entry("unseen")))
    account(world, "limited")
    passwords = {name: (world(name), PASSWORD) for name in ("reads_all", "reads_unseen")}
    world.users(
        reads_all={"roles": ["all"], "password": PASSWORD}, reads_unseen={"roles": ["unseen"], "password": PASSWORD}
    )
    pattern = f"{world.cluster.prefix}*"
    with world.cluster.connect(pattern, passwords, user=world("limited"), password=PASSWORD) as adapter:
        documents = adapter.documents()
        assert set(documents) == set(capture(adapter, ["reads_all"], documents).authorized("reads_all"))
        for ask in (
            lambda: capture(adapter, [*passwords], documents),
            lambda: adapter.check("reads_unseen", documents),
        ):
            with pytest.raises(IncompleteAnswer, match=r"unseen/77 .* shown nothing of that index"):
                ask()


def test_a_pattern_none_of_which_may_be_read_is_refused(world: World) -> None:
    snapshot = world.cluster.take(f"{world.cluster.prefix}*", [world("nobody")])
    assert seen(snapshot, world("nobody")) == "refused"


def test_a_data_stream_is_a_path(world: World) -> None:
    cluster = world.cluster
    template = {"index_patterns": [world("stream*")], "data_stream": {}, "priority": 500}
    template["template"] = {"mappings": {"properties": {**KEYWORDS, "@timestamp": {"type": "date"}}}}
    if cluster.elastic and "data-streams" not in str(cluster.ask("GET", "/_nodes/plugins")):
        # The image that we build lacks the module, and says so.
        with pytest.raises(Refused, match="no handler found"):
            cluster.ask("PUT", f"/_data_stream/{world('stream')}")
        return
    cluster.ask("PUT", f"/_index_template/{world('stream')}", template)
    cluster.ask("PUT", f"/_data_stream/{world('stream')}")
    try:
        lines: list[dict[str, Any]] = []
        for each, source in DOCUMENTS.items():
            lines += [{"create": {"_index": world("stream"), "_id": each}}, {**source, "@timestamp": "2020-01-01"}]
        assert not cluster.ask("POST", "/_bulk?refresh=true", lines)["errors"]
        world.roles(stream=world.role(world.entry("stream", of("a"))))
        world.users(stream=["stream"])
        assert seen(world.take("stream", "stream"), world("stream")) == A
    finally:
        cluster.ask("DELETE", f"/_data_stream/{world('stream')}")
        cluster.ask("DELETE", f"/_index_template/{world('stream')}")


def test_a_document_that_is_not_there_is_told_apart_from_one_that_is_hidden(world: World) -> None:
    snapshot = world.take("docs", "a", documents=["1", "5", "77"])
    assert [each.document for each in findings(snapshot, "absent")] == ["77"]
    assert snapshot.decision(world("a"), "5").decision is Decision.DENY


def test_an_id_field_that_is_hidden_from_somebody_hides_no_document(world: World) -> None:
    snapshot = world.take("docs", "a", "hidden", id_field="doc_id")
    assert world.seen(snapshot, "a", "hidden") == {"a": {"d1", "d2"}, "hidden": {"d1", "d2"}}
    assert snapshot.record.sample is not None
    assert snapshot.record.sample.asked == 12


# -- sets of roles -------------------------------------------------------------------------------------------------------


def test_sets_of_roles_are_asked_before_anybody_holds_them(world: World) -> None:
    a, b, everything = world("a"), world("b"), world("all")
    sets = [f"{a}+{b}", a, b, f"{a}+{everything}", everything]
    snapshot = world.cluster.take(world.docs, sets, roles=[",".join(sets)], allow_temporary_principals=True)
    elastic = world.cluster.elastic
    assert {name: seen(snapshot, name) for name in sets} == {
        f"{a}+{b}": AB,
        a: A,
        b: {"3", "4"},
        f"{a}+{everything}": ALL if elastic else A,
        everything: ALL,
    }
    fewer = {(each.principal, each.document) for each in findings(snapshot, "more roles see less")}
    assert fewer == (set() if elastic else {(f"{a}+{everything}", document) for document in ALL - A})


def test_a_templated_role_is_asked_as_a_user_of_its_own(elastic: World) -> None:
    name = elastic("mine")
    with elastic.cluster.connect(elastic.docs, roles=[name], allow_temporary_principals=True) as adapter:
        (made,) = temporary(adapter, [name])
        user = elastic.cluster.ask("GET", f"/_security/user/{made}")[made]
        assert user["roles"] == [name]
        elastic.cluster.ask("PUT", f"/{elastic.docs}/_doc/own?refresh=true", {"owner": made, "tenant": "z"})
        try:
            assert set(capture(adapter, [name], adapter.documents()).authorized(name)) == {"own"}
        finally:
            elastic.cluster.ask("DELETE", f"/{elastic.docs}/_doc/own?refresh=true")
    assert made not in left(elastic)


def test_what_was_made_is_removed_also_after_an_exception(world: World) -> None:
    class Sudden(Exception):
        pass

    made: list[str] = []

    def interrupted() -> None:
        options: dict[str, Any] = {"roles": [world("a")], "allow_temporary_principals": True}
        with world.cluster.connect(world.docs, **options) as adapter:
            made.extend(temporary(adapter, [world("a")]))
            assert set(made) <= left(world)
            raise Sudden

    with pytest.raises(Sudden):
        interrupted()
    assert made
    assert not set(made) & left(world)


def test_the_next_run_removes_what_is_older_than_an_hour(world: World) -> None:
    old, young = (f"{principals.PREFIX}{int(time.time() - age):x}-{world.cluster.prefix}" for age in (3700, 60))
    world.cluster.users({name: {"roles": []} for name in (old, young)})
    world.cluster.connect(world.docs).close()
    assert {old, young} <= left(world)
    world.cluster.connect(world.docs, allow_temporary_principals=True).close()
    assert {old, young} & left(world) == {young}
    world.cluster.forget_users([old])


def temporary(adapter: Any, sets: list[str]) -> list[str]:
    """Take a snapshot for sets of roles, and return what was made for it."""
    capture(adapter, sets, adapter.documents())
    return list(adapter.asking._names)


def left(world: World) -> set[str]:
    with world.cluster.connect(world.docs) as adapter:
        return set(adapter.engine.temporaries())


# -- API keys ------------------------------------------------------------------------------------------------------------


def test_a_key_keeps_the_roles_that_its_owner_had(elastic: World) -> None:
    elastic.roles(changing=elastic.role(elastic.entry("docs", of("a"))))
    elastic.users(owner_of_key=["changing"])
    key = elastic.cluster.key({}, elastic("owner_of_key"))
    elastic.roles(changing=elastic.role(elastic.entry("docs", of("c"))))
    snapshot = elastic.cluster.take(elastic.docs, ["bot", elastic("owner_of_key")], credentials={"bot": key})
    assert seen(snapshot, "bot") == A
    assert seen(snapshot, elastic("owner_of_key")) == {"5", "6"}


def test_descriptors_of_a_key_are_ored_and_narrow_the_owner(elastic: World) -> None:
    b, c = (elastic.role(elastic.entry("docs", of(tenant))) for tenant in "bc")
    keys = {
        "narrowed": elastic.cluster.key({"b": b}, elastic("ab")),
        "both": elastic.cluster.key({"b": b, "c": c}, elastic("ab")),
        "apart": elastic.cluster.key({"c": c}, elastic("ab")),
        "admin's": elastic.cluster.key({"b": b, "c": c}),
    }
    snapshot = elastic.cluster.take(elastic.docs, [*keys], credentials=keys)
    assert {name: seen(snapshot, name) for name in keys} == {
        "narrowed": {"3", "4"},
        "both": {"3", "4"},
        "apart": set(),
        "admin's": {"3", "4", "5", "6"},
    }
    recorded = snapshot.record.backend.settings["api_keys"]
    assert {name: set(key["role_descriptors"]) for name, key in recorded.items()} == {
        "narrowed": {"b"},
        "both": {"b", "c"},
        "apart": {"c"},
        "admin's": {"b", "c"},
    }
    assert recorded["narrowed"]["username"] == elastic("ab")
    assert len(recorded["narrowed"]["limited_by"][0]) == 2
    for key in keys.values():
        assert key.partition(":")[2] not in str(recorded)


def test_a_key_that_is_invalidated_meanwhile_is_drift(elastic: World) -> None:
    key = elastic.cluster.key({"a": elastic.role(elastic.entry("docs", of("a")))})
    with elastic.cluster.connect(elastic.docs, credentials={"bot": key}) as adapter:
        before = adapter.describe()
        elastic.cluster.ask("DELETE", "/_security/api_key", {"ids": [key.partition(":")[0]]})
        after = adapter.describe()
    assert before.revision != after.revision
    assert [each.settings["api_keys"]["bot"]["invalidated"] for each in (before, after)] == [False, True]


def test_keys_are_read_by_one_request(elastic: World) -> None:
    descriptors = {"a": elastic.role(elastic.entry("docs", of("a")))}
    keys = {f"bot{number:02}": elastic.cluster.key(descriptors) for number in range(12)}
    recorder = Recorder(elastic.cluster.server.url)
    with recorder.running(), elastic.cluster.connect(elastic.docs, credentials=keys, url=recorder.url) as adapter:
        recorded = adapter.describe().settings["api_keys"]
    assert {name: key["id"] for name, key in recorded.items()} == {
        name: key.partition(":")[0] for name, key in keys.items()
    }
    assert len([request for request in recorder.requests if "api_key" in request.path]) == 1


def test_a_key_that_may_not_be_read_leaves_drift_unverifiable(elastic: World) -> None:
    reads = [f"cluster:admin/xpack/security/{each}/get" for each in ("role", "role_mapping", "user")]
    elastic.roles(keyless={**reading(elastic, None), "cluster": ["monitor", *reads]})
    account(elastic, "keyless")
    key = elastic.cluster.key({"a": elastic.role(elastic.entry("docs", of("a")))})
    own = {"user": elastic("keyless"), "password": PASSWORD}
    with elastic.cluster.connect(elastic.docs, credentials={"own": (elastic("keyless"), PASSWORD)}, **own) as adapter:
        assert "drift_unverifiable" not in adapter.describe().settings
    snapshot = elastic.cluster.take(elastic.docs, ["bot"], credentials={"bot": key}, **own)
    assert seen(snapshot, "bot") == A
    assert snapshot.record.drift == "unverifiable"
    doubt = snapshot.record.backend.settings["drift_unverifiable"]
    assert doubt.startswith("the API key of bot may not be read (403: ")
    assert "manage_own_api_key" in doubt or "read_security" in doubt
    assert key.partition(":")[2] not in str(snapshot.record)


def test_a_key_of_another_where_only_own_ones_may_be_read_leaves_drift_unverifiable(elastic: World) -> None:
    reads = [f"cluster:admin/xpack/security/{each}/get" for each in ("role", "role_mapping", "user")]
    elastic.roles(ownkeys={**reading(elastic, None), "cluster": ["monitor", "manage_own_api_key", *reads]})
    account(elastic, "ownkeys")
    key = elastic.cluster.key({"a": elastic.role(elastic.entry("docs", of("a")))})
    own = {"user": elastic("ownkeys"), "password": PASSWORD}
    snapshot = elastic.cluster.take(elastic.docs, ["bot"], credentials={"bot": key}, **own)
    assert seen(snapshot, "bot") == A
    assert snapshot.record.drift == "unverifiable"
    assert "there is none that may be read" in snapshot.record.backend.settings["drift_unverifiable"]


def test_a_key_that_was_invalidated_is_an_error(elastic: World) -> None:
    key = elastic.cluster.key({"a": elastic.role(elastic.entry("docs", of("a")))})
    elastic.cluster.ask("DELETE", "/_security/api_key", {"ids": [key.partition(":")[0]]})
    snapshot = elastic.cluster.take(elastic.docs, ["bot"], credentials={"bot": key})
    assert str(seen(snapshot, "bot")).startswith("ERROR: ")


# -- the capturing account -----------------------------------------------------------------------------------------------


def test_an_account_that_is_restricted_itself_captures_nothing(world: World) -> None:
    world.roles(restricted=reading(world, of("a")))
    account(world, "restricted")
    with pytest.raises(PolicyError, match="by a query"):
        world.take("docs", "a", user=world("restricted"), password=PASSWORD)


def test_an_account_that_may_not_ask_as_others_shows_nobody_everything(world: World) -> None:
    world.roles(plain=reading(world, None))
    account(world, "plain")
    snapshot = world.take("docs", "a", "nobody", user=world("plain"), password=PASSWORD)
    for user in ("a", "nobody"):
        assert str(seen(snapshot, world(user))).startswith("ERROR: unknown to the cluster, or not to be asked as")


def account(world: World, role: str) -> None:
    """Make a user that holds `role`, and what OpenSearch wants of one who looks up roles."""
    roles = [world(role)] if world.cluster.elastic else [world(role), "security_rest_api_access"]
    world.cluster.users({world(role): {"roles": roles, "password": PASSWORD}})


def reading(world: World, query: Any) -> dict[str, Any]:
    """A role that reads the index and may look up what an account needs to."""
    if world.cluster.elastic:
        about = {"names": [world("*")], "privileges": ["view_index_metadata", "monitor"]}
        return {"cluster": ["monitor", "read_security"], **world.role(world.entry("docs", query), about)}
    entry = world.entry("docs", query)
    entry["allowed_actions"] = ["read", "indices:monitor/*", "indices:admin/*"]
    return {"cluster_permissions": ["cluster_monitor", "cluster_composite_ops_ro"], **world.role(entry)}


def test_elasticsearch_without_a_licence_for_it_is_an_error(tmp_path: Path) -> None:
    with servers.elasticsearch() as server, open_cluster(server, "elasticsearch", tmp_path) as cluster:
        world = built(cluster)
        key = cluster.key({"a": world.role(world.entry("docs", of("a")))})
        assert seen(world.take("docs", "a"), world("a")) == A
        cluster.ask("POST", "/_license/start_basic?acknowledge=true")
        # The engine takes a role with a query for not there: whoever holds another as well is shown by that one alone.
        for user in ("a", "a_other", "a_all"):
            with pytest.raises(PolicyError, match="not in the cluster's licence") as refused:
                world.take("docs", user)
            assert refused.value.fix
        with pytest.raises(PolicyError, match="not in the cluster's licence"):
            cluster.take(world.docs, ["bot"], credentials={"bot": key})
        assert seen(world.take("docs", "other"), world("other")) == "refused"


# -- secrets -------------------------------------------------------------------------------------------------------------


def test_no_secret_is_shown_anywhere(world: World) -> None:
    cluster = world.cluster
    secret = "Hidden-otter-11-harbour"
    world.users(own={"roles": ["a"], "password": secret})
    credentials: dict[str, Any] = {ADMIN: cluster.admin, "own": (world("own"), secret)}
    if cluster.elastic:
        credentials["bot"] = cluster.key({"a": world.role(world.entry("docs", of("a")))})
    shown = []
    with cluster.connect(
        world.docs, credentials, roles=[world("a")], allow_temporary_principals=True, compare_paths="get"
    ) as adapter:
        snapshot = capture(adapter, [*credentials, world("a")], adapter.documents())
        requester = adapter.asking._made[world("a")]
        shown += [repr(adapter), repr(vars(adapter)), repr(vars(adapter.engine)), repr(adapter.engine.wire)]
        shown += [repr(adapter.asking), str(requester), repr(snapshot), repr(snapshot.record)]
        temporary_secret = requester.headers["authorization"].partition(" ")[2]
    try:
        cluster.take(world.docs, ["own"], credentials=credentials, user="nobody-here")
    except BackendError as error:
        shown.append("".join(traceback.format_exception(error)))
    assert len(shown) == 9
    assert seen(snapshot, "own") == A
    secrets = [PASSWORD, secret, temporary_secret, *(each for each in credentials.values() if isinstance(each, str))]
    for each in [*secrets, *(each.partition(":")[2] for each in secrets if ":" in each)]:
        assert each not in "".join(shown)
