"""Monotone evasion curve: isotonic regression, with bounds between the sizes of the answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from advrisk.risk.evasion.answers import Answers, checked_answers
from advrisk.risk.evasion.curve import Evasion, Flags, Floats, checked_sizes, outside


@dataclass(frozen=True, eq=False)
class MonotoneCurve:
    """Values at knots, with linear interpolation in between and constant extrapolation.

    Between two knots, Psi is only bounded by `high` of the knot below and `low` of the knot above; beyond the last knot
    it is at least 0 (`bounds`).
    """

    knots: Floats  # ascending
    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        return np.asarray((self.low + self.high) / 2)

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        line = np.interp(array, self.knots, self.middle)
        return np.where(np.isfinite(array), line, 0.0)

    def bounds(self, sizes: ArrayLike) -> tuple[Floats, Floats]:
        array = checked_sizes(sizes, "sizes")
        above = np.searchsorted(self.knots, array, side="left")  # the first knot at or above
        below = np.searchsorted(self.knots, array, side="right")  # one past the last knot at or below
        finite = np.isfinite(array)
        low = np.where(finite, np.append(self.low, 0.0)[above], 0.0)
        high = np.where(finite, np.append(1.0, self.high)[below], 0.0)
        return low, high


@dataclass(frozen=True, eq=False)
class MonotoneEvasion:
    """Isotonic regression of the answers; its draws have bounds between and beyond the sizes of the answers."""

    answers: Answers
    curve: MonotoneCurve
    _blocks: tuple[Floats, Floats, Floats] = field(repr=False)  # mean size, answers and undetected ones

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        return self.curve(sizes)

    def bounds(self, sizes: ArrayLike) -> tuple[Floats, Floats]:
        """Bounds of Psi, given the curve's values at the answered sizes."""
        return self.curve.bounds(sizes)

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:
        """Curves through blocks of neighbouring sizes with at least sqrt(answers) answers each.

        For k undetected of m answers, `low` is a draw of Beta(k, m - k + 1) and `high` one of Beta(k + 1, m - k), from
        the same random numbers, so their quantiles are Clopper and Pearson's limits. Isotonic regression then makes
        both non-increasing.
        """
        knots, total, hits = self._blocks
        undetected, detected = (rng.standard_gamma(count, (n, hits.size)) for count in (hits, total - hits))
        unobserved = rng.standard_exponential((n, hits.size))
        whole = undetected + detected + unobserved
        return [
            MonotoneCurve(knots, falling(low, total), falling(high, total))
            for low, high in zip(undetected / whole, (undetected + unobserved) / whole, strict=True)
        ]

    def extrapolated(self, sizes: ArrayLike) -> Flags:
        return outside(sizes, self.answers.sizes)


def fit_monotone(sizes: ArrayLike, undetected: ArrayLike) -> MonotoneEvasion:
    """Fit a non-increasing Psi by least squares, with the pool-adjacent-violators algorithm.

    Ayer et al. (1955); least squares and maximum likelihood agree here. The curve is linear between the sizes of the
    answers and constant beyond them, but intervals assume only that it does not increase.
    """
    answers = checked_answers(sizes, undetected)
    distinct, total, hits = answers.counts()
    fitted = falling(hits / total, total)
    return MonotoneEvasion(answers, MonotoneCurve(distinct, fitted, fitted), _blocks(distinct, total, hits))


def falling(values: Floats, weights: Floats) -> Floats:
    """The non-increasing values nearest to these by weighted least squares (pool adjacent violators)."""
    means: list[float] = []
    masses: list[float] = []
    lengths: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, length = value, weight, 1
        while means and means[-1] < mean:
            before, heavy = means.pop(), masses.pop()
            mean = (before * heavy + mean * mass) / (heavy + mass)
            mass += heavy
            length += lengths.pop()
        means.append(mean)
        masses.append(mass)
        lengths.append(length)
    return np.repeat(means, lengths)


def _blocks(sizes: Floats, total: Floats, hits: Floats) -> tuple[Floats, Floats, Floats]:
    """Pool neighbouring sizes into blocks with enough answers; a remainder joins the last block."""
    enough = np.sqrt(total.sum())
    starts, count = [0], 0.0
    for index, number in enumerate(total):
        if count >= enough:
            starts.append(index)
            count = 0.0
        count += number
    if count < enough and len(starts) > 1:
        starts.pop()
    answers = np.add.reduceat(total, starts)
    return np.add.reduceat(sizes * total, starts) / answers, answers, np.add.reduceat(hits, starts)


def difference_bounds(curve: MonotoneCurve, first: Floats, second: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The least and largest sum_i w_i (Psi(first_i) - Psi(second_i)) over all non-increasing curves through the knots.

    Between two knots, an extreme curve jumps once from the upper value to the lower. Let c(s) be the weight of `first`
    minus that of `second` at size s. A jump after s leaves the sum of c up to s at the upper value. So each gap
    contributes its lower value times the sum of its c, and the height of its jump times the largest (or least) partial
    sum of its c. `weights` is (draws, samples).
    """
    sizes, excess = _excess(first, second, weights)
    if not sizes.size:
        return np.zeros(len(weights)), np.zeros(len(weights))
    low, high = MonotoneCurve(curve.knots, curve.middle, curve.middle).bounds(sizes)
    segment = np.searchsorted(curve.knots, sizes, side="left") + np.searchsorted(curve.knots, sizes, side="right")
    starts = np.flatnonzero(np.diff(segment, prepend=-1))
    running = np.cumsum(excess, axis=1)
    before = np.where(starts > 0, running[:, starts - 1], 0.0)
    whole = np.add.reduceat(excess, starts, axis=1)
    most = np.maximum(np.maximum.reduceat(running, starts, axis=1) - before, 0.0)
    least = np.minimum(np.minimum.reduceat(running, starts, axis=1) - before, 0.0)
    jump, base = (high - low)[starts], whole @ low[starts]
    return base + least @ jump, base + most @ jump


def _excess(first: Floats, second: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The distinct finite sizes, ascending, and c(s) of each in every draw."""
    sizes = np.concatenate([first, second])
    signed = np.concatenate([weights, -weights], axis=1)
    order = np.argsort(sizes, kind="stable")
    order = order[np.isfinite(sizes[order])]
    distinct, starts = np.unique(sizes[order], return_index=True)
    if not starts.size:
        return distinct, np.empty((len(weights), 0))
    return distinct, np.add.reduceat(signed[:, order], starts, axis=1)
