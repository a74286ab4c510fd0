"""Runs: one ranking a query, made before anyone's rights are looked at."""

from __future__ import annotations

import io
import math
import os
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from arecall.errors import InputError, UsageError
from arecall.inputs.coding import Coded, Coder, frozen, int32, offsets_of, repeats
from arecall.inputs.frames import Frame
from arecall.inputs.lines import PYTHON, File, Source, python_entry, python_source, read_file
from arecall.inputs.pairs import Pairs, numbered_pairs, pairs_in_frame
from arecall.inputs.problems import Problems, check_option

Order = Literal["score", "rank"]
Ties = Literal["float64", "trec_eval"]
Dedupe = Literal["error", "first"]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One ranking a query, best first. Query i holds the rows `offsets[i]:offsets[i + 1]`; arrays are read-only.

    - `query_ids`, `item_ids`: the Q queries and the distinct documents or chunks, each sorted by bytes;
    - `offsets`: (Q + 1,); `items`: (N,) codes into `item_ids`, in ranking order within each query;
    - `scores`: (N,) the values that were compared, or None where the order itself was given (then nothing is tied);
    - `order`: `"score"` or `"rank"`; `ties`: `"float64"`, or `"trec_eval"` where scores were compared as float32.
    """

    query_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    scores: NDArray[np.float64] | None
    order: str
    ties: str
    source: Source


def read_run(
    path: str | os.PathLike[str],
    *,
    order: Order | None = None,
    ties: Ties = "float64",
    dedupe: Dedupe = "error",
) -> Run:
    """Read a run: TREC with six columns split on ASCII blanks, plain or gzip, or Parquet.

    By default a ranking is by score, descending, and tied scores by document id in bytes, descending; a rank column
    that contradicts the scores is refused. `order="score"` ignores ranks; `order="rank"` goes by them alone, ascending.
    `ties="trec_eval"` compares scores as float32, as trec_eval does. `dedupe="first"` keeps a document that a ranking
    holds twice at its best place. Parquet columns: `query_id`, `qid` or `query-id`; `doc_id`, `docno`, `document`,
    `corpus-id`, `item` or `chunk`; `score`; optionally `rank`; others are ignored.

    Raises `InputError` naming file and line for anything else: another number of columns, a score that is not a finite
    decimal number, a document twice in a ranking, equal ranks under `order="rank"`.
    """
    _check_options(order, ties, dedupe)
    file = read_file(path)
    rows = _in_frame(Frame.parquet(file), order) if file.is_parquet else _in_trec(file, order)
    return _ranked(rows, order, ties, dedupe, file.source)


def run_from(
    obj: object,
    *,
    order: Order | None = None,
    ties: Ties = "float64",
    dedupe: Dedupe = "error",
) -> Run:
    """Read a run from a Python object; options and errors are those of `read_run`.

    Takes `{query: {document: score}}`, `{query: [document, ...]}` (shown in this order, so nothing is tied), a
    `ranx.Run`, an iterable of records with `query_id`, `doc_id` and `score` (such as `ir_measures.ScoredDoc`), or
    anything that exports an Arrow stream, with the columns that `read_run` takes from Parquet. A query with an empty
    ranking is kept. Raises `UsageError` for another object, or for an `order` that it cannot have.
    """
    _check_options(order, ties, dedupe)
    if hasattr(obj, "__arrow_c_stream__"):
        return _ranked(_in_frame(Frame.arrow(obj), order), order, ties, dedupe, None)
    to_dict = getattr(obj, "to_dict", None)
    if hasattr(obj, "run") and callable(to_dict):  # a ranx.Run
        obj = to_dict()
    if isinstance(obj, Mapping) and any(is_list(ranking) for ranking in obj.values()):
        if order == "score":
            raise UsageError("order='score' needs scores; bare lists are taken in the order shown")
        return _ranked(_in_lists(obj), "rank", ties, dedupe, None)
    return _ranked(_in_scores(obj), order, ties, dedupe, None)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Lines of a run as they came. Ranks are None where there are none, or where they are to be ignored."""

    pairs: Pairs
    scores: NDArray[np.float64] | None
    ranks: NDArray[np.int64] | None


def _check_options(order: object, ties: object, dedupe: object) -> None:
    check_option("order", order, (None, "score", "rank"))
    check_option("ties", ties, ("float64", "trec_eval"))
    check_option("dedupe", dedupe, ("error", "first"))


def _in_trec(file: File, order: Order | None) -> _Rows:
    problems = Problems()
    query_codes: dict[bytes, int] = {}
    item_codes: dict[bytes, int] = {}
    queries, items, scores, ranks = array("i"), array("i"), array("d"), array("q")
    for row, line in enumerate(io.BytesIO(file.text())):
        columns = line.split()  # bytes are split on ASCII blanks alone; str would also split on NBSP, within an id
        if len(columns) != 6:
            problems.add(file.line(row), f"has {len(columns)} columns, not 6 (query Q0 document rank score tag)")
            continue
        query, _, item, rank, score, _ = columns
        try:
            scores.append(_score(score))
            if order != "score":
                ranks.append(_rank(rank))
        except ValueError as error:
            problems.add(file.line(row), str(error))
            continue
        queries.append(query_codes.setdefault(query, len(query_codes)))
        items.append(item_codes.setdefault(item, len(item_codes)))
    problems.check()
    pairs = Pairs(
        Coded([query.decode() for query in query_codes], int32(queries)),
        Coded([item.decode() for item in item_codes], int32(items)),
        file.line,
    )
    return _Rows(pairs, np.array(scores), None if order == "score" else np.array(ranks, dtype=np.int64))


def _score(token: bytes) -> float:
    try:
        score = float(token)
    except ValueError:
        score = math.nan
    if not math.isfinite(score) or b"_" in token:  # float() takes 1_0 too
        raise ValueError(f"the score {token.decode()!r} is not a finite decimal number")
    return score


def _rank(token: bytes) -> int:
    if not token.isdigit() or len(token) > 18:  # int() also takes 1_0; 18 digits fit an int64
        raise ValueError(f"the rank {token.decode()!r} is not a whole number (order 'score' ignores ranks)")
    return int(token)


def _in_frame(frame: Frame, order: Order | None) -> _Rows:
    if frame.find("principal"):
        raise InputError.single(
            frame.name, "has a column 'principal': these are delivered lists, one a query and principal, not a run"
        )
    if not len(frame):
        raise InputError.single(frame.name, "is empty: it has no rows")
    problems = Problems()
    pairs = pairs_in_frame(frame, problems)
    scores = ranks = None
    if order != "rank" or frame.find("score"):
        scores = frame.floats(frame.need("score"), problems)
    if order == "rank" or (order is None and frame.find("rank")):
        ranks = frame.integers(frame.need("rank"), problems)
    problems.check()
    return _Rows(pairs, scores, ranks)


def is_list(ranking: object) -> TypeGuard[Sequence[object]]:
    """Whether an object holds elements in an order that was meant: a set does not, and a string is one id."""
    return isinstance(ranking, Sequence | np.ndarray) and not isinstance(ranking, str | bytes)


def _in_lists(rankings: Mapping[object, object]) -> _Rows:
    queries, items = Coder(), Coder()
    problems = Problems()
    row = 0
    for query, ranking in rankings.items():
        if not is_list(ranking):
            raise UsageError(f"expected a list of documents for the query {query!r}, not {ranking!r:.80}")
        try:
            query_code = queries.code(query)
        except ValueError as error:
            problems.add(PYTHON, f"query: {error}")
            continue
        for item in ranking:
            try:
                items.append(items.code(item))
                queries.append(query_code)
            except ValueError as error:
                problems.add(python_entry(row), f"query {query!r}: {error}")
            row += 1
    problems.check()
    return _Rows(Pairs(queries.coded(), items.coded(), python_entry), None, np.arange(row))


def _in_scores(obj: object) -> _Rows:
    problems = Problems()
    found = numbered_pairs(obj, "score", _finite, problems)
    problems.check()
    return _Rows(found.pairs, np.array(found.numbers, dtype=np.float64), None)


def _finite(value: object) -> float:
    if not isinstance(value, bool) and isinstance(value, Real):
        try:
            score = float(value)
        except OverflowError:
            score = math.inf
        if math.isfinite(score):
            return score
    raise ValueError(f"the score {value!r} is not a finite number")


def _ranked(rows: _Rows, order: Order | None, ties: Ties, dedupe: Dedupe, source: Source | None) -> Run:
    pairs = rows.pairs.sorted()
    if not pairs.queries.ids:
        raise InputError.single(source.name if source else PYTHON, "is empty: it has no queries")
    queries, items = pairs.queries.codes, pairs.items.codes
    scores, ranks = rows.scores, rows.ranks
    if scores is not None and order != "rank":
        scores, ranked_by = _compared(scores, ties, pairs.where), "score"
        if ranks is not None:
            _refuse_contradictions(pairs, ranks, scores)
        ranking = np.lexsort((-items, -scores, queries))
    elif ranks is not None:
        scores, ranked_by = None, "rank"
        ranking = np.lexsort((ranks, queries))
    else:
        raise UsageError("order='rank' needs ranks; this object has only scores")

    later, first = repeats(queries[ranking], items[ranking])
    if len(later) and dedupe == "error":
        _refuse_repeats(pairs, ranking, later, first)
    ranking = np.delete(ranking, later)
    if ranks is not None and ranked_by == "rank":
        _refuse_equal_ranks(pairs, ranks, ranking)

    query_ids, item_ids = tuple(pairs.queries.ids), tuple(pairs.items.ids)
    offsets = frozen(offsets_of(queries[ranking], len(query_ids)))
    items = frozen(items[ranking])
    scores = None if scores is None else frozen(scores[ranking])
    if source is None:
        values = ranking[:0] if scores is None else scores
        source = python_source("run", [ranked_by], query_ids, item_ids, offsets, items, values)
    return Run(query_ids, item_ids, offsets, items, scores, ranked_by, ties, source)


def _compared(scores: NDArray[np.float64], ties: Ties, where: Callable[[int], str]) -> NDArray[np.float64]:
    if ties == "float64":
        return scores
    with np.errstate(over="ignore"):
        rounded = scores.astype(np.float32).astype(np.float64)
    problems = Problems()
    problems.add_rows(
        np.flatnonzero(np.isinf(rounded)),
        where,
        lambda row: f"the score {scores[row]} is too large for the float32 of ties='trec_eval'",
    )
    problems.check()
    return rounded


def _refuse_contradictions(pairs: Pairs, ranks: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
    # With the higher score first among equal ranks, these never rise. The last of one rank has its lowest score and the
    # first of the next rank its highest, so it is enough to compare neighbours.
    queries = pairs.queries.codes
    shown = np.lexsort((-scores, ranks, queries))
    above, below = shown[:-1], shown[1:]
    wrong = (queries[above] == queries[below]) & (scores[above] < scores[below])
    upper = dict(zip(below[wrong].tolist(), above[wrong].tolist(), strict=True))

    def what(row: int) -> str:
        other = upper[row]
        return (
            f"the rank contradicts the score: query {pairs.queries[row]!r} has {pairs.items[other]!r} at rank "
            f"{ranks[other]} with {scores[other]} ({pairs.where(other)}), and {pairs.items[row]!r} at rank "
            f"{ranks[row]} with {scores[row]}; choose order 'score' or 'rank'"
        )

    problems = Problems()
    problems.add_rows(np.sort(below[wrong]), pairs.where, what)
    problems.check()


def _refuse_repeats(pairs: Pairs, ranking: NDArray[np.intp], later: NDArray[np.intp], first: NDArray[np.intp]) -> None:
    starts = offsets_of(pairs.queries.codes, len(pairs.queries.ids))
    place_of_first = dict(zip(later.tolist(), first.tolist(), strict=True))

    def what(place: int) -> str:
        row = int(ranking[place])
        before, start = place_of_first[place], int(starts[pairs.queries.codes[row]])
        return (
            f"query {pairs.queries[row]!r} ranks {pairs.items[row]!r} twice, at ranks {before - start + 1} "
            f"({pairs.where(int(ranking[before]))}) and {place - start + 1}; dedupe 'first' keeps the better place"
        )

    problems = Problems()
    problems.add_rows(later, lambda place: pairs.where(int(ranking[place])), what)
    problems.check()


def _refuse_equal_ranks(pairs: Pairs, ranks: NDArray[np.int64], ranking: NDArray[np.intp]) -> None:
    queries = pairs.queries.codes
    above, below = ranking[:-1], ranking[1:]
    equal = np.flatnonzero((queries[above] == queries[below]) & (ranks[above] == ranks[below]))

    def what(place: int) -> str:
        row, other = int(below[place]), int(above[place])
        return (
            f"query {pairs.queries[row]!r} has {pairs.items[other]!r} ({pairs.where(other)}) and "
            f"{pairs.items[row]!r} both at rank {ranks[row]}"
        )

    problems = Problems()
    problems.add_rows(equal, lambda place: pairs.where(int(below[place])), what)
    problems.check()
