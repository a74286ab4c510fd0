"""Delivered lists: what a principal really got, one list a query and principal, in the order shown."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from arecall.errors import InputError, UsageError
from arecall.inputs.coding import Coded, Coder, frozen, offsets_of, repeats
from arecall.inputs.frames import Frame
from arecall.inputs.jsonl import checked_id, checked_ids, objects
from arecall.inputs.lines import (
    PYTHON,
    File,
    Source,
    canonical_digest,
    python_entry,
    python_source,
    read_file,
)
from arecall.inputs.problems import Problems, check_option
from arecall.inputs.runs import Dedupe, Run, is_list, read_run

Unit = Literal["document", "chunk"]

MANIFEST = "manifest.json"
"""The file that makes a folder of runs one set of delivered lists."""


@dataclass(frozen=True, slots=True, eq=False)
class Delivered:
    """One list a query and principal, best first. List i holds the rows `offsets[i]:offsets[i + 1]`.

    - `principal_ids`, `query_ids`, `item_ids`: each distinct and sorted by bytes;
    - `list_principal`, `list_query`: (L,) codes of each list; lists are sorted by (query, principal);
    - `offsets`: (L + 1,); `items`: (N,) codes into `item_ids`, in the order shown; arrays are read-only;
    - `unit`: whether items are `"document"`s or `"chunk"`s.

    A list may be empty: the query was asked, and nothing came back.
    """

    principal_ids: tuple[str, ...]
    query_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    list_principal: NDArray[np.int32]
    list_query: NDArray[np.int32]
    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    unit: str
    source: Source


def read_delivered(path: str | os.PathLike[str], *, dedupe: Dedupe = "error") -> Delivered:
    """Read delivered lists from JSON Lines, Parquet (told by content; plain or gzip) or a folder with a manifest.

    - JSON Lines: `{"principal": ..., "query_id": ..., "documents": [...]}` or `"chunks"` throughout; `"meta"` is
      ignored.
    - Parquet: `principal`, `query_id`, and a column of lists `documents` or `chunks`; or one row an item, `document` or
      `chunk`, by `rank` where there is one and else in order of rows. One row with a null item is an empty list.
    - A folder: `manifest.json` is `{"schema": "arecall/delivered/1", "unit": "document", "lists": [{"principal": ...,
      "run": ..., "queries": [...]}]}`. Each run lies in the folder and is taken by its ranks; a query without a line in
      it is an empty list. Where no query brought anything, `"run"` is null. The source's digest covers all files.

    Raises `InputError` naming file and line: a pair with two lists, an item twice in one list (`dedupe="first"` keeps
    the better place), an unknown key or column, an id that is no string, a run outside the folder.
    """
    check_option("dedupe", dedupe, ("error", "first"))
    if Path(path).is_dir():
        lists, source = _in_folder(Path(path), dedupe)
        return _delivered(lists, dedupe, source)
    file = read_file(path)
    lists = _in_frame(Frame.parquet(file)) if file.is_parquet else _in_jsonl(file)
    return _delivered(lists, dedupe, file.source)


def delivered_from(obj: object, *, unit: Unit | None = None, dedupe: Dedupe = "error") -> Delivered:
    """Read delivered lists from a Python object.

    Takes `{(principal, query): [document, ...]}`, an iterable of `(principal, query, [document, ...])`, or anything
    that exports an Arrow stream with the columns that `read_delivered` takes from Parquet. `unit` says what the items
    are (documents unless a column says otherwise). Errors are those of `read_delivered`; `UsageError` for another
    object, or a `unit` that the columns contradict.
    """
    check_option("dedupe", dedupe, ("error", "first"))
    check_option("unit", unit, (None, "document", "chunk"))
    if hasattr(obj, "__arrow_c_stream__"):
        lists = _in_frame(Frame.arrow(obj))
        if unit not in (None, lists.unit):
            raise UsageError(f"unit is {unit!r}, but the columns hold a {lists.unit} each")
        return _delivered(lists, dedupe, None)
    return _delivered(_in_python(obj, unit or "document"), dedupe, None)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists as they came: the principal, query and length of each, the items of all, and what names a list."""

    principals: Coded
    queries: Coded
    lengths: NDArray[np.int64]
    items: Coded
    unit: str
    where: Callable[[int], str]


class _Collector:
    """Collects lists one by one."""

    def __init__(self) -> None:
        self._principals, self._queries, self._items = Coder(), Coder(), Coder()
        self._lengths = array("q")
        self._where: list[str] = []

    def add(self, principal: object, query: object, items: Iterable[object], where: str) -> None:
        """Add a list; `ValueError` says which value is no id."""
        principal_code, query_code = self._principals.code(principal), self._queries.code(query)
        codes = [self._items.code(item) for item in items]
        self._principals.append(principal_code)
        self._queries.append(query_code)
        for code in codes:
            self._items.append(code)
        self._lengths.append(len(codes))
        self._where.append(where)

    def lists(self, unit: str) -> _Lists:
        """Return the lists collected so far."""
        return _Lists(
            self._principals.coded(),
            self._queries.coded(),
            np.array(self._lengths, dtype=np.int64),
            self._items.coded(),
            unit,
            self._where.__getitem__,
        )


_UNITS = {"documents": "document", "chunks": "chunk"}


def _in_jsonl(file: File) -> _Lists:
    if not file.text().lstrip().startswith(b"{"):
        raise InputError.single(
            file.source.name,
            "is neither JSON Lines nor Parquet; a run has no principal: put runs into a folder with a manifest.json",
        )
    problems = Problems()
    collector = _Collector()
    first_key = None
    for row, found in objects(file, ("principal", "query_id", *_UNITS, "meta"), problems):
        keys = [key for key in _UNITS if key in found]
        first_key = first_key or next(iter(keys), None)
        if len(keys) != 1:
            problems.add(file.line(row), "must have one of the keys 'documents' and 'chunks'")
        elif keys[0] != first_key:
            problems.add(file.line(row), f"has {keys[0]!r}, but lines before it have {first_key!r}")
        else:
            try:
                principal, query = checked_id(found, "principal"), checked_id(found, "query_id")
                collector.add(principal, query, checked_ids(found, keys[0]), file.line(row))
            except ValueError as error:
                problems.add(file.line(row), str(error))
    problems.check()
    return collector.lists(_UNITS[first_key or "documents"])


def _in_python(obj: object, unit: Unit) -> _Lists:
    problems = Problems()
    collector = _Collector()
    for row, (principal, query, items) in enumerate(_triples(obj)):
        if not is_list(items):
            raise UsageError(f"expected a list of {unit}s for {principal!r} and {query!r}, not {items!r:.80}")
        try:
            collector.add(principal, query, items, python_entry(row))
        except ValueError as error:
            problems.add(python_entry(row), f"principal {principal!r}, query {query!r}: {error}")
    problems.check()
    return collector.lists(unit)


def _triples(obj: object) -> Iterator[tuple[object, object, object]]:
    if isinstance(obj, Mapping):
        for pair, items in obj.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise UsageError(f"expected keys (principal, query), not {pair!r:.80}")
            yield pair[0], pair[1], items
    elif isinstance(obj, Iterable) and not isinstance(obj, str | bytes):
        for entry in obj:
            if not isinstance(entry, tuple | list) or len(entry) != 3:
                raise UsageError(f"expected (principal, query, [document, ...]), not {entry!r:.80}")
            yield entry[0], entry[1], entry[2]
    else:
        raise UsageError(f"expected {{(principal, query): [document, ...]}}, not {type(obj).__name__}")


def _in_frame(frame: Frame) -> _Lists:
    if not len(frame):
        raise InputError.single(frame.name, "is empty: it has no rows")
    frame.refuse_others(("principal", "query_id", *_UNITS, *_UNITS.values(), "rank", "meta"))
    column = frame.need(*_UNITS, *_UNITS.values())
    problems = Problems()
    principals = frame.ids(frame.need("principal"), problems)
    queries = frame.ids(frame.need("query_id"), problems)
    if column not in _UNITS:
        return _in_long_frame(frame, column, principals, queries, problems)
    if frame.find("rank"):
        raise InputError.single(frame.name, f"has a column 'rank' beside the lists in {column!r}")
    lengths, items = frame.id_lists(column, problems)
    problems.check()
    return _Lists(principals, queries, lengths, items, _UNITS[column], frame.where)


def _in_long_frame(frame: Frame, column: str, principals: Coded, queries: Coded, problems: Problems) -> _Lists:
    """Group rows of one item each into lists."""
    items = frame.ids_or_null(column, problems)
    present = items.codes >= 0
    ranks = np.arange(len(frame))
    if frame.find("rank"):
        ranks, unranked = frame.integers_or_null("rank")
        problems.add_rows(np.flatnonzero(unranked & present), frame.where, lambda _: "'rank' is null")
    problems.check()

    rows = np.lexsort((ranks, principals.codes, queries.codes))
    above, below = rows[:-1], rows[1:]
    joined = (principals.codes[above] == principals.codes[below]) & (queries.codes[above] == queries.codes[below])
    with_others = np.concatenate([[False], joined]) | np.concatenate([joined, [False]])
    tied = joined & (ranks[above] == ranks[below]) & (items.codes[above] != items.codes[below])
    problems.add_rows(
        np.sort(rows[with_others & ~present[rows]]),
        frame.where,
        lambda row: (
            f"principal {principals[row]!r}, query {queries[row]!r}: {column!r} is null, which is an empty list, but "
            "the list has other rows"
        ),
    )
    problems.add_rows(
        np.sort(below[tied & present[above] & present[below]]),
        frame.where,
        lambda row: f"principal {principals[row]!r}, query {queries[row]!r}: rank {ranks[row]} is there twice",
    )
    problems.check()

    starts = np.flatnonzero(np.concatenate([[True], ~joined]))
    heads = rows[starts]
    return _Lists(
        Coded(principals.ids, principals.codes[heads]),
        Coded(queries.ids, queries.codes[heads]),
        np.add.reduceat(present[rows], starts, dtype=np.int64),
        Coded(items.ids, items.codes[rows][present[rows]]),
        column,
        lambda index: frame.where(int(heads[index])),
    )


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    principal: str
    run: str | None
    queries: list[str]


class _Manifest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    schema: Literal["arecall/delivered/1"]
    unit: Unit = "document"
    lists: list[_Entry]


def _in_folder(folder: Path, dedupe: Dedupe) -> tuple[_Lists, Source]:
    file = read_file(folder / MANIFEST)
    name = file.source.name
    try:
        manifest = msgspec.json.decode(file.text(), type=_Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        hint = "; ids are strings: quote numbers" if "Expected `str`" in str(error) else ""
        raise InputError.single(name, f"is no manifest of delivered lists: {error}{hint}") from error
    problems = Problems()
    collector = _Collector()
    digests = [file.source.digest]
    for number, entry in enumerate(manifest.lists):
        where = f"{name}, lists[{number}]"
        rankings: dict[str, list[str]] = {}
        try:
            if entry.run is not None:
                run = read_run(_confined(folder, entry.run, where), order="rank", dedupe=dedupe)
                digests.append(run.source.digest)
                rankings = _rankings(run)
            for query in entry.queries:
                collector.add(entry.principal, query, rankings.get(query, ()), where)
        except InputError as error:
            problems.add_error(error, f"principal {entry.principal!r}")
        except ValueError as error:
            problems.add(where, str(error))
        for query in rankings.keys() - set(entry.queries):
            problems.add(
                where, f"principal {entry.principal!r}: {entry.run!r} ranks query {query!r}, which is not asked"
            )
    problems.check()
    digest = canonical_digest("delivered folder", digests)
    return collector.lists(manifest.unit), Source(os.fspath(folder), digest)


def _confined(folder: Path, run: str, where: str) -> Path:
    """Return the path of a run in the folder; `InputError` if it leads out of it, by name or by a link."""
    path = folder / run
    try:
        # Strict where there is anything: Python 3.13 resolves a loop of links without a word otherwise.
        resolved = path.resolve(strict=os.path.lexists(path))
        inside = ".." not in path.relative_to(folder).parts and resolved.is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL, an absolute path
        inside = False
    if not inside:
        raise InputError.single(where, f"the run {run!r} is not in the folder of the manifest")
    return path


def _rankings(run: Run) -> dict[str, list[str]]:
    return {
        query: [run.item_ids[code] for code in run.items[run.offsets[i] : run.offsets[i + 1]]]
        for i, query in enumerate(run.query_ids)
    }


def _delivered(lists: _Lists, dedupe: Dedupe, source: Source | None) -> Delivered:
    count = len(lists.lengths)
    if not count:
        raise InputError.single(source.name if source else PYTHON, "is empty: it has no lists")
    lists, list_of_row = _in_order(lists)
    _refuse_two_lists(lists)
    later, first = repeats(list_of_row, lists.items.codes)
    if dedupe == "error":
        _refuse_repeats(lists, list_of_row, later, first)

    ids = tuple(lists.principals.ids), tuple(lists.queries.ids), tuple(lists.items.ids)
    arrays = (
        frozen(lists.principals.codes),
        frozen(lists.queries.codes),
        frozen(offsets_of(np.delete(list_of_row, later), count)),
        frozen(np.delete(lists.items.codes, later)),
    )
    return Delivered(*ids, *arrays, lists.unit, source or python_source("delivered", [lists.unit], *ids, *arrays))


def _in_order(lists: _Lists) -> tuple[_Lists, NDArray[np.int32]]:
    """Return the lists with ids in order of code points and sorted by (query, principal), and the list of each row."""
    principals, queries, items = lists.principals.sorted(), lists.queries.sorted(), lists.items.sorted()
    order = np.lexsort((principals.codes, queries.codes))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    list_of_row = np.repeat(place, lists.lengths)
    rows = np.argsort(list_of_row, kind="stable")
    in_order = _Lists(
        Coded(principals.ids, principals.codes[order]),
        Coded(queries.ids, queries.codes[order]),
        lists.lengths[order],
        Coded(items.ids, items.codes[rows]),
        lists.unit,
        lambda index: lists.where(int(order[index])),
    )
    return in_order, list_of_row[rows]


def _refuse_two_lists(lists: _Lists) -> None:
    principals, queries = lists.principals.codes, lists.queries.codes
    again = 1 + np.flatnonzero((principals[1:] == principals[:-1]) & (queries[1:] == queries[:-1]))
    problems = Problems()
    problems.add_rows(
        again,
        lists.where,
        lambda index: (
            f"principal {lists.principals[index]!r}, query {lists.queries[index]!r}: has a list already, at "
            f"{lists.where(index - 1)}"
        ),
    )
    problems.check()


def _refuse_repeats(
    lists: _Lists, list_of_row: NDArray[np.int32], later: NDArray[np.intp], first: NDArray[np.intp]
) -> None:
    starts = np.cumsum(lists.lengths) - lists.lengths
    first_row = dict(zip(later.tolist(), first.tolist(), strict=True))

    def what(row: int) -> str:
        index = int(list_of_row[row])
        return (
            f"principal {lists.principals[index]!r}, query {lists.queries[index]!r}: {lists.unit} "
            f"{lists.items[row]!r} is there twice, at ranks {first_row[row] - starts[index] + 1} and "
            f"{row - starts[index] + 1}; dedupe 'first' keeps the better place"
        )

    problems = Problems()
    problems.add_rows(later, lambda row: lists.where(int(list_of_row[row])), what)
    problems.check()
