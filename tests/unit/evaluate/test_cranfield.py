"""Cranfield joined with real user-permission assignments: equal to the reference, and the gap at three depths."""

from __future__ import annotations

from pathlib import Path

import pytest

from reference import Case, Reference, in_order
from unit.evaluate.comparison import ask, assert_aggregates_agree, assert_pairs_agree
from unit.evaluate.shared_data import read_authorized, read_qrels, read_run


def joined(shared: Path, name: str, depth: int = 1000) -> Case:
    cranfield = shared / "data" / "cranfield"
    run = read_run(cranfield / "bm25.trec.gz")
    ordered = {query: in_order(list(scores.items()), "float64")[:depth] for query, scores in run.items()}
    return Case(
        qrels=read_qrels(cranfield / "qrels.trec"),
        authorized=read_authorized(shared / "data" / "upa" / f"{name}.tsv.gz", 1400),
        universe={str(i) for i in range(1, 1401)},
        run={query: [(d, run[query][d]) for d in documents] for query, documents in ordered.items()},
        ks=[10],
        bounds=False,
    )


@pytest.mark.parametrize(("name", "principals"), [("hc", 46), ("domino", 79)])
def test_every_figure_equals_the_reference(shared: Path, name: str, principals: int) -> None:
    case = joined(shared, name)
    assert len(case.authorized) == principals
    assert len(case.pairs) == principals * 225
    reference, result = Reference(case), ask(case)
    assert_pairs_agree(result, reference)
    assert_aggregates_agree(result, reference, queries=False)


@pytest.mark.parametrize(("depth", "gap"), [(1000, 0.0531), (20, 0.0467), (10, None)])
def test_the_gap_of_hc_shrinks_with_the_depth_of_the_run(shared: Path, depth: int, gap: float | None) -> None:
    row = ask(joined(shared, "hc", depth)).row("ARecall@10", filter="gap", mean="restricted", level="pooled")
    if gap is None:
        assert (row.value, row.n) == (None, 0)
    else:
        assert row.value == pytest.approx(gap, abs=5e-5)
        assert row.n == 9467
    assert (row.n_ok, row.n_vacuous) == (9467, 883)
