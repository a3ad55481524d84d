"""Bootstrap of whole samples, and the false-positive rate at a true-positive rate in every resample."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.detection.roc import Floats, Integers, allowed_misses
from advrisk.risk.proportion import proportion

Counts = NDArray[np.uint8]

_CELLS = 2_000_000  # samples x resamples in memory at a time


@dataclass(frozen=True, eq=False)
class Ranked:
    """Worst-case scores of a set of arms in ascending order, with their ranks among the clean scores."""

    sample: Integers  # index of the sample
    score: Floats
    below: Integers  # number of smaller clean scores
    not_above: Integers  # number of smaller or equal clean scores

    @classmethod
    def of(cls, scores: Floats, clean_ordered: Floats) -> "Ranked":
        broken = np.flatnonzero(~np.isnan(scores))
        sample = broken[np.argsort(scores[broken])]
        score = scores[sample]
        sides = (np.searchsorted(clean_ordered, score, side=side) for side in ("left", "right"))
        return cls(sample, score, *sides)


def resampled_rates(
    clean: Floats,
    sets: Sequence[Ranked],
    *,
    tpr: float,
    resamples: int,
    rng: np.random.Generator,
    paired: bool = True,
) -> Floats:
    """False-positive rate of each set in each resample, (sets, resamples); nan where no arm broke a drawn sample.

    Unless `paired`, the attacked samples of each set are drawn independently.
    """
    order = np.argsort(clean)
    rates = np.full((len(sets), resamples), np.nan)
    block = max(1, _CELLS // clean.size)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        counts = drawn(clean.size, size, rng)
        up_to = np.zeros((clean.size + 1, size), dtype=np.int32)
        np.cumsum(counts[order], axis=0, dtype=np.int32, out=up_to[1:])
        n_drawn = _n_broken(sets, counts) if paired else [np.full(size, one.sample.size) for one in sets]
        for index, one in enumerate(sets):
            first = (
                _first_detected(counts, one.sample, n_drawn[index], tpr)
                if paired
                else _first_detected(drawn(one.sample.size, size, rng), np.arange(one.sample.size), n_drawn[index], tpr)
            )
            broken = np.flatnonzero(n_drawn[index])
            below = up_to[one.below[first[broken]], broken]
            rates[index, start + broken] = (clean.size - below) / clean.size
    return rates


def drawn(n: int, resamples: int, rng: np.random.Generator) -> Counts:
    """How often each of n samples is drawn in n draws, (n, resamples); 256 draws of one sample do not occur."""
    counts = np.empty((resamples, n), dtype=np.uint8)
    for row in counts:
        row[:] = np.bincount(rng.integers(n, size=n), minlength=n)
    return np.ascontiguousarray(counts.T)


def _n_broken(sets: Sequence[Ranked], counts: Counts) -> Integers:
    """Number of broken samples in each resample, (sets, resamples): a product of small integers, exact."""
    broken = np.zeros((len(sets), len(counts)), dtype=np.float32)
    for row, one in zip(broken, sets, strict=True):
        row[one.sample] = 1
    return np.asarray(broken @ counts.astype(np.float32), dtype=np.int64)


def _first_detected(counts: Counts, rank: Integers, n_drawn: Integers, tpr: float) -> Integers:
    """Rank of the first sample, in ascending order of scores, that must be detected in each resample.

    Only as many samples are summed as the allowed misses require.
    """
    allowed = allowed_misses(n_drawn, tpr).astype(np.int32)
    most = int(allowed.max(initial=0))
    rows = most + 8 * math.isqrt(most) + 16
    while True:
        up_to = np.cumsum(counts[rank[:rows]], axis=0, dtype=np.int32)
        first = np.add.reduce(up_to <= allowed, axis=0, dtype=np.int64)
        if rows >= rank.size or (first[n_drawn > 0] < rows).all():
            return np.asarray(first, dtype=np.int64)
        rows *= 2


def order_bounds(ordered: Floats, ranked: Ranked, rate: float, *, tpr: float, level: float) -> tuple[float, float]:
    """Interval of the false-positive rate from order statistics, without resampling.

    The threshold is a quantile of the attacked scores. Two of these scores bound it, since the number below the true
    quantile is binomial. The rates at these two and Clopper and Pearson's interval of the rate at the threshold are
    combined as independent errors (Zou & Donner 2008). With few attacked samples, no score is low enough to bound the
    quantile, and the upper bound is 1.
    """
    n, n_broken = ordered.size, ranked.score.size
    lower, upper = _quantile_indices(n_broken, 1 - tpr, (1 - level) / 2)
    least = 0.0 if upper >= n_broken else 1 - int(ranked.below[upper]) / n
    most = 1.0 if lower < 0 else 1 - int(ranked.below[lower]) / n
    of_clean = proportion(round(rate * n), n, level=level)
    low = rate - math.hypot(rate - of_clean.low, rate - min(least, rate))
    high = rate + math.hypot(of_clean.high - rate, max(most, rate) - rate)
    return max(low, 0.0), min(high, 1.0)


def _quantile_indices(n: int, share: float, tail: float) -> tuple[int, int]:
    """Indices of the scores that bound the quantile from below and above, each wrong with probability <= tail.

    -1 or n if no score can bound it on that side.
    """
    from scipy.special import bdtr

    spread = 10 * math.sqrt(n * share * (1 - share)) + 10
    numbers = np.arange(max(0, int(n * share - spread)), min(n, int(n * share + spread)) + 1)
    at_most = bdtr(numbers.astype(np.float64), n, share)  # P(at most this number of scores lie below the quantile)
    unlikely = numbers[at_most <= tail]
    lower = int(unlikely[-1]) if unlikely.size else -1  # score k, from 0, lies above if at most k lie below
    enough = numbers[at_most >= 1 - tail]
    return lower, int(enough[0]) if enough.size else n
