"""Distribution of a mean with random weights, exponential and normalised, without sampling.

T = sum_i w_i v_i with w ~ Dirichlet(counts). T <= t exactly where Y = sum_i (v_i - t) G_i <= 0, the G_i being
independent gamma variables of shape `counts`. The log of E[exp(s Y)] is K(s) = -sum_i counts_i log(1 - (v_i - t) s).
P(Y <= 0) follows from its saddle point, K'(s) = 0, by Barndorff-Nielsen's formula (1991, "Modified signed log
likelihood ratio"): Phi(r + log(u / r) / r), r = sign(s) sqrt(-2 K(s)), u = s sqrt(K''(s)).

A Beta distribution with the mean and variance of T is nearly as accurate, exact if v has two values, and much faster.
For a mixture over many rows, Beta distributions represent groups of rows with neighbouring means. The saddle points of
some rows give the correction.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CORRECTED = 256  # rows whose saddle points are computed
_GROUPS = 1024  # groups of rows with one Beta distribution each
_STEPS = 60
_CLOSE = 1e-9  # relative tolerance of the saddle point
_SMALL = 1e-3  # below it, log(u / r) / r takes its limit
_ROUNDS = 4
_ENOUGH = 1e-6  # tolerance of the correction, a probability
_REFINEMENTS = 60
_PRECISION = 1e-6  # of a quantile, relative to the range of the values


class Mixture:
    """T, having any row of `values` (rows, values) with equal probability; `counts` (values,)."""

    def __init__(self, values: Floats, counts: Floats) -> None:
        self.low, self.high = float(values.min()), float(values.max())
        rows = np.arange(min(len(values), _CORRECTED)) * len(values) // min(len(values), _CORRECTED)
        self._some, self._counts = values[rows], counts
        width = self.high - self.low or 1.0
        total = counts.sum()
        mean = (values @ counts / total - self.low) / width
        square = (((values - self.low) / width) ** 2) @ counts / total
        variance = np.maximum(square - mean**2, 0.0) / (total + 1)
        self._own = _beta(mean[rows], variance[rows])
        mean, variance, self._weights = _grouped(mean, variance)
        self._shapes = _beta(mean, variance)

    def cdf(self, t: float) -> float:
        """P(T <= t)."""
        if not self.low < t < self.high:
            return float(t >= self.high)
        return self._matched(t) + self._correction(t)

    def quantile(self, p: float) -> float:
        """The t with P(T <= t) = p."""
        if self.low == self.high:
            return self.low
        if (exact := _of_two_values(self._some, self._counts, p)) is not None:
            return exact
        t = self.low + (self.high - self.low) * float(np.quantile(self._shapes[0] / sum(self._shapes), p))
        correction = 0.0
        for _ in range(_ROUNDS):  # it hardly changes with t
            t = self._solved(p - correction, t)
            before, correction = correction, self._correction(t)
            if abs(correction - before) <= _ENOUGH:
                break
        return t

    def _matched(self, t: float) -> float:
        """P(T <= t) by the Beta distributions alone."""
        from scipy.special import betainc

        return float(betainc(*self._shapes, (t - self.low) / (self.high - self.low)) @ self._weights)

    def _correction(self, t: float) -> float:
        from scipy.special import betainc

        matched = betainc(*self._own, (t - self.low) / (self.high - self.low))
        return float((_cdf(self._some - t, self._counts) - matched).mean())

    def _solved(self, p: float, t: float) -> float:
        """Quantile by the Beta distributions alone: a secant method within a bracket, starting at t."""
        p = min(max(p, 0.0), 1.0)
        low, high, below, above = self.low, self.high, -p, 1 - p
        last = (t, np.nan)
        for _ in range(_REFINEMENTS):
            here = self._matched(t) - p
            low, high, below, above = (t, high, here, above) if here < 0 else (low, t, below, here)
            slope = (here - last[1]) / (t - last[0]) if t != last[0] else np.nan
            new = t - here / slope if slope > 0 else t + 0.01 * (self.high - self.low) * np.sign(-here)
            new = float(new) if low < new < high else (low + high) / 2
            last = (t, here)
            if abs(new - t) <= _PRECISION * (self.high - self.low):
                return new
            t = new
        return t


def _beta(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Shape parameters of Beta distributions on [0, 1] with this mean and variance."""
    concentration = np.maximum(mean * (1 - mean) / np.maximum(variance, 1e-300) - 1, 1e-300)
    return mean * concentration, (1 - mean) * concentration


def _grouped(mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of groups of rows with neighbouring means, and the share of rows in each."""
    order = np.argsort(mean, kind="stable")
    n = min(len(mean), _GROUPS)
    first = np.arange(n) * len(mean) // n
    sizes = np.diff(np.append(first, len(mean)))
    own = mean[order]
    means = np.add.reduceat(own, first) / sizes
    spread = np.add.reduceat((own - np.repeat(means, sizes)) ** 2 + variance[order], first) / sizes
    return means, spread, sizes / len(mean)


def _of_two_values(values: Floats, counts: Floats, p: float) -> float | None:
    """Quantile of the Beta distribution if all rows are equal with two distinct values; else None."""
    from scipy.special import betaincinv

    low, high = values[0].min(), values[0].max()
    if (values != values[0]).any() or ((values[0] != low) & (values[0] != high)).any():
        return None
    share = betaincinv(counts[values[0] == high].sum(), counts[values[0] == low].sum(), p)
    return float(low + (high - low) * share)


def _cdf(shifted: Floats, counts: Floats) -> Floats:
    """P(sum of gamma variables times `shifted` <= 0) for each row."""
    from scipy.special import ndtr

    low, high = shifted.min(axis=1), shifted.max(axis=1)
    probability = np.where(high <= 0, 1.0, 0.0)
    live = (low < 0) & (high > 0)
    if live.any():
        rows = shifted[live]
        s = _saddle_points(rows, counts)[:, None]
        tilted = rows / (1 - rows * s)
        second, third = (square := tilted * tilted) @ counts, 2 * ((square * tilted) @ counts)
        root = np.sign(s[:, 0]) * np.sqrt(np.maximum(2 * (np.log1p(-rows * s) @ counts), 0.0))
        small = np.abs(root) < _SMALL
        safe = np.where(small, 1.0, root)
        ratio = np.where(small, 1.0, s[:, 0] * np.sqrt(second) / safe)
        probability[live] = ndtr(root + np.where(small, third / (6 * second**1.5), np.log(ratio) / safe))
    return probability


def _saddle_points(rows: Floats, counts: Floats) -> Floats:
    """Roots of the increasing K' by Newton's method between the poles of K."""
    low, high = 1 / rows.min(axis=1), 1 / rows.max(axis=1)
    s = np.zeros(len(rows))
    for _ in range(_STEPS):
        tilted = rows / (1 - rows * s[:, None])
        first, second = tilted @ counts, (tilted * tilted) @ counts
        low, high = np.where(first < 0, s, low), np.where(first > 0, s, high)
        new = s - first / second
        new = np.where((new > low) & (new < high), new, (low + high) / 2)
        done = np.abs(new - s) <= _CLOSE * np.abs(new)
        s = new
        if done.all():
            break
    return s
