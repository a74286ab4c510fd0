"""Each convention for numbers as an example that can be checked by hand.

Unless said otherwise: `a`, `b`, `c`, `d` are documents, `s` and `t` are secret, `p` is the principal, `q` the query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest

from arecall.errors import ArecallError
from arecall.evaluate import evaluate
from arecall.result import Result
from arecall.snapshot import Snapshot

UNIVERSE = ("a", "b", "c", "d", "s", "t")
READABLE = frozenset("abcd")


def snapshot_of(
    authorized: Mapping[str, Collection[str]] | None = None,
    *,
    universe: Sequence[str] = UNIVERSE,
    undecided: Mapping[tuple[str, str], str] | None = None,
) -> Snapshot:
    return Snapshot.from_sets(authorized or {"p": READABLE}, universe=universe, undecided=undecided or {})


def of_run(
    run: Mapping[str, Any],
    qrels: Mapping[str, Mapping[str, int]],
    snapshot: Snapshot | None = None,
    ks: Sequence[int] = (1, 2),
    **settings: Any,
) -> Result:
    return evaluate(run=dict(run), qrels=qrels, snapshot=snapshot or snapshot_of(), ks=list(ks), **settings)


def of_delivered(
    delivered: Mapping[tuple[str, str], list[str]],
    qrels: Mapping[str, Mapping[str, int]],
    snapshot: Snapshot | None = None,
    ks: Sequence[int] = (1, 2),
    **settings: Any,
) -> Result:
    snapshot = snapshot or snapshot_of()
    return evaluate(delivered=dict(delivered), qrels=qrels, snapshot=snapshot, ks=list(ks), **settings)


def pair(result: Result, measure: str, filtering: str, principal: str = "p", query: str = "q") -> dict[str, Any]:
    """The one pair row; of measures with two means that of the restricted one."""
    wanted = {"measure": measure, "filter": filtering, "principal": principal, "query_id": query}
    rows = [row for row in result.pairs().to_pylist() if all(row[key] == value for key, value in wanted.items())]
    rows = [row for row in rows if row["mean"] != "full"]
    assert len(rows) == 1, f"{len(rows)} pair rows for {wanted}"
    return dict(rows[0])


def figures(row: Any) -> tuple[float | None, float | None, float | None]:
    """Value, numerator, denominator of a row or pair row."""
    if isinstance(row, dict):
        return row["value"], row["numerator"], row["denominator"]
    return row.value, row.numerator, row.denominator


def state(result: Result, principal: str = "p", query: str = "q") -> str:
    """The state of a pair, which every row of the pair must agree on."""
    rows = [r for r in result.pairs().to_pylist() if (r["principal"], r["query_id"]) == (principal, query)]
    states = {str(row["state"]) for row in rows}
    assert len(states) == 1, states
    return states.pop()


# ---- two kinds of list -----------------------------------------------------------------------------------------------


def test_a_run_gives_post_pre_gap_and_exposure_and_no_delivered_figure() -> None:
    filters = {row["filter"] for row in of_run({"q": ["a"]}, {"q": {"a": 1}}).pairs().to_pylist()}
    assert filters == {"post", "pre", "gap", "none"}


def test_delivered_lists_give_delivered_figures_only() -> None:
    filters = {row["filter"] for row in of_delivered({("p", "q"): ["a"]}, {"q": {"a": 1}}).pairs().to_pylist()}
    assert filters == {"delivered"}


def test_a_run_and_delivered_lists_together_are_each_what_they_are_alone() -> None:
    run, delivered, qrels = {"q": ["s", "a", "b"]}, {("p", "q"): ["b"]}, {"q": {"a": 1, "b": 1}}
    both = evaluate(run=run, delivered=delivered, qrels=qrels, snapshot=snapshot_of(), ks=[1])
    alone = {"post": of_run(run, qrels, ks=[1]), "delivered": of_delivered(delivered, qrels, ks=[1])}
    for filtering, result in alone.items():
        assert figures(pair(both, "ARecall@1", filtering)) == figures(pair(result, "ARecall@1", filtering))
    assert pair(both, "ARecall@1", "post")["value"] == 0.0
    assert pair(both, "ARecall@1", "delivered")["value"] == 0.5


def test_only_delivered_lists_leak() -> None:
    run = of_run({"q": ["s", "a"]}, {"q": {"a": 1}})
    assert run.value("U@1", filter="none", mean="all", level="pooled") == 1.0
    assert list(run.leaks) == []
    delivered = of_delivered({("p", "q"): ["a", "s"]}, {"q": {"a": 1}})
    assert [(x.principal, x.query_id, x.document, x.rank) for x in delivered.leaks] == [("p", "q", "s", 2)]


def test_every_denied_document_is_listed_however_deep() -> None:
    leaks = of_delivered({("p", "q"): ["s", "a", "b", "t"]}, {"q": {"a": 1}}, ks=[1]).leaks
    assert [(leak.document, leak.rank) for leak in leaks] == [("s", 1), ("t", 4)]


def test_a_delivered_empty_list_is_evidence_that_nothing_came_back() -> None:
    result = of_delivered({("p", "q"): []}, {"q": {"a": 1}})
    assert state(result) == "ok"
    assert figures(pair(result, "ARecall@2", "delivered")) == (0.0, 0, 1)
    assert figures(pair(result, "U@2", "delivered")) == (0.0, 0, 2)
    assert pair(result, "UReturned@2", "delivered")["value"] is None
    assert pair(result, "Leak@2", "delivered")["value"] == 0.0
    assert result.row("UReturned@2", filter="delivered", mean="all", level="pooled").n == 0
    assert result.row("U@2", filter="delivered", mean="all", level="pooled").n == 1


def test_a_pair_without_a_delivered_list_is_counted_and_enters_nothing() -> None:
    result = of_delivered({("p", "q"): ["a"]}, {"q": {"a": 1}, "q2": {"b": 1}})
    assert result.states["no_list"] == 1
    for measure, mean in (("ARecall@2", "restricted"), ("ARecall@2", "full"), ("R@2", "all"), ("U@2", "all")):
        row = result.row(measure, filter="delivered", mean=mean, level="pooled")
        assert (row.n, row.n_no_list) == (1, 1), measure


def test_a_list_delivered_to_a_stranger_is_an_error_that_names_it() -> None:
    with pytest.raises((ArecallError, ValueError), match="mallory"):
        of_delivered({("mallory", "q"): ["a"]}, {"q": {"a": 1}})


# ---- measures --------------------------------------------------------------------------------------------------------


def test_the_denominator_of_arecall_stays_when_fewer_than_k_come_back() -> None:
    result = of_delivered({("p", "q"): ["a"]}, {"q": {"a": 1, "b": 1, "c": 1, "s": 1}}, ks=[10])
    assert figures(pair(result, "ARecall@10", "delivered")) == (1 / 3, 1, 3)


def test_arecall_may_stay_below_one_where_more_is_relevant_than_k() -> None:
    result = of_delivered({("p", "q"): ["a", "b"]}, {"q": {"a": 1, "b": 1}}, ks=[1])
    assert figures(pair(result, "ARecall@1", "delivered")) == (0.5, 1, 2)


def test_u_divides_by_k_and_its_share_by_what_came_back() -> None:
    result = of_delivered({("p", "q"): ["a", "s"]}, {"q": {"a": 1}}, ks=[1, 5])
    assert figures(pair(result, "U@5", "delivered")) == (1 / 5, 1, 5)
    assert figures(pair(result, "UReturned@5", "delivered")) == (1 / 2, 1, 2)
    assert pair(result, "Leak@5", "delivered")["value"] == 1.0
    assert pair(result, "U@1", "delivered")["value"] == 0.0
    assert pair(result, "Leak@1", "delivered")["value"] == 0.0


def test_post_filter_cuts_then_drops_and_pre_filter_drops_then_cuts() -> None:
    # [s, a, t, b] at K=2: post keeps [a], pre keeps [a, b].
    result = of_run({"q": ["s", "a", "t", "b"]}, {"q": {"a": 1, "b": 1}})
    assert figures(pair(result, "ARecall@2", "post")) == (0.5, 1, 2)
    assert figures(pair(result, "ARecall@2", "pre")) == (1.0, 2, 2)
    assert figures(pair(result, "ARecall@2", "gap")) == (0.5, 1, 2)
    assert figures(pair(result, "U@2", "none")) == (0.5, 1, 2)


@pytest.mark.parametrize("ranking", [["a", "s"], ["s", "a"], ["s"]])
def test_the_gap_of_a_ranking_no_deeper_than_k_is_null(ranking: list[str]) -> None:
    result = of_run({"q": ranking}, {"q": {"a": 1}}, ks=[2])
    assert figures(pair(result, "ARecall@2", "gap"))[0] is None
    assert pair(result, "ARecall@2", "post")["value"] is not None
    for mean in ("restricted", "full"):
        row = result.row("ARecall@2", filter="gap", mean=mean, level="pooled")
        assert (row.value, row.n) == (None, 0)


def test_the_gap_of_a_vacuous_pair_is_null_too_where_the_ranking_is_no_deeper_than_k() -> None:
    result = of_run({"q": ["s", "a"]}, {"q": {"t": 1}}, ks=[1, 2])
    assert result.value("ARecall@1", filter="gap", mean="full", level="pooled") == 0.0
    assert result.value("ARecall@2", filter="gap", mean="full", level="pooled") is None


def test_a_ranking_stated_to_be_complete_has_a_gap_at_any_k() -> None:
    result = of_run({"q": ["s", "a"]}, {"q": {"a": 1}}, ks=[1, 2], complete_ranking=True)
    assert result.value("ARecall@1", filter="gap", mean="restricted", level="pooled") == 1.0
    assert result.value("ARecall@2", filter="gap", mean="restricted", level="pooled") == 0.0


def test_pairs_whose_pre_filtered_list_runs_out_before_k_are_counted() -> None:
    # Three documents; p reads two of them, all reads three.
    snapshot = snapshot_of({"p": READABLE, "all": UNIVERSE})
    run, qrels = {"q": ["s", "a", "b"]}, {"q": {"a": 1}}
    result = of_run(run, qrels, snapshot, ks=[2, 3])
    for k, truncated in ((2, 0), (3, 1)):
        row = result.row(f"ARecall@{k}", filter="pre", mean="restricted", level="pooled")
        assert row.n_pre_truncated == truncated, k
    stated = of_run(run, qrels, snapshot, ks=[3], complete_ranking=True)
    assert stated.row("ARecall@3", filter="pre", mean="restricted", level="pooled").n_pre_truncated == 0


def test_a_secret_document_costs_a_rank_in_blind_rr_and_none_in_authorized_rr() -> None:
    result = of_run({"q": ["s", "a"]}, {"q": {"a": 1}}, ks=[2])
    assert pair(result, "RR", "none")["value"] == 0.5
    assert pair(result, "RR@2", "post")["value"] == 1.0
    assert pair(result, "RR@2", "pre")["value"] == 1.0


def test_authorized_rr_is_cut_at_k_before_or_after_the_filter() -> None:
    result = of_run({"q": ["s", "a", "b"]}, {"q": {"b": 1}}, ks=[1, 2])
    assert pair(result, "RR@2", "post")["value"] == 0.0  # [a]
    assert pair(result, "RR@2", "pre")["value"] == 0.5  # [a, b]
    assert pair(result, "RR@1", "pre")["value"] == 0.0  # [a]
    assert pair(result, "RR", "none")["value"] == 1 / 3  # uncut


def test_authorized_precision_divides_by_k_and_leaves_no_holes() -> None:
    result = of_run({"q": ["s", "a", "t", "b"]}, {"q": {"a": 1, "b": 1, "s": 1}}, ks=[3])
    assert figures(pair(result, "P@3", "none")) == (2 / 3, 2, 3)  # s and a, as given
    assert figures(pair(result, "P@3", "post")) == (1 / 3, 1, 3)
    assert figures(pair(result, "P@3", "pre")) == (2 / 3, 2, 3)


def test_blind_recall_is_over_all_that_is_relevant() -> None:
    result = of_run({"q": ["s", "a", "b"]}, {"q": {"a": 1, "b": 1, "s": 1, "t": 1}}, ks=[2])
    assert figures(pair(result, "R@2", "none")) == (2 / 4, 2, 4)
    assert figures(pair(result, "ARecall@2", "post")) == (1 / 2, 1, 2)


def test_ndcg_gains_by_grade_and_a_negative_grade_gains_nothing() -> None:
    result = of_run({"q": ["d", "a", "b"]}, {"q": {"d": -2, "a": 1, "b": 3}}, ks=[3])
    ideal = 3 + 1 / math.log2(3)
    value = (1 / math.log2(3) + 3 / 2) / ideal
    assert pair(result, "nDCG@3", "none")["value"] == pytest.approx(value)
    assert pair(result, "nDCG@3", "pre")["value"] == pytest.approx(value)
    assert pair(result, "nDCG@3", "none")["numerator"] is None


def test_authorized_ndcg_has_only_what_may_be_read_as_its_ideal() -> None:
    result = of_run({"q": ["s", "a", "b"]}, {"q": {"s": 3, "a": 1}}, ks=[2])
    assert pair(result, "nDCG@2", "post")["value"] == 1.0
    assert pair(result, "nDCG@2", "none")["value"] == pytest.approx(1.0)


def test_relevant_is_a_grade_of_at_least_the_level_and_blind_ndcg_keeps_all_gains() -> None:
    qrels = {"q": {"a": 1, "b": 2, "c": 3}}
    result = of_run({"q": ["a", "b", "c", "d"]}, qrels, ks=[2], relevance_level=2)
    assert figures(pair(result, "ARecall@2", "post")) == (0.5, 1, 2)
    assert figures(pair(result, "R@2", "none")) == (0.5, 1, 2)
    assert pair(result, "RR", "none")["value"] == 0.5
    second = 1 / math.log2(3)
    assert pair(result, "nDCG@2", "none")["value"] == pytest.approx((1 + 2 * second) / (3 + 2 * second))
    assert pair(result, "nDCG@2", "pre")["value"] == pytest.approx((0 + 2 * second) / (3 + 2 * second))


# ---- states ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qrels", [{"q": {"a": 0}}, {"q": {"a": -1}}, {"other": {"a": 1}}])
def test_a_query_with_nothing_relevant_is_no_relevant(qrels: Mapping[str, Mapping[str, int]]) -> None:
    result = of_run({"q": ["a", "b"]}, qrels, ks=[1])
    assert state(result) == "no_relevant"
    for measure, filtering in (("ARecall@1", "post"), ("R@1", "none"), ("P@1", "post"), ("RR", "none")):
        assert pair(result, measure, filtering)["value"] is None, measure


def test_nothing_relevant_comes_before_incomplete() -> None:
    result = of_run({"q": ["a", "s"]}, {"q": {"a": 0}}, snapshot_of(undecided={("p", "s"): "ERROR"}))
    assert state(result) == "no_relevant"


@pytest.mark.parametrize(
    ("ranking", "relevant"),
    [(["a", "b", "nowhere"], "a"), (["a", "b"], "nowhere"), (["a", "b", "t"], "a"), (["a", "b"], "t")],
    ids=["outside, ranked", "outside, relevant", "undecided, ranked", "undecided, relevant"],
)
def test_a_document_without_a_plain_decision_makes_the_pair_incomplete_at_every_k(
    ranking: list[str], relevant: str
) -> None:
    snapshot = snapshot_of(undecided={("p", "t"): "CONDITIONAL"})
    result = of_run({"q": ranking}, {"q": {"a": 1, relevant: 1}}, snapshot, ks=[1, 3])
    assert state(result) == "incomplete"
    for k in (1, 3):
        assert pair(result, f"ARecall@{k}", "pre")["value"] is None
        for mean in ("restricted", "full"):
            row = result.row(f"ARecall@{k}", filter="post", mean=mean, level="pooled")
            assert (row.value, row.n, row.n_incomplete) == (None, 0, 1)


def test_an_undecided_document_concerns_only_the_principal_that_it_is_undecided_for() -> None:
    snapshot = snapshot_of({"p": READABLE, "other": READABLE}, undecided={("other", "s"): "CONDITIONAL"})
    result = of_run({"q": ["a", "s"]}, {"q": {"a": 1}}, snapshot)
    assert state(result, "p") == "ok"
    assert state(result, "other") == "incomplete"


def test_an_incomplete_pair_keeps_its_blind_figures() -> None:
    result = of_run({"q": ["a", "nowhere"]}, {"q": {"a": 1}}, ks=[1])
    assert result.row("R@1", filter="none", mean="all", level="pooled").value == 1.0


def test_a_vacuous_pair_is_left_out_of_the_restricted_mean_and_one_in_the_full_mean() -> None:
    result = of_run({"q": ["a", "s"]}, {"q": {"s": 1}}, ks=[1])
    assert state(result) == "vacuous"
    assert pair(result, "ARecall@1", "post")["value"] is None
    for filtering, full in (("post", 1.0), ("pre", 1.0), ("gap", 0.0)):
        restricted = result.row("ARecall@1", filter=filtering, mean="restricted", level="pooled")
        assert (restricted.value, restricted.n, restricted.n_vacuous) == (None, 0, 1)
        row = result.row("ARecall@1", filter=filtering, mean="full", level="pooled")
        assert (row.value, row.n) == (full, 1)


def test_a_query_without_a_ranking_is_missing_and_scores_nothing() -> None:
    result = of_run({"other": ["a", "b"]}, {"q": {"a": 1}, "other": {"a": 1}}, ks=[1])
    assert state(result) == "missing"
    assert figures(pair(result, "ARecall@1", "post")) == (0.0, 0, 1)
    assert figures(pair(result, "ARecall@1", "pre")) == (0.0, 0, 1)
    assert pair(result, "ARecall@1", "gap")["value"] == 0.0
    for measure, filtering in (("R@1", "none"), ("P@1", "none"), ("nDCG@1", "none"), ("RR", "none"), ("P@1", "pre")):
        assert pair(result, measure, filtering)["value"] == 0.0, measure
    assert result.value("ARecall@1", filter="post", mean="restricted", level="pooled") == 0.5
    row = result.row("ARecall@1", filter="post", mean="restricted", level="pooled")
    assert (row.n, row.n_ok, row.n_missing) == (2, 1, 1)


@pytest.mark.parametrize("empty", [[], {}], ids=["list", "scores"])
def test_an_empty_ranking_is_a_ranking(empty: Any) -> None:
    result = of_run({"q": empty}, {"q": {"a": 1}}, ks=[1])
    assert state(result) == "ok"
    assert figures(pair(result, "ARecall@1", "pre")) == (0.0, 0, 1)
    assert pair(result, "ARecall@1", "gap")["value"] is None
    assert pair(result, "U@1", "none")["value"] == 0.0
    assert pair(result, "UReturned@1", "none")["value"] is None


def test_a_query_without_a_ranking_is_no_evidence_of_exposure() -> None:
    result = of_run({"other": ["s", "b"]}, {"q": {"a": 1}, "other": {"a": 1}}, ks=[1])
    assert pair(result, "U@1", "none")["value"] is None
    assert (result.row("U@1", filter="none", mean="all", level="pooled").n) == 1


def test_no_ranking_and_nothing_relevant_readable_is_vacuous() -> None:
    # R = {x}, A = {}, no ranking: what nobody may see is not missed.
    snapshot = Snapshot.from_sets({"p": []}, universe=["x"])
    result = evaluate(run={"other": ["x"]}, qrels={"q": {"x": 1}}, snapshot=snapshot, ks=[1])
    assert state(result) == "vacuous"
    assert result.value("ARecall@1", filter="post", mean="full", level="query", query_id="q") == 1.0
    assert result.value("ARecall@1", filter="post", mean="restricted", level="query", query_id="q") is None


def test_the_two_means_differ_by_the_vacuous_pairs_only() -> None:
    # ok with 1/2, vacuous, missing, incomplete, no_relevant: restricted (1/2 + 0) / 2, full (1/2 + 1 + 0) / 3.
    qrels = {
        "ok": {"a": 1, "b": 1},
        "vacuous": {"s": 1},
        "missing": {"a": 1},
        "incomplete": {"nowhere": 1},
        "no_relevant": {"a": 0},
    }
    run = {query: ["a", "c", "d"] for query in qrels if query != "missing"}
    result = of_run(run, qrels, ks=[2])
    expected = dict.fromkeys(qrels, 1)
    assert {name: count for name, count in result.states.items() if count} == expected
    for mean, value, n in (("restricted", 1 / 4, 2), ("full", 1 / 2, 3)):
        row = result.row("ARecall@2", filter="post", mean=mean, level="pooled")
        assert row.value == pytest.approx(value)
        assert row.n == n
        counts = (row.n_ok, row.n_missing, row.n_vacuous, row.n_incomplete, row.n_no_relevant, row.n_no_list)
        assert counts == (1, 1, 1, 1, 1, 0)
        assert (row.numerator, row.denominator) == (1, 3)


# ---- leaks do not depend on relevance --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relevant", "expected"), [({"s": 1}, "vacuous"), ({"a": 0}, "no_relevant"), ({"nowhere": 1}, "incomplete")]
)
def test_a_leak_counts_whatever_the_relevance_state(relevant: dict[str, int], expected: str) -> None:
    result = of_delivered({("p", "q"): ["s", "a"]}, {"q": relevant}, ks=[2])
    assert state(result) == expected
    row = result.row("U@2", filter="delivered", mean="all", level="pooled")
    assert (row.value, row.n, row.numerator, row.denominator) == (0.5, 1, 1, 2)
    assert result.value("Leak@2", filter="delivered", mean="all", level="pooled") == 1.0
    assert [leak.document for leak in result.leaks] == ["s"]


@pytest.mark.parametrize("unknown", ["nowhere", "t"], ids=["outside the universe", "undecided"])
def test_a_list_with_an_undecided_document_has_no_u_but_its_denied_documents_are_listed(unknown: str) -> None:
    snapshot = snapshot_of(undecided={("p", "t"): "CONDITIONAL"})
    delivered = {("p", "q"): ["s", "a", unknown], ("p", "q2"): ["a"]}
    result = of_delivered(delivered, {"q": {"a": 1}, "q2": {"a": 1}}, snapshot, ks=[1])
    for measure in ("U@1", "UReturned@1", "Leak@1"):
        assert pair(result, measure, "delivered")["value"] is None, measure
        row = result.row(measure, filter="delivered", mean="all", level="pooled")
        assert (row.value, row.n) == (0.0, 1), measure
    assert [(leak.document, leak.rank) for leak in result.leaks] == [("s", 1)]


# ---- order -----------------------------------------------------------------------------------------------------------


def top(scores: Mapping[str, float], **settings: Any) -> str:
    """The first document of a ranking, found by asking which one makes RR whole."""
    snapshot = Snapshot.from_sets({"p": list(scores)}, universe=list(scores))
    first = [
        document
        for document in scores
        if evaluate(run={"q": dict(scores)}, qrels={"q": {document: 1}}, snapshot=snapshot, ks=[1], **settings).value(
            "RR", filter="none", mean="all", level="pooled"
        )
        == 1.0
    ]
    assert len(first) == 1
    return first[0]


@pytest.mark.parametrize(
    ("scores", "first"),
    [
        ({"a": 1.0, "b": 2.0}, "b"),
        ({"a": -1.0, "b": -2.0}, "a"),
        ({"a": 1.0, "b": 1.0}, "b"),
        ({"a": 1.0, "A": 1.0}, "a"),
        ({"d9": 1.0, "d10": 1.0}, "d9"),
        ({"z": 1.0, "é": 1.0}, "é"),
        ({"a": 0.0, "b": -0.0}, "b"),
        ({"\uffff": 1.0, "\U00010000": 1.0}, "\U00010000"),
    ],
)
def test_scores_go_down_and_ties_go_by_id_in_bytes_descending(scores: dict[str, float], first: str) -> None:
    assert top(scores) == first


def test_scores_are_compared_as_float64_unless_trec_eval_is_asked_for() -> None:
    scores = {"a": 16777217.0, "b": 16777216.0}  # one number in float32
    assert top(scores) == "a"
    assert top(scores, ties="trec_eval") == "b"


def test_a_bare_list_keeps_the_order_that_was_shown() -> None:
    result = of_run({"q": ["a", "d", "b"]}, {"q": {"a": 1}}, ks=[1])
    row = pair(result, "ARecall@1", "post")
    assert row["value"] == 1.0
    assert (row["tie_low"], row["tie_high"]) == (None, None)  # nothing can be tied


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_an_error(score: float) -> None:
    with pytest.raises((ArecallError, ValueError), match=r"q.*b|b.*q"):
        of_run({"q": {"a": 1.0, "b": score}}, {"q": {"a": 1}})


def test_where_the_kth_place_is_tied_the_least_and_the_greatest_are_given() -> None:
    result = of_run({"q": {"a": 1.0, "b": 1.0, "c": 0.5}}, {"q": {"b": 1}}, ks=[1, 2])
    row = pair(result, "ARecall@1", "post")
    assert (row["value"], row["tie_low"], row["tie_high"]) == (1.0, 0.0, 1.0)
    row = pair(result, "ARecall@2", "post")  # both are in, in either order
    assert (row["value"], row["tie_low"], row["tie_high"]) == (1.0, 1.0, 1.0)


def test_exposure_has_bounds_where_the_kth_place_is_tied() -> None:
    result = of_run({"q": {"a": 1.0, "s": 1.0, "t": 1.0, "b": 0.5}}, {"q": {"b": 1}}, ks=[2])
    row = pair(result, "U@2", "none")
    assert (row["value"], row["tie_low"], row["tie_high"]) == (1.0, 0.5, 1.0)


def test_a_bound_of_the_gap_is_taken_within_one_order() -> None:
    # [s, a] has gap 1, [a, s] gap 0.
    row = pair(of_run({"q": {"a": 1.0, "s": 1.0}}, {"q": {"a": 1}}, ks=[1]), "ARecall@1", "gap")
    assert (row["value"], row["tie_low"], row["tie_high"]) == (1.0, 0.0, 1.0)
    # Both readable: post and pre are 0 or 1, but always the same, so the gap is 0.
    result = of_run({"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}}, ks=[1])
    assert [pair(result, "ARecall@1", f)["tie_low"] for f in ("post", "pre")] == [0.0, 0.0]
    assert [pair(result, "ARecall@1", f)["tie_high"] for f in ("post", "pre")] == [1.0, 1.0]
    row = pair(result, "ARecall@1", "gap")
    assert (row["value"], row["tie_low"], row["tie_high"]) == (0.0, 0.0, 0.0)


# ---- chunks ----------------------------------------------------------------------------------------------------------

CHUNKS = {"c1": "s", "c2": "s", "c3": "s", "c4": "a"}


def test_three_chunks_of_one_document_take_one_place_of_documents() -> None:
    result = of_run({"q": ["c1", "c2", "c3", "c4"]}, {"q": {"a": 1}}, ks=[2], chunks=CHUNKS, cut="document")
    assert figures(pair(result, "ARecall@2", "post")) == (1.0, 1, 1)  # [s, a]
    assert figures(pair(result, "U@2", "none")) == (0.5, 1, 2)
    assert figures(pair(result, "UReturned@2", "none")) == (0.5, 1, 2)
    assert figures(pair(result, "ChunkU@2", "none")) == (1.0, 2, 2)
    assert pair(result, "RR", "none")["value"] == 0.5
    assert pair(result, "ARecall@2", "gap")["value"] is None  # two documents deep


def test_three_chunks_of_one_document_take_three_places_of_chunks() -> None:
    result = of_run({"q": ["c1", "c2", "c3", "c4"]}, {"q": {"a": 1}}, ks=[2], chunks=CHUNKS, cut="chunk")
    assert figures(pair(result, "ARecall@2", "post")) == (0.0, 0, 1)  # c1, c2: [s]
    assert figures(pair(result, "ARecall@2", "pre")) == (1.0, 1, 1)  # c4: [a]
    assert figures(pair(result, "ARecall@2", "gap")) == (1.0, 1, 1)  # four chunks deep
    assert figures(pair(result, "U@2", "none")) == (0.5, 1, 2)
    assert figures(pair(result, "UReturned@2", "none")) == (1.0, 1, 1)
    assert figures(pair(result, "ChunkU@2", "none")) == (1.0, 2, 2)


def test_a_cut_at_chunks_counts_slots_also_after_filtering() -> None:
    # c1 and c2 fill both places of the pre-filtered list, though b would be its second document.
    chunks = {"c1": "a", "c2": "a", "c3": "b", "c4": "s"}
    result = of_run({"q": ["c4", "c1", "c2", "c3"]}, {"q": {"b": 1}}, ks=[2, 3], chunks=chunks, cut="chunk")
    for k, found, reciprocal in ((2, 0, 0.0), (3, 1, 0.5)):
        assert pair(result, f"ARecall@{k}", "pre")["numerator"] == found
        assert pair(result, f"P@{k}", "pre")["value"] == found / k
        assert pair(result, f"RR@{k}", "pre")["value"] == reciprocal  # b is the second document


def test_tied_chunks_of_one_document_may_take_the_places_of_another() -> None:
    # Of c1, c2 -> a and c3 -> b, all tied, the first two hold a alone, or both documents.
    chunks = {"c1": "a", "c2": "a", "c3": "b", "c4": "s"}
    scores = {"c1": 1.0, "c2": 1.0, "c3": 1.0, "c4": 0.5}
    result = of_run({"q": scores}, {"q": {"a": 1, "b": 1}}, ks=[2], chunks=chunks, cut="chunk")
    for filtering in ("post", "pre"):
        row = pair(result, "ARecall@2", filtering)
        assert (row["value"], row["tie_low"], row["tie_high"]) == (1.0, 0.5, 1.0)


def test_runs_are_cut_by_document_and_delivered_lists_by_chunk_unless_told_otherwise() -> None:
    items = ["c1", "c2", "c4"]
    run = of_run({"q": items}, {"q": {"a": 1}}, ks=[2], chunks=CHUNKS)
    assert pair(run, "ARecall@2", "post")["value"] == 1.0
    delivered = of_delivered({("p", "q"): items}, {"q": {"a": 1}}, ks=[2], chunks=CHUNKS)
    assert pair(delivered, "ARecall@2", "delivered")["value"] == 0.0
    by_document = of_delivered({("p", "q"): items}, {"q": {"a": 1}}, ks=[2], chunks=CHUNKS, cut="document")
    assert pair(by_document, "ARecall@2", "delivered")["value"] == 1.0


def test_a_document_stands_at_its_best_chunk() -> None:
    scores = {"c4": 1.0, "c1": 2.0, "x": 3.0}
    result = of_run({"q": scores}, {"q": {"s": 1}}, ks=[1], chunks={**CHUNKS, "x": "s"}, cut="document")
    assert pair(result, "RR", "none")["value"] == 1.0


@pytest.mark.parametrize("cut", ["document", "chunk"])
def test_a_chunk_without_a_document_is_an_error_that_names_it(cut: str) -> None:
    with pytest.raises((ArecallError, ValueError), match="c9"):
        of_run({"q": ["c1", "c9"]}, {"q": {"a": 1}}, chunks=CHUNKS, cut=cut)
    with pytest.raises((ArecallError, ValueError), match="c9"):
        of_delivered({("p", "q"): ["c1", "c9"]}, {"q": {"a": 1}}, chunks=CHUNKS, cut=cut)


# ---- input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, True, 2.5, "5"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_k_that_is_no_positive_int_is_a_value_error_that_names_it(k: Any, place: int) -> None:
    ks: list[Any] = [3]
    ks.insert(place, k)
    with pytest.raises(ValueError, match=str(k)) as error:
        evaluate(run={"q": ["a"]}, qrels={"q": {"a": 1}}, snapshot=snapshot_of(), ks=ks)
    assert repr(k) in str(error.value)


def ask_run(items: list[str], **settings: Any) -> Result:
    return of_run({"topic": items}, {"topic": {"a": 1, "b": 1}}, ks=[2], **settings)


def ask_delivered(items: list[str], **settings: Any) -> Result:
    return of_delivered({("p", "topic"): items}, {"topic": {"a": 1, "b": 1}}, ks=[2], **settings)


@pytest.mark.parametrize("ask", [ask_run, ask_delivered])
def test_a_document_twice_is_an_error_that_names_query_document_and_both_ranks(ask: Callable[..., Result]) -> None:
    with pytest.raises((ArecallError, ValueError)) as error:
        ask(["c", "twice", "d", "twice"])
    for culprit in (r"\btopic\b", r"\btwice\b", r"\b2\b", r"\b4\b"):
        assert re.search(culprit, str(error.value)), culprit


def test_the_first_of_a_repeated_document_is_kept_on_request() -> None:
    result = ask_delivered(["a", "a", "b"], dedupe="first")
    assert figures(pair(result, "ARecall@2", "delivered", query="topic")) == (1.0, 2, 2)
    result = ask_run(["s", "a", "s", "b"], dedupe="first")
    assert figures(pair(result, "ARecall@2", "pre", query="topic")) == (1.0, 2, 2)
    assert figures(pair(result, "U@2", "none", query="topic")) == (0.5, 1, 2)


def test_ids_are_kept_byte_for_byte() -> None:
    principals = ["no", "007", " a", "a", "A", "1e3"]
    documents = [" d", "d", "D", "d ", "null"]
    authorized = {p: documents[: at % 5 + 1] for at, p in enumerate(principals)}
    delivered = {(p, "no"): documents for p in principals}
    result = evaluate(
        delivered=delivered,
        qrels={"no": dict.fromkeys(documents, 1)},
        snapshot=Snapshot.from_sets(authorized, universe=documents),
        ks=[5],
    )
    for at, principal in enumerate(principals):
        readable = at % 5 + 1
        assert figures(pair(result, "U@5", "delivered", principal, "no")) == ((5 - readable) / 5, 5 - readable, 5)
        assert pair(result, "ARecall@5", "delivered", principal, "no")["denominator"] == readable
    assert {leak.document for leak in result.leaks if leak.principal == "no"} == set(documents[1:])


@pytest.mark.parametrize("ks", [[5, 1, 3], [1, 3, 5], [5, 3, 1]])
def test_cutoffs_in_one_pass_are_each_as_if_alone(ks: list[int]) -> None:
    run, qrels = {"q": ["s", "a", "t", "b", "c", "d"]}, {"q": {"a": 1, "b": 1, "c": 1}}
    together = of_run(run, qrels, ks=ks)
    for k, found in ((1, 0), (3, 1), (5, 3)):
        assert figures(pair(together, f"ARecall@{k}", "post")) == (found / 3, found, 3)


# ---- aggregates ------------------------------------------------------------------------------------------------------


@pytest.fixture
def three_pairs() -> Result:
    """`p` finds 1/2 and 1/1, `r` 0/1 and is vacuous on the other: q1 needs a and b, q2 needs c; r reads only b."""
    return of_run(
        {"q1": ["a", "d", "s"], "q2": ["c", "d", "s"]},
        {"q1": {"a": 1, "b": 1}, "q2": {"c": 1}},
        snapshot_of({"p": READABLE, "r": ["b"], "nobody": []}),
        ks=[1],
        groups={"both": ["p", "r"], "r alone": ["r"]},
    )


@pytest.mark.parametrize(
    ("level", "where", "value", "n", "numerator", "denominator"),
    [
        ("pooled", {}, 1.5 / 3, 3, 2, 4),
        ("principals", {}, (1.5 / 2 + 0) / 2, 2, 2, 4),
        ("principal", {"principal": "p"}, 1.5 / 2, 2, 2, 3),
        ("principal", {"principal": "r"}, 0.0, 1, 0, 1),
        ("group", {"group": "both"}, 1.5 / 3, 3, 2, 4),
        ("group", {"group": "r alone"}, 0.0, 1, 0, 1),
        ("query", {"query_id": "q1"}, 0.5 / 2, 2, 1, 3),
        ("query", {"query_id": "q2"}, 1.0, 1, 1, 1),
    ],
)
def test_levels_of_a_restricted_mean(
    three_pairs: Result,
    level: str,
    where: dict[str, str],
    value: float,
    n: int,
    numerator: int,
    denominator: int,
) -> None:
    row = three_pairs.row("ARecall@1", filter="post", mean="restricted", level=level, **where)
    assert row.value == pytest.approx(value)
    assert (row.n, row.numerator, row.denominator) == (n, numerator, denominator)
    assert (row.measure, row.filter, row.mean, row.level) == ("ARecall@1", "post", "restricted", level)
    assert (row.group, row.principal, row.query_id) == (
        where.get("group"),
        where.get("principal"),
        where.get("query_id"),
    )


def test_rows_carry_the_state_counts_of_their_own_pairs(three_pairs: Result) -> None:
    for where, ok, vacuous in (
        ({"level": "pooled"}, 3, 3),
        ({"level": "principals"}, 3, 3),
        ({"level": "principal", "principal": "nobody"}, 0, 2),
        ({"level": "group", "group": "both"}, 3, 1),
        ({"level": "query", "query_id": "q2"}, 1, 2),
    ):
        row = three_pairs.row("ARecall@1", filter="post", mean="restricted", **where)
        assert (row.n_ok, row.n_vacuous) == (ok, vacuous), where


def test_a_principal_without_a_defined_pair_has_a_null_mean(three_pairs: Result) -> None:
    row = three_pairs.row("ARecall@1", filter="post", mean="restricted", level="principal", principal="nobody")
    assert (row.value, row.n, row.ci_low, row.ci_high) == (None, 0, None, None)
    assert three_pairs.value("ARecall@1", filter="post", mean="full", level="principal", principal="nobody") == 1.0


def test_sums_above_the_pair_are_null_for_ndcg_and_rr(three_pairs: Result) -> None:
    for measure, filtering, mean in (
        ("nDCG@1", "pre", "restricted"),
        ("RR", "none", "all"),
        ("RR@1", "post", "restricted"),
    ):
        row = three_pairs.row(measure, filter=filtering, mean=mean, level="pooled")
        assert row.value is not None
        assert (row.numerator, row.denominator) == (None, None), measure


# ---- intervals -------------------------------------------------------------------------------------------------------


def found_or_not(found: Sequence[bool]) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    """A run and qrels of one query for each, which finds its document at rank 1 or never."""
    run = {f"q{at}": ["a", "b"] if hit else ["c", "d"] for at, hit in enumerate(found)}
    return run, {query: {"a": 1} for query in run}


def interval(result: Result, measure: str, filtering: str, mean: str, **where: str) -> tuple[Any, Any]:
    row = result.row(measure, filter=filtering, mean=mean, **{"level": "pooled", **where})
    return row.ci_low, row.ci_high


def test_the_interval_is_the_percentiles_of_resampled_means() -> None:
    # The mean of ten draws from five 0 and five 1: P(X <= 1) = .011 and P(X <= 2) = .055 put the 2.5 % point at 2/10.
    run, qrels = found_or_not([True] * 5 + [False] * 5)
    for seed in (0, 1):
        result = of_run(run, qrels, ks=[1], draws=2000, seed=seed)
        assert interval(result, "ARecall@1", "post", "restricted") == pytest.approx((0.2, 0.8))


def test_queries_are_drawn_with_all_their_principals() -> None:
    # Two queries, one always found and one never, by five principals: a draw is all 0 in a quarter of all cases.
    # Ten pairs drawn one by one would be so once in a thousand.
    run, qrels = found_or_not([True, False])
    snapshot = snapshot_of({f"p{i}": READABLE for i in range(5)})
    result = of_run(run, qrels, snapshot, ks=[1], draws=2000)
    assert interval(result, "ARecall@1", "post", "restricted") == (0.0, 1.0)
    assert interval(result, "ARecall@1", "post", "restricted", level="principals") == (0.0, 1.0)


def test_the_mean_of_a_draw_is_over_its_pairs_and_not_over_its_queries() -> None:
    # Of four queries one has a single pair, found; the others have three pairs each, found by none. The greatest mean
    # outside of the last 2.5 % has the first query thrice (P = .047): 3 of 3 * 1 + 3 pairs.
    snapshot = snapshot_of({"p0": ["a", "b"], "p1": ["b"], "p2": ["b"]})
    run = {f"q{i}": ["a", "d", "c"] for i in range(4)}
    qrels = {"q0": {"a": 1}, **{f"q{i}": {"b": 1} for i in (1, 2, 3)}}
    result = of_run(run, qrels, snapshot, ks=[1], draws=2000)
    row = result.row("ARecall@1", filter="post", mean="restricted", level="pooled")
    assert (row.n, row.numerator) == (10, 1)
    assert (row.ci_low, row.ci_high) == (0.0, 0.5)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    grades = {f"q{i}": {d: 1 + (i * j) % 5 for j, d in enumerate("abcd")} for i in range(9)}
    run = {query: ["a", "b", "c", "s"] for query in grades}
    first, again, other = (
        interval(of_run(run, grades, ks=[3], draws=200, seed=seed), "nDCG@3", "none", "all") for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other


def test_one_pair_has_no_interval() -> None:
    run, qrels = found_or_not([True])
    result = of_run(run, qrels, ks=[1], draws=2000)
    assert interval(result, "ARecall@1", "post", "restricted") == (None, None)


def test_one_query_has_no_interval_however_many_ask_it() -> None:
    # There is nothing to resample: the interval would be the value itself.
    run, qrels = found_or_not([True])
    result = of_run(run, qrels, snapshot_of({f"p{i}": READABLE for i in range(5)}), ks=[1], draws=2000)
    assert result.row("ARecall@1", filter="post", mean="restricted", level="pooled").n == 5
    assert interval(result, "ARecall@1", "post", "restricted") == (None, None)


def test_a_mean_that_only_one_pair_enters_has_no_interval() -> None:
    run, qrels = found_or_not([True, True])
    qrels["q1"] = {"s": 1}
    result = of_run(run, qrels, ks=[1], draws=2000)
    assert interval(result, "ARecall@1", "post", "restricted") == (None, None)
    assert interval(result, "ARecall@1", "post", "full") == (1.0, 1.0)


def test_without_draws_there_is_no_bootstrap_interval() -> None:
    run, qrels = found_or_not([True, False, True])
    assert interval(of_run(run, qrels, ks=[1], draws=0), "ARecall@1", "post", "restricted") == (None, None)


def lists(leaking: int, clean: int) -> Result:
    delivered = {("p", f"q{i}"): ["a", "s"] if i < leaking else ["a", "b"] for i in range(leaking + clean)}
    return of_delivered(delivered, {query: {"a": 1} for _, query in delivered}, ks=[1, 2], draws=2000)


def test_none_of_thirty_lists_leaked_still_allows_a_share_of_11_6_percent() -> None:
    result = lists(leaking=0, clean=30)
    for measure in ("U@2", "Leak@2", "U@1"):
        row = result.row(measure, filter="delivered", mean="all", level="pooled")
        assert row.value == 0.0
        assert row.ci_low == 0.0
        assert row.ci_high == pytest.approx(0.1157, abs=5e-5), measure


def test_one_clean_list_allows_almost_any_share_of_leaks() -> None:
    # One list of one leaks with probability .025 or more up to a share of .975.
    for measure in ("U@2", "Leak@2"):
        low, high = interval(lists(leaking=0, clean=1), measure, "delivered", "all")
        assert (low, high) == (0.0, pytest.approx(0.975)), measure


def test_leak_takes_a_clopper_pearson_interval() -> None:
    # The table value for 1 of 10.
    low, high = interval(lists(leaking=1, clean=9), "Leak@2", "delivered", "all")
    assert low == pytest.approx(0.0025, abs=5e-5)
    assert high == pytest.approx(0.4450, abs=5e-5)
    low, high = interval(lists(leaking=30, clean=0), "Leak@2", "delivered", "all")
    assert (low, high) == (pytest.approx(0.8843, abs=5e-5), 1.0)


# ---- nothing undefined is a number -----------------------------------------------------------------------------------


def test_undefined_is_null_and_never_nan() -> None:
    qrels = {"vacuous": {"s": 1}, "no_relevant": {"a": 0}, "incomplete": {"nowhere": 1}}
    result = of_run({query: ["a", "s"] for query in qrels}, qrels, ks=[1, 5], draws=50)
    table = result.pairs()
    for name in ("value", "numerator", "denominator", "tie_low", "tie_high"):
        assert not any(isinstance(x, float) and math.isnan(x) for x in table.column(name).to_pylist()), name
    row = result.row("ARecall@1", filter="post", mean="restricted", level="pooled")
    assert (row.value, row.ci_low, row.ci_high, row.tie_low, row.tie_high) == (None,) * 5
