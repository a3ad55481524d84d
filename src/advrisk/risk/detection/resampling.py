"""Drawing whole samples with replacement, and the false-positive rate at a true-positive rate in every draw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.risk.detection.roc import Floats, Integers, allowed_misses
from advrisk.risk.proportion import proportion

Counts = NDArray[np.uint8]

_CELLS = 2_000_000  # samples x resamples that are worked on at a time


@dataclass(frozen=True, eq=False)
class Ranked:
    """The worst-case scores of a set of arms, from the least up, beside the clean ones."""

    sample: Integers  # which samples, as they were given
    score: Floats
    below: Integers  # how many clean scores are less
    not_above: Integers  # and how many are not greater

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

    Unless `paired`, the attacked samples of each set are drawn by themselves.
    """
    order = np.argsort(clean)
    rates = np.full((len(sets), resamples), np.nan)
    block = max(1, _CELLS // clean.size)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        counts = drawn(clean.size, size, rng)
        up_to = np.zeros((clean.size + 1, size), dtype=np.int32)
        np.cumsum(counts[order], axis=0, dtype=np.int32, out=up_to[1:])
        n_drawn = _drawn_of_each(sets, counts) if paired else [np.full(size, one.sample.size) for one in sets]
        for place, one in enumerate(sets):
            first = (
                _first_detected(counts, one.sample, n_drawn[place], tpr)
                if paired
                else _first_detected(drawn(one.sample.size, size, rng), np.arange(one.sample.size), n_drawn[place], tpr)
            )
            known = np.flatnonzero(n_drawn[place])
            found = up_to[one.below[first[known]], known]
            rates[place, start + known] = (clean.size - found) / clean.size
    return rates


def drawn(n: int, resamples: int, rng: np.random.Generator) -> Counts:
    """How often each of n samples is drawn in n draws, (n, resamples); never 256 times, by all that is likely."""
    counts = np.empty((resamples, n), dtype=np.uint8)
    for row in counts:
        row[:] = np.bincount(rng.integers(n, size=n), minlength=n)
    return np.ascontiguousarray(counts.T)


def _drawn_of_each(sets: Sequence[Ranked], counts: Counts) -> Integers:
    """How many broken samples each resample holds, (sets, resamples): a product of small whole numbers, exact."""
    broken = np.zeros((len(sets), len(counts)), dtype=np.float32)
    for row, one in zip(broken, sets, strict=True):
        row[one.sample] = 1
    return np.asarray(broken @ counts.astype(np.float32), dtype=np.int64)


def _first_detected(counts: Counts, rank: Integers, n_drawn: Integers, tpr: float) -> Integers:
    """In each resample the first sample, from the least score up (`rank`), that may not be missed.

    Only as many samples are added up as the misses that are allowed make necessary.
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


def order_bounds(ordered: Floats, found: Ranked, rate: float, *, tpr: float, level: float) -> tuple[float, float]:
    """An interval for the false-positive rate that needs no resampling.

    The threshold is a quantile of the attacked scores, bounded by two of these scores themselves: the number below the
    true quantile is binomial. What the rate is at those two, and Clopper and Pearson's interval of the rate at the
    threshold itself, are joined as independent errors are (Zou & Donner 2008). With few attacked samples no score is
    low enough to bound the quantile, and the rate may be 1 for all one knows.
    """
    n, n_broken = ordered.size, found.score.size
    lower, upper = _quantile_places(n_broken, 1 - tpr, (1 - level) / 2)
    least = 0.0 if upper >= n_broken else 1 - int(found.below[upper]) / n
    most = 1.0 if lower < 0 else 1 - int(found.below[lower]) / n
    of_clean = proportion(round(rate * n), n, level=level)
    low = rate - math.hypot(rate - of_clean.low, rate - min(least, rate))
    high = rate + math.hypot(of_clean.high - rate, max(most, rate) - rate)
    return max(low, 0.0), min(high, 1.0)


def _quantile_places(n: int, share: float, tail: float) -> tuple[int, int]:
    """Places, from 0, of the scores that lie below and above the quantile, each wrong with probability <= tail.

    Before the first or after the last place: no score can bound it on that side.
    """
    from scipy.special import bdtr

    spread = 10 * math.sqrt(n * share * (1 - share)) + 10
    numbers = np.arange(max(0, int(n * share - spread)), min(n, int(n * share + spread)) + 1)
    at_most = bdtr(numbers.astype(np.float64), n, share)  # P(so many scores or fewer lie below the quantile)
    unlikely = numbers[at_most <= tail]
    lower = int(unlikely[-1]) if unlikely.size else -1  # score k, from 0, lies above if at most k lie below
    enough = numbers[at_most >= 1 - tail]
    return lower, int(enough[0]) if enough.size else n
