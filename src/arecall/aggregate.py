"""Means over pairs at every level, with their bounds, counts and intervals.

Blocks of lanes come one after the other; what the levels above the principal need is summed over them, so that memory
does not grow with the number of principals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from arecall.counts import Bools, Counts, Floats, State
from arecall.intervals import bootstrap_weights, clopper_pearson, percentile_interval
from arecall.lanes import Lanes
from arecall.measures import MEASURES, Numbers, Series, SeriesName, series

LEVELS = ("pooled", "principals", "group", "principal", "query")
"""The levels of the result's rows, from the widest; pairs have a table of their own."""

DRAWS = 2_000
"""Bootstrap draws, unless the caller says otherwise."""

STATE_COLUMNS = (*(f"n_{state.label}" for state in reversed(State)), "n_undecided", "n_pre_truncated")
"""The counts that each row carries: the pairs in each state; `n_undecided`, lists with a document that has no plain
decision; `n_pre_truncated`, pairs whose pre-filter list has fewer than K documents."""

DECIMALS = 12
"""Values are rounded to this many decimals, so that the order of a summation does not show."""

Parts = dict[str, Floats]
"""What is summed of a series: `count` (the defined pairs), `value`, and where it has them numerator, denominator, low, high."""

Sums = tuple[Floats, Floats, Floats]
"""Sums by query (Q,), by query and group (Q, G), and by lane (L,)."""


@dataclass
class Columns:
    """Aggregated rows of one series at one level: parallel arrays, one element a row; NaN stands for undefined."""

    series: SeriesName
    level: str
    labels: Sequence[str]
    value: Floats
    n: Floats
    numerator: Floats | None
    denominator: Floats | None
    ci: tuple[Floats, Floats]
    tie: tuple[Floats, Floats] | None
    states: Mapping[str, Floats]


@dataclass
class _Mask:
    """The pairs of a block over which a mean runs, as 0 and 1, and their number by query, group and lane."""

    defined: Bools
    cells: Floats
    by_query: Floats
    by_group: Floats
    by_lane: Floats
    drawn: Floats | None = None
    """How many are in each draw of queries; (lanes, draws), made when it is first needed."""


class _Block:
    """One block of lanes, with the weights that sum it up."""

    def __init__(self, counts: Counts, lanes: Lanes, members: Iterable[frozenset[str]]) -> None:
        self.shape = counts.state.shape
        self.lanes = lanes
        self.weights = lanes.weights
        in_group = [[len(group.intersection(ids)) for ids in lanes.principals] for group in members]
        self.in_group = np.array(in_group, np.float64).reshape(-1, len(lanes)).T
        self._masks: dict[int, _Mask] = {}
        # Keyed by identity, so the array itself must stay alive for as long as its key does.
        self._shared: dict[tuple[int, int], tuple[Numbers, Sums]] = {}

    def mask(self, defined: Bools) -> _Mask:
        """The mask of `defined`; series share few of them, so each is summed once."""
        mask = self._masks.get(id(defined))
        if mask is None:
            cells = np.broadcast_to(defined, self.shape).astype(np.float64)
            mask = _Mask(defined, cells, cells @ self.weights, cells @ self.in_group, cells.sum(0))
            self._masks[id(defined)] = mask
        return mask

    def sums(self, values: Numbers, mask: _Mask) -> Sums:
        """Sum `values` over the masked pairs: by query (Q,), by query and group (Q, G), by lane (L,)."""
        if values.shape[1] == 1:
            column: Floats = np.broadcast_to(values, (self.shape[0], 1)).astype(np.float64)
            return column[:, 0] * mask.by_query, column * mask.by_group, column[:, 0] @ mask.cells
        masked: Floats = np.multiply(values, mask.cells)
        return masked @ self.weights, masked @ self.in_group, masked.sum(0)

    def shared_sums(self, values: Numbers, mask: _Mask) -> Sums:
        """The same for an array that is the denominator of many series; it is summed once."""
        key = (id(values), id(mask.defined))
        if key not in self._shared:
            self._shared[key] = (values, self.sums(values, mask))
        return self._shared[key][1]

    def changed(self, queries: NDArray[np.int64], change: Floats, mask: _Mask) -> Sums:
        """Sum `change`, which is of some queries only, over the masked pairs; shapes as of `sums`."""
        masked: Floats = change * mask.cells[queries]
        by_query, by_group = np.zeros_like(mask.by_query), np.zeros_like(mask.by_group)
        by_query[queries], by_group[queries] = masked @ self.weights, masked @ self.in_group
        return by_query, by_group, masked.sum(0)


@dataclass
class _Means:
    """The principals' means of one series, added up over the blocks."""

    sums: Parts = field(default_factory=dict)
    pairs: float = 0.0
    draws: tuple[Floats, Floats] | None = None


class Aggregator:
    """Adds blocks up and gives the rows of every level.

    Args:
        queries: ids, in the order of the counts' axis.
        groups: group -> principals.
        draws: bootstrap draws of queries; 0 gives no intervals.
        seed: of the draws.
        levels: which rows to make.
    """

    def __init__(
        self, queries: Sequence[str], groups: Mapping[str, Sequence[str]], draws: int, seed: int, levels: Sequence[str]
    ) -> None:
        self._queries = queries
        self._members = {group: frozenset(ids) for group, ids in groups.items()}
        self._levels = levels
        self._weights = bootstrap_weights(len(queries), draws, seed)
        self._rows: list[Columns] = []
        self._by_query: dict[SeriesName, Parts] = {}
        self._by_group: dict[SeriesName, Parts] = {}
        self._means: dict[SeriesName, _Means] = {}
        self._states: Parts = {}
        self._group_states: Parts = {}

    # -- adding blocks ------------------------------------------------------------------------------------------------

    def add(self, counts: Counts, lanes: Lanes) -> None:
        """Add one block."""
        block = _Block(counts, lanes, self._members.values())
        by_lane: Parts = {}
        for name, marks in _state_marks(counts).items():
            mask = block.mask(marks)
            by_lane[name] = mask.by_lane
            _add(self._states, {name: mask.by_query})
            _add(self._group_states, {name: mask.by_group.sum(0)})
        for one in series(counts):
            mask = block.mask(one.defined)
            parts = _sums(one, mask, block)
            of_query, of_group, of_lane = ({part: sums[axis] for part, sums in parts.items()} for axis in range(3))
            _add(self._by_query.setdefault(one.name, {}), of_query)
            _add(self._by_group.setdefault(one.name, {}), of_group)
            if "principal" in self._levels or "principals" in self._levels:
                self._add_principals(one, mask, block, of_lane, by_lane)

    def _add_principals(self, one: Series, mask: _Mask, block: _Block, sums: Parts, states: Parts) -> None:
        n = sums["count"]
        draws = self._draws_by_lane(one, mask, block)
        weights = np.where(n > 0, block.weights, 0.0)
        means = self._means.setdefault(one.name, _Means())
        of_principals = {"count": weights.sum()}
        for part in sums.keys() - {"count"}:
            averaged = part in ("value", "low", "high")
            of_principals[part] = weights @ (np.nan_to_num(_divide(sums[part], n)) if averaged else sums[part])
        _add(means.sums, {part: np.array([total]) for part, total in of_principals.items()})
        means.pairs += float(n @ block.weights)
        if draws is not None:
            known = ~np.isnan(draws)
            added = (block.weights @ np.where(known, draws, 0.0), block.weights @ known)
            means.draws = added if means.draws is None else (means.draws[0] + added[0], means.draws[1] + added[1])
        if "principal" not in self._levels:
            return
        rows = self._columns(one.name, "principal", (), sums, _states_of(one.name, states), draws, n)
        self._rows.append(_spread(rows, block.lanes))

    def _draws_by_lane(self, one: Series, mask: _Mask, block: _Block) -> Floats | None:
        if not len(self._weights):
            return None
        if mask.drawn is None:
            mask.drawn = mask.cells.T @ self._weights.T
        return _divide((one.value * mask.cells).T @ self._weights.T, mask.drawn)

    # -- giving rows --------------------------------------------------------------------------------------------------

    def finish(self) -> list[Columns]:
        """All rows, those of each series together, the widest level first."""
        for one, of_query in self._by_query.items():
            states = _states_of(one, self._states)
            totals = {part: values.sum(keepdims=True) for part, values in of_query.items()}
            total_states = {name: column.sum(keepdims=True) for name, column in states.items()}
            queries = (of_query["count"] > 0).sum(keepdims=True)
            if "pooled" in self._levels:
                draws = self._draws(of_query["value"][:, None], of_query["count"][:, None])
                self._rows.append(self._columns(one, "pooled", [""], totals, total_states, draws, queries))
            if "principals" in self._levels:
                self._rows.append(self._principals(one, total_states, queries))
            if "group" in self._levels and self._members:
                of_group = self._by_group[one]
                sums = {part: values.sum(0) for part, values in of_group.items()}
                draws = self._draws(of_group["value"], of_group["count"])
                queries = (of_group["count"] > 0).sum(0)
                group_states = _states_of(one, self._group_states)
                self._rows.append(self._columns(one, "group", list(self._members), sums, group_states, draws, queries))
            if "query" in self._levels:
                ones = np.ones(len(self._queries))
                self._rows.append(self._columns(one, "query", self._queries, of_query, states, None, ones))
        place = {one: at for at, one in enumerate(self._by_query)}
        self._rows.sort(key=lambda row: (place[row.series], LEVELS.index(row.level)))
        return self._rows

    def _draws(self, values: Floats, counts: Floats) -> Floats | None:
        """The mean in each draw of queries: sums and counts (queries, rows) -> (rows, draws); NaN where none is defined."""
        if not len(self._weights):
            return None
        return _divide(values.T @ self._weights.T, counts.T @ self._weights.T)

    def _principals(self, one: SeriesName, states: Parts, queries: Floats) -> Columns:
        means = self._means[one]
        draws = None if means.draws is None else _divide(*means.draws)[None]
        rows = self._columns(one, "principals", [""], means.sums, states, None, queries)
        rows.ci = self._intervals(one, draws, np.array([means.pairs]), queries, means.sums["value"], of_lists=False)
        return rows

    def _columns(
        self,
        one: SeriesName,
        level: str,
        labels: Sequence[str],
        sums: Parts,
        states: Mapping[str, Floats],
        draws: Floats | None,
        queries: Floats,
    ) -> Columns:
        n = sums["count"]
        return Columns(
            series=one,
            level=level,
            labels=labels,
            value=_divide(sums["value"], n),
            n=n,
            numerator=sums.get("numerator"),
            denominator=sums.get("denominator"),
            ci=self._intervals(one, draws, n, queries, sums["value"]),
            tie=(_divide(sums["low"], n), _divide(sums["high"], n)) if one.tied else None,
            states=states,
        )

    def _intervals(
        self, one: SeriesName, draws: Floats | None, n: Floats, queries: Floats, total: Floats, *, of_lists: bool = True
    ) -> tuple[Floats, Floats]:
        """The interval of each row; NaN where there is none.

        Args:
            one: of which series the rows are.
            draws: the mean of each row in each draw; None leaves the bootstrap out.
            n: the pairs (lists) of each row.
            queries: how many queries they are of; fewer than two have no bootstrap interval.
            total: the sum of the row's values.
            of_lists: whether the row's value is a plain share of its lists.

        A share of lists has the exact binomial interval; an all-zero measure of leaks is bounded by that of its lists,
        since "none of 30" does not show that there is none.
        """
        low, high = np.full(n.shape, np.nan), np.full(n.shape, np.nan)
        if not len(self._weights):
            return low, high
        if draws is not None:
            enough = queries >= 2
            low[enough], high[enough] = percentile_interval(draws[enough])
        if MEASURES[one.base].on_leaks:
            exact = (n > 0) & ((total == 0) | (one.base == "Leak" and of_lists))
            leaking = total if one.base == "Leak" else np.zeros_like(n)
            low[exact], high[exact] = clopper_pearson(leaking[exact], n[exact])
        return low, high


def _add(into: Parts, new: Mapping[str, Floats]) -> None:
    for name, values in new.items():
        into[name] = into[name] + values if name in into else values


def _sums(one: Series, mask: _Mask, block: _Block) -> dict[str, Sums]:
    """Sum the parts of a series over its pairs."""
    value = block.sums(one.value, mask)
    parts: dict[str, Sums] = {"count": (mask.by_query, mask.by_group, mask.by_lane), "value": value}
    if one.ratio is not None:
        parts["numerator"] = block.sums(one.ratio[0], mask)
        parts["denominator"] = block.shared_sums(one.ratio[1], mask)
    if one.slack is not None:
        for part, change in (("low", one.slack.less), ("high", one.slack.more)):
            changed = block.changed(one.slack.queries, change, mask)
            parts[part] = (value[0] + changed[0], value[1] + changed[1], value[2] + changed[2])
    return parts


def _spread(rows: Columns, lanes: Lanes) -> Columns:
    """Give each principal the row of its lane."""
    spread = lanes.lane_of

    def of(values: Floats | None) -> Floats | None:
        return None if values is None else values[spread]

    return Columns(
        series=rows.series,
        level=rows.level,
        labels=lanes.names,
        value=rows.value[spread],
        n=rows.n[spread],
        numerator=of(rows.numerator),
        denominator=of(rows.denominator),
        ci=(rows.ci[0][spread], rows.ci[1][spread]),
        tie=None if rows.tie is None else (rows.tie[0][spread], rows.tie[1][spread]),
        states={name: column[spread] for name, column in rows.states.items()},
    )


def _state_marks(counts: Counts) -> dict[str, Bools]:
    """Which pairs each state column counts; `n_pre_truncated@K` by cutoff."""
    marks: dict[str, Bools] = {f"n_{state.label}": counts.state == state for state in State}
    marks["n_undecided"] = counts.has_list & ~counts.list_decided
    if counts.pre_truncated is not None:
        marks |= {f"n_pre_truncated@{k}": cut for k, cut in zip(counts.ks, counts.pre_truncated, strict=True)}
    return marks


def _states_of(one: SeriesName, columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """The state columns of one series' rows, with the truncation count of its cutoff."""
    own = {name: column for name, column in columns.items() if "@" not in name}
    own["n_pre_truncated"] = columns.get(f"n_pre_truncated@{one.k}", np.zeros_like(own["n_ok"]))
    return own


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    quotient = np.full(np.shape(numerator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient


def rounded(values: Floats) -> list[float | None]:
    """Round for output; NaN becomes None, and -0.0 becomes 0.0."""
    return [None if math.isnan(value) else round(value, DECIMALS) + 0.0 for value in values.tolist()]
