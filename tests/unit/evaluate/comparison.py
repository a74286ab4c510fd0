"""Makes cases for the evaluator, asks the library, and holds its answer to the reference's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from hypothesis import strategies as st

from arecall.evaluate import evaluate
from arecall.result import Result
from arecall.snapshot import Snapshot
from reference import UNDEFINED, Case, Pair, Ranking, Reference, Row, Score

# ---- small random cases ----------------------------------------------------------------------------------------------

DOCUMENTS = ("a", "B", "b", "é", "007", " d")
CHUNKS = ("c1", "c2", "c3", "c4", "c5", "c6")
PRINCIPALS = ("p", "P", "no")
QUERIES = ("q1", "q2", "1e3")
GRADES = (1, 2, None, 0, 3, -1)
SCORES = (1.0, 16777216.0, 16777217.0)
"""The last two are one number in float32."""
LENGTHS = st.sampled_from((5, 4, 5, 2, 1, 0))


def some(values: Sequence[str], *, least: int = 0) -> st.SearchStrategy[list[str]]:
    """About half of the values, and at least so many."""
    picks = st.tuples(*(st.sampled_from((True, False)) for _ in values))
    kept = picks.map(lambda picked: [value for value, keep in zip(values, picked, strict=True) if keep])
    return kept.filter(lambda chosen: len(chosen) >= least)


@st.composite
def cases(draw: st.DrawFn, kind: str, *, chunked: bool = False) -> Case:
    """A small evaluation of a run (`kind="run"`) or of delivered lists (`kind="delivered"`), with every oddity.

    Lists hold documents, or chunks of few documents, so that most have more than one.
    """
    outside = draw(st.sampled_from((*(None for _ in range(20)), *DOCUMENTS)))
    universe = sorted(set(DOCUMENTS) - {outside})
    principals = draw(some(PRINCIPALS, least=1))
    authorized = {principal: set(draw(some(universe))) for principal in principals}
    denied = [(p, d) for p in principals for d in universe if d not in authorized[p]]
    undecided: dict[tuple[str, str], str] = {}
    if denied and draw(st.integers(0, 4)) == 4:
        undecided[draw(st.sampled_from(denied))] = draw(st.sampled_from(("CONDITIONAL", "ERROR")))
    chunks = None
    if chunked:
        chunks = dict(zip(CHUNKS, draw(st.tuples(*(st.sampled_from(DOCUMENTS[:4]) for _ in CHUNKS))), strict=True))
    items = DOCUMENTS if chunks is None else CHUNKS
    judged = draw(some(QUERIES, least=1))
    grades = {query: draw(st.tuples(*(st.sampled_from(GRADES) for _ in DOCUMENTS))) for query in judged}
    case = Case(
        qrels={
            query: {d: grade for d, grade in zip(DOCUMENTS, own, strict=True) if grade is not None} or {"a": 0}
            for query, own in grades.items()
        },
        authorized=authorized,
        universe=set(universe),
        undecided=undecided,
        chunks=chunks,
        cut=draw(st.sampled_from(("chunk", "document"))) if chunked else "document",
        ks=draw(st.lists(st.sampled_from((2, 1, 3, 4, 7)), min_size=1, max_size=3, unique=True)),
        relevance_level=draw(st.sampled_from((1, 1, 2))),
        groups={group: draw(some(principals, least=1)) for group in draw(some(("g1", "g2")))},
    )
    if kind == "delivered":
        pairs = [pair for pair in case.pairs if draw(st.integers(0, 3))]
        extra = (principals[0], "only delivered")
        lists = {pair: draw(st.permutations(items))[: draw(LENGTHS)] for pair in (*pairs, extra)}
        return replace(case, delivered=lists)
    ranked = {query: draw(st.permutations(items))[: draw(LENGTHS)] for query in draw(some(QUERIES, least=1))}
    case = replace(
        case,
        run={query: list(own) for query, own in ranked.items()},
        ties=draw(st.sampled_from(("float64", "trec_eval"))),
        complete_ranking=draw(st.integers(0, 3)) == 3,
    )
    if draw(st.integers(0, 3)) == 3:
        return case
    return replace(case, run={q: [(item, draw(st.sampled_from(SCORES))) for item in own] for q, own in ranked.items()})


# ---- asking the library ----------------------------------------------------------------------------------------------


def ask(case: Case, *, draws: int = 0, dedupe: Literal["error", "first"] = "error") -> Result:
    """The library's evaluation of the same case."""
    return evaluate(
        run=None if case.run is None else as_given(case.run),
        delivered=None if case.delivered is None else {pair: list(items) for pair, items in case.delivered.items()},
        qrels={query: dict(grades) for query, grades in case.qrels.items()},
        snapshot=Snapshot.from_sets(case.authorized, universe=sorted(case.universe), undecided=case.undecided),
        ks=list(case.ks),
        chunks=None if case.chunks is None else dict(case.chunks),
        cut=case.cut,
        groups={group: list(members) for group, members in case.groups.items()} or None,
        relevance_level=case.relevance_level,
        complete_ranking=case.complete_ranking,
        ties=case.ties,
        dedupe=dedupe,
        draws=draws,
    )


def as_given(run: Mapping[str, Ranking]) -> dict[str, list[str]] | dict[str, dict[str, float]]:
    """Bare lists, or scores by item."""
    scores = {q: {entry[0]: entry[1] for entry in own if not isinstance(entry, str)} for q, own in run.items()}
    if any(scores.values()):
        return scores
    return {query: [entry for entry in own if isinstance(entry, str)] for query, own in run.items()}


# ---- holding one to the other ----------------------------------------------------------------------------------------


def close(ours: float | None, theirs: float | None) -> bool:
    """Equal but for the last digits of a float; undefined equals only undefined."""
    if ours is None or theirs is None:
        return ours is theirs
    return abs(ours - theirs) <= 1e-9 * max(1.0, abs(ours))


def pair_rows(result: Result, mean: str = "restricted") -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """The pair rows by measure, filter, principal and query; of measures with two means those of one."""
    rows: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for row in result.pairs().to_pylist():
        if row["mean"] in (mean, "all"):
            key = (row["measure"], row["filter"], row["principal"], row["query_id"])
            assert key not in rows, f"two pair rows for {key}"
            rows[key] = row
    return rows


def stated(bound: float | None, value: float | None) -> float | None:
    """A bound; where none is stated nothing is tied, and the value is its own bound."""
    return value if bound is None else bound


def has_bounds(case: Case, measure: str, filtering: str) -> bool:
    """Whether the orders of ties are looked at: ARecall, its gap and U, of a run."""
    return case.bounds and filtering != "delivered" and measure.startswith(("ARecall@", "U@"))


def assert_pairs_agree(result: Result, reference: Reference) -> None:
    """Every pair's state, values, parts and bounds; a row for each, and no other."""
    found = {
        (row["measure"], row["filter"], row["mean"], row["principal"], row["query_id"]): row
        for row in result.pairs().to_pylist()
    }
    assert len(found) == result.pairs().num_rows
    listed = [pair for pair, state in reference.states.items() if state != "no_list"]
    expected = {(*name, *pair) for name in reference.rows for pair in listed}
    missing = sorted(expected - set(found))
    assert not missing, f"no pair row for {missing[:5]}"
    for measure, filtering, mean, principal, query in sorted(set(found) - expected):
        told = f"{measure} {filtering} {mean} of {principal!r} {query!r}"
        assert reference.states[principal, query] == "no_list", f"unexpected pair row {told}"
        assert found[measure, filtering, mean, principal, query]["value"] is None, told
    for measure, filtering, mean in reference.rows:
        bounded = has_bounds(reference.case, measure, filtering)
        for pair in listed:
            row = found[measure, filtering, mean, *pair]
            score = reference.counted(measure, filtering, mean, pair) or UNDEFINED
            if row["state"] != reference.states[pair] or not same_score(row, score, bounded=bounded):
                told = f"library {row}, reference {reference.states[pair]} {score}"
                raise AssertionError(f"{measure} {filtering} {mean} of {pair}: {told}")


def same_score(row: dict[str, Any], score: Score, *, bounded: bool) -> bool:
    """Whether value, parts and (if asked for) bounds are the reference's."""
    parts = ("value", "numerator", "denominator")
    if not all(close(row[part], getattr(score, part)) for part in parts):
        return False
    return not bounded or (
        close(stated(row["tie_low"], row["value"]), stated(score.low, score.value))
        and close(stated(row["tie_high"], row["value"]), stated(score.high, score.value))
    )


def assert_row_agrees(found: Any, expected: Row, told: str, *, bounds: bool) -> None:
    """One aggregate: value, n, parts, state counts and (if asked for) bounds."""
    told = f"{told}: library {found}, reference {expected}"
    assert close(found.value, expected.value), told
    assert found.n == expected.n, told
    for state, count in expected.states.items():
        assert getattr(found, f"n_{state}") == count, f"n_{state} of {told}"
    if expected.n:
        assert close(found.numerator, expected.numerator), told
        assert close(found.denominator, expected.denominator), told
        if bounds:
            assert close(stated(found.tie_low, found.value), expected.low), told
            assert close(stated(found.tie_high, found.value), expected.high), told


def assert_aggregates_agree(result: Result, reference: Reference, *, queries: bool = True) -> None:
    """Every row at every level."""
    case = reference.case
    for measure, filtering, mean in reference.rows:
        name: dict[str, Any] = {"measure": measure, "filter": filtering, "mean": mean}
        bounds = has_bounds(case, measure, filtering)
        levels: list[tuple[dict[str, str], Row, list[Pair]]] = [
            ({"level": "pooled"}, reference.pooled(measure, filtering, mean), case.pairs),
            ({"level": "principals"}, reference.principals(measure, filtering, mean), case.pairs),
        ]
        for principal in case.authorized:
            own = reference.pairs_of[principal]
            level = {"level": "principal", "principal": principal}
            levels.append((level, reference.mean(measure, filtering, mean, own), own))
        for group in case.groups:
            own = [pair for pair in case.pairs if pair[0] in case.groups[group]]
            levels.append(({"level": "group", "group": group}, reference.group(measure, filtering, mean, group), own))
        for query in case.queries if queries else []:
            own = [pair for pair in case.pairs if pair[1] == query]
            levels.append(
                ({"level": "query", "query_id": query}, reference.query(measure, filtering, mean, query), own)
            )
        for level, expected, own in levels:
            found = result.row(**name, **level)
            told = f"{measure} {filtering} {mean} {level}"
            assert_row_agrees(found, expected, told, bounds=bounds)
            if measure.startswith("ARecall@") and filtering in ("post", "pre", "gap"):
                k = int(measure.partition("@")[2])
                assert found.n_pre_truncated == reference.pre_truncated(k, own), f"n_pre_truncated of {told}"


def assert_agreement(case: Case) -> None:
    """The library's whole answer is the reference's."""
    reference, result = Reference(case), ask(case)
    counts = {state: list(reference.states.values()).count(state) for state in set(reference.states.values())}
    assert {state: count for state, count in result.states.items() if count} == counts
    assert_pairs_agree(result, reference)
    assert_aggregates_agree(result, reference)
    found = sorted((leak.principal, leak.query_id, leak.document, leak.rank) for leak in result.leaks)
    assert found == sorted(reference.leaks())
