"""Gates: which of them fail, and on what."""

from __future__ import annotations

from typing import Any

import pytest

from arecall.evaluate import evaluate
from arecall.gates import judge
from arecall.result import Result
from arecall.snapshot import Snapshot

DOCUMENTS = ["a", "b", "c", "s"]


def result_of(*, run: Any = None, delivered: Any = None, relevant: str = "a", **settings: Any) -> Result:
    return evaluate(
        run=run,
        delivered=delivered,
        qrels={"q": {relevant: 1}},
        snapshot=Snapshot.from_sets(
            {"p": ["a", "b", "c"]}, universe=DOCUMENTS, undecided=settings.pop("undecided", {})
        ),
        ks=[1, 2],
        **settings,
    )


def failures(result: Result, *conditions: str) -> list[bool]:
    return [verdict.failed for verdict in judge(result, list(conditions))]


def test_a_gate_fails_when_its_condition_holds_and_says_why() -> None:
    result = result_of(run={"q": ["b", "a", "c"]})
    assert failures(result, "ARecall@1 < 0.5", "ARecall@2 < 0.5", "ARecall@2 < 1", "ARecall@1 <= 0") == [
        True,
        False,
        False,
        True,
    ]
    message = judge(result, ["ARecall@1 < 0.5"])[0].message
    assert "ARecall@1" in message
    assert "0.5" in message


def test_arecall_means_the_restricted_mean_after_filtering() -> None:
    # [s, a]: post-filter finds nothing at 1, pre-filter everything.
    result = result_of(run={"q": ["s", "a", "b"]})
    assert failures(result, "ARecall@1 < 0.5", "ARecall@1[pre,full] < 0.5") == [True, False]


def test_arecall_means_the_delivered_lists_where_there_are_any() -> None:
    result = result_of(run={"q": ["s", "a", "b"]}, delivered={("p", "q"): ["a"]})
    assert failures(result, "ARecall@1 < 0.5") == [False]


def test_where_ties_lie_across_the_kth_place_the_worse_bound_fails_the_gate() -> None:
    # a and b tie. By id b comes first and is the relevant one: 1 in that order, 0 in the other.
    tied = result_of(run={"q": {"a": 1.0, "b": 1.0, "c": 0.0}}, relevant="b")
    assert tied.value("ARecall@1", filter="post", mean="restricted", level="pooled") == 1.0
    assert failures(tied, "ARecall@1 < 0.5", "ARecall@2 < 0.5") == [True, False]
    untied = result_of(run={"q": {"a": 1.0, "b": 2.0, "c": 0.0}}, relevant="b")
    assert failures(untied, "ARecall@1 < 0.5") == [False]


def test_a_threshold_on_nothing_fails() -> None:
    # Only s is relevant, which p may not read: the restricted mean is over no pair.
    result = result_of(run={"q": ["a", "b", "s"]}, relevant="s")
    assert result.row("ARecall@1", filter="post", mean="restricted", level="pooled").n == 0
    assert failures(result, "ARecall@1 < 0.5", "ARecall@1 > 0.5") == [True, True]


@pytest.mark.parametrize(("returned", "failed"), [(["a"], False), (["a", "s"], True), ([], False)])
def test_a_gate_on_u_is_judged_on_delivered_lists(returned: list[str], failed: bool) -> None:
    assert failures(result_of(delivered={("p", "q"): returned}), "U@2 > 0") == [failed]


def test_a_gate_on_u_without_delivered_lists_is_an_error() -> None:
    with pytest.raises(Exception, match="delivered"):
        judge(result_of(run={"q": ["a", "b"]}), ["U@2 > 0"])


def test_a_gate_of_any_principal_fails_for_the_worst_one() -> None:
    result = evaluate(
        delivered={("good", "q"): ["a", "b"], ("bad", "q"): ["s", "a"]},
        qrels={"q": {"a": 1}},
        snapshot=Snapshot.from_sets({"good": ["a", "b"], "bad": ["a"]}, universe=DOCUMENTS),
        ks=[1],
    )
    pooled, each = judge(result, ["ARecall@1 < 0.5", "any principal ARecall@1 < 0.5"])
    assert (pooled.failed, each.failed) == (False, True)
    assert "bad" in each.message


def test_an_incomplete_pair_fails_a_gate_on_arecall() -> None:
    two = evaluate(
        delivered={("p", "q"): ["a"], ("p", "q2"): ["a"]},
        qrels={"q": {"a": 1}, "q2": {"nowhere": 1, "a": 1}},
        snapshot=Snapshot.from_sets({"p": ["a", "b", "c"]}, universe=DOCUMENTS),
        ks=[1],
    )
    assert two.value("ARecall@1", filter="delivered", mean="restricted", level="pooled") == 1.0
    assert failures(two, "ARecall@1 < 0.5") == [True]


@pytest.mark.parametrize("grade", [1, 0], ids=["relevant", "nothing relevant"])
def test_a_list_with_an_undecided_document_fails_a_gate_on_u_whatever_is_relevant(grade: int) -> None:
    two = evaluate(
        delivered={("p", "q"): ["a"], ("p", "q2"): ["a", "nowhere"]},
        qrels={"q": {"a": 1}, "q2": {"a": grade}},
        snapshot=Snapshot.from_sets({"p": ["a", "b", "c"]}, universe=DOCUMENTS),
        ks=[1],
    )
    assert two.value("U@1", filter="delivered", mean="all", level="pooled") == 0.0
    assert failures(two, "U@1 > 0") == [True]


def test_an_undecided_document_that_nobody_was_shown_fails_no_gate_on_u() -> None:
    result = evaluate(
        delivered={("p", "q"): ["a"]},
        qrels={"q": {"a": 1, "nowhere": 1}},
        snapshot=Snapshot.from_sets({"p": ["a", "b", "c"]}, universe=DOCUMENTS),
        ks=[1],
    )
    assert failures(result, "U@1 > 0", "ARecall@1 < 0.5") == [False, True]
