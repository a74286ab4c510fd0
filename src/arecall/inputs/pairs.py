"""Rows of one query and one document or chunk each: what runs and qrels have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Generic, TypeVar

from arecall.errors import UsageError
from arecall.inputs.coding import Coded, Coder
from arecall.inputs.frames import Frame
from arecall.inputs.lines import PYTHON, python_entry
from arecall.inputs.problems import Problems

Number = TypeVar("Number", int, float)

_QUERY_COLUMNS = ("query_id", "qid", "query-id")
_ITEM_COLUMNS = ("doc_id", "docno", "document", "corpus-id", "item", "chunk")


@dataclass(frozen=True, slots=True)
class Pairs:
    """The query and the item of each row, in the order in which they came; `where` names a row in messages.

    `queries` may know ids that no row holds: queries whose ranking is empty.
    """

    queries: Coded
    items: Coded
    where: Callable[[int], str]

    def sorted(self) -> Pairs:
        """Return the same rows with ids in order of code points."""
        return Pairs(self.queries.sorted(), self.items.sorted(), self.where)


def pairs_in_frame(frame: Frame, problems: Problems) -> Pairs:
    """Return the query and item columns of a frame, under any of the names that are in use for them."""
    queries = frame.ids(frame.need(*_QUERY_COLUMNS), problems)
    items = frame.ids(frame.need(*_ITEM_COLUMNS), problems)
    return Pairs(queries, items, frame.where)


@dataclass(frozen=True, slots=True)
class Numbered(Generic[Number]):
    """What `numbered_pairs` found: the rows, and the number of each."""

    pairs: Pairs
    numbers: list[Number]


def numbered_pairs(
    obj: object, attribute: str, number: Callable[[object], Number], problems: Problems
) -> Numbered[Number]:
    """Read `{query: {item: number}}`, or an iterable of records with `query_id`, `doc_id` and `attribute`.

    A record may have these as attributes or be a sequence that begins with them. `number` converts a value or raises
    `ValueError` saying what is wrong with it. `UsageError` if the object has neither shape.
    """
    queries, items, numbers = Coder(), Coder(), []
    for row, (query, item, value) in enumerate(_triples(obj, attribute, queries, problems)):
        try:
            query_code, item_code, converted = queries.code(query), items.code(item), number(value)
        except ValueError as error:
            problems.add(python_entry(row), f"query {query!r}, document {item!r}: {error}")
        else:
            queries.append(query_code)
            items.append(item_code)
            numbers.append(converted)
    return Numbered(Pairs(queries.coded(), items.coded(), python_entry), numbers)


def _triples(
    obj: object, attribute: str, queries: Coder, problems: Problems
) -> Iterator[tuple[object, object, object]]:
    if isinstance(obj, Mapping):
        for query, numbers in obj.items():
            if not isinstance(numbers, Mapping):
                raise UsageError(f"expected a mapping of documents for the query {query!r}, not {numbers!r:.80}")
            try:
                queries.code(query)  # known even if it has no documents
            except ValueError as error:
                problems.add(PYTHON, f"query: {error}")
                continue
            for item, value in numbers.items():
                yield query, item, value
    elif isinstance(obj, Iterable) and not isinstance(obj, str | bytes):
        for record in obj:
            yield _triple(record, attribute)
    else:
        hint = "; a file is read by its own function" if isinstance(obj, str | bytes | PathLike) else ""
        raise UsageError(f"expected {{query: {{document: {attribute}}}}} or records, not {type(obj).__name__}{hint}")


def _triple(record: object, attribute: str) -> tuple[object, object, object]:
    try:
        return record.query_id, record.doc_id, getattr(record, attribute)  # type: ignore[attr-defined]
    except AttributeError:
        pass
    if isinstance(record, tuple | list) and len(record) >= 3:
        return record[0], record[1], record[2]
    raise UsageError(f"expected records with query_id, doc_id and {attribute}, not {record!r:.80}")
