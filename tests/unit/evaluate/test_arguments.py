"""What `evaluate` refuses before it counts anything."""

from __future__ import annotations

from typing import Any

import pytest

from arecall.errors import ArecallError
from arecall.evaluate import evaluate
from arecall.snapshot import Snapshot

GOOD: dict[str, Any] = {"run": {"q": {"d1": 1.0}}, "qrels": {"q": {"d1": 1}}, "ks": [1]}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"ks": []}, "at least one cutoff"),
        ({"ks": [2**31]}, "k must be at most 2147483647, not 2147483648"),
        ({"ks": [1, 10**40]}, "not 10000000000"),
        ({"relevance_level": 0}, "relevance_level must be an int of at least 1, not 0"),
        ({"relevance_level": True}, "not True"),
        ({"draws": -1}, "draws .* not -1"),
        ({"draws": 10**9}, "draws must be at most"),
        ({"seed": -1}, "seed .* not -1"),
        ({"cut": "word"}, "not 'word'"),
        ({"cut": "chunk"}, "--chunks"),
        ({"levels": ["pairs"]}, "'pairs'"),
        ({"run": None}, "nothing to evaluate"),
        ({"run": 5}, "not int"),
        ({"run": {}}, "no queries"),
        ({"qrels": {}}, "no judgements"),
        ({"qrels": None}, "not NoneType"),
        ({"delivered": {}}, "no lists"),
        ({"delivered": {("eve", "q"): ["d1"]}}, "'eve'"),
        ({"groups": 7}, "not int"),
        ({"chunks": {}}, "'d1' belongs to no document"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    snapshot = Snapshot.from_sets({"ann": {"d1"}}, universe=["d1", "d2"])
    with pytest.raises((ValueError, ArecallError), match=named):
        evaluate(snapshot=snapshot, **{**GOOD, **wrong})


def test_the_largest_cutoff_and_level_are_counted() -> None:
    snapshot = Snapshot.from_sets({"ann": {"d1"}}, universe=["d1", "d2"])
    largest = 2**31 - 1
    assert evaluate(snapshot=snapshot, **{**GOOD, "ks": [largest]}).value(f"ARecall@{largest}", filter="post") == 1
    assert evaluate(snapshot=snapshot, **GOOD, relevance_level=10**30).states["no_relevant"] == 1


def test_members_of_groups_that_the_snapshot_lacks_are_told_of() -> None:
    snapshot = Snapshot.from_sets({"ann": {"d1"}}, universe=["d1", "d2"])
    result = evaluate(snapshot=snapshot, **GOOD, groups={"staff": ["ann", "eve"]})
    assert result.row("ARecall@1", filter="post", level="group", group="staff").n == 1
    assert any("'eve'" in warning for warning in result.record.warnings)
