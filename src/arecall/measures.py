"""The measures: what each is, over which pairs its mean runs, and how it comes from what was counted.

Every measure is named `NAME@K` (`RR` of a whole list without a cutoff). `filter` says which list it is of: `post` (cut,
then drop what is unauthorized), `pre` (drop, then cut), `gap` (pre - post), `delivered`, or `none` (the ranking as given).
`mean` says over which pairs a mean runs: `restricted` (states ok and missing), `full` (those and vacuous ones, as 1, or
as 0 in the gap), or `all` (every pair for which the measure is defined).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arecall.counts import Bools, Counts, Floats

Numbers = NDArray[np.int32] | Floats


@dataclass(frozen=True)
class Measure:
    """A measure and what it means; `on_leaks`: it judges what was shown, not what was found."""

    name: str
    formula: str
    meaning: str
    on_leaks: bool = False


MEASURES = {
    m.name: m
    for m in (
        Measure(
            "ARecall",
            "|R ∩ A_p ∩ L_K| / |R ∩ A_p|",
            "Authorized Recall: of the relevant documents that the principal may read, the share in the first K",
        ),
        Measure("P", "|R ∩ L_K| / K", "precision: the share of K places that hold a relevant (readable) document"),
        Measure("nDCG", "DCG@K / ideal DCG@K", "graded gain, discounted by log2(rank + 1); gain = grade"),
        Measure("RR", "1 / rank of the first relevant document", "reciprocal rank; 0 where none is in the list"),
        Measure("R", "|R ∩ L_K| / |R|", "blind recall, which does not know who asks"),
        Measure("U", "|L_K \\ A_p| / K", "unauthorized share of K places", on_leaks=True),
        Measure("UReturned", "|L_K \\ A_p| / |L_K|", "unauthorized share of what came back", on_leaks=True),
        Measure("Leak", "lists with any unauthorized document / lists", "share of lists that leak", on_leaks=True),
        Measure("ChunkU", "unauthorized chunks in the first K / K", "U in chunk slots", on_leaks=True),
    )
}


@dataclass(frozen=True)
class SeriesName:
    """What tells one series from every other.

    Attributes:
        base: the measure's name without cutoff; `k` the cutoff (None: the whole list).
        filter, mean: as in the module's docstring.
        delivered: whether it is of delivered lists.
        ratio: whether its values have a numerator and a denominator (nDCG and RR have none).
        tied: whether it has bounds over all orders of ties.
    """

    base: str
    k: int | None
    filter: str
    mean: str
    delivered: bool
    ratio: bool = False
    tied: bool = False

    @property
    def measure(self) -> str:
        """The name in the result: `ARecall@5`."""
        return self.base if self.k is None else f"{self.base}@{self.k}"


@dataclass(frozen=True)
class Slack:
    """What other orders of tied documents could change, at the few queries where that is anything.

    Attributes:
        queries: those queries; shape (T,).
        less, more: how much less (at most 0) and more (at least 0) the value could be; (T, L).
    """

    queries: NDArray[np.int64]
    less: Floats
    more: Floats


@dataclass(frozen=True)
class Series:
    """One measure at one cutoff under one filter and mean, for a block of pairs. All arrays broadcast to (Q, L).

    Attributes:
        name: which one it is.
        value: its values; what stands where `defined` is False means nothing.
        defined: the pairs over which the mean runs.
        ratio: numerator and denominator of each value, or None.
        slack: how far the value could be from it in another order of ties; None where nothing is tied.
    """

    name: SeriesName
    value: Floats
    defined: Bools
    ratio: tuple[Numbers, Numbers] | None = None
    slack: Slack | None = None


def series(counts: Counts) -> Iterator[Series]:
    """Every series of a block, in the order of the result's rows."""
    for position, k in enumerate(counts.ks):
        yield from _authorized_recall(counts, position, k)
        if not counts.delivered:
            yield from _authorized_others(counts, position, k)
        yield from _leaks(counts, position, k)
        yield from _blind(counts, position, k)
    yield _series(counts, "RR", None, _as_given(counts), "all", counts.blind_rr, counts.judged)


def _series(
    counts: Counts,
    base: str,
    k: int | None,
    filtered: str,
    mean: str,
    value: Floats,
    defined: Bools,
    ratio: tuple[Numbers, Numbers] | None = None,
    slack: Slack | None = None,
) -> Series:
    name = SeriesName(base, k, filtered, mean, counts.delivered, ratio is not None, slack is not None)
    return Series(name, value, defined, ratio, slack)


def _slack(counts: Counts, name: str, position: int, divisor: Floats) -> Slack | None:
    if name not in counts.slack:
        return None
    less, more = counts.slack[name]
    return Slack(counts.tied, less[position] / divisor, more[position] / divisor)


def _as_given(counts: Counts) -> str:
    return "delivered" if counts.delivered else "none"


def _safe(denominator: Numbers) -> Floats:
    """The denominator with 1 for 0: what is divided by it there is 0 too, or masked by the pair's state."""
    return np.where(denominator == 0, 1, denominator).astype(np.float64)


def _authorized_recall(counts: Counts, position: int, k: int) -> Iterator[Series]:
    denominator = counts.authorized_relevant
    divisor = _safe(denominator)
    hits = {name: array[position] for name, array in counts.hits.items()}
    if not counts.delivered:
        hits["gap"] = hits["pre"] - hits["post"]
    for name, hit in hits.items():
        value = hit / divisor
        slack = _slack(counts, name, position, divisor[counts.tied])
        restricted, full = counts.restricted, counts.full
        if name == "gap" and counts.gap_defined is not None and not counts.gap_defined[position].all():
            restricted, full = restricted & counts.gap_defined[position], full & counts.gap_defined[position]
        ratio = (hit, denominator)
        yield _series(counts, "ARecall", k, name, "restricted", value, restricted, ratio, slack)
        if name != "gap":
            # Nothing is hit where nothing is there to hit: the vacuous pairs are 0 in `value`, and 1 in a full mean.
            value = value + counts.vacuous
        yield _series(counts, "ARecall", k, name, "full", value, full, ratio, slack)


def _authorized_others(counts: Counts, position: int, k: int) -> Iterator[Series]:
    for name in ("post", "pre"):
        hit = counts.hits[name][position]
        yield _series(counts, "P", k, name, "restricted", hit / k, counts.restricted, (hit, _places(k)))
        yield _series(counts, "nDCG", k, name, "restricted", counts.ndcg[name][position], counts.restricted)
        yield _series(counts, "RR", k, name, "restricted", counts.rr[name][position], counts.restricted)


def _places(k: int) -> Numbers:
    return np.full((1, 1), k, np.int32)


def _leaks(counts: Counts, position: int, k: int) -> Iterator[Series]:
    given, known = _as_given(counts), counts.list_decided
    unauthorized, listed = counts.unauthorized[position], counts.listed[position]
    slack = _slack(counts, "unauthorized", position, np.full((1, 1), k, np.float64))
    yield _series(counts, "U", k, given, "all", unauthorized / k, known, (unauthorized, _places(k)), slack)
    share = unauthorized / _safe(listed)
    yield _series(counts, "UReturned", k, given, "all", share, known & (listed > 0), (unauthorized, listed))
    leaking = (unauthorized > 0).astype(np.int32)
    yield _series(counts, "Leak", k, given, "all", leaking.astype(np.float64), known, (leaking, _places(1)))
    if counts.slot_unauthorized is not None:
        slots = counts.slot_unauthorized[position]
        yield _series(counts, "ChunkU", k, given, "all", slots / k, known, (slots, _places(k)))


def _blind(counts: Counts, position: int, k: int) -> Iterator[Series]:
    given, judged = _as_given(counts), counts.judged
    hit, ndcg = counts.blind_hits[position], counts.blind_ndcg[position]
    recall = hit / _safe(counts.relevant)
    yield _series(counts, "R", k, given, "all", recall, judged, (hit, counts.relevant))
    yield _series(counts, "P", k, given, "all", hit / k, judged, (hit, _places(k)))
    yield _series(counts, "nDCG", k, given, "all", ndcg, judged)
