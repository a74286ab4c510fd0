"""Intervals at 95 %: percentile bootstrap over queries, and the exact binomial one for shares of lists."""

from __future__ import annotations

import numpy as np

from arecall.counts import Floats

CONFIDENCE = 0.95

_TAIL = (1 - CONFIDENCE) / 2


def bootstrap_weights(queries: int, draws: int, seed: int) -> Floats:
    """How often each query is drawn in each of `draws` resamples of all queries; shape (draws, queries)."""
    if not draws:
        return np.empty((0, queries))
    rng = np.random.default_rng(seed)
    return rng.multinomial(queries, np.full(queries, 1 / queries), draws).astype(np.float64)


def percentile_interval(draws: Floats) -> tuple[Floats, Floats]:
    """The percentile interval of each row of draws (rows, draws); `draws` is reordered.

    Draws in which nothing was defined (NaN) are left out. Quantiles are interpolated linearly between order statistics
    (Hyndman and Fan 1996, type 7).
    """
    low, high = np.empty(len(draws)), np.empty(len(draws))
    whole = ~np.isnan(draws).any(axis=1)
    low[whole], high[whole] = _quantiles(draws if whole.all() else draws[whole])
    if not whole.all():
        low[~whole], high[~whole] = np.nanquantile(draws[~whole], (_TAIL, 1 - _TAIL), axis=1)
    return low, high


def _quantiles(draws: Floats) -> tuple[Floats, Floats]:
    places = [q * (draws.shape[1] - 1) for q in (_TAIL, 1 - _TAIL)]
    below = [int(place) for place in places]
    above = [min(at + 1, draws.shape[1] - 1) for at in below]
    # Four order statistics are all that is needed: selecting them is several times cheaper than sorting every row.
    draws.partition(sorted({*below, *above}), axis=1)
    low, high = (
        draws[:, a] + (draws[:, b] - draws[:, a]) * (place - a)
        for a, b, place in zip(below, above, places, strict=True)
    )
    return low, high


def clopper_pearson(successes: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """The exact interval of a binomial share (Clopper and Pearson 1934), by quantiles of the beta distribution.

    Args:
        successes, trials: arrays of equal shape, `0 <= successes <= trials`, `trials >= 1`.
    """
    from scipy.special import betaincinv

    failures = trials - successes
    low = np.where(successes > 0, betaincinv(np.maximum(successes, 1), failures + 1, _TAIL), 0.0)
    high = np.where(failures > 0, betaincinv(successes + 1, np.maximum(failures, 1), 1 - _TAIL), 1.0)
    return low, high
