"""The library against the reference and against the published library, over cases that nobody chose."""

from __future__ import annotations

import math
from collections.abc import Callable

import authorized_recall
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from arecall.evaluate import evaluate
from arecall.snapshot import Snapshot
from reference import Case
from unit.evaluate.comparison import ask, assert_agreement, cases, pair_rows, stated

small = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@small
@given(case=cases("run"))
def test_a_run_is_evaluated_as_the_reference_does(case: Case) -> None:
    assert_agreement(case)


@small
@given(case=cases("run", chunked=True))
def test_a_run_of_chunks_is_evaluated_as_the_reference_does(case: Case) -> None:
    assert_agreement(case)


@small
@given(case=cases("delivered"))
def test_delivered_lists_are_evaluated_as_the_reference_does(case: Case) -> None:
    assert_agreement(case)


@small
@given(case=cases("delivered", chunked=True))
def test_delivered_lists_of_chunks_are_evaluated_as_the_reference_does(case: Case) -> None:
    assert_agreement(case)


# ---- properties ------------------------------------------------------------------------------------------------------


@settings(small, max_examples=75)
@given(case=cases("run") | cases("run", chunked=True))
def test_the_gap_is_never_negative_in_any_order_nor_in_any_mean(case: Case) -> None:
    result = ask(case)
    for (measure, filtering, _, _), row in pair_rows(result).items():
        if filtering == "gap" and row["value"] is not None:
            low, high = stated(row["tie_low"], row["value"]), stated(row["tie_high"], row["value"])
            assert low is not None
            assert high is not None
            assert 0 <= low <= row["value"] <= high <= 1, (measure, row)
    for k in case.ks:
        for mean in ("restricted", "full"):
            for level in ("pooled", "principals"):
                value = result.value(f"ARecall@{k}", filter="gap", mean=mean, level=level)
                assert value is None or value >= 0


@settings(small, max_examples=75)
@given(case=cases("run") | cases("run", chunked=True))
def test_where_everything_may_be_read_arecall_is_recall(case: Case) -> None:
    everything = set().union(case.universe, *case.qrels.values())
    for entry in (entry for ranking in (case.run or {}).values() for entry in ranking):
        everything.add(case.document(entry if isinstance(entry, str) else entry[0]))
    open_case = Case(
        qrels=case.qrels,
        authorized=dict.fromkeys(case.authorized, everything),
        universe=everything,
        run=case.run,
        chunks=case.chunks,
        cut=case.cut,
        ks=case.ks,
        relevance_level=case.relevance_level,
    )
    rows = pair_rows(ask(open_case))
    for (measure, filtering, principal, query), row in rows.items():
        if measure.startswith("ARecall@") and filtering in ("post", "pre"):
            blind = rows[measure.replace("ARecall", "R"), "none", principal, query]
            assert row["value"] == blind["value"]
            assert row["state"] in ("ok", "missing", "no_relevant")
        if measure.startswith(("U@", "Leak@")):
            assert row["value"] in (0, None)
        if filtering == "gap":
            assert row["value"] in (0, None)


@settings(small, max_examples=75)
@given(case=cases("run") | cases("run", chunked=True))
def test_pre_filtering_never_finds_less_than_post_filtering(case: Case) -> None:
    rows = pair_rows(ask(case))
    for (measure, filtering, principal, query), row in rows.items():
        if filtering == "post" and row["value"] is not None and not measure.startswith(("nDCG@", "RR@")):
            assert rows[measure, "pre", principal, query]["value"] >= row["value"], measure


# ---- the published library -------------------------------------------------------------------------------------------

IDS = tuple("abcdefgh")
KS = (1, 2, 3, 5, 10)
lists_of_ids = st.lists(st.sampled_from(IDS), unique=True)
sets_of_ids = st.sets(st.sampled_from(IDS))


def test_values_agree_with_the_published_library() -> None:
    compared = {"pairs": 0, "lists": 0}

    @settings(max_examples=120, deadline=None)
    @given(
        run=st.lists(lists_of_ids.filter(bool), min_size=8, max_size=8),
        relevant=st.lists(sets_of_ids, min_size=8, max_size=8),
        readable=st.lists(sets_of_ids, min_size=5, max_size=5),
    )
    @example(run=[list(IDS)] * 8, relevant=[set(IDS)] * 8, readable=[set(IDS)] * 5)
    def agree(run: list[list[str]], relevant: list[set[str]], readable: list[set[str]]) -> None:
        rankings = {f"q{at}": ranking for at, ranking in enumerate(run)}
        qrels = {f"q{at}": {d: int(d in own) for d in IDS} for at, own in enumerate(relevant)}
        predicates: dict[str, Callable[[str], bool]] = {f"p{at}": own.__contains__ for at, own in enumerate(readable)}
        result = evaluate(
            run=rankings,
            qrels=qrels,
            snapshot=Snapshot.from_predicates(predicates, universe=IDS),
            ks=list(KS),
            complete_ranking=True,
        )
        rows = pair_rows(result)
        full: dict[tuple[int, str], list[float]] = {}
        for at, query in enumerate(rankings):
            for principal, may_read in predicates.items():
                for k in KS:
                    unusable = authorized_recall.unusable_fraction_at_k(rankings[query], may_read, k)
                    assert math.isclose(rows[f"U@{k}", "none", principal, query]["value"], unusable, abs_tol=1e-12)
                    compared["lists"] += 1
                    if not relevant[at]:
                        continue
                    values: dict[str, float] = {}
                    for name, filtered in (
                        ("post", authorized_recall.post_filter),
                        ("pre", authorized_recall.pre_filter),
                    ):
                        shown = filtered(rankings[query], may_read, k)
                        values[name] = authorized_recall.authorized_recall_at_k(shown, relevant[at], may_read, k)
                    values["gap"] = values["pre"] - values["post"]
                    for name, theirs in values.items():
                        full.setdefault((k, name), []).append(theirs)
                        ours = rows[f"ARecall@{k}", name, principal, query]
                        if ours["state"] == "vacuous":
                            assert ours["value"] is None
                            assert theirs == (0.0 if name == "gap" else 1.0)
                        else:
                            assert math.isclose(ours["value"], theirs, abs_tol=1e-12)
                            compared["pairs"] += name == "post"
        for (k, name), theirs_of_all in full.items():
            mean = result.value(f"ARecall@{k}", filter=name, mean="full", level="pooled")
            assert mean is not None
            assert math.isclose(mean, math.fsum(theirs_of_all) / len(theirs_of_all), abs_tol=1e-12)

    agree()
    assert compared["pairs"] >= 10_000, compared
    assert compared["lists"] >= 10_000, compared
