"""Evaluate 1,000 principals on Cranfield, side by side with `authorized-recall` and `pytrec_eval`, in one run.

    python benchmarks/library.py [--principals 1000] [--peer-principals 20]

All three compute ARecall@1,3,5,10 for every (principal, query) pair on the same input: 225 queries, BM25 rankings up to
1,000 deep. The peers go pair by pair, so they are timed on some of the principals and their rate per pair is compared;
the values of those principals must agree to 1e-12. `pytrec_eval` gets one qrels a principal (R ∩ A_p) and the plain run:
its recall@K is ARecall@K under post-filtering. `authorized-recall` computes post- and pre-filtering and U@K, as `arecall`
does; `arecall` also computes nDCG, P, RR, leaks and all aggregates in the time given.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import authorized_recall as peer
import numpy as np
import pytrec_eval

from arecall.evaluate import evaluate
from arecall.inputs import read_qrels, read_run
from arecall.snapshot import Snapshot

KS = (1, 3, 5, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--principals", type=int, default=1000)
    parser.add_argument("--peer-principals", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    default = Path(__file__).parents[2] / "shared"
    data = Path(os.environ.get("ARECALL_TEST_DATA", default)) / "data"
    if not data.is_dir():
        sys.exit(f"no test data at {data}: set ARECALL_TEST_DATA")

    run, qrels = read_run(data / "cranfield/bm25.trec.gz"), read_qrels(data / "cranfield/qrels.trec")
    documents = [str(i) for i in range(1, 1401)]
    sets = random_sets(documents, arguments.principals)
    snapshot = Snapshot.from_sets(sets, universe=documents)
    sample = list(sets)[: arguments.peer_principals]
    rankings = {q: [run.item_ids[i] for i in run.items[a:b]] for q, a, b in spans(run)}
    scores = {q: {d: float(-at) for at, d in enumerate(ranking)} for q, ranking in rankings.items()}
    relevant = {
        q: {qrels.item_ids[i] for i, g in zip(qrels.items[a:b], qrels.grades[a:b], strict=True) if g > 0}
        for q, a, b in spans(qrels)
    }

    ours, seconds = timed(lambda: evaluate(snapshot=snapshot, run=run, qrels=qrels, ks=KS, draws=0), arguments.repeat)
    _, with_intervals = timed(lambda: evaluate(snapshot=snapshot, run=run, qrels=qrels, ks=KS), 1)
    theirs, peer_seconds = timed(lambda: with_authorized_recall(rankings, relevant, {p: sets[p] for p in sample}), 1)
    trec, trec_seconds = timed(lambda: with_pytrec_eval(scores, relevant, {p: sets[p] for p in sample}), 1)

    worst = largest_difference(ours, theirs, trec, set(sample), relevant, sets)
    pairs = len(sets) * len(rankings)
    rates = {
        "arecall": pairs / seconds,
        "arecall with 95 % intervals of every principal": pairs / with_intervals,
        "authorized-recall": len(sample) * len(rankings) / peer_seconds,
        "pytrec_eval": len(sample) * len(rankings) / trec_seconds,
    }
    fastest = max(rates["authorized-recall"], rates["pytrec_eval"])
    print(
        json.dumps(
            {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "cores": os.cpu_count(),
                "pairs": pairs,
                "distinct_sets": len(snapshot.sets),
                "cutoffs": KS,
                "pairs_per_second": {name: round(rate) for name, rate in rates.items()},
                "times_the_faster_peer": round(rates["arecall"] / fastest, 1),
                "times_the_faster_peer_with_intervals": round(
                    rates["arecall with 95 % intervals of every principal"] / fastest, 1
                ),
                "largest_difference": worst,
                "peak_memory_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            },
            indent=1,
        )
    )
    if worst > 1e-12:
        sys.exit("the values differ")


def spans(of: Any) -> list[tuple[str, int, int]]:
    return [(q, int(of.offsets[n]), int(of.offsets[n + 1])) for n, q in enumerate(of.query_ids)]


def random_sets(documents: list[str], principals: int) -> dict[str, set[str]]:
    """All different, from few documents to nearly all, so that no two principals can share any work."""
    rng = np.random.default_rng(1)
    shares = rng.beta(0.8, 2.0, principals)
    return {
        f"p{n:05}": {d for d, drawn in zip(documents, rng.random(len(documents)), strict=True) if drawn < share}
        for n, share in enumerate(shares)
    }


def timed(work: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    best, result = float("inf"), None
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return result, best


def with_authorized_recall(
    rankings: dict[str, list[str]], relevant: dict[str, set[str]], sets: dict[str, set[str]]
) -> dict[tuple[str, str, int], tuple[float, float, float]]:
    values = {}
    for principal, granted in sets.items():
        may_read = granted.__contains__
        for query, ranking in rankings.items():
            for k in KS:
                post, pre = peer.post_filter(ranking, may_read, k), peer.pre_filter(ranking, may_read, k)
                values[principal, query, k] = (
                    peer.authorized_recall_at_k(post, relevant[query], may_read, k),
                    peer.authorized_recall_at_k(pre, relevant[query], may_read, k),
                    peer.unusable_fraction_at_k(ranking, may_read, k),
                )
    return values


def with_pytrec_eval(
    scores: dict[str, dict[str, float]], relevant: dict[str, set[str]], sets: dict[str, set[str]]
) -> dict[tuple[str, str, int], float]:
    values = {}
    for principal, granted in sets.items():
        judged = {q: dict.fromkeys(r & granted, 1) for q, r in relevant.items() if r & granted}
        evaluator = pytrec_eval.RelevanceEvaluator(judged, {"recall.1,3,5,10"})
        for query, measures in evaluator.evaluate(scores).items():
            for k in KS:
                values[principal, query, k] = measures[f"recall_{k}"]
    return values


def largest_difference(
    ours: Any,
    theirs: dict[tuple[str, str, int], tuple[float, float, float]],
    trec: dict[tuple[str, str, int], float],
    sample: set[str],
    relevant: dict[str, set[str]],
    sets: dict[str, set[str]],
) -> float:
    worst, compared = 0.0, 0
    for batch in ours.pair_batches():
        measure, filtered = batch["measure"][0].as_py(), batch["filter"][0].as_py()
        base, _, cutoff = measure.partition("@")
        place = {("ARecall", "post"): 0, ("ARecall", "pre"): 1, ("U", "none"): 2}.get((base, filtered))
        if place is None or batch["mean"][0].as_py() == "full":
            continue
        for row in batch.select(["principal", "query_id", "value"]).to_pylist():
            key = (row["principal"], row["query_id"], int(cutoff))
            if key[0] not in sample or key not in theirs or (place < 2 and not relevant[key[1]] & sets[key[0]]):
                continue
            expected = [theirs[key][place], *([trec[key]] if place == 0 else [])]
            worst = max(worst, *(abs(row["value"] - one) for one in expected))
            compared += 1
    if not compared:
        sys.exit("nothing was compared")
    return worst


if __name__ == "__main__":
    main()
