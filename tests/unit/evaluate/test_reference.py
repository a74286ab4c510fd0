"""The reference is held to what others worked out, so that it can be held against the library."""

from __future__ import annotations

import math
from pathlib import Path

import authorized_recall
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import Case, Reference, Score, in_order
from unit.evaluate.shared_data import incidents, read_authorized, read_qrels, read_run

IDS = ("a", "b", "c", "d", "e", "f")
subsets = st.sets(st.sampled_from(IDS))


@settings(max_examples=200, deadline=None)
@given(ranking=st.permutations(IDS), depth=st.integers(1, 6), relevant=subsets, readable=subsets)
def test_the_reference_gives_the_published_librarys_values(
    ranking: list[str], depth: int, relevant: set[str], readable: set[str]
) -> None:
    ranking, ks = ranking[:depth], (1, 2, 3, 5, 9)
    reference = Reference(
        Case(
            qrels={"q": {d: int(d in relevant) for d in IDS}},
            authorized={"p": readable},
            universe=set(IDS),
            run={"q": ranking},
            ks=ks,
            complete_ranking=True,
        )
    )
    state, scores = reference.states["p", "q"], reference.scores["p", "q"]
    may_read = readable.__contains__
    for k in ks:
        assert scores[f"U@{k}", "none"].value == authorized_recall.unusable_fraction_at_k(ranking, may_read, k)
        for filtering, filtered in (("post", authorized_recall.post_filter), ("pre", authorized_recall.pre_filter)):
            theirs = authorized_recall.authorized_recall_at_k(filtered(ranking, may_read, k), relevant, may_read, k)
            assert reference.pooled(f"ARecall@{k}", filtering, "full").value == (theirs if relevant else None)
            assert scores[f"ARecall@{k}", filtering].value == (theirs if state == "ok" else None)
        if relevant:
            assert scores[f"R@{k}", "none"].value == authorized_recall.recall_at_k(ranking, relevant, k)
            assert scores[f"P@{k}", "none"].value == authorized_recall.precision_at_k(ranking, relevant, k)
            theirs = authorized_recall.ndcg_at_k(ranking, relevant, k)
            assert math.isclose(scores[f"nDCG@{k}", "none"].value or 0.0, theirs)
    if relevant:
        assert scores["RR", "none"].value == authorized_recall.reciprocal_rank(ranking, relevant)


def test_the_reference_gives_the_figures_of_every_incident(shared: Path) -> None:
    for incident in incidents(shared):
        k, pair, expected = incident.k, (incident.principal, incident.query), incident.expected
        if incident.of_run is not None:
            reference = Reference(incident.of_run)
            for filtering, name in (("post", "right_post_filter"), ("pre", "right_pre_filter")):
                right = expected[name]
                assert reference.states[pair] == right["state"], incident.name
                score = reference.scores[pair][f"ARecall@{k}", filtering]
                assert score.value == right["arecall"]["value"], incident.name
                if score.value is not None:
                    assert score.numerator == right["arecall"]["num"], incident.name
                    assert score.denominator == right["arecall"]["den"], incident.name
            gap = reference.scores[pair][f"ARecall@{k}", "gap"].value
            assert gap == pytest.approx(expected["right_gap"]), incident.name
        right = expected["measured_on_returned"]
        reference = Reference(incident.of_delivered)
        scores = reference.scores[pair]
        assert reference.states[pair] == right["state"], incident.name
        assert scores[f"ARecall@{k}", "delivered"].value == right["arecall"]["value"], incident.name
        assert scores[f"R@{k}", "delivered"].value == right["recall_blind"]["value"], incident.name
        assert scores[f"U@{k}", "delivered"].numerator == right["u_at_k"]["num"], incident.name
        assert scores[f"U@{k}", "delivered"].value == right["u_at_k"]["value"], incident.name
        assert scores[f"UReturned@{k}", "delivered"].value == right["u_share_of_returned"], incident.name
        assert {leak[2] for leak in reference.leaks()} == set(right["unauthorized"]), incident.name


def test_the_reference_by_hand() -> None:
    # s is secret; a and c are readable, relevant and of grades 1 and 2. Scores tie a with s.
    case = Case(
        qrels={"q": {"a": 1, "s": 3, "c": 2}},
        authorized={"p": {"a", "b", "c"}},
        universe={"a", "b", "c", "s"},
        run={"q": [("a", 5.0), ("s", 5.0), ("b", 4.0), ("c", 3.0)]},
        ks=[1, 2],
    )
    scores = Reference(case).scores["p", "q"]
    # By id, descending, s comes before a: [s, a, b, c].
    assert scores["ARecall@1", "post"] == Score(0.0, 0, 2, 0.0, 0.5)
    assert scores["ARecall@1", "pre"] == Score(0.5, 1, 2, 0.5, 0.5)
    assert scores["ARecall@1", "gap"] == Score(0.5, 1, 2, 0.0, 0.5)
    assert scores["U@1", "none"] == Score(1.0, 1, 1, 0.0, 1.0)
    assert scores["U@2", "none"] == Score(0.5, 1, 2, 0.5, 0.5)
    assert scores["P@2", "post"] == Score(0.5, 1, 2)
    assert scores["RR@2", "post"] == Score(1.0)
    assert scores["RR", "none"] == Score(1.0)
    # [a] against the ideal [c, a] of grades 2 and 1.
    ndcg = scores["nDCG@2", "post"].value
    assert ndcg is not None
    assert math.isclose(ndcg, 1 / (2 + 1 / math.log2(3)))


def test_cranfield_with_hc_loses_its_gap_as_the_run_gets_shallower(shared: Path) -> None:
    cranfield = shared / "data" / "cranfield"
    run = read_run(cranfield / "bm25.trec.gz")
    gaps: list[float | None] = []
    for depth in (20, 10):
        best = {q: in_order(list(scores.items()), "float64")[:depth] for q, scores in run.items()}
        case = Case(
            qrels=read_qrels(cranfield / "qrels.trec"),
            authorized=read_authorized(shared / "data" / "upa" / "hc.tsv.gz", 1400),
            universe={str(i) for i in range(1, 1401)},
            run=best,
            ks=[10],
            bounds=False,
        )
        gaps.append(Reference(case).pooled("ARecall@10", "gap", "restricted").value)
    assert gaps == [pytest.approx(0.0467, abs=5e-5), None]
