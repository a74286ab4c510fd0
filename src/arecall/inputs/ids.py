"""Lists of ids: the universe of documents, principals, queries."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from arecall.decisions import id_problem
from arecall.errors import InputError
from arecall.inputs.frames import Frame
from arecall.inputs.lines import File, read_file
from arecall.inputs.problems import Problems


def read_ids(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Read ids, in the order of the file.

    Text has one id a line, byte for byte: blanks before and after it belong to it. A `.jsonl` file is a corpus in BEIR
    form, of which `_id` is taken. Parquet must have a column `_id` or `id`, or only one column. Plain or gzip.

    Raises `InputError` naming the lines of an empty id (an empty line), of an id that is no string, and of an id that
    is there twice.
    """
    file = read_file(path)
    problems = Problems()
    if file.is_parquet:
        frame = Frame.parquet(file)
        where, ids = frame.where, _in_frame(frame, problems)
    else:
        where, ids = file.line, _in_jsonl(file, problems) if file.suffix == ".jsonl" else _in_lines(file, problems)
    rows: dict[str, int] = {}
    for row, value in ids:
        if (first := rows.setdefault(value, row)) != row:
            problems.add(where(row), f"the id {value!r} is there twice (first at {where(first)})")
    problems.check()
    if not rows:
        raise InputError.single(file.source.name, "is empty: it has no ids")
    return tuple(rows)


def _in_lines(file: File, problems: Problems) -> Iterator[tuple[int, str]]:
    for row, line in enumerate(file.lines()):
        value = line.decode()
        if problem := id_problem(value):
            problems.add(file.line(row), problem)
        else:
            yield row, value


class _Document(msgspec.Struct):
    id: str = msgspec.field(name="_id")


def _in_jsonl(file: File, problems: Problems) -> Iterator[tuple[int, str]]:
    decoder = msgspec.json.Decoder(_Document)
    for row, line in enumerate(file.lines()):
        try:
            value = decoder.decode(line).id
        except (msgspec.DecodeError, RecursionError) as error:
            problems.add(file.line(row), f"has no '_id' that is a string: {error}")
            continue
        if problem := id_problem(value):
            problems.add(file.line(row), problem)
        else:
            yield row, value


def _in_frame(frame: Frame, problems: Problems) -> Iterator[tuple[int, str]]:
    column = frame.columns[0] if len(frame.columns) == 1 else frame.need("_id", "id")
    ids = frame.ids(column, problems)
    problems.check()
    for row in range(len(frame)):
        yield row, ids[row]
