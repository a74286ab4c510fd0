"""Agreement with trec_eval: its own test files, its Python binding, and its way with ties."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest
import pytrec_eval

from arecall.evaluate import evaluate
from arecall.result import Result
from arecall.snapshot import Snapshot
from unit.evaluate.shared_data import read_authorized, read_qrels, read_run

Ties = Literal["float64", "trec_eval"]
CUTS = [5, 10, 15, 20, 30, 100, 200, 500, 1000]


def by_trec_eval(
    run: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, float]]:
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"P", "recall", "ndcg_cut", "recip_rank"})
    return dict(evaluator.evaluate(run))


def by_us(
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    ks: list[int],
    ties: Ties = "trec_eval",
    authorized: Mapping[str, set[str]] | None = None,
) -> Result:
    documents = {d for part in (*run.values(), *qrels.values()) for d in part}
    documents.update(*(authorized or {}).values())
    snapshot = Snapshot.from_sets(authorized or {"all": documents}, universe=sorted(documents))
    return evaluate(run=dict(run), qrels=qrels, snapshot=snapshot, ks=ks, ties=ties)


def name_in_trec_eval(measure: str) -> str:
    kind, _, k = measure.partition("@")
    return {"R": f"recall_{k}", "P": f"P_{k}", "nDCG": f"ndcg_cut_{k}", "RR": "recip_rank"}[kind]


def blind_measures(ks: list[int]) -> list[str]:
    return ["RR", *(f"{kind}@{k}" for kind in ("R", "P", "nDCG") for k in ks)]


@pytest.fixture
def trec_eval(shared: Path) -> Path:
    return shared / "data" / "trec_eval"


def test_every_query_agrees_with_pytrec_eval(trec_eval: Path) -> None:
    run, qrels = read_run(trec_eval / "results.test"), read_qrels(trec_eval / "qrels.test")
    result, theirs = by_us(run, qrels, CUTS), by_trec_eval(run, qrels)
    assert len(theirs) == 3
    for query, values in theirs.items():
        for measure in blind_measures(CUTS):
            ours = result.value(measure, filter="none", mean="all", level="query", query_id=query)
            assert ours == pytest.approx(values[name_in_trec_eval(measure)], abs=1e-9), (query, measure)


def test_every_query_and_the_mean_agree_with_trec_evals_own_output(trec_eval: Path) -> None:
    run, qrels = read_run(trec_eval / "results.test"), read_qrels(trec_eval / "qrels.test")
    result = by_us(run, qrels, CUTS)
    printed: dict[tuple[str, str], str] = {}
    for line in (trec_eval / "out.test.aq").read_text(encoding="utf-8").splitlines():
        name, query, value = line.split()
        printed[name, query] = value
    compared = 0
    for measure in blind_measures(CUTS):
        name = name_in_trec_eval(measure)
        for query in (*qrels, "all"):
            where = {"level": "pooled"} if query == "all" else {"level": "query", "query_id": query}
            ours = result.value(measure, filter="none", mean="all", **where)
            assert ours == pytest.approx(float(printed[name, query]), abs=5.1e-5), (query, measure)
            compared += 1
    assert compared == 4 * (1 + 3 * len(CUTS))


def test_where_everything_may_be_read_authorized_figures_are_trec_evals(trec_eval: Path) -> None:
    run, qrels = read_run(trec_eval / "results.test"), read_qrels(trec_eval / "qrels.test")
    result, theirs = by_us(run, qrels, [10, 100]), by_trec_eval(run, qrels)
    for query, values in theirs.items():
        for filtering in ("post", "pre"):
            for kind, name in (("ARecall", "recall"), ("P", "P"), ("nDCG", "ndcg_cut")):
                for k in (10, 100):
                    ours = result.value(
                        f"{kind}@{k}", filter=filtering, mean="restricted", level="query", query_id=query
                    )
                    assert ours == pytest.approx(values[f"{name}_{k}"], abs=1e-9), (query, filtering, kind, k)


def test_ties_fall_as_in_trec_eval() -> None:
    # One number in float32, three in float64; and a plain tie.
    run = {"q1": {"a": 16777217.0, "b": 16777216.0, "c": 16777217.0}, "q2": {"a": 0.5, "b": 0.5, "B": 0.5}}
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"b": 2, "B": 1}}
    theirs = by_trec_eval(run, qrels)
    assert theirs["q1"]["recip_rank"] == pytest.approx(1 / 3)
    expected: dict[Ties, int] = {"trec_eval": 3, "float64": 2}
    for ties, rank in expected.items():
        result = by_us(run, qrels, [5], ties)
        assert result.value("RR", filter="none", mean="all", level="query", query_id="q1") == pytest.approx(1 / rank)
    result = by_us(run, qrels, [5])
    for query, values in theirs.items():
        for measure in blind_measures([5]):
            ours = result.value(measure, filter="none", mean="all", level="query", query_id=query)
            assert ours == pytest.approx(values[name_in_trec_eval(measure)]), (query, measure)


def test_graded_and_negative_judgements_gain_as_in_trec_eval() -> None:
    run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    qrels = {"q": {"a": -1, "b": 1, "c": 3, "e": 2}}
    result, theirs = by_us(run, qrels, [5]), by_trec_eval(run, qrels)
    for measure in blind_measures([5]):
        ours = result.value(measure, filter="none", mean="all", level="pooled")
        assert ours == pytest.approx(theirs["q"][name_in_trec_eval(measure)]), measure


def test_pre_filtered_figures_are_trec_evals_of_the_principals_own_run_and_qrels(shared: Path) -> None:
    cranfield = shared / "data" / "cranfield"
    run, qrels = read_run(cranfield / "bm25.trec.gz"), read_qrels(cranfield / "qrels.trec")
    everyone = read_authorized(shared / "data" / "upa" / "hc.tsv.gz", 1400)
    few = {principal: everyone[principal] for principal in sorted(everyone)[:4]}
    snapshot = Snapshot.from_sets(few, universe=[str(i) for i in range(1, 1401)])
    result = evaluate(run=run, qrels=qrels, snapshot=snapshot, ks=[10], ties="trec_eval")
    ours = {
        (row["measure"], row["principal"], row["query_id"]): row["value"]
        for row in result.pairs().to_pylist()
        if row["filter"] == "pre" and row["value"] is not None
    }
    compared = 0
    for principal, readable in few.items():
        own_run = {q: {d: s for d, s in scores.items() if d in readable} for q, scores in run.items()}
        own_qrels = {q: {d: g for d, g in grades.items() if d in readable} for q, grades in qrels.items()}
        own_qrels = {q: grades for q, grades in own_qrels.items() if any(g > 0 for g in grades.values())}
        theirs = by_trec_eval({q: own_run[q] for q in own_qrels}, own_qrels)
        for query, values in theirs.items():
            for measure, name in (("ARecall@10", "recall_10"), ("P@10", "P_10"), ("nDCG@10", "ndcg_cut_10")):
                value = ours[measure, principal, query]
                assert value == pytest.approx(values[name], abs=1e-9), (measure, principal, query)
                compared += 1
    assert compared > 1000
