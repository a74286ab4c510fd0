"""Least and greatest counts over all orders of tied places.

Within one group of tied slots, a list takes some number of leading slots. What it can hit at least is what is left once
the slots without anything to hit are used up first; at most, a different document in every slot. With the cut at chunks a
document may have several slots in a group: the least then spends its slots on the documents with the most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arecall.alignment import Ranked, Rows

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class TieGroup:
    """A run of slots with equal scores.

    Attributes:
        start, end: its slots, `start <= slot < end`.
        documents_before: how many documents are met before it.
        rows: the documents that are met here for the first time, those with the most slots in the group first.
        slots: how many slots of the group each of `rows` has.
    """

    start: int
    end: int
    documents_before: int
    rows: Rows
    slots: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many slots are tied."""
        return self.end - self.start


def tie_groups(
    ranked: Ranked, first: NDArray[np.int64], places: NDArray[np.int64], ks: Sequence[int]
) -> tuple[TieGroup, ...]:
    """The groups of tied slots whose order matters: a relevant document is first met there, or a cutoff lies across.

    Args:
        ranked: the ranking; one whose order was shown has no ties.
        first: the slots at which a document is first met, ascending.
        places: those of them at which it is a relevant one.
        ks: the cutoffs.
    """
    if ranked.scores is None or len(ranked.slots) < 2:
        return ()
    edges = np.flatnonzero(np.diff(ranked.scores)) + 1
    starts = np.concatenate(([0], edges))
    ends = np.concatenate((edges, [len(ranked.slots)]))
    cutoffs = np.array(ks)
    matters = np.searchsorted(places, ends) > np.searchsorted(places, starts)
    matters |= np.searchsorted(cutoffs, ends, side="left") > np.searchsorted(cutoffs, starts, side="right")
    matters &= ends - starts > 1
    groups = []
    for start, end in zip(starts[matters].tolist(), ends[matters].tolist(), strict=True):
        before, until = np.searchsorted(first, [start, end]).tolist()
        rows, slots = np.unique(ranked.slots[start:end], return_counts=True)
        fresh = np.isin(rows, ranked.slots[first[before:until]])
        rows, slots = rows[fresh], slots[fresh]
        by_slots = np.argsort(-slots, kind="stable")
        groups.append(TieGroup(start, end, before, rows[by_slots].astype(np.int32), slots[by_slots]))
    return tuple(groups)


def cover(places: Ints, hits: NDArray[np.uint8], slots: Sequence[int]) -> Ints:
    """The least number of documents whose slots fill `places`, the documents with the most slots first.

    Args:
        places: how many slots there are to fill; shape (L,); zero or less needs no document.
        hits: which documents count for which lane; 0 or 1, shape (documents, L).
        slots: how many slots each document has, descending.

    Returns:
        int32 (L,), at most the number of documents that count.
    """
    left = places.copy()
    used = np.zeros_like(left)
    for hit, width in zip(hits, slots, strict=True):
        take = (hit > 0) & (left > 0)
        used += take
        left -= width * take.astype(np.int32)
    return used


@dataclass(frozen=True)
class TiedHits:
    """Bounds of what one group gives to the hits of each list; all int32 (L,)."""

    post: tuple[Ints, Ints]
    pre: tuple[Ints, Ints]
    gap: tuple[Ints, Ints]


def tied_hits(
    group: TieGroup, k: int, hits: NDArray[np.uint8], slots: Sequence[int], before: Ints, inside: Ints
) -> TiedHits:
    """Bound the hits that `group` gives when the list is cut at `k`.

    The bound of the gap is taken within one order: of the `inside` readable slots, the post-filtered list sees the first
    j and the pre-filtered list the first m >= j, and the gap counts the documents first met between the two.

    Args:
        group: the tied slots.
        k: the cutoff.
        hits: which of the group's relevant documents are readable; 0 or 1, shape (documents, L).
        slots: how many slots of the group each of them has, descending.
        before, inside: readable slots before and in the group; shape (L,).
    """
    weights = np.asarray(slots, np.int32)[:, None]
    relevant_slots = (hits * weights).sum(0, dtype=np.int32)
    documents = hits.sum(0, dtype=np.int32)
    taken = np.full_like(before, min(max(k - group.start, 0), group.size))
    readable = np.clip(k - before, 0, inside).astype(np.int32)
    fillers_all = group.size - relevant_slots
    fillers = inside - relevant_slots
    least_seen = np.maximum(0, taken - (group.size - inside)).astype(np.int32)
    most_seen = np.minimum(taken, inside)
    return TiedHits(
        post=(cover(taken - fillers_all, hits, slots), np.minimum(taken, documents)),
        pre=(cover(readable - fillers, hits, slots), np.minimum(readable, documents)),
        gap=(
            np.maximum(0, cover(readable - fillers, hits, slots) - most_seen),
            np.minimum(readable - least_seen, documents - cover(least_seen - fillers, hits, slots)),
        ),
    )
