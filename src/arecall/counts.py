"""What one walk down the rankings counts, for every query, lane and cutoff at once; the measures are made from it."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class State(enum.IntEnum):
    """The relevance state of a pair, the first that applies; `NO_LIST` only of delivered lists (no evidence)."""

    NO_LIST = 0
    NO_RELEVANT = 1
    INCOMPLETE = 2
    VACUOUS = 3
    MISSING = 4
    OK = 5

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.name.lower()


@dataclass(frozen=True)
class Counts:
    """Counts over a block of lanes. Shapes: K cutoffs, Q queries, L lanes; a length of 1 stands for all of that axis.

    Attributes:
        ks: the cutoffs, ascending.
        delivered: whether these are delivered lists (else a run).
        state: `State` of each pair; uint8 (Q, L).
        has_list: whether the pair has a list (an empty one is one); (Q, L).
        list_decided: it has one, and every document in it has a plain decision; (Q, L).
        authorized_relevant: |R ∩ A_p|; (Q, L).
        hits: by filter (`post`, `pre` or `delivered`), |R ∩ A_p ∩ L_K|; (K, Q, L).
        tied: the queries whose ties matter, ascending; shape (T,).
        slack: by filter (and `gap`, `unauthorized`), how much less and how much more the count could be in another order of
            the ties of those queries; (K, T, L), the first at most 0, the second at least 0. Empty where nothing is tied.
        listed: |L_K| in documents; (K, Q, L).
        unauthorized: documents of L_K that are not readable; (K, Q, L). Meaningful where `list_decided`.
        slot_unauthorized: the same in chunk slots; None without chunks.
        ndcg, rr: by filter, the authorized ones; (K, Q, L).
        relevant: |R|; (Q, 1).
        blind_hits, blind_ndcg: |R ∩ L_K| and nDCG@K of the list as given; (K, Q, L).
        blind_rr: reciprocal rank over the whole list; (Q, L).
        gap_defined: the ranking is deeper than K, or is stated to be complete, or is missing; (K, Q, 1).
        pre_truncated: fewer than K readable documents in the ranking of a pair that is ok or vacuous; (K, Q, L).
    """

    ks: tuple[int, ...]
    delivered: bool
    state: NDArray[np.uint8]
    has_list: Bools
    list_decided: Bools
    authorized_relevant: Ints
    hits: Mapping[str, Ints]
    listed: Ints
    unauthorized: Ints
    relevant: Ints
    blind_hits: Ints
    blind_ndcg: Floats
    blind_rr: Floats
    tied: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    slack: Mapping[str, tuple[Ints, Ints]] = field(default_factory=dict)
    slot_unauthorized: Ints | None = None
    ndcg: Mapping[str, Floats] = field(default_factory=dict)
    rr: Mapping[str, Floats] = field(default_factory=dict)
    gap_defined: Bools | None = None
    pre_truncated: Bools | None = None

    # The masks are made once: the aggregation sums each mask it is given once, and knows it by identity.

    @cached_property
    def restricted(self) -> Bools:
        """The pairs of a restricted mean; (Q, L)."""
        return np.isin(self.state, (State.OK, State.MISSING))

    @cached_property
    def vacuous(self) -> Bools:
        """The pairs that only a full mean counts; (Q, L)."""
        return np.equal(self.state, State.VACUOUS)

    @cached_property
    def full(self) -> Bools:
        """The pairs of a full mean; (Q, L)."""
        return self.restricted | self.vacuous

    @cached_property
    def judged(self) -> Bools:
        """The pairs with a relevant document and, where lists were delivered, a list; (Q, L)."""
        return ~np.isin(self.state, (State.NO_RELEVANT, State.NO_LIST))


def discounts(depth: int) -> Floats:
    """1 / log2(rank + 1) for ranks 0 to `depth`, with 0 at rank 0 (Järvelin and Kekäläinen 2002, as in trec_eval)."""
    table = np.zeros(depth + 1)
    table[1:] = 1 / np.log2(np.arange(2, depth + 2))
    return table


def ideal_dcg(ideal: Floats, ks: Sequence[int], table: Floats) -> Floats:
    """DCG@K of the gains `ideal`, which are in descending order, for each cutoff; 0 where there is none."""
    gained = np.append(0.0, np.cumsum(ideal * table[1 : len(ideal) + 1]))
    return gained[np.minimum(ks, len(ideal))]


def states(
    relevant: Ints, authorized_relevant: Ints, undecided: Bools, has_list: Bools, *, delivered: bool
) -> NDArray[np.uint8]:
    """The state of each pair, the first that applies; all arguments broadcast to (Q, L)."""
    no_list = State.NO_LIST if delivered else State.MISSING
    conditions = [relevant == 0, undecided, authorized_relevant == 0, ~has_list]
    choices = [State.NO_RELEVANT, State.INCOMPLETE, State.VACUOUS, no_list]
    if delivered:
        conditions.insert(0, ~has_list)
        choices.insert(0, no_list)
    shape = np.broadcast_shapes(*(c.shape for c in conditions))
    return np.select([np.broadcast_to(c, shape) for c in conditions], choices, State.OK).astype(np.uint8)
