"""Worlds in an engine's own terms: what is refused, that two of them stay apart, and that nothing of them is left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from arecall.adapter import Native
from arecall.errors import ArecallError, PolicyError, UsageError
from arecall.testing.roads import take
from arecall.world import AddDocument, World
from arecall_adapters import elasticsearch as es
from arecall_adapters import opensearch as osearch
from arecall_adapters.dls.adapter import DlsAdapter
from servers import Server

pytestmark = pytest.mark.live

DOCUMENTS = {"a": {"acl": ["team"]}, "b": {"acl": ["guests"]}}

ES_ROLES = {
    "team": {"indices": [{"names": ["{index}"], "privileges": ["read"], "query": {"term": {"acl": "team"}}}]},
    "guests": {"indices": [{"names": ["{index}"], "privileges": ["read"], "query": {"term": {"acl": "guests"}}}]},
    "keys": {"cluster": ["manage_own_api_key"]},
}
OS_ROLES = {
    name: {
        "index_permissions": [
            {"index_patterns": ["{index}"], "allowed_actions": ["read"], "dls": {"term": {"acl": name}}}
        ]
    }
    for name in ("team", "guests")
}


def world(roles: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"documents": DOCUMENTS, "roles": roles, "users": {"ann": {"roles": ["team"]}}, **more}


def elastic(server: Server) -> DlsAdapter:
    return es.empty(server.url, server.user, server.password)


def opened(server: Server) -> DlsAdapter:
    return osearch.empty(server.url, server.user, server.password)


def seen(adapter: DlsAdapter) -> dict[str, frozenset[str]]:
    snapshot = take(adapter, adapter.principals(), ["a", "b"])
    return {who: snapshot.authorized(who) for who in adapter.principals()}


def test_two_worlds_of_one_cluster_stay_apart(elasticsearch: Server) -> None:
    with elastic(elasticsearch) as one, elastic(elasticsearch) as other:
        one.provision_native(Native(settings=world(ES_ROLES)))
        other.provision_native(Native(settings=world(ES_ROLES)))
        one.apply_native({"put_users": {"ann": {"roles": ["guests"]}}})
        other.apply_native({"put_roles": {"team": ES_ROLES["guests"]}, "delete_documents": ["a"]})
        assert seen(one) == {"ann": {"b"}}
        assert seen(other) == {"ann": {"b"}}
        one.apply_native({"documents": {"a": {"acl": ["guests"]}}})
        assert seen(one) == {"ann": {"a", "b"}}
        assert seen(other) == {"ann": {"b"}}


def test_closing_removes_all_that_was_made_on_elasticsearch(elasticsearch: Server) -> None:
    keys = {"bot": {"owner": "ann", "descriptors": {}}}
    settings = world(
        {**ES_ROLES, "spare": {}},
        users={"ann": {"roles": ["team", "keys"]}},
        keys=keys,
        indices={"{index}-more": {"c": {}}},
        aliases={"{index}-alias": {}},
    )
    with elastic(elasticsearch) as adapter:
        name = adapter.question.access_path
        adapter.provision_native(Native(settings=settings))
        assert seen(adapter) == {"ann": {"a"}, "bot": {"a"}}
        adapter.apply_native({"delete_roles": ["spare"]})
        mine = [key for key in valid(elasticsearch) if key["username"].startswith(name)]
        assert len(mine) == 1
    assert elasticsearch.ask(f"/_resolve/index/{name}*") == {"indices": [], "aliases": [], "data_streams": []}
    assert [role for role in elasticsearch.ask("/_security/role") if role.startswith(name)] == []
    assert [user for user in elasticsearch.ask("/_security/user") if user.startswith(name)] == []
    assert [key for key in valid(elasticsearch) if key["username"].startswith(name)] == []


def valid(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.ask("/_security/api_key?active_only=true")["api_keys"]
    return found


def test_closing_removes_all_that_was_made_on_opensearch(opensearch: Server) -> None:
    with opened(opensearch) as adapter:
        name = adapter.question.access_path
        adapter.provision_native(Native(settings=world(OS_ROLES, indices={"{index}-more": {"c": {}}})))
        assert seen(adapter) == {"ann": {"a"}}
        adapter.apply_native({"put_roles": {"team": OS_ROLES["guests"]}})
        assert seen(adapter) == {"ann": {"b"}}
    assert opensearch.ask(f"/_resolve/index/{name}*")["indices"] == []
    api = "/_plugins/_security/api"
    for kind in ("roles", "internalusers"):
        assert [each for each in opensearch.ask(f"{api}/{kind}") if each.startswith(name)] == []


def test_a_cluster_that_is_set_otherwise_is_refused(opensearch: Server) -> None:
    settings = world(OS_ROLES, requires={"dfm_empty_overrides_all": "true"})
    with (
        opened(opensearch) as adapter,
        pytest.raises(PolicyError, match=r"dfm_empty_overrides_all = true, and this one has false \(measured\)"),
    ):
        adapter.provision_native(Native(settings=settings))


def test_opensearch_has_no_keys_to_make(opensearch: Server) -> None:
    settings = world(OS_ROLES, keys={"bot": {"owner": "ann", "descriptors": {}}})
    with opened(opensearch) as adapter, pytest.raises(UsageError, match="has no API keys that this makes"):
        adapter.provision_native(Native(settings=settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "missing required field `documents`"),
        (world(ES_ROLES, usres={}), "unknown field `usres`"),
        (world(ES_ROLES, users={"ann": {"roles": ["taem"]}}), "'ann' holds 'taem', which is none of the roles"),
        (world(ES_ROLES, users={"ann": {"roles": "team"}}), "the roles of the user 'ann' has another form"),
        (world(ES_ROLES, keys={"bot": {"owner": "bob", "descriptors": {}}}), "'bot' is of 'bob', which is none"),
        (world({"team": {"indices": "all"}}), r"expected field \[indices\] value to be an array"),
        (world(ES_ROLES, mappings={"properties": {"acl": {"type": "no"}}}), "does not take the native world"),
        (world(ES_ROLES, keys={"bot": {"owner": "ann", "descriptors": {}}}), "give it the cluster privilege"),
        (world(ES_ROLES, documents={"a": {"text": {"no": "text"}}}), "the document 'a'"),
    ],
)
def test_a_world_that_cannot_be_meant_is_refused(elasticsearch: Server, settings: dict[str, Any], message: str) -> None:
    with elastic(elasticsearch) as adapter, pytest.raises(ArecallError, match=message):
        adapter.provision_native(Native(settings=settings))


def test_files_stand_for_settings_and_not_beside_them(elasticsearch: Server, tmp_path: Path) -> None:
    file = tmp_path / "documents.json"
    file.write_text('{"a": {"acl": ["team"]}, "b": {"acl": "team"}}', "utf-8")
    broken = tmp_path / "broken.json"
    broken.write_text("{", "utf-8")
    settings = world(ES_ROLES)
    with elastic(elasticsearch) as adapter:
        with pytest.raises(UsageError, match="documents as a setting and as a file"):
            adapter.provision_native(Native({"documents": file}, settings))
        del settings["documents"]
        with pytest.raises(UsageError, match=r"broken\.json is no JSON"):
            adapter.provision_native(Native({"documents": broken}, settings))
        adapter.provision_native(Native({"documents": file}, settings))
        assert seen(adapter) == {"ann": {"a", "b"}}


def test_changes_are_of_the_world_that_there_is(elasticsearch: Server) -> None:
    with elastic(elasticsearch) as adapter:
        with pytest.raises(UsageError, match="for a native world, and there is none"):
            adapter.apply_native({})
        adapter.provision_native(Native(settings=world(ES_ROLES)))
        with pytest.raises(UsageError, match="there is no role 'taem' to delete"):
            adapter.apply_native({"delete_roles": ["taem"]})
        with pytest.raises(UsageError, match="unknown field `put_user`"):
            adapter.apply_native({"put_user": {}})
        with pytest.raises(UsageError, match="takes native changes only"):
            adapter.apply(AddDocument("c"))
        with pytest.raises(PolicyError, match="holds a world already"):
            adapter.provision(World())
        with pytest.raises(PolicyError, match="holds a world already"):
            adapter.provision_native(Native())
        assert seen(adapter) == {"ann": {"a"}}
