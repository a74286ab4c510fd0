"""JSON Lines: one object a line, with known keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from arecall.decisions import id_problem
from arecall.inputs.lines import File
from arecall.inputs.problems import Problems, near


def objects(file: File, known: tuple[str, ...], problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the row (counted from 0) and the object of each line.

    A line that is no JSON object, or that has a key which is not `known`, is a problem and is left out.
    """
    decoder = msgspec.json.Decoder(dict[str, Any])
    for row, line in enumerate(file.lines()):
        try:
            found = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            problems.add(file.line(row), f"is no JSON object: {error}")
            continue
        unknown = [key for key in found if key not in known]
        for key in unknown:
            problems.add(file.line(row), f"has an unknown key {key!r}{near(key, known)}")
        if not unknown:
            yield row, found


def checked_id(found: dict[str, Any], key: str) -> str:
    """Return the id at `key`; `ValueError` says why there is none."""
    if key not in found:
        raise ValueError(f"has no key {key!r}")
    value = found[key]
    if problem := json_id_problem(value):
        raise ValueError(f"{key!r}: {problem}")
    return str(value)


def checked_ids(found: dict[str, Any], key: str) -> list[str]:
    """Return the list of ids at `key`, which is there; `ValueError` says what in it is no id."""
    values = found[key]
    if not isinstance(values, list):
        raise ValueError(f"{key!r} must be a list of strings, not {values!r:.80}")  # noqa: TRY004
    for place, value in enumerate(values, 1):
        if problem := json_id_problem(value):
            raise ValueError(f"{key!r}, entry {place}: {problem}")
    return values


def json_id_problem(value: object) -> str | None:
    """Say why a JSON value is no id, with the cure for a number, or return None."""
    problem = id_problem(value)
    return f"{problem}; quote it" if problem and isinstance(value, int | float) else problem
