"""Principals as the lanes of the walk: which documents each may read, laid out so that one row serves them all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from arecall.snapshot import Snapshot

BLOCK_BYTES = 256 * 2**20
"""About how much memory one block of lanes may take in the membership matrix and in what is counted from it."""


@dataclass(frozen=True)
class Lanes:
    """A block of lanes; principals with equal decisions share one.

    Attributes:
        principals: for each lane, the ids of the principals that share it (sorted).
        may_read: uint8 (documents, width), 1 where the lane's principals may read the document. `width` is the number
            of lanes rounded up to 8, so that eight lanes can be added in one 64-bit step; the spare lanes are 0.
        undecided: bool (documents, lanes), True where there is no plain decision; None where every pair has one.
    """

    principals: tuple[tuple[str, ...], ...]
    may_read: NDArray[np.uint8]
    undecided: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.principals)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All principals of the block, lane by lane."""
        return tuple(name for ids in self.principals for name in ids)

    @cached_property
    def lane_of(self) -> NDArray[np.int64]:
        """The lane of each of `names`."""
        return np.repeat(np.arange(len(self)), [len(ids) for ids in self.principals])

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """How many principals each lane stands for; shape (lanes,)."""
        return np.array([len(ids) for ids in self.principals], np.float64)


def lane_blocks(snapshot: Snapshot, documents: Sequence[str], *, bytes_per_lane: int, shared: bool) -> Iterator[Lanes]:
    """Lay the principals of `snapshot` out in blocks of lanes over the rows `documents`.

    A document outside of the snapshot's universe is undecided for everyone, and so is marked.

    Args:
        snapshot: whose decisions they are.
        documents: the ids that the rows stand for, without repeats.
        bytes_per_lane: what one lane costs beside its column here; bounds the width of a block.
        shared: put principals with equal decisions into one lane; False gives each its own, in order.
    """
    rows = np.full(len(snapshot.documents), -1, np.int64)
    outside: list[int] = []
    for row, document in enumerate(documents):
        at = snapshot.position_of_document.get(document)
        if at is None:
            outside.append(row)
        else:
            rows[at] = row
    open_documents: dict[str, list[int]] = {}
    for principal, document in snapshot.undecided:
        open_documents.setdefault(principal, []).append(snapshot.position_of_document[document])
    lanes: dict[tuple[int, ...], list[str]] = {}
    for number, (principal, set_number) in enumerate(zip(snapshot.principals, snapshot.set_of.tolist(), strict=True)):
        key = (set_number, *sorted(open_documents.get(principal, ())), *(() if shared else (-1 - number,)))
        lanes.setdefault(key, []).append(principal)
    width = max(8, BLOCK_BYTES // (2 * len(documents) + bytes_per_lane) // 8 * 8)
    everything = list(lanes.items())
    for start in range(0, len(everything), width):
        block = everything[start : start + width]
        padded = -(-len(block) // 8) * 8
        may_read = np.zeros((len(documents), padded), np.uint8)
        undecided = np.zeros((len(documents), len(block)), bool) if outside or open_documents else None
        for lane, (key, ids) in enumerate(block):
            allowed = rows[snapshot.sets[key[0]]]
            may_read[allowed[allowed >= 0], lane] = 1
            still_open = rows[open_documents.get(ids[0], [])]
            if undecided is not None:
                undecided[still_open[still_open >= 0], lane] = True
        if undecided is not None:
            undecided[outside] = True
        yield Lanes(tuple(tuple(ids) for _, ids in block), may_read, undecided)


def prefix_counts(
    lanes: Lanes, rows: NDArray[np.int32], bounds: NDArray[np.int64], enough: int | None = None
) -> NDArray[np.int32]:
    """Count, for every lane at once, the readable documents among the first `b` of `rows`, for each bound `b`.

    Eight lanes are added in one 64-bit step: rows hold 0 or 1 in each byte, so that 255 rows cannot overflow one.

    Args:
        lanes: the block.
        rows: a ranking, as rows of the block; shape (depth,).
        bounds: ascending numbers of leading rows, each at most `depth`.
        enough: stop once every lane has counted this many; later bounds then repeat what was counted by then, which is
            at least `enough`.

    Returns:
        int32 (len(bounds), len(lanes)).
    """
    words = lanes.may_read.view(np.uint64)
    counts = np.empty((len(bounds), len(lanes)), np.int32)
    running = np.zeros(len(lanes), np.int32)
    at = 0
    for number, bound in enumerate(bounds.tolist()):
        while at < bound:
            upto = min(bound, at + 255)
            added = np.add.reduce(words.take(rows[at:upto], axis=0), axis=0)
            running += added.view(np.uint8)[: len(lanes)]
            at = upto
        counts[number] = running
        if enough is not None and running.min() >= enough:
            counts[number + 1 :] = running
            break
    return counts
