"""Chunk maps: which document each chunk of an index belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from arecall.decisions import id_problem
from arecall.errors import UsageError
from arecall.inputs.lines import Source, python_entry, python_source
from arecall.inputs.problems import Problems
from arecall.inputs.tables import Layout, read_table

_LAYOUT = Layout(("chunk", "document"))


@dataclass(frozen=True, slots=True, eq=False)
class ChunkMap(Mapping[str, str]):
    """The document of each chunk, as a read-only mapping, and where it was read."""

    documents: Mapping[str, str]
    source: Source

    def __getitem__(self, chunk: str) -> str:
        return self.documents[chunk]

    def __iter__(self) -> Iterator[str]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)


def read_chunks(path: str | os.PathLike[str]) -> ChunkMap:
    """Read a chunk map: TSV, CSV, JSON Lines or Parquet with the columns `chunk` and `document`, plain or gzip.

    The header of TSV is optional. A line that is repeated identically is fine; a chunk of two documents is an
    `InputError` that names both lines.
    """
    problems = Problems()
    table = read_table(path, _LAYOUT, problems)
    return ChunkMap(_documents(table.rows, table.where, problems), table.source)


def chunks_from(mapping: Mapping[str, str]) -> ChunkMap:
    """Make a chunk map from `{chunk: document}`; `InputError` names what is no id."""
    if not isinstance(mapping, Mapping):
        raise UsageError(f"expected {{chunk: document}}, not {type(mapping).__name__}")
    problems = Problems()
    documents = {}
    for row, (chunk, document) in enumerate(mapping.items()):
        if problem := id_problem(chunk) or id_problem(document):
            problems.add(python_entry(row), f"chunk {chunk!r}: {problem}")
        else:
            documents[str(chunk)] = str(document)
    problems.check()
    chunks = sorted(documents)
    return ChunkMap(documents, python_source("chunks", chunks, [documents[chunk] for chunk in chunks]))


def _documents(
    rows: Iterable[tuple[int, tuple[str, ...]]], where: Callable[[int], str], problems: Problems
) -> dict[str, str]:
    documents: dict[str, str] = {}
    first_row: dict[str, int] = {}
    for row, (chunk, document) in rows:
        known = documents.setdefault(chunk, document)
        first = first_row.setdefault(chunk, row)
        if known != document:
            problems.add(
                where(row), f"chunk {chunk!r} belongs to document {document!r}, but to {known!r} at {where(first)}"
            )
    problems.check()
    return documents
