"""What is asked of a store besides the pair: context, contextual tuples, usersets, and why."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import servers
from arecall.adapter import Silent
from arecall.capture import capture
from arecall.decisions import Decision
from arecall.world import Everyone, Exclude, Grant, Group, Principal, Revoke, World
from arecall_adapters import openfga as fga
from arecall_adapters.openfga.adapter import OpenFgaAdapter
from arecall_adapters.openfga.options import open_store
from live.openfga import cases
from live.openfga.running import arecall
from servers import Server

pytestmark = pytest.mark.live

MODEL: dict[str, Any] = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {
            "type": "document",
            "relations": {"viewer": {"this": {}}},
            "metadata": {
                "relations": {
                    "viewer": {
                        "directly_related_user_types": [{"type": "user"}, {"type": "user", "condition": "awake"}]
                    }
                }
            },
        },
    ],
    "conditions": {
        "awake": {
            "name": "awake",
            "expression": "hour >= 8 && hour < 20",
            "parameters": {"hour": {"type_name": "TYPE_NAME_INT"}},
        }
    },
}
TUPLES: list[dict[str, Any]] = [
    {"user": "user:ann", "relation": "viewer", "object": "document:free"},
    {"user": "user:ann", "relation": "viewer", "object": "document:day", "condition": {"name": "awake"}},
    {"user": "user:bob", "relation": "viewer", "object": "document:day", "condition": {"name": "awake"}},
]
DOCUMENTS = ["free", "day", "other"]


@pytest.fixture(scope="module")
def conditional(openfga: Server) -> str:
    case = cases.build(openfga.url, "conditional")
    case.write(MODEL, TUPLES)
    return case.id


def decided(url: str, store: str, **options: Any) -> dict[str, list[Decision]]:
    with open_store(options, url, store) as adapter:
        taken = capture(adapter, ["ann", "bob"], DOCUMENTS)
    return {person: [taken.decision(person, each).decision for each in DOCUMENTS] for person in ("ann", "bob")}


ALLOW, DENY, CONDITIONAL = Decision.ALLOW, Decision.DENY, Decision.CONDITIONAL


def test_a_pair_that_lacks_context_is_conditional_and_no_denial(openfga: Server, conditional: str) -> None:
    assert decided(openfga.url, conditional) == {"ann": [ALLOW, CONDITIONAL, DENY], "bob": [DENY, CONDITIONAL, DENY]}


@pytest.mark.parametrize(("hour", "day"), [(9, ALLOW), (23, DENY)])
def test_a_context_is_for_everyone(openfga: Server, conditional: str, tmp_path: Path, hour: int, day: Decision) -> None:
    (tmp_path / "context.json").write_text(json.dumps({"hour": hour}))
    found = decided(openfga.url, conditional, context=tmp_path / "context.json")
    assert found == {"ann": [ALLOW, day, DENY], "bob": [DENY, day, DENY]}


def test_a_principal_may_have_a_context_and_tuples_of_its_own(
    openfga: Server, conditional: str, tmp_path: Path
) -> None:
    (tmp_path / "context.json").write_text('{"hour": 9}')
    other = {"user": "user:bob", "relation": "viewer", "object": "document:other"}
    lines = [{"id": "ann", "context": {"hour": 23}}, {"id": "bob", "contextual_tuples": [other]}]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = decided(openfga.url, conditional, context=tmp_path / "context.json", circumstances=tmp_path / "own.jsonl")
    assert found == {"ann": [ALLOW, DENY, DENY], "bob": [DENY, ALLOW, ALLOW]}


def test_tuples_may_be_given_for_everyone_and_are_recorded_by_their_digest(
    openfga: Server, conditional: str, tmp_path: Path
) -> None:
    other = {"user": "user:bob", "relation": "viewer", "object": "document:other"}
    (tmp_path / "tuples.json").write_text(json.dumps([other]))
    options = {"contextual_tuples": tmp_path / "tuples.json"}
    assert decided(openfga.url, conditional, **options)["bob"] == [DENY, CONDITIONAL, ALLOW]
    with open_store(options, openfga.url, conditional) as adapter:
        settings = adapter.describe().settings
    assert settings["contextual_tuples"].startswith("sha256:")
    assert "bob" not in json.dumps(settings)


def test_the_command_line_writes_what_is_conditional_and_says_so(
    openfga: Server, conditional: str, tmp_path: Path
) -> None:
    (tmp_path / "people.txt").write_text("ann\n")
    (tmp_path / "docs.txt").write_text("\n".join(DOCUMENTS))
    asked = [
        "snapshot",
        "openfga",
        "--principals",
        str(tmp_path / "people.txt"),
        "--documents",
        str(tmp_path / "docs.txt"),
    ]
    environment = {"FGA_API_URL": openfga.url, "FGA_STORE_ID": conditional}
    done = arecall(*asked, "-o", str(tmp_path / "now.json"), **environment)
    assert done.returncode == 3
    assert "CONDITIONAL" in (done.stdout + done.stderr)
    assert (tmp_path / "now.json").exists()


WORLD = World(
    frozenset({"ann", "bob", "cat"}),
    frozenset({"memo", "plan", "news", "secret"}),
    groups={"staff": frozenset({Group("team")}), "team": frozenset({Principal("ann")})},
    grants=frozenset(
        {(Principal("bob"), "memo"), (Group("staff"), "plan"), (Everyone(), "news"), (Group("staff"), "secret")}
    ),
    exclusions=frozenset({(Principal("ann"), "secret")}),
)


@pytest.fixture(scope="module")
def made(openfga: Server) -> Iterator[OpenFgaAdapter]:
    with fga.empty(openfga.url) as adapter:
        adapter.provision(WORLD)
        yield adapter


def test_usersets_everyone_and_users_with_their_type_are_principals(made: OpenFgaAdapter) -> None:
    asked = ["user:bob", "group:staff#member", "user:*", "user:nobody"]
    with open_store({"principal_template": "{id}"}, made.store.transport.url, made.store.id) as adapter:
        taken = capture(adapter, asked, sorted(WORLD.documents))
    assert {each: set(taken.authorized(each)) for each in asked} == {
        "user:bob": {"memo", "news"},
        "group:staff#member": {"plan", "secret"},
        "user:*": {"news"},
        "user:nobody": {"news"},
    }


@pytest.mark.parametrize(
    ("principal", "document", "decision", "said"),
    [
        ("bob", "memo", ALLOW, ["directly, as user:bob"]),
        ("ann", "plan", ALLOW, ["member of group:staff", "member of group:team", "directly, as user:ann"]),
        ("cat", "news", ALLOW, ["directly, as user:*"]),
        ("cat", "memo", DENY, ["no path grants it"]),
        ("ann", "secret", DENY, ["no path grants it", "has  ALLOW", "but not  ALLOW"]),
    ],
)
def test_an_explanation_shows_the_path_or_that_there_is_none(
    made: OpenFgaAdapter, principal: str, document: str, decision: Decision, said: list[str]
) -> None:
    found = made.explain(principal, document)
    assert found.outcome.decision is decision
    text = found.render()
    places = [text.find(each) for each in said]
    assert -1 not in places, text
    assert places == sorted(places), text
    assert msgspec.to_builtins(found, enc_hook=str)["document"] == document


def test_explain_is_a_command(made: OpenFgaAdapter) -> None:
    environment = {"FGA_API_URL": made.store.transport.url, "FGA_STORE_ID": made.store.id}
    done = arecall("explain", "openfga", "ann", "plan", **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ann reads plan: ALLOW" in (done.stdout + done.stderr)


def test_a_store_file_is_read_on_a_server_of_its_own(openfga: Server, tmp_path: Path) -> None:
    (tmp_path / "model.fga").write_text(
        "model\n  schema 1.1\ntype user\ntype document\n  relations\n    define viewer: [user]\n"
    )
    (tmp_path / "store.fga.yaml").write_text(
        "name: mine\nmodel_file: ./model.fga\ntuples:\n  - {user: user:no, relation: viewer, object: document:007}\n"
    )
    (tmp_path / "people.txt").write_text("no\nyes\n")
    (tmp_path / "docs.txt").write_text("007\n7\n")
    command = [
        "snapshot",
        "openfga",
        "--store-file",
        str(tmp_path / "store.fga.yaml"),
        "--principals",
        str(tmp_path / "people.txt"),
        "--documents",
        str(tmp_path / "docs.txt"),
        "-o",
        str(tmp_path / "now.json"),
    ]
    done = arecall(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / "now.json").read_text())
    assert "1 ALLOW" in (done.stdout + done.stderr)
    assert written["record"]["backend"]["identity"] == "store.fga.yaml"


def test_a_change_that_excludes_shows_at_once_at_either_consistency(openfga: Server) -> None:
    for consistency in ("HIGHER_CONSISTENCY", "MINIMIZE_LATENCY"):
        with fga.empty(openfga.url, consistency=consistency) as adapter:
            adapter.provision(World(frozenset({"ann"}), frozenset({"memo"})))
            adapter.apply(Grant(Principal("ann"), "memo"))
            assert adapter.check("ann", ["memo"])[0].decision is ALLOW
            adapter.apply(Exclude(Principal("ann"), "memo"))
            assert adapter.check("ann", ["memo"])[0].decision is DENY


def test_a_cache_answers_for_the_past_unless_higher_consistency_is_demanded() -> None:
    caching = {"OPENFGA_CHECK_QUERY_CACHE_ENABLED": "true", "OPENFGA_CHECK_QUERY_CACHE_TTL": "60s"}
    grant = frozenset({(Principal("ann"), "memo")})
    with servers.openfga(caching) as own, fga.empty(own.url) as made:
        made.provision(World(frozenset({"ann"}), frozenset({"memo"}), grants=grant))
        with open_store({"consistency": "MINIMIZE_LATENCY"}, own.url, made.store.id) as lenient:
            assert lenient.check("ann", ["memo"])[0].decision is ALLOW
            made.apply(Revoke(Principal("ann"), "memo"))
            assert lenient.check("ann", ["memo"])[0].decision is ALLOW
            assert lenient.describe().consistency == "MINIMIZE_LATENCY"
        assert made.check("ann", ["memo"])[0].decision is DENY
        taken = capture(made, ["ann"], ["memo"])
        assert taken.authorized("ann") == frozenset()


def test_memory_does_not_grow_with_the_number_of_principals(made: OpenFgaAdapter) -> None:
    documents = [f"document-{number}" for number in range(500)]

    def peak(principals: int) -> int:
        tracemalloc.start()
        try:
            for _ in made.list_authorized([f"p{number}" for number in range(principals)], documents, Silent()):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(5)
    assert peak(60) < 1.5 * peak(15)
