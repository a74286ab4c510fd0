"""Stores of public projects, with the answers that their authors expect, over the road that a snapshot takes.

No case is left out. Lists of users are the other way round to a snapshot, and are not asked.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from arecall.decisions import Decision
from arecall.errors import ArecallError, InputError
from arecall_adapters.openfga import store_file
from live.openfga import cases
from servers import Server

pytestmark = [pytest.mark.live, pytest.mark.data]

STORES = 207
PARTS = 8
"""Cases are run in parts, so that several processes can share them and a failure is not lost among thousands."""


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "cases" / "openfga"


@pytest.mark.parametrize("part", range(PARTS))
def test_every_check_and_list_of_every_store_is_answered_as_its_authors_expect(
    openfga: Server, folder: Path, part: int
) -> None:
    stores = cases.load(folder / "stores")
    assert len(stores) == STORES
    wrong, asked = [], 0
    for store in stores[part::PARTS]:
        case = cases.build(openfga.url, "case")
        case.write(store["model"], store["tuples"])
        wrong += [f"{store['id']}: {problem}" for problem in cases.problems(case, store["assertions"])]
        asked += len(store["assertions"])
    assert asked
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("road", ["stream", "check"])
@pytest.mark.parametrize("part", range(2))
def test_ready_authorized_sets_are_those_of_a_snapshot_by_either_road(
    openfga: Server, folder: Path, road: str, part: int
) -> None:
    sets = json.loads((folder / "authorized_sets.json").read_text("utf-8"))
    assert len(sets) == 315
    by_store: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in sets:
        by_store[each["store"]].append({**each, "kind": "list_objects", "user": each["principal"]})
    wrong, asked = [], 0
    for store in itertools.islice(sorted(by_store), part, None, 2):
        described = json.loads((folder / "stores" / f"{store}.json").read_text("utf-8"))
        case = cases.build(openfga.url, "sets")
        case.write(described["model"], described["tuples"])
        rows = [{**row, "expected": row["authorized"]} for row in by_store[store]]
        wrong += [f"{store}: {problem}" for problem in cases.problems(case, rows, road)]
        asked += len(rows)
    assert asked > 100
    assert not wrong, "\n".join(wrong)


def test_a_model_that_changed_under_old_tuples_decides_from_then_on(openfga: Server, folder: Path) -> None:
    wrong, stages = [], 0
    for described in cases.load(folder / "model_evolution"):
        case = cases.build(openfga.url, "evolution")
        for stage in described["stages"]:
            case.write(stage["model"], stage["tuples"])
            wrong += [f"{described['id']}: {problem}" for problem in cases.problems(case, stage["assertions"])]
            stages += 1
    assert stages > 30
    assert not wrong, "\n".join(wrong)


def test_every_store_file_is_read_and_its_tests_hold(openfga: Server, folder: Path) -> None:
    wrong, refused, asked = [], set(), 0
    for path in sorted((folder / "store_files").rglob("*.fga.yaml")):
        try:
            described = store_file.read(path)
        except InputError as error:
            refused.add((path.parent.name, "outside of its folder" in str(error)))
            continue
        for test, extra in described.tests:
            case = cases.build(openfga.url, "store file")
            case.write(described.model, [*map(cases.plain, described.tuples), *map(cases.plain, extra)])
            rows = list(cases.rows(test))
            wrong += [f"{path.name}, {test.name}: {problem}" for problem in cases.problems(case, rows)]
            asked += len(rows)
    assert refused == {("relative-path", True), ("traversal", True)}
    assert asked > 300
    assert not wrong, "\n".join(wrong)


RACE_MODEL: dict[str, Any] = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {
            "type": "team",
            "relations": {"member": {"this": {}}},
            "metadata": {
                "relations": {
                    "member": {
                        "directly_related_user_types": [
                            {"type": "user"},
                            {"type": "user", "wildcard": {}, "condition": "near"},
                        ]
                    }
                }
            },
        },
        {
            "type": "doc",
            "relations": {"via_team": {"this": {}}},
            "metadata": {
                "relations": {"via_team": {"directly_related_user_types": [{"type": "team", "relation": "member"}]}}
            },
        },
    ],
    "conditions": {
        "near": {"name": "near", "expression": "x < 10", "parameters": {"x": {"type_name": "TYPE_NAME_INT"}}}
    },
}
"""The shape of the one request that is known to answer now with a denial, now with an error."""


def test_an_error_that_loses_a_race_is_no_denial(openfga: Server, folder: Path) -> None:
    (known,) = json.loads((folder / "nondeterministic.json").read_text("utf-8"))
    assert known["tolerated"] == [False, "refused"]
    case = cases.build(openfga.url, "race")
    case.write(
        RACE_MODEL,
        [
            {"user": "user:*", "relation": "member", "object": "team:a", "condition": {"name": "near"}},
            {"user": "team:a#member", "relation": "via_team", "object": "doc:1"},
        ],
    )
    row = {"type": "doc", "relation": "via_team"}
    for _ in range(20):
        try:
            snapshot = case.ask(row, ["user:alice"], ["doc:1"])
        except ArecallError:
            continue
        assert snapshot.decision("user:alice", "doc:1").decision is Decision.CONDITIONAL
