"""Small tables of ids, two or three columns wide, as TSV, CSV, JSON Lines or Parquet."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from arecall.decisions import id_problem
from arecall.inputs.frames import Frame
from arecall.inputs.jsonl import checked_id, objects
from arecall.inputs.lines import File, Source, read_file
from arecall.inputs.problems import Problems, near


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table: ids that each row must have, and columns that may be absent, with what they then hold."""

    ids: tuple[str, ...]
    defaults: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in their order."""
        return (*self.ids, *self.defaults)

    def row(self, found: Mapping[str, str]) -> tuple[str, ...]:
        """Return the values in the order of `names`; `ValueError` says which id is none."""
        for name in self.ids:
            if problem := id_problem(found[name]):
                raise ValueError(f"{name!r}: {problem}")
        return tuple(found.get(name, self.defaults.get(name, "")) for name in self.names)


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table, read while they are iterated; `where` names a row number in messages."""

    source: Source
    rows: Iterator[tuple[int, tuple[str, ...]]]
    where: Callable[[int], str]


def read_table(path: str | os.PathLike[str], layout: Layout, problems: Problems) -> Table:
    """Open a table: Parquet by content, JSON Lines (`.jsonl`) and CSV (`.csv`) by suffix, else TSV; plain or gzip.

    TSV is split on tabs alone. Its header is optional and must be exactly the names joined by tabs; without one the
    columns are `layout.ids`. CSV needs a header, with its columns in any order. Rows that are wrong are problems, and
    are left out; a table that cannot be read at all is an `InputError`.
    """
    file = read_file(path)
    if file.is_parquet:
        frame = Frame.parquet(file)
        return Table(file.source, frame_rows(frame, layout, problems), frame.where)
    readers = {".jsonl": _json_rows, ".csv": _csv_rows}
    return Table(file.source, readers.get(file.suffix, _tsv_rows)(file, layout, problems), file.line)


def frame_rows(frame: Frame, layout: Layout, problems: Problems) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the rows of a frame that has the columns of `layout` and no other."""
    frame.refuse_others(layout.names)
    for name in layout.ids:
        frame.need(name)
    columns = {name: frame.ids(name, problems) for name in layout.names if frame.find(name)}
    problems.check()
    for row in range(len(frame)):
        yield row, layout.row({name: column[row] for name, column in columns.items()})


def _tsv_rows(file: File, layout: Layout, problems: Problems) -> Iterator[tuple[int, tuple[str, ...]]]:
    names = layout.ids
    for row, line in enumerate(file.lines()):
        fields = line.decode().split("\t")
        if row == 0 and fields in (list(layout.ids), list(layout.names)):
            names = tuple(fields)
            continue
        if len(fields) != len(names):
            hint = f"; {len(fields)} need the header {'<TAB>'.join(layout.names)}"
            problems.add(
                file.line(row),
                f"has {len(fields)} columns, not {len(names)} ({'<TAB>'.join(names)})"
                f"{hint if len(fields) == len(layout.names) else ''}",
            )
            continue
        try:
            yield row, layout.row(dict(zip(names, fields, strict=True)))
        except ValueError as error:
            problems.add(file.line(row), str(error))


def _csv_rows(file: File, layout: Layout, problems: Problems) -> Iterator[tuple[int, tuple[str, ...]]]:
    reader = csv.reader(io.StringIO(file.text().decode(), newline=""), strict=True)
    names: list[str] | None = None
    row = 0
    try:
        for fields in reader:
            if names is None:
                names = fields
                _check_header(file, names, layout)
            elif len(fields) != len(names):
                problems.add(file.line(row), f"has {len(fields)} columns, not {len(names)} ({','.join(names)})")
            else:
                try:
                    found = layout.row(dict(zip(names, fields, strict=True)))
                except ValueError as error:
                    problems.add(file.line(row), str(error))
                else:
                    yield row, found
            row = reader.line_num  # where the next row starts: a quoted field may hold line ends
    except csv.Error as error:
        problems.add(file.line(row), f"is no CSV: {error}")


def _check_header(file: File, names: list[str], layout: Layout) -> None:
    problems = Problems()
    for name in names:
        if name not in layout.names:
            problems.add(file.line(0), f"the header has an unknown column {name!r}{near(name, layout.names)}")
        elif names.count(name) > 1:
            problems.add(file.line(0), f"the header has {name!r} twice")
    for name in layout.ids:
        if name not in names:
            problems.add(file.line(0), f"the header has no column {name!r}")
    problems.check()


def _json_rows(file: File, layout: Layout, problems: Problems) -> Iterator[tuple[int, tuple[str, ...]]]:
    for row, found in objects(file, layout.names, problems):
        try:
            names = [name for name in layout.names if name in found or name in layout.ids]
            values = {name: checked_id(found, name) for name in names}
        except ValueError as error:
            problems.add(file.line(row), str(error))
        else:
            yield row, layout.row(values)
