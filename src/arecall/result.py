"""The result of an evaluation: one tidy table, the states, the leaks and the record of what was evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from arecall.aggregate import STATE_COLUMNS, Columns, rounded
from arecall.delivered_counts import Leak
from arecall.errors import UsageError
from arecall.record import Struct

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "arecall/result/1"
"""The form of a result in JSON."""

LABEL_OF_LEVEL = {"group": "group", "principal": "principal", "query": "query_id"}


class Row(Struct, frozen=True):
    """One row of the table: what it is of, its figures, and how many pairs are in each state (`STATE_COLUMNS`).

    A label that does not apply to the row's level is None, and so is an undefined figure. `numerator` and `denominator` are
    sums over the pairs of the mean (the micro ratio); `value` is the mean. `tie_low` and `tie_high` are the least and
    greatest value over all orders of tied documents, None where nothing is tied.
    """

    measure: str
    filter: str
    mean: str
    level: str
    group: str | None
    principal: str | None
    query_id: str | None
    value: float | None
    numerator: float | None
    denominator: float | None
    n: int
    ci_low: float | None
    ci_high: float | None
    tie_low: float | None
    tie_high: float | None
    n_ok: int
    n_missing: int
    n_vacuous: int
    n_incomplete: int
    n_no_relevant: int
    n_no_list: int
    n_undecided: int
    n_pre_truncated: int


class EvaluationRecord(Struct, frozen=True):
    """What was evaluated: digests of the inputs and of the snapshot, versions, options, warnings."""

    arecall: str
    snapshot: dict[str, str]
    inputs: dict[str, dict[str, str]]
    options: dict[str, Any]
    versions: dict[str, str]
    warnings: list[str]


class LeakEntry(Struct, frozen=True):
    """A document that was delivered to a principal who may not read it."""

    principal: str
    query_id: str
    document: str
    rank: int
    chunk: str | None = None


class ResultDocument(Struct, frozen=True):
    """A result as one JSON document; its JSON Schema is published beside this module."""

    schema: str
    record: EvaluationRecord
    states: dict[str, dict[str, int]]
    missing_queries: list[str]
    leaks: list[LeakEntry]
    rows: list[Row]


@dataclass(frozen=True, eq=False)
class Result:
    """An evaluation.

    Attributes:
        record: what was evaluated.
        states_by_list: for `run` and `delivered`, how many pairs are in each state.
        leaks: every document with decision DENY in any delivered list, in order of principal, query and rank.
        missing_queries: judged queries without a ranking in the run; each is scored 0.
        columns: the rows, series by series; `rows` gives them one by one.
        complete: whether every pair and every list had a plain decision for all that it depends on.
    """

    record: EvaluationRecord
    states_by_list: Mapping[str, Mapping[str, int]]
    leaks: Sequence[Leak]
    missing_queries: Sequence[str]
    columns: Sequence[Columns]
    complete: bool
    _pairs: Callable[[], Iterator[pa.RecordBatch]] = field(repr=False)

    @property
    def states(self) -> Mapping[str, int]:
        """The state counts of the delivered lists where they were given, else of the run."""
        return self.states_by_list["delivered" if "delivered" in self.states_by_list else "run"]

    def rows(self, levels: Sequence[str] | None = None) -> Iterator[Row]:
        """The rows of the table, in order; of some levels only, if given."""
        for columns in self.columns:
            if levels is None or columns.level in levels:
                yield from _rows(columns)

    def labels(self, level: str) -> list[str]:
        """The groups, principals or queries that have rows of this level, sorted."""
        return sorted({label for columns in self.columns if columns.level == level for label in columns.labels})

    @cached_property
    def _index(self) -> dict[tuple[str, str, str, str, str], tuple[Columns, int]]:
        return {
            (one.series.measure, one.series.filter, one.series.mean, one.level, label): (one, at)
            for one in self.columns
            for at, label in enumerate(one.labels)
        }

    @cached_property
    def _names(self) -> dict[str, list[tuple[str, str, str]]]:
        """The (measure, filter, mean) that there are of each measure, those that a bare name means first."""
        every = {(one.series.measure, one.series.filter, one.series.mean) for one in self.columns}
        names: dict[str, list[tuple[str, str, str]]] = {}
        for name in sorted(every, key=self._preference):
            names.setdefault(name[0], []).append(name)
        return names

    def row(
        self,
        measure: str,
        *,
        filter: str | None = None,
        mean: str | None = None,
        level: str = "pooled",
        group: str | None = None,
        principal: str | None = None,
        query_id: str | None = None,
    ) -> Row:
        """Find one row.

        Args:
            measure: `ARecall@5`.
            filter, mean: as in the table; by default those that a gate means: delivered where lists were given, else
                `post` (or `none`); restricted (or `all`).
            level: `pooled`, `principals`, `group`, `principal` or `query`; the label of the last three is given by name.
            group, principal, query_id: that label.

        Raises:
            UsageError: there is no such row.
        """
        label = group or principal or query_id or ""
        chosen = [n for n in self._names.get(measure, ()) if filter in (None, n[1]) and mean in (None, n[2])]
        if not chosen or (*chosen[0], level, label) not in self._index:
            wanted = f"{measure} (filter {filter or 'any'}, mean {mean or 'any'}, level {level}, label {label!r})"
            raise UsageError(f"the result has no row for {wanted}; it has {', '.join(sorted(self._names))}")
        columns, at = self._index[*chosen[0], level, label]
        return next(_rows(columns, at))

    def value(self, measure: str, **where: Any) -> float | None:
        """The value of one row (see `row`); None where it is undefined."""
        return self.row(measure, **where).value

    @staticmethod
    def _preference(name: tuple[str, str, str]) -> tuple[int, int]:
        filters = ("delivered", "post", "none", "pre", "gap")
        means = ("restricted", "all", "full")
        return filters.index(name[1]), means.index(name[2])

    def pair_batches(self) -> Iterator[pa.RecordBatch]:
        """The pair rows, a batch at a time: `pairs()` for results that do not fit into memory."""
        return self._pairs()

    def pairs(self) -> pa.Table:
        """The pair rows: measure, filter, principal, query_id, state, value, numerator, denominator, tie bounds."""
        import pyarrow as pa

        from arecall.pairs import PAIR_SCHEMA

        return pa.Table.from_batches(self.pair_batches(), PAIR_SCHEMA())

    def document(self, levels: Sequence[str] | None = None) -> ResultDocument:
        """The result as the object that is written as JSON."""
        return ResultDocument(
            schema=SCHEMA,
            record=self.record,
            states={kind: dict(states) for kind, states in self.states_by_list.items()},
            missing_queries=list(self.missing_queries),
            leaks=[LeakEntry(**{f: getattr(leak, f) for f in LeakEntry.__struct_fields__}) for leak in self.leaks],
            rows=list(self.rows(levels)),
        )


def _rows(columns: Columns, at: int | None = None) -> Iterator[Row]:
    """Make rows of parallel columns: all, or the one at a position."""
    part = slice(None) if at is None else slice(at, at + 1)
    size = len(columns.labels[part])
    nothing: list[float | None] = [None] * size
    tie_low, tie_high = (rounded(a[part]) for a in columns.tie) if columns.tie is not None else (nothing, nothing)
    figures: dict[str, list[Any]] = {
        "value": rounded(columns.value[part]),
        "numerator": nothing if columns.numerator is None else rounded(columns.numerator[part]),
        "denominator": nothing if columns.denominator is None else rounded(columns.denominator[part]),
        "n": [round(n) for n in columns.n[part].tolist()],
        "ci_low": rounded(columns.ci[0][part]),
        "ci_high": rounded(columns.ci[1][part]),
        "tie_low": tie_low,
        "tie_high": tie_high,
        **{name: [round(n) for n in columns.states[name][part].tolist()] for name in STATE_COLUMNS},
    }
    names: dict[str, str | None] = dict.fromkeys(("group", "principal", "query_id"))
    one = columns.series
    for position, label in enumerate(columns.labels[part]):
        if columns.level in LABEL_OF_LEVEL:
            names[LABEL_OF_LEVEL[columns.level]] = label
        yield Row(
            measure=one.measure,
            filter=one.filter,
            mean=one.mean,
            level=columns.level,
            group=names["group"],
            principal=names["principal"],
            query_id=names["query_id"],
            **{name: column[position] for name, column in figures.items()},
        )


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a result in JSON, made from the types that it is written from."""
    schema = msgspec.json.schema(ResultDocument)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        **schema,
    }
