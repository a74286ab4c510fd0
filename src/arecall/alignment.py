"""Run or delivered lists, qrels and chunk map brought to one numbering of documents and queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arecall.errors import InputError, Problem
from arecall.inputs import Delivered, Qrels, Run

Rows = NDArray[np.int32]


@dataclass(frozen=True)
class Judged:
    """What qrels say of one query.

    Attributes:
        relevant: rows of R, by gain descending; shape (|R|,).
        gains: their gains, the grades; float64 (|R|,).
        ideal: all positive grades of the query, descending, whatever the relevance level: the ideal of the blind nDCG.
        graded: rows with a positive grade, ascending, as far as anything ranks them.
        grades: their grades; float64.
    """

    relevant: Rows
    gains: NDArray[np.float64]
    ideal: NDArray[np.float64]
    graded: Rows
    grades: NDArray[np.float64]

    def gains_of(self, rows: Rows) -> NDArray[np.float64]:
        """The positive grade of each of `rows`, else 0."""
        at = np.searchsorted(self.graded, rows)
        found = np.append(self.graded, -1)[at] == rows
        return np.where(found, np.append(self.grades, 0.0)[at], 0.0)


@dataclass(frozen=True)
class Ranked:
    """One ranking, as rows of documents.

    Attributes:
        slots: the row of the document in each place that the cut counts; shape (depth,). With the cut at documents a row
            is there once, with the cut at chunks as often as it has chunks there.
        scores: what was compared, for each slot; None where the order was shown and nothing is tied.
        chunks: the row of each chunk before projection; None without a chunk map.
        distinct: whether no document has more than one slot.
    """

    slots: Rows
    scores: NDArray[np.float64] | None
    chunks: Rows | None
    distinct: bool


@dataclass(frozen=True)
class Alignment:
    """The numbering: `documents` are the rows, `queries` the order of queries, `judged` what qrels say of each."""

    documents: tuple[str, ...]
    queries: tuple[str, ...]
    judged: tuple[Judged, ...]
    row_of_item: Rows
    """The row of the document of each item of the run or the lists; shape (len(item_ids),)."""


def align(ranked: Run | Delivered, qrels: Qrels, chunks: Mapping[str, str] | None, relevance_level: int) -> Alignment:
    """Number all documents that are ranked or relevant, and all queries that are ranked or judged.

    Raises:
        InputError: `chunks` is given and an item of the run or the lists is not in it.
    """
    document_of = project(ranked.item_ids, chunks, ranked.source.name)
    relevant = {qrels.item_ids[code] for code in np.unique(qrels.items[qrels.grades >= relevance_level]).tolist()}
    documents = tuple(sorted(relevant.union(document_of)))
    row = {document: number for number, document in enumerate(documents)}
    judged_at = {query: number for number, query in enumerate(qrels.query_ids)}
    queries = tuple(sorted(judged_at.keys() | set(ranked.query_ids)))
    judged = []
    for query in queries:
        grades: dict[str, int] = {}
        if query in judged_at:
            span = slice(*qrels.offsets[judged_at[query] : judged_at[query] + 2].tolist())
            names = [qrels.item_ids[item] for item in qrels.items[span].tolist()]
            grades = dict(zip(names, qrels.grades[span].tolist(), strict=True))
        judged.append(_judged(grades, row, relevance_level))
    return Alignment(documents, queries, tuple(judged), np.array([row[d] for d in document_of], np.int32))


def project(items: Sequence[str], chunks: Mapping[str, str] | None, where: str) -> list[str]:
    """The document of each item; without a chunk map the items are documents themselves.

    Raises:
        InputError: an item is not in `chunks`; every such chunk is named, with `where` it came from.
    """
    if chunks is None:
        return list(items)
    orphans = [item for item in items if item not in chunks]
    if orphans:
        raise InputError(
            Problem(where, f"the chunk {orphan!r} belongs to no document of the chunk map") for orphan in orphans
        )
    return [chunks[item] for item in items]


def _judged(grades: Mapping[str, int], row: Mapping[str, int], relevance_level: int) -> Judged:
    relevant = sorted(((grade, row[d]) for d, grade in grades.items() if grade >= relevance_level), reverse=True)
    graded = sorted((row[d], grade) for d, grade in grades.items() if grade > 0 and d in row)
    return Judged(
        relevant=np.array([r for _, r in relevant], np.int32),
        gains=np.array([grade for grade, _ in relevant], np.float64),
        ideal=np.array(sorted((grade for grade in grades.values() if grade > 0), reverse=True), np.float64),
        graded=np.array([r for r, _ in graded], np.int32),
        grades=np.array([grade for _, grade in graded], np.float64),
    )


def rankings(run: Run, alignment: Alignment, *, chunked: bool, cut: str) -> list[Ranked | None]:
    """The ranking of each query of `alignment`, None where the run has none (a query without a line)."""
    at = {query: number for number, query in enumerate(run.query_ids)}
    ranked: list[Ranked | None] = []
    for query in alignment.queries:
        number = at.get(query)
        if number is None:
            ranked.append(None)
            continue
        span = slice(int(run.offsets[number]), int(run.offsets[number + 1]))
        rows = alignment.row_of_item[run.items[span]]
        scores = None if run.scores is None else run.scores[span]
        chunks = rows if chunked else None
        if chunked and cut == "document":
            first = first_places(rows)
            rows, scores = rows[first], None if scores is None else scores[first]
        ranked.append(Ranked(rows, scores, chunks, distinct=cut == "document" or not chunked))
    return ranked


def first_places(rows: Rows) -> NDArray[np.int64]:
    """The places, ascending, at which a row is met for the first time (a document at its best chunk)."""
    _, first = np.unique(rows, return_index=True)
    first.sort()
    return first
