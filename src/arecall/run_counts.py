"""The walk: each query's ranking is walked down once, counting for all principals at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arecall.alignment import Judged, Ranked, Rows, first_places
from arecall.counts import Bools, Counts, Floats, Ints, State, discounts, ideal_dcg, states
from arecall.lanes import Lanes, prefix_counts
from arecall.ties import TieGroup, cover, tie_groups, tied_hits

FILTERS = ("post", "pre")


@dataclass(frozen=True)
class QueryPlan:
    """What of a query's ranking does not depend on the lanes, worked out once for all blocks.

    Attributes:
        judged: what qrels say.
        slots: the ranking; empty where there is none.
        ranked: whether there is one.
        documents: the ranking without repeats (the same array where there are none).
        places: the slots at which a relevant document is first met, ascending.
        which: for each of `places`, its index in `judged.relevant`.
        distinct: for each of `places`, how many documents are met before it.
        cuts: for each cutoff, how many slots it keeps.
        cut_documents: for each cutoff, how many documents those hold.
        cut_hits: for each cutoff, how many of `places` it keeps.
        chunks: the chunk slots before projection, or None.
        groups: the tied groups that matter to a hit or lie across a cutoff.
    """

    judged: Judged
    slots: Rows
    ranked: bool
    documents: Rows
    places: NDArray[np.int64]
    which: NDArray[np.int64]
    distinct: NDArray[np.int64]
    cuts: NDArray[np.int64]
    cut_documents: NDArray[np.int64]
    cut_hits: NDArray[np.int64]
    chunks: Rows | None
    groups: tuple[TieGroup, ...]


def plan_query(ranked: Ranked | None, judged: Judged, ks: Sequence[int]) -> QueryPlan:
    """Work out what the walk down one ranking needs."""
    slots = np.empty(0, np.int32) if ranked is None else ranked.slots
    first = np.arange(len(slots)) if ranked is None or ranked.distinct else first_places(slots)
    documents = slots if len(first) == len(slots) else slots[first]
    distinct = np.flatnonzero(np.isin(documents, judged.relevant))
    by_row = np.argsort(judged.relevant)
    which = by_row[np.searchsorted(judged.relevant, documents[distinct], sorter=by_row)]
    places = first[distinct]
    cuts = np.minimum(np.array(ks, np.int64), len(slots))
    return QueryPlan(
        judged=judged,
        slots=slots,
        ranked=ranked is not None,
        documents=documents,
        places=places,
        which=which,
        distinct=distinct,
        cuts=cuts,
        cut_documents=np.searchsorted(first, cuts),
        cut_hits=np.searchsorted(places, cuts),
        chunks=None if ranked is None else ranked.chunks,
        groups=() if ranked is None else tie_groups(ranked, first, places, ks),
    )


def bytes_per_lane(ks: Sequence[int], queries: int, depth: int) -> int:
    """About what the counts of one lane take, to bound the width of a block."""
    return len(ks) * queries * 64 + depth * 16


def count_run(plans: Sequence[QueryPlan], lanes: Lanes, ks: Sequence[int], *, complete_ranking: bool) -> Counts:
    """Count what a run gives to each lane of a block."""
    counting = _Counting(plans, lanes, ks)
    for number, plan in enumerate(plans):
        counting.walk(number, plan)
    return counting.finish(complete_ranking=complete_ranking)


class _Counting:
    """The arrays that the walks fill in, query by query."""

    def __init__(self, plans: Sequence[QueryPlan], lanes: Lanes, ks: Sequence[int]) -> None:
        self.plans = plans
        self.lanes = lanes
        self.ks = tuple(ks)
        shape = (len(ks), len(plans), len(lanes))
        self.hits: dict[str, Ints] = {name: np.zeros(shape, np.int32) for name in FILTERS}
        self.ndcg: dict[str, Floats] = {name: np.zeros(shape) for name in FILTERS}
        self.rr: dict[str, Floats] = {name: np.zeros(shape) for name in FILTERS}
        self.readable: Ints = np.zeros(shape, np.int32)
        self.pre_truncated: Bools = np.zeros(shape, bool)
        self.authorized_relevant: Ints = np.zeros(shape[1:], np.int32)
        self.undecided_list: Bools = np.zeros(shape[1:], bool)
        self.undecided: Bools = np.zeros(shape[1:], bool)
        # What other orders of ties could change is kept for the queries that have any.
        tied = [number for number, plan in enumerate(plans) if plan.groups]
        self.tied = np.array(tied, np.int64)
        self.place_of = {number: at for at, number in enumerate(tied)}
        few = (len(ks), len(tied), len(lanes))
        names = (*FILTERS, "gap", "unauthorized") if tied else ()
        self.slack: dict[str, tuple[Ints, Ints]] = {
            n: (np.zeros(few, np.int32), np.zeros(few, np.int32)) for n in names
        }
        chunked = any(plan.chunks is not None for plan in plans)
        self.slot_unauthorized: Ints | None = np.zeros(shape, np.int32) if chunked else None
        self.discounts = discounts(max(max(len(p.slots), len(p.judged.ideal)) for p in plans))

    def walk(self, number: int, plan: QueryPlan) -> None:
        lanes = self.lanes
        relevant = lanes.may_read[plan.judged.relevant, : len(lanes)]
        self.authorized_relevant[number] = relevant.sum(0, dtype=np.int32)
        if lanes.undecided is not None:
            in_list = lanes.undecided[plan.documents].any(0)
            self.undecided_list[number] = in_list
            self.undecided[number] = in_list | lanes.undecided[plan.judged.relevant].any(0)
        if not plan.ranked:
            return
        hits = relevant[plan.which]
        repeats = len(plan.documents) < len(plan.slots)
        in_slots, at_cuts, total = self._readable(plan.slots, plan.places, plan.cuts)
        in_documents, documents_at_cuts = in_slots, at_cuts
        if repeats:
            in_documents, documents_at_cuts, _ = self._readable(plan.documents, plan.distinct, plan.cut_documents)
        self.readable[:, number] = documents_at_cuts
        # Places in the filtered lists, from 1: in slots, which the cut counts, and in documents, which the ranks count.
        place = in_slots + hits
        rank = place if in_documents is in_slots else in_documents + hits
        self._score(number, plan, relevant, hits, place, rank)
        for position, k in enumerate(self.ks):
            self.pre_truncated[position, number] = total < k
        if plan.chunks is not None and self.slot_unauthorized is not None:
            cuts = np.minimum(np.array(self.ks, np.int64), len(plan.chunks))
            readable = prefix_counts(lanes, plan.chunks, cuts)
            self.slot_unauthorized[:, number] = cuts[:, None] - readable
        for group in plan.groups:
            self._bound(number, plan, group, relevant, hits, place)

    def _readable(self, rows: Rows, places: NDArray[np.int64], cuts: NDArray[np.int64]) -> tuple[Ints, Ints, Ints]:
        """Readable rows before each of `places`, within each of `cuts`, and (up to the last cutoff) in all."""
        bounds = np.unique(np.concatenate((places, cuts, [len(rows)])))
        # A lane that has filled its list changes no more. It cannot be full before the last cutoff, so that the counts
        # at the cutoffs are exact.
        counts = prefix_counts(self.lanes, rows, bounds, enough=self.ks[-1])
        return counts[np.searchsorted(bounds, places)], counts[np.searchsorted(bounds, cuts)], counts[-1]

    def _score(
        self,
        number: int,
        plan: QueryPlan,
        relevant: NDArray[np.uint8],
        hits: NDArray[np.uint8],
        place: Ints,
        rank: Ints,
    ) -> None:
        gains = plan.judged.gains
        gained = hits * gains[plan.which][:, None] * self.discounts[np.minimum(rank, len(self.discounts) - 1)]
        ideals = self._ideals(number, relevant, gains)
        # Of the relevant documents that a lane may read, the first of the ranking is the first of every filtered list.
        nowhere = np.iinfo(np.int32).max
        slot, first_place, first_rank = (
            np.where(hits > 0, at, nowhere).min(0, initial=nowhere) for at in (plan.places[:, None], place, rank)
        )
        reciprocal = np.where(first_rank < nowhere, 1 / first_rank, 0.0)
        for position, k in enumerate(self.ks):
            kept = plan.cut_hits[position]
            within = hits * (place <= k)
            ideal = ideals[position]
            divisor = np.where(ideal > 0, ideal, 1.0)
            self.hits["post"][position, number] = hits[:kept].sum(0, dtype=np.int32)
            self.hits["pre"][position, number] = within.sum(0, dtype=np.int32)
            self.ndcg["post"][position, number] = gained[:kept].sum(0) / divisor
            self.ndcg["pre"][position, number] = (gained * within).sum(0) / divisor
            self.rr["post"][position, number] = reciprocal * (slot < k)
            self.rr["pre"][position, number] = reciprocal * (first_place <= k)

    def _ideals(self, number: int, relevant: NDArray[np.uint8], gains: Floats) -> list[Floats]:
        """DCG@K of the ideal ranking of R ∩ A_p, for each cutoff."""
        if not len(gains):
            return [np.zeros(len(self.lanes)) for _ in self.ks]
        if gains[0] == gains[-1]:
            best = gains[0] * np.cumsum(self.discounts)
            count = self.authorized_relevant[number]
            return [best[np.minimum(count, k)] for k in self.ks]
        rank = np.cumsum(relevant, axis=0, dtype=np.int32)
        gained = relevant * gains[:, None] * self.discounts[rank]
        return [(gained * (rank <= k)).sum(0) for k in self.ks]

    def _bound(
        self,
        number: int,
        plan: QueryPlan,
        group: TieGroup,
        relevant: NDArray[np.uint8],
        hits: NDArray[np.uint8],
        place: Ints,
    ) -> None:
        """Add what other orders of one tied group could change to the counts of the order that was used."""
        lanes = self.lanes
        place_in_tied = self.place_of[number]
        edges = prefix_counts(lanes, plan.slots, np.array([group.start, group.end], np.int64))
        before, inside = edges[0], edges[1] - edges[0]
        index_of = {row: at for at, row in enumerate(plan.judged.relevant.tolist())}
        chosen = [at for at, row in enumerate(group.rows.tolist()) if row in index_of]
        group_hits = relevant[[index_of[int(group.rows[at])] for at in chosen]]
        group_slots = group.slots[chosen].tolist()
        mine = (plan.places >= group.start) & (plan.places < group.end)
        unread = 1 - lanes.may_read[group.rows, : len(lanes)]
        for position, k in enumerate(self.ks):
            if chosen:
                used_post = hits[mine & (plan.places < k)].sum(0, dtype=np.int32)
                used_pre = (hits[mine] * (place[mine] <= k)).sum(0, dtype=np.int32)
                bounds = tied_hits(group, k, group_hits, group_slots, before, inside)
                for name, (least, greatest), used in (
                    ("post", bounds.post, used_post),
                    ("pre", bounds.pre, used_pre),
                    ("gap", bounds.gap, used_pre - used_post),
                ):
                    self.slack[name][0][position, place_in_tied] += least - used
                    self.slack[name][1][position, place_in_tied] += greatest - used
            if group.start < k < group.end:
                met = plan.documents[: group.documents_before]
                readable_before = lanes.may_read[met, : len(lanes)].sum(0, dtype=np.int32)
                kept = int(plan.cut_documents[position]) - len(met)
                used = kept - (self.readable[position, number] - readable_before)
                taken = np.full(len(lanes), k - group.start, np.int32)
                weights = group.slots.astype(np.int32)[:, None]
                fillers = group.size - (unread * weights).sum(0, dtype=np.int32)
                least = cover(taken - fillers, unread, group.slots.tolist())
                greatest = np.minimum(taken, unread.sum(0, dtype=np.int32))
                self.slack["unauthorized"][0][position, place_in_tied] += least - used
                self.slack["unauthorized"][1][position, place_in_tied] += greatest - used

    def finish(self, *, complete_ranking: bool) -> Counts:
        plans, ks = self.plans, self.ks
        cutoffs = np.array(ks)[:, None, None]
        depth = np.array([len(plan.slots) for plan in plans])[None, :, None]
        ranked = np.array([plan.ranked for plan in plans])[:, None]
        relevant = np.array([[len(plan.judged.relevant)] for plan in plans], np.int32)
        listed = np.stack([plan.cut_documents for plan in plans], axis=1)[:, :, None].astype(np.int32)
        unauthorized = listed - self.readable
        blind = _blind(plans, ks, self.discounts)
        state = states(relevant, self.authorized_relevant, self.undecided, ranked, delivered=False)
        # Only where there is a ranking, and something that a deeper one could have changed in a mean of the gap.
        may_be_short = np.isin(state, (State.OK, State.VACUOUS)) & (not complete_ranking)
        return Counts(
            ks=ks,
            delivered=False,
            state=state,
            has_list=ranked,
            list_decided=ranked & ~self.undecided_list,
            authorized_relevant=self.authorized_relevant,
            hits=self.hits,
            listed=listed,
            unauthorized=unauthorized,
            relevant=relevant,
            blind_hits=blind[0],
            blind_ndcg=blind[1],
            blind_rr=blind[2],
            tied=self.tied,
            slack=self.slack,
            slot_unauthorized=self.slot_unauthorized,
            ndcg=self.ndcg,
            rr=self.rr,
            gap_defined=(depth > cutoffs) | ~ranked[None] | complete_ranking,
            pre_truncated=self.pre_truncated & may_be_short,
        )


def _blind(plans: Sequence[QueryPlan], ks: Sequence[int], table: Floats) -> tuple[Ints, Floats, Floats]:
    """Hits, nDCG and RR of each ranking as given: (K, Q, 1), (K, Q, 1), (Q, 1)."""
    hits = np.stack([plan.cut_hits for plan in plans], axis=1)[:, :, None].astype(np.int32)
    ndcg = np.zeros((len(ks), len(plans), 1))
    rr = np.zeros((len(plans), 1))
    for number, plan in enumerate(plans):
        if len(plan.distinct):
            rr[number] = 1 / (plan.distinct[0] + 1)
        gains = plan.judged.gains_of(plan.documents[: plan.cut_documents[-1]])
        gained = np.append(0.0, np.cumsum(gains * table[1 : len(gains) + 1]))
        ideal = ideal_dcg(plan.judged.ideal, ks, table)
        ndcg[:, number, 0] = gained[plan.cut_documents] / np.where(ideal > 0, ideal, 1)
    return hits, ndcg, rr
