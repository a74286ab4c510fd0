"""Pair rows: every measure of every (principal, query) pair, as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from arecall.counts import Bools, Counts, Floats, State
from arecall.lanes import Lanes
from arecall.measures import Numbers, series

if TYPE_CHECKING:
    import pyarrow as pa


def PAIR_SCHEMA() -> pa.Schema:  # noqa: N802 -- a constant that must not load Arrow on import
    """The columns of the pair table. `value` is null where the measure is undefined for the pair."""
    import pyarrow as pa

    names = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            *(pa.field(name, names) for name in ("measure", "filter", "mean", "principal", "query_id", "state")),
            *(pa.field(name, pa.float64()) for name in ("value", "numerator", "denominator", "tie_low", "tie_high")),
        ]
    )


def pair_batches(counts: Counts, lanes: Lanes, queries: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield one batch a series for a block: its pairs, principal by principal."""
    import pyarrow as pa

    principals, lane_of = lanes.names, lanes.lane_of
    shape = (len(queries), len(principals))
    states = [state.label for state in State]

    def cells(array: Numbers | Bools) -> Floats:
        wide = np.broadcast_to(array, (len(queries), len(lanes)))[:, lane_of]
        return wide.T.reshape(-1).astype(np.float64)

    def names(codes: np.ndarray[tuple[int, ...], np.dtype[np.int32]], values: Sequence[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values, pa.string()))

    size = shape[0] * shape[1]
    of_principal = names(np.repeat(np.arange(shape[1], dtype=np.int32), shape[0]), principals)
    of_query = names(np.tile(np.arange(shape[0], dtype=np.int32), shape[1]), queries)
    of_state = names(counts.state[:, lane_of].T.reshape(-1).astype(np.int32), states)
    constant = np.zeros(size, np.int32)
    for one in series(counts):
        undefined = cells(one.defined) == 0

        def figures(
            array: Numbers | None, undefined: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = undefined
        ) -> pa.Array:
            if array is None:
                return pa.nulls(size, pa.float64())
            return pa.array(cells(array), pa.float64(), mask=undefined)

        numerator, denominator = one.ratio or (None, None)
        low = high = None
        if one.slack is not None:
            low, high = np.array(one.value), np.array(one.value)
            low[one.slack.queries] += one.slack.less
            high[one.slack.queries] += one.slack.more
        yield pa.RecordBatch.from_arrays(
            [
                names(constant, [one.name.measure]),
                names(constant, [one.name.filter]),
                names(constant, [one.name.mean]),
                of_principal,
                of_query,
                of_state,
                *(figures(array) for array in (one.value, numerator, denominator, low, high)),
            ],
            schema=PAIR_SCHEMA(),
        )
