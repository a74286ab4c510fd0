"""Qrels: which documents are relevant to a query, by graded judgements."""

from __future__ import annotations

import os
import re
from array import array
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from arecall.errors import SHOWN, InputError
from arecall.inputs.coding import Coded, frozen, int32, offsets_of, repeats
from arecall.inputs.frames import Frame
from arecall.inputs.lines import PYTHON, File, Source, python_source, read_file
from arecall.inputs.pairs import Pairs, numbered_pairs, pairs_in_frame
from arecall.inputs.problems import Problems

_BEIR_HEADER = b"query-id\tcorpus-id\tscore"
_GRADE = re.compile(rb"[+-]?[0-9]{1,18}")
_GRADE_COLUMNS = ("relevance", "score", "label", "grade")
_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Qrels:
    """Graded judgements. Query i holds the rows `offsets[i]:offsets[i + 1]`; arrays are read-only.

    - `query_ids`, `item_ids`: the Q queries and the distinct documents, each sorted by bytes;
    - `offsets`: (Q + 1,); `items`: (N,) codes into `item_ids`, ascending within each query; `grades`: (N,), as given;
    - `warnings`: what was tolerated (judgements given twice, identically), for a user to read.
    """

    query_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    grades: NDArray[np.int32]
    source: Source
    warnings: tuple[str, ...]


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read qrels, plain or gzip.

    TREC with four columns split on ASCII blanks; BEIR (first line `query-id<TAB>corpus-id<TAB>score`), split on tabs
    alone; or Parquet with the query and document columns of `read_run` and an integer `relevance`, `score`, `label` or
    `grade`. A judgement that is repeated identically counts once and leaves a warning.

    Raises `InputError` naming file and line for anything else: a grade that is no integer (of 32 bits), or two grades
    for one pair.
    """
    file = read_file(path)
    if file.is_parquet:
        return _judged(*_in_frame(Frame.parquet(file)), file.source)
    return _judged(*_in_text(file), file.source)


def qrels_from(obj: object) -> Qrels:
    """Read qrels from a Python object.

    Takes `{query: {document: grade}}`, a `ranx.Qrels`, an iterable of records with `query_id`, `doc_id` and `relevance`
    (such as `ir_measures.Qrel`), or anything that exports an Arrow stream, with the columns that `read_qrels` takes.
    Errors are those of `read_qrels`; `UsageError` for another object. A bool is no grade.
    """
    if hasattr(obj, "__arrow_c_stream__"):
        return _judged(*_in_frame(Frame.arrow(obj)), None)
    to_dict = getattr(obj, "to_dict", None)
    if hasattr(obj, "qrels") and callable(to_dict):  # a ranx.Qrels
        obj = to_dict()
    problems = Problems()
    found = numbered_pairs(obj, "relevance", _integer, problems)
    problems.check()
    return _judged(found.pairs, np.array(found.numbers, dtype=np.int32), None)


def _in_text(file: File) -> tuple[Pairs, NDArray[np.int32]]:
    problems = Problems()
    query_codes: dict[bytes, int] = {}
    item_codes: dict[bytes, int] = {}
    queries, items, grades = array("i"), array("i"), array("i")
    beir = False
    for row, line in enumerate(file.lines()):
        if row == 0 and line == _BEIR_HEADER:
            beir = True
            continue
        columns = line.split(b"\t") if beir else line.split()  # bytes: str.split() would also split on NBSP
        if len(columns) != (3 if beir else 4):
            expected = "3 (split on tabs)" if beir else "4 (query 0 document grade)"
            problems.add(file.line(row), f"has {len(columns)} columns, not {expected}")
            continue
        query, item, token = columns[0], columns[-2], columns[-1]
        if not query or not item:
            problems.add(file.line(row), "an id must not be empty")
            continue
        try:
            grades.append(_grade(token))
        except ValueError as error:
            problems.add(file.line(row), str(error))
            continue
        queries.append(query_codes.setdefault(query, len(query_codes)))
        items.append(item_codes.setdefault(item, len(item_codes)))
    problems.check()
    pairs = Pairs(
        Coded([query.decode() for query in query_codes], int32(queries)),
        Coded([item.decode() for item in item_codes], int32(items)),
        lambda row: file.line(row + beir),
    )
    return pairs, int32(grades)


def _grade(token: bytes) -> int:
    if not _GRADE.fullmatch(token):  # int() also takes 1_0
        raise ValueError(f"the grade {token.decode()!r} is not an integer")
    return _in_range(int(token))


def _integer(value: object) -> int:
    if not isinstance(value, bool) and isinstance(value, Integral):
        return _in_range(int(value))
    raise ValueError(f"the grade {value!r} is not an integer")


def _in_range(grade: int) -> int:
    if not _INT32.min <= grade <= _INT32.max:
        raise ValueError(f"the grade {grade} does not fit 32 bits")
    return grade


def _in_frame(frame: Frame) -> tuple[Pairs, NDArray[np.int32]]:
    problems = Problems()
    pairs = pairs_in_frame(frame, problems)
    grades = frame.integers(frame.need(*_GRADE_COLUMNS), problems)
    problems.add_rows(
        np.flatnonzero((grades < _INT32.min) | (grades > _INT32.max)),
        frame.where,
        lambda row: f"the grade {grades[row]} does not fit 32 bits",
    )
    problems.check()
    return pairs, grades.astype(np.int32)


def _judged(pairs: Pairs, grades: NDArray[np.int32], source: Source | None) -> Qrels:
    if not pairs.queries.ids:
        raise InputError.single(source.name if source else PYTHON, "is empty: it has no judgements")
    pairs = pairs.sorted()
    queries, items = pairs.queries.codes, pairs.items.codes
    later, first = repeats(queries, items)
    _refuse_two_grades(pairs, grades, later, first)
    warnings = [
        f"{pairs.where(row)}: repeats the judgement of {pairs.items[row]!r} for query {pairs.queries[row]!r} at "
        f"{pairs.where(before)}; counted once"
        for row, before in zip(later[:SHOWN].tolist(), first[:SHOWN].tolist(), strict=True)
    ]
    if len(later) > SHOWN:
        warnings.append(f"... and {len(later) - SHOWN} more repeated judgements")

    order = np.lexsort((items, queries))
    order = order[~np.isin(order, later)]
    query_ids, item_ids = tuple(pairs.queries.ids), tuple(pairs.items.ids)
    offsets = frozen(offsets_of(queries[order], len(query_ids)))
    items, grades = frozen(items[order]), frozen(grades[order])
    if source is None:
        source = python_source("qrels", query_ids, item_ids, offsets, items, grades)
    return Qrels(query_ids, item_ids, offsets, items, grades, source, tuple(warnings))


def _refuse_two_grades(
    pairs: Pairs, grades: NDArray[np.int32], later: NDArray[np.intp], first: NDArray[np.intp]
) -> None:
    differ = grades[later] != grades[first]
    earlier = dict(zip(later[differ].tolist(), first[differ].tolist(), strict=True))

    def what(row: int) -> str:
        before = earlier[row]
        return (
            f"query {pairs.queries[row]!r} grades {pairs.items[row]!r} {grades[row]}, but {grades[before]} at "
            f"{pairs.where(before)}"
        )

    problems = Problems()
    problems.add_rows(later[differ], pairs.where, what)
    problems.check()
