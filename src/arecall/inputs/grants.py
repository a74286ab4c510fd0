"""Tables of grants: a decision for each (principal, document) pair that is written down."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arecall.decisions import Decision, id_problem
from arecall.errors import InputError, UsageError
from arecall.inputs.frames import Frame
from arecall.inputs.lines import PYTHON, Source, python_entry, python_source
from arecall.inputs.problems import Problems
from arecall.inputs.tables import Layout, frame_rows, read_table

_LAYOUT = Layout(("principal", "document"), {"decision": Decision.ALLOW.value})
_NAMES = {decision.value: decision for decision in Decision}


@dataclass(frozen=True, slots=True, eq=False)
class Grants:
    """The decisions that a table holds, by principal and document, and where it was read.

    What a pair that is not in the table means is for its user to say.
    """

    principals: dict[str, dict[str, Decision]]
    source: Source


def read_grants(path: str | os.PathLike[str]) -> Grants:
    """Read a table with the columns `principal`, `document` and optionally `decision`, plain or gzip.

    TSV (header optional for two columns, needed for three), CSV with a header, JSON Lines or Parquet. A decision is
    exactly `ALLOW`, `DENY`, `CONDITIONAL` or `ERROR`; without one a pair is `ALLOW`. Lines that are repeated
    identically are fine. Raises `InputError` naming each line that is wrong, and both lines of a pair that has two
    decisions.
    """
    problems = Problems()
    table = read_table(path, _LAYOUT, problems)
    return Grants(_decisions(table.rows, table.where, problems), table.source)


def grants_from(obj: object) -> Grants:
    """Read grants from a Python object.

    Takes `{principal: {document: decision}}`, `{principal: [document, ...]}`, an iterable of `(principal, document)`
    or `(principal, document, decision)`, or anything that exports an Arrow stream with the columns of `read_grants`. A
    decision is a `Decision` or its name. A principal without documents is kept. Errors are those of `read_grants`;
    `UsageError` for another object.
    """
    problems = Problems()
    if hasattr(obj, "__arrow_c_stream__"):
        frame = Frame.arrow(obj)
        principals = _decisions(frame_rows(frame, _LAYOUT, problems), frame.where, problems)
    else:
        principals = _decisions(_entries(obj, problems), python_entry, problems)
    if isinstance(obj, Mapping):
        for principal in obj:
            if problem := id_problem(principal):  # of a principal without documents; others were seen above
                raise InputError.single(PYTHON, f"principal {principal!r}: {problem}")
            principals.setdefault(str(principal), {})
    names = sorted(principals)
    triples = [(p, d, principals[p][d].value) for p in names for d in sorted(principals[p])]
    return Grants(principals, python_source("grants", names, *triples))


def _entries(obj: object, problems: Problems) -> Iterator[tuple[int, tuple[object, ...]]]:
    for row, (principal, document, decision) in enumerate(_triples(obj)):
        if problem := id_problem(principal) or id_problem(document):
            problems.add(python_entry(row), f"principal {principal!r}, document {document!r}: {problem}")
        else:
            yield row, (str(principal), str(document), decision)


def _triples(obj: object) -> Iterator[tuple[object, object, object]]:
    if isinstance(obj, Mapping):
        for principal, documents in obj.items():
            if isinstance(documents, Mapping):
                yield from ((principal, document, decision) for document, decision in documents.items())
            elif isinstance(documents, Iterable) and not isinstance(documents, str | bytes):
                yield from ((principal, document, Decision.ALLOW) for document in documents)
            else:
                raise UsageError(f"expected the documents of {principal!r} in a list or mapping, not {documents!r:.80}")
    elif isinstance(obj, Iterable) and not isinstance(obj, str | bytes):
        for row in obj:
            if not isinstance(row, tuple | list) or len(row) not in (2, 3):
                raise UsageError(f"expected (principal, document) or (principal, document, decision), not {row!r:.80}")
            yield row[0], row[1], row[2] if len(row) == 3 else Decision.ALLOW
    else:
        raise UsageError(f"expected a mapping or rows of (principal, document), not {type(obj).__name__}")


def _decisions(
    rows: Iterable[tuple[int, tuple[Any, ...]]], where: Callable[[int], str], problems: Problems
) -> dict[str, dict[str, Decision]]:
    found: dict[str, dict[str, tuple[Decision, int]]] = {}
    for row, (principal, document, value) in rows:
        decision = _NAMES.get(value) if isinstance(value, str) else value
        if not isinstance(decision, Decision):
            problems.add(where(row), f"the decision {value!r} is none of {', '.join(_NAMES)}")
            continue
        known, first = found.setdefault(principal, {}).setdefault(document, (decision, row))
        if known is not decision:
            problems.add(
                where(row),
                f"principal {principal!r}, document {document!r} is {decision.value}, but {known.value} at "
                f"{where(first)}",
            )
    problems.check()
    return {p: {d: decision for d, (decision, _) in documents.items()} for p, documents in found.items()}
