"""Public bug reports of OpenFGA, on a running server: the list that is cut, the check that is cached, and contextual tuples."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import servers
from arecall.capture import capture
from arecall.evaluate import evaluate
from arecall.scenario import recording, schema
from arecall.scenario.judging import judge
from arecall.scenario.loader import load
from arecall.scenario.running import named, replay
from arecall.snapshot import Snapshot
from arecall_adapters import openfga as fga
from arecall_adapters.memory import ADAPTER as MEMORY
from arecall_adapters.openfga.options import open_store
from servers import Server
from unit.scenario.adapters import problems
from unit.scenario.files import write
from unit.scenario.staged import STAGED, assert_as_worked, scenario, snapshots, story, watched
from unit.scenario.written import written

pytestmark = pytest.mark.live

MODEL = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {
            "type": "group",
            "relations": {"member": {"this": {}}},
            "metadata": {"relations": {"member": {"directly_related_user_types": [{"type": "user"}]}}},
        },
        {
            "type": "folder",
            "relations": {"viewer": {"this": {}}},
            "metadata": {"relations": {"viewer": {"directly_related_user_types": [{"type": "user"}]}}},
        },
        {
            "type": "document",
            "relations": {
                "parent": {"this": {}},
                "viewer": {
                    "union": {
                        "child": [
                            {"this": {}},
                            {
                                "tupleToUserset": {
                                    "tupleset": {"relation": "parent"},
                                    "computedUserset": {"relation": "viewer"},
                                }
                            },
                        ]
                    }
                },
            },
            "metadata": {
                "relations": {
                    "parent": {"directly_related_user_types": [{"type": "folder"}]},
                    "viewer": {"directly_related_user_types": [{"type": "group", "relation": "member"}]},
                }
            },
        },
    ],
}

Tuple = Mapping[str, str]


def store(server: Server, tuples: Sequence[Tuple]) -> str:
    """Make a store that holds these tuples; return its id."""
    made: str = server.ask("/stores", {"name": f"incident-{secrets.token_hex(4)}"})["id"]
    server.ask(f"/stores/{made}/authorization-models", MODEL)
    for first in range(0, len(tuples), 100):
        server.ask(f"/stores/{made}/write", {"writes": {"tuple_keys": list(tuples[first : first + 100])}})
    return made


@pytest.fixture(scope="module")
def cached() -> Iterator[Server]:
    """A server that caches checks for three seconds."""
    settings = {"OPENFGA_CHECK_QUERY_CACHE_ENABLED": "true", "OPENFGA_CHECK_QUERY_CACHE_TTL": "3s"}
    with servers.openfga(settings) as server:
        yield server


def test_a_list_is_cut_at_a_thousand_and_the_snapshot_is_whole(openfga: Server, shared: Path) -> None:
    told = story(shared, "F01")
    (who,), readable = told["world"]["principals"], told["authorized"]["mia"]
    assert len(readable) == told["right"]["A_p_size"]
    tuples = [{"user": f"user:{who}", "relation": "viewer", "object": "folder:all"}]
    tuples += [{"user": "folder:all", "relation": "parent", "object": document} for document in readable]
    made = store(openfga, tuples)
    asked = {"type": "document", "relation": "viewer", "user": f"user:{who}"}
    cut = openfga.ask(f"/stores/{made}/list-objects", asked)["objects"]
    assert len(set(cut)) == told["right"]["list_objects_size"]
    with open_store({"document_template": "{id}"}, openfga.url, made) as adapter:
        snapshot = capture(adapter, [who], readable)
    assert snapshot.authorized(who) == set(readable)
    assert snapshot.record.completeness.decisions["ALLOW"] == len(readable)
    assert_as_worked(shared, told, snapshot)
    # Taken for the whole, the cut list hides that a document was missed: which ones it lacks is the server's to say.
    lacking, there = sorted(set(readable) - set(cut))[0], cut[0]
    figures = []
    for access in (snapshot, Snapshot.from_sets({who: set(cut)}, universe=readable)):
        result = evaluate(
            snapshot=access, qrels={"q": {lacking: 1, there: 1}}, delivered={(who, "q"): [there]}, ks=[5], draws=0
        )
        row = result.row("ARecall@5", filter="delivered")
        figures.append((row.numerator, row.denominator))
    assert figures == [(1, 2), (1, 1)]


def test_a_cached_check_is_a_road_that_leaks_until_it_expires(tmp_path: Path, cached: Server, shared: Path) -> None:
    told = story(shared, "F03")
    roads = watched(2, schema.Within(deadline="1s", watch="30s"))
    path = write(tmp_path, written(roads(scenario(told, STAGED["F03"]))))
    with recording.new(tmp_path / "recording") as aside:
        replay(named([load(path)]), [fga.ADAPTER, MEMORY], aside, servers={"openfga": cached.url})
        verdicts = judge(aside)
    assert problems(verdicts, "memory") == []
    # The adapter's list asks a check about what ListObjects leaves out, and so is as late as that one.
    late = problems(verdicts, "openfga")
    assert [problem.partition(" shows ")[0] for problem in late] == [
        f"fails: t1: {road} (MINIMIZE_LATENCY)" for road in ("check", "list")
    ]
    assert all("within 1s: it is late: there for good after " in problem for problem in late)
    assert all(problem.endswith(" s was still shown d1") for problem in late)
    found = {road.road: road.verdict for road in verdicts.scenarios[0].backends["openfga"].roads}
    assert {road for road, verdict in found.items() if verdict == "in_time"} == {
        "check", "list", "check (HIGHER_CONSISTENCY)", "list (HIGHER_CONSISTENCY)",
    }  # fmt: skip
    before, after = snapshots(tmp_path / "recording", "openfga")[1:]
    for moment, snapshot in (("t0", before), ("t1", after)):
        assert sorted(snapshot.authorized("ann")) == told["right"]["A_p"][moment]
        assert snapshot.record.backend.consistency == "HIGHER_CONSISTENCY"
    assert_as_worked(shared, told, after)


ASSISTANT = """\
schema: arecall/scenario/1
title: An assistant that asks the cached check
why: For tests. Nobody else.
world:
  principals: [ann, bob]
  documents:
    price: {readers: {principals: [ann, bob]}, text: "the price that we offer"}
retrieval:
  queries: {price: "What price do we offer?"}
stages:
  - name: bob is taken off it
    changes:
      - {do: revoke, document: price, from: {principals: [bob]}}
    expect:
      within: [{road: citations, deadline: 1s, watch: 30s}]
"""


def test_an_assistant_that_asks_the_cached_check_goes_on_citing_until_it_expires(
    tmp_path: Path, cached: Server
) -> None:
    with recording.new(tmp_path / "recording") as aside:
        replay(named([load(write(tmp_path, ASSISTANT))]), [fga.ADAPTER], aside, servers={"openfga": cached.url})
        verdicts = judge(aside)
    (late,) = problems(verdicts, "openfga")
    assert late.startswith(
        "fails: bob is taken off it: citations (MINIMIZE_LATENCY) shows the change within 1s: it is late"
    )
    assert late.endswith(" s was still shown price")
    verdict = {road.road: road.verdict for road in verdicts.scenarios[0].backends["openfga"].roads}
    assert verdict["citations"] == verdict["citations (HIGHER_CONSISTENCY)"] == "in_time"


def test_a_cached_check_says_yes_when_the_list_says_no_already(cached: Server, shared: Path) -> None:
    told = story(shared, "F03")
    (who, relation, folder), (_, parent, document) = told["world"]["grants"]
    granted = {"user": f"user:{who}", "relation": relation, "object": folder}
    made = store(cached, [granted, {"user": folder, "relation": parent, "object": f"document:{document}"}])
    key = {"user": f"user:{who}", "relation": relation, "object": f"document:{document}"}

    def check(consistency: str = "UNSPECIFIED") -> Any:
        return cached.ask(f"/stores/{made}/check", {"tuple_key": key, "consistency": consistency})["allowed"]

    observed = {"before": check()}
    cached.ask(f"/stores/{made}/write", {"deletes": {"tuple_keys": [granted]}})
    observed["just_after_default"] = check()
    observed["just_after_higher_consistency"] = check("HIGHER_CONSISTENCY")
    listed = cached.ask(
        f"/stores/{made}/list-objects", {"type": "document", "relation": relation, "user": f"user:{who}"}
    )
    observed["list_objects_just_after"] = listed["objects"]
    time.sleep(4)
    observed["after_ttl"] = check()
    assert observed == told["verified"]["observed"]


def test_an_answer_is_cached_with_its_contextual_tuples(tmp_path: Path, cached: Server, shared: Path) -> None:
    told = story(shared, "F04")
    ((granted, relation, document),) = told["world"]["grants"]
    made = store(cached, [{"user": granted, "relation": relation, "object": f"document:{document}"}])
    given = [{"user": f"user:{u}", "relation": r, "object": thing} for u, r, thing in told["world"]["contextual"]]

    def check(contextual: Sequence[Tuple]) -> Any:
        key = {"user": "user:bo", "relation": relation, "object": f"document:{document}"}
        asked = {"tuple_key": key, "contextual_tuples": {"tuple_keys": contextual}, "consistency": "MINIMIZE_LATENCY"}
        return cached.ask(f"/stores/{made}/check", asked)["allowed"]

    assert [check(given), check([]), check(given)] == told["right"]["answers"]
    tuples = tmp_path / "tuples.json"
    tuples.write_text(json.dumps(given), "utf-8")
    taken = []
    for contextual in (tuples, None, tuples):
        options = {"consistency": "MINIMIZE_LATENCY", "contextual_tuples": contextual}
        with open_store(options, cached.url, made) as adapter:
            taken.append(capture(adapter, ["bo"], [document]))
    assert [sorted(one.authorized("bo")) for one in taken] == [["d1"], [], ["d1"]]
    assert taken[0].record.backend.settings != taken[1].record.backend.settings
    assert_as_worked(shared, told, taken[0])
