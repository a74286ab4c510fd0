"""The table that `authorized-recall` 0.2.0 prints, from its own corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from authorized_recall import TfIdfIndex
from authorized_recall import experiment as published
from authorized_recall.corpus import build

from arecall.evaluate import evaluate
from arecall.result import Result
from arecall.snapshot import Snapshot

KS = [1, 3, 5, 10]


@dataclass(frozen=True)
class Corpus:
    universe: list[str]
    run: dict[str, list[str]]
    qrels: dict[str, dict[str, int]]
    grants: dict[str, set[str]]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    datasets, queries, profiles = build()
    index = TfIdfIndex({dataset["dataset"]: published._document(dataset) for dataset in datasets})
    return Corpus(
        universe=[dataset["dataset"] for dataset in datasets],
        run={f"q{at}": index.rank(query["query"], k=len(datasets)) for at, query in enumerate(queries)},
        qrels={f"q{at}": dict.fromkeys(query["relevant"], 1) for at, query in enumerate(queries)},
        grants={name: set(profile["grants"]) for name, profile in profiles.items()},
    )


def of_sets(corpus: Corpus) -> Snapshot:
    return Snapshot.from_sets(corpus.grants, universe=corpus.universe)


def of_predicates(corpus: Corpus) -> Snapshot:
    predicates: dict[str, Callable[[str], bool]] = {name: own.__contains__ for name, own in corpus.grants.items()}
    return Snapshot.from_predicates(predicates, universe=corpus.universe)


def evaluated(corpus: Corpus, snapshot: Snapshot) -> Result:
    # The published table takes the ranking, which leaves out what scored nothing, as complete.
    return evaluate(run=corpus.run, qrels=corpus.qrels, snapshot=snapshot, ks=KS, complete_ranking=True)


@pytest.mark.parametrize("snapshot_of", [of_sets, of_predicates])
def test_the_published_table_is_reproduced(corpus: Corpus, snapshot_of: Callable[[Corpus], Snapshot]) -> None:
    table = published.run()
    result = evaluated(corpus, snapshot_of(corpus))
    for k in KS:
        for name, measure, filtering, mean in (
            ("recall", f"R@{k}", "none", "all"),
            ("precision", f"P@{k}", "none", "all"),
            ("ndcg", f"nDCG@{k}", "none", "all"),
            ("unusable", f"U@{k}", "none", "all"),
            ("arecall_post", f"ARecall@{k}", "post", "full"),
            ("arecall_pre", f"ARecall@{k}", "pre", "full"),
            ("gap", f"ARecall@{k}", "gap", "full"),
            ("arecall_post_nonempty", f"ARecall@{k}", "post", "restricted"),
            ("arecall_pre_nonempty", f"ARecall@{k}", "pre", "restricted"),
            ("gap_nonempty", f"ARecall@{k}", "gap", "restricted"),
        ):
            value = result.value(measure, filter=filtering, mean=mean, level="pooled")
            assert value == pytest.approx(table["k"][k][name], abs=1e-12), (k, name)
        row = result.row(f"ARecall@{k}", filter="post", mean="restricted", level="pooled")
        assert (row.n, row.n_ok, row.n_vacuous) == (table["k"][k]["n_nonempty"], 30, 66)
    assert result.value("RR", filter="none", mean="all", level="pooled") == pytest.approx(table["mrr"], abs=1e-12)


def test_the_published_figures_at_five_to_the_digits_that_were_printed(corpus: Corpus) -> None:
    result = evaluated(corpus, of_sets(corpus))
    for measure, filtering, mean, printed in (
        ("R@5", "none", "all", 0.867),
        ("ARecall@5", "post", "full", 0.954),
        ("ARecall@5", "pre", "full", 0.988),
        ("ARecall@5", "gap", "full", 0.033),
        ("U@5", "none", "all", 0.685),
        ("ARecall@5", "post", "restricted", 0.853),
        ("ARecall@5", "pre", "restricted", 0.960),
        ("ARecall@5", "gap", "restricted", 0.107),
    ):
        value = result.value(measure, filter=filtering, mean=mean, level="pooled")
        assert value == pytest.approx(printed, abs=5.1e-4), (measure, filtering, mean)
