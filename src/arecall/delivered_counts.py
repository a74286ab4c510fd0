"""Counting delivered lists: one list a query and principal, in the order that was shown."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arecall.alignment import Alignment, Rows
from arecall.counts import Counts, Floats, Ints, discounts, ideal_dcg, states
from arecall.inputs import Delivered
from arecall.lanes import Lanes

FILTER = "delivered"


@dataclass(frozen=True)
class Leak:
    """A document that was delivered to a principal who may not read it (decision DENY).

    `rank` is its place in the list as it was shown, from 1; `chunk` the chunk that brought it, where lists hold chunks.
    """

    principal: str
    query_id: str
    document: str
    rank: int
    chunk: str | None = None


@dataclass(frozen=True)
class Entries:
    """All lists laid end to end, a row an entry.

    Attributes:
        of_list: the list of each entry; int32 (entries,), ascending.
        rows: the row of its document.
        items: its code among the lists' own items (documents or chunks).
        shown: its place in its list as shown, from 0.
        slot: its place as the cut counts it, from 0; -1 for an entry that the projection dropped before the cut.
        rank: how many documents of its list are met before it.
        first: whether its document is met here for the first time in its list.
        gain: the positive grade of its document for the list's query, else 0.
        relevant: whether its document is relevant to the list's query.
    """

    of_list: Ints
    rows: Rows
    items: Ints
    shown: NDArray[np.int64]
    slot: NDArray[np.int64]
    rank: NDArray[np.int64]
    first: NDArray[np.bool_]
    gain: Floats
    relevant: NDArray[np.bool_]


def lay_out(delivered: Delivered, alignment: Alignment, *, cut: str) -> Entries:
    """Work out what does not depend on anyone's rights."""
    lengths = np.diff(delivered.offsets)
    of_list = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    rows = alignment.row_of_item[delivered.items]
    shown = np.arange(len(rows)) - delivered.offsets[:-1][of_list]
    first = np.zeros(len(rows), bool)
    first[np.unique(of_list * np.int64(len(alignment.documents)) + rows, return_index=True)[1]] = True
    met = np.cumsum(first)
    before = np.concatenate(([0], met))[delivered.offsets[:-1]]
    rank = met - first - before[of_list]
    slot = shown if cut == "chunk" else np.where(first, rank, -1)
    query = _query_rows(delivered, alignment)[of_list]
    gain = np.zeros(len(rows))
    relevant = np.zeros(len(rows), bool)
    # Lists, and so their entries, are in order of their queries.
    edges = np.searchsorted(query, np.arange(len(alignment.queries) + 1)).tolist()
    for judged, (start, end) in zip(alignment.judged, itertools.pairwise(edges), strict=True):
        gain[start:end] = judged.gains_of(rows[start:end])
        relevant[start:end] = np.isin(rows[start:end], judged.relevant)
    return Entries(of_list, rows, delivered.items, shown, slot, rank, first, gain, relevant)


def _query_rows(delivered: Delivered, alignment: Alignment) -> NDArray[np.int64]:
    number = {query: at for at, query in enumerate(alignment.queries)}
    return np.array([number[query] for query in delivered.query_ids], np.int64)[delivered.list_query]


def count_delivered(
    delivered: Delivered, alignment: Alignment, entries: Entries, lanes: Lanes, ks: Sequence[int], *, chunked: bool
) -> tuple[Counts, list[Leak]]:
    """Count the lists of the principals of one block of lanes, each in a lane of its own, and name every leak."""
    lane_of = {ids[0]: lane for lane, ids in enumerate(lanes.principals)}
    lane_of_list = np.array([lane_of.get(name, -1) for name in delivered.principal_ids], np.int64)[
        delivered.list_principal
    ]
    query_of_list = _query_rows(delivered, alignment)
    lists = np.flatnonzero(lane_of_list >= 0)
    cells = (query_of_list[lists], lane_of_list[lists])
    shape = (len(alignment.queries), len(lanes))

    here = lane_of_list[entries.of_list] >= 0
    of_list, rows = entries.of_list[here], entries.rows[here]
    lane = lane_of_list[of_list]
    slot, rank, first = entries.slot[here], entries.rank[here], entries.first[here]
    readable = lanes.may_read[rows, lane] > 0
    undecided = lanes.undecided[rows, lane] if lanes.undecided is not None else np.zeros(len(rows), bool)
    relevant, gain = entries.relevant[here], entries.gain[here]
    table = discounts(max(int(rank.max(initial=0)) + 1, *(len(judged.ideal) for judged in alignment.judged)))

    def tally(mask: NDArray[np.bool_], weight: Floats | None = None) -> Floats:
        """Sum a weight (1) over the entries of each list that `mask` chooses; float64 (Q, L)."""
        summed = np.bincount(of_list[mask], None if weight is None else weight[mask], len(lane_of_list))
        spread = np.zeros(shape)
        spread[cells] = summed[lists]
        return spread

    def over_cutoffs(mask: NDArray[np.bool_]) -> Ints:
        return np.stack([tally(mask & (slot >= 0) & (slot < k)) for k in ks]).astype(np.int32)

    has_list = np.zeros(shape, bool)
    has_list[cells] = True
    undecided_list = tally(undecided) > 0
    authorized_relevant = np.zeros(shape, np.int32)
    undecided_pair = undecided_list.copy()
    for number, judged in enumerate(alignment.judged):
        authorized_relevant[number] = lanes.may_read[judged.relevant, : len(lanes)].sum(0, dtype=np.int32)
        if lanes.undecided is not None:
            undecided_pair[number] |= lanes.undecided[judged.relevant].any(0)
    judged_relevant = np.array([[len(judged.relevant)] for judged in alignment.judged], np.int32)
    leaking = first & ~readable & ~undecided
    shown = entries.shown[here]
    slot_unauthorized = np.stack([tally(~readable & ~undecided & (shown < k)) for k in ks]).astype(np.int32)
    ideals = np.stack([ideal_dcg(judged.ideal, ks, table) for judged in alignment.judged], axis=1)[:, :, None]
    gained = np.stack([tally(first & (slot >= 0) & (slot < k), gain * table[rank + 1]) for k in ks])
    # Entries lie in the order of their lists, so the first of each list is its best placed.
    hit = np.flatnonzero(first & relevant)
    best = np.zeros(len(rows), bool)
    best[hit[np.unique(of_list[hit], return_index=True)[1]]] = True
    counts = Counts(
        ks=tuple(ks),
        delivered=True,
        state=states(judged_relevant, authorized_relevant, undecided_pair, has_list, delivered=True),
        has_list=has_list,
        list_decided=has_list & ~undecided_list,
        authorized_relevant=authorized_relevant,
        hits={FILTER: over_cutoffs(first & relevant & readable)},
        listed=over_cutoffs(first),
        unauthorized=over_cutoffs(leaking),
        relevant=judged_relevant,
        blind_hits=over_cutoffs(first & relevant),
        blind_ndcg=gained / np.where(ideals > 0, ideals, 1),
        blind_rr=tally(best, 1 / (rank + 1)),
        slot_unauthorized=slot_unauthorized if chunked else None,
    )
    leaks = [
        Leak(
            delivered.principal_ids[delivered.list_principal[number]],
            delivered.query_ids[delivered.list_query[number]],
            alignment.documents[row],
            place + 1,
            delivered.item_ids[item] if chunked else None,
        )
        for number, row, place, item in zip(
            of_list[leaking].tolist(),
            rows[leaking].tolist(),
            shown[leaking].tolist(),
            entries.items[here][leaking].tolist(),
            strict=True,
        )
    ]
    return counts, leaks
