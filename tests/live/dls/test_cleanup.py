"""What killed runs leave on a cluster, and what a run's own principals do to its record."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from arecall.adapter import Silent
from arecall.capture import capture
from arecall.errors import BackendUnavailable
from arecall_adapters import elasticsearch as es
from arecall_adapters import opensearch as osearch
from arecall_adapters.dls.engine import THIS_ROLE, Engine, Policy
from arecall_adapters.dls.options import clean_up
from arecall_adapters.dls.principals import PREFIX
from arecall_adapters.dls.wire import Access
from arecall_adapters.elasticsearch.engine import ElasticsearchEngine
from arecall_adapters.elasticsearch.wire import ElasticsearchWire
from arecall_adapters.opensearch.engine import OpenSearchEngine
from arecall_adapters.opensearch.wire import OpenSearchWire
from live.openfga.running import arecall
from servers import Server

pytestmark = pytest.mark.live


@dataclass
class Cluster:
    """A server, asked as its administrator, with an index of two documents and a role that shows one of them."""

    engine: Engine
    server: Server
    index: str

    @property
    def module(self) -> Any:
        return es if isinstance(self.engine, ElasticsearchEngine) else osearch

    @property
    def role(self) -> str:
        return f"{self.index}-role"

    def name(self, age: float) -> str:
        """What a run that began so many seconds ago called something that it made."""
        return f"{PREFIX}{int(time.time() - age):x}-{secrets.token_hex(4)}-0"

    def cleanup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        variable = self.engine.kind.upper()
        return arecall(
            "cleanup",
            self.engine.kind,
            *arguments,
            **{
                f"{variable}_URL": self.server.url,
                f"{variable}_USERNAME": self.server.user,
                f"{variable}_PASSWORD": self.server.password,
            },
        )


@pytest.fixture(params=["elasticsearch", "opensearch"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    server: Server = request.getfixturevalue(request.param)
    access = Access(server.url, server.user, server.password)
    engine: Engine = (
        ElasticsearchEngine(ElasticsearchWire(access))
        if request.param == "elasticsearch"
        else OpenSearchEngine(OpenSearchWire(access))
    )
    made = Cluster(engine, server, f"left-{secrets.token_hex(6)}")
    engine.wire.ask("PUT", f"/{made.index}", {"mappings": {"properties": {"role": {"type": "keyword"}}}})
    documents = [{"index": {"_id": "1"}}, {"role": made.role}, {"index": {"_id": "2"}}, {"role": "another"}]
    engine.wire.ask("POST", f"/{made.index}/_bulk?refresh=true", documents)
    engine.put_roles({made.role: f'{{"term": {{"role": "{THIS_ROLE}"}}}}'}, made.index)
    yield made
    engine.remove_roles([made.role])
    engine.wire.ask("DELETE", f"/{made.index}")
    engine.wire.close()


def test_what_killed_runs_left_is_removed_by_its_age(cluster: Cluster) -> None:
    # All younger than what other tests of this run may remove on their way, and older than what these are using.
    older, old = (cluster.name(age) for age in (3000, 2000))
    roles = cluster.engine.roles_of([cluster.role])
    for name in (older, old):
        cluster.engine.hold(name, roles)
    dry = cluster.cleanup("--min-age", "1500", "--dry-run")
    assert (dry.returncode, dry.stdout.split()) == (0, [older, old])
    first = cluster.cleanup("--min-age", "2500")
    assert (first.returncode, first.stdout.split()) == (0, [older])
    assert {older, old} & set(cluster.engine.temporaries()) == {old}
    assert cluster.cleanup("--min-age", "1500").stdout.split() == [old]
    again = cluster.cleanup("--min-age", "1500")
    assert (again.returncode, again.stdout) == (0, "")


def test_what_a_killed_measurement_left_is_removed_with_its_roles(opensearch: Server) -> None:
    engine = OpenSearchEngine(OpenSearchWire(Access(opensearch.url, opensearch.user, opensearch.password)))
    run = f"{PREFIX}{int(time.time() - 3000):x}-{secrets.token_hex(4)}"
    roles = {f"{run}-none": '{"match_none": {}}', f"{run}-all": ""}
    engine.put_roles(roles, "nothing")
    engine.hold(run, roles)
    assert set(clean_up(engine, 2500)) == {run, *roles}
    assert not [name for name in engine.temporaries() if name.startswith(run)]
    assert not engine.roles_of(list(roles))
    engine.wire.close()


def test_an_account_that_may_not_look_is_an_error(cluster: Cluster) -> None:
    name, password = f"{cluster.index}-stranger", "Wander-copper-48-lantern"
    elastic = isinstance(cluster.engine, ElasticsearchEngine)
    place = "/_security/user" if elastic else "/_plugins/_security/api/internalusers"
    cluster.server.ask(f"{place}/{name}", {"password": password, **({"roles": []} if elastic else {})}, method="PUT")
    try:
        done = replace(cluster, server=replace(cluster.server, user=name, password=password)).cleanup()
    finally:
        cluster.engine.remove_users([name])
    assert (done.returncode, done.stdout) == (3, "")
    assert "may not look for temporary principals" in done.stderr


class Notes(Silent):
    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, message: str) -> None:
        self.told.append(message)


def test_a_runs_own_principals_are_no_drift_and_in_no_record(cluster: Cluster) -> None:
    options = {
        "url": cluster.server.url,
        "user": cluster.server.user,
        "password": cluster.server.password,
        "index": cluster.index,
        "roles": (cluster.role,),
        "allow_temporary_principals": True,
    }
    notes = Notes()
    # The role's query is a template: on Elasticsearch too, it is asked as a temporary user.
    with cluster.module.connect(options) as adapter:
        taken = capture(adapter, adapter.principals(), adapter.documents(), progress=notes)
        made = adapter.asking._names
        assert len(made) == 1
        assert set(made) <= set(cluster.engine.temporaries())
    assert taken.authorized(cluster.role) == {"1"}
    assert (taken.record.drift, notes.told) == ("none_seen", [])
    assert not [name for name in taken.record.backend.settings["holders"] if name.startswith(PREFIX)]
    assert not set(made) & set(cluster.engine.temporaries())


def test_an_account_with_the_right_to_keys_of_its_own_removes_them(elasticsearch: Server) -> None:
    engine = ElasticsearchEngine(
        ElasticsearchWire(Access(elasticsearch.url, elasticsearch.user, elasticsearch.password))
    )
    name, password = f"left-{secrets.token_hex(6)}", "Wander-copper-48-lantern"
    role = {"cluster": ["read_security", "manage_own_api_key"]}
    engine.wire.ask("PUT", f"/_security/role/{name}", role)
    engine.wire.ask("PUT", f"/_security/user/{name}", {"password": password, "roles": [name]})
    own = ElasticsearchEngine(ElasticsearchWire(Access(elasticsearch.url, name, password)))
    made = f"{PREFIX}{int(time.time() - 3000):x}-{secrets.token_hex(4)}-0"
    try:
        own.hold(made, {name: role})
        assert made in own.temporaries()
        own.dismiss([made])
        assert made not in engine.temporaries()
    finally:
        engine.remove_users([name])
        engine.remove_roles([name])
        own.wire.close()
        engine.wire.close()


def test_roles_whose_queries_may_not_be_validated_decide_nothing(opensearch: Server) -> None:
    engine = OpenSearchEngine(OpenSearchWire(Access(opensearch.url, opensearch.user, opensearch.password)))
    name, password = f"left-{secrets.token_hex(6)}", "Wander-copper-48-lantern"
    index = f"{name}-index"  # one of the user's own name is the user's own
    role = {"index_permissions": [{"index_patterns": [index], "allowed_actions": ["read"], "dls": '{"match_all": {}}'}]}
    opensearch.ask(f"/_plugins/_security/api/roles/{name}", role, method="PUT")
    user = {"password": password, "opendistro_security_roles": [name]}
    opensearch.ask(f"/_plugins/_security/api/internalusers/{name}", user, method="PUT")
    engine.wire.ask("PUT", f"/{index}", {})
    own = OpenSearchEngine(OpenSearchWire(Access(opensearch.url, name, password)))
    try:
        policy = Policy({name: role}, {}, {})
        assert engine.problem(policy, [name], index) == ""
        with pytest.raises(BackendUnavailable, match="indices:admin/validate/query"):
            own.problem(policy, [name], index)
    finally:
        engine.wire.ask("DELETE", f"/{index}")
        engine.remove_users([name])
        engine.remove_roles([name])
        own.wire.close()
        engine.wire.close()
