"""Estimates with intervals from linear combinations of leaves."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.estimate import Estimate
from advrisk.risk.bounded_mean import widened
from advrisk.risk.indicators.bands import Contributions, SampleBand, bands
from advrisk.risk.indicators.evaluation import Evaluated
from advrisk.risk.indicators.matching import Node
from advrisk.risk.indicators.tensor import Floats
from advrisk.risk.proportion import share_interval, share_size, t_quantile

Rng = Callable[[], np.random.Generator]  # called only if something is drawn

ONE = 1 + 1e-9  # with at most this effective number of samples, the spread cannot be estimated
_EDGE = 1e-9  # a share this near to 0 or 1 is rounding


@dataclass(frozen=True, eq=False)
class Combination:
    """A weighted mean of leaves times a scale, with draws if the weights are uncertain."""

    weights: Floats  # (leaves,)
    scale: float = 1.0
    drawn_weights: Floats | None = None  # (draws, leaves)
    drawn_scale: Floats | None = None  # (draws,)

    @property
    def uncertain(self) -> bool:
        return self.drawn_weights is not None or self.drawn_scale is not None

    def of_scale(self, scale: float, drawn: Floats | None) -> "Combination":
        return Combination(self.weights, scale, self.drawn_weights, drawn)

    def drawn_values(self, evaluated: Evaluated) -> Floats:
        """Value under each draw of the weights, with fixed samples."""
        mean = np.nan_to_num(evaluated.mean)
        values = self.weights @ mean if self.drawn_weights is None else self.drawn_weights @ mean
        return np.asarray((self.scale if self.drawn_scale is None else self.drawn_scale) * values)


def combination(node: Node, n_leaves: int) -> Combination:
    """Express a node as a combination of leaves."""
    if node.leaf is not None:
        return Combination(np.eye(n_leaves)[node.leaf])
    below = [combination(child, n_leaves) for child in node.children]
    weights = np.asarray(sum(share * one.weights for share, one in zip(node.shares, below, strict=True)))
    if node.drawn is None and all(one.drawn_weights is None for one in below):
        return Combination(weights)
    drawn: Floats = np.zeros((1, n_leaves))
    for number, one in enumerate(below):
        share = node.shares[number] if node.drawn is None else node.drawn[:, number, None]
        drawn = drawn + share * (one.weights[None] if one.drawn_weights is None else one.drawn_weights)
    return Combination(weights, drawn_weights=drawn)


def value_of(evaluated: Evaluated, node: Node, weight: float = 1.0) -> float:
    """Mean of a node times a weight, summed from the leaves so that children add up to their parent exactly."""
    if node.leaf is not None:
        return weight * float(evaluated.mean[node.leaf]) if weight else 0.0
    shares = node.shares.tolist()
    return float(
        sum(value_of(evaluated, one, weight * share) for one, share in zip(node.children, shares, strict=True))
    )


def standard_error(evaluated: Evaluated, combined: Combination) -> float:
    """Standard error due to samples; infinite if a branch has a single sample of a loss without range."""
    each = bands(evaluated, combined.weights[None], combined.weights)
    return float(combined.scale * math.hypot(*(float(one.share[0] * one.error[0]) for one in each)))


def weights_part(evaluated: Evaluated, combined: Combination) -> float:
    """Share of the variance due to uncertain weights, which more samples do not reduce."""
    if not combined.uncertain:
        return 0.0
    of_weights = float(combined.drawn_values(evaluated).var())
    of_samples = standard_error(evaluated, combined) ** 2
    return of_weights / (of_weights + of_samples) if of_weights > 0 else 0.0


def estimate(evaluated: Evaluated, combined: Combination, value: float, level: float, rng: Rng) -> Estimate:
    """Estimate with interval of a value (`value_of` the combined node).

    Each band of samples with similar weight has one interval. For a loss of known range it is the wider of two at
    either end: Korn and Graubard's, which is Clopper and Pearson's at the size that gives a proportion this variance
    and never has width 0, and Gaffke's, which is also valid if the value depends on rare large losses. Other losses
    have a t interval, which assumes that the samples show all losses. Bands are combined by root sums of squares of the
    distances between value and limit (Zou and Donner, 2008). If the leaves give tighter limits, these are used
    (`_of_leaves`). With uncertain weights, each draw of them has its own interval, as a distribution, and the limits
    are quantiles of the mixture.
    """
    used = combined.weights != 0
    centre = float(combined.weights[used] @ evaluated.mean[used])
    n = evaluated.n_under(combined.weights)
    low, high = _limits(evaluated, combined, centre, level, rng)
    method = "samples, Korn-Graubard and Gaffke" if _bounded(evaluated) else "samples, t"
    method = f"{method}, uncertain weights" if combined.uncertain else method
    return Estimate(value, min(low, value), max(high, value), level, n, method)


def _limits(evaluated: Evaluated, combined: Combination, centre: float, level: float, rng: Rng) -> tuple[float, float]:
    if not combined.uncertain:
        low, high = _certain(evaluated, combined.weights, centre, level)
        least, most = _of_leaves(evaluated, combined.weights, (low, high), level)
        return combined.scale * max(low, least), combined.scale * min(high, most)
    weights = combined.weights[None] if combined.drawn_weights is None else combined.drawn_weights
    lows, highs = _drawn_limits(evaluated, bands(evaluated, weights, combined.weights), level, rng())
    below, above = _for_rare_losses(evaluated, combined.weights, centre, level)
    scale = combined.scale if combined.drawn_scale is None else combined.drawn_scale
    lows, highs = np.atleast_1d(scale * (lows - below)), np.atleast_1d(scale * (highs + above))
    tail = (1 - level) / 2
    return float(np.quantile(lows, tail, method="lower")), float(np.quantile(highs, 1 - tail, method="higher"))


def _for_rare_losses(evaluated: Evaluated, weights: Floats, centre: float, level: float) -> tuple[float, float]:
    """How much wider Gaffke's interval is at either end, under the average weights."""
    if not _bounded(evaluated):
        return 0.0, 0.0
    usual, wide = (_certain(evaluated, weights, centre, level, rare_losses=rare) for rare in (False, True))
    return usual[0] - wide[0], wide[1] - usual[1]


def _of_leaves(evaluated: Evaluated, weights: Floats, limits: tuple[float, float], level: float) -> tuple[float, float]:
    """Limits from the leaves: their simultaneous limits (Bonferroni) times their weights.

    If even the narrower version is no tighter than `limits`, the wider one is not computed.
    """
    used = np.flatnonzero(weights)
    if len(used) < 2 or not _bounded(evaluated):
        return -math.inf, math.inf
    low, high = _leaf_limits(evaluated, weights, used, level, rare_losses=False)
    if low <= limits[0] and limits[1] <= high:
        return low, high
    return _leaf_limits(evaluated, weights, used, level, rare_losses=True)


def _leaf_limits(
    evaluated: Evaluated, weights: Floats, used: NDArray[np.intp], level: float, *, rare_losses: bool
) -> tuple[float, float]:
    strict = 1 - (1 - level) / len(used)
    rows = np.eye(len(weights))[used]
    limits = [
        _certain(evaluated, row, float(evaluated.mean[leaf]), strict, rare_losses=rare_losses)
        for leaf, row in zip(used, rows, strict=True)
    ]
    low, high = np.array(limits).T
    return float(weights[used] @ low), float(weights[used] @ high)


def _certain(
    evaluated: Evaluated, weights: Floats, centre: float, level: float, *, rare_losses: bool = True
) -> tuple[float, float]:
    """Limits under fixed weights; without `rare_losses`, from the spread alone."""
    key = (weights.tobytes(), level, rare_losses)
    if key not in evaluated.limit_cache:
        evaluated.limit_cache[key] = _computed(evaluated, weights, centre, level, rare_losses=rare_losses)
    return evaluated.limit_cache[key]


def _computed(
    evaluated: Evaluated, weights: Floats, centre: float, level: float, *, rare_losses: bool
) -> tuple[float, float]:
    least, most = evaluated.bounds
    parts = Contributions.of(evaluated, weights) if rare_losses and _bounded(evaluated) else None
    below, above = [], []
    for band in bands(evaluated, weights[None], weights):
        value, n = float(band.value[0]), float(band.n[0])
        limits = _of_band(evaluated, value, float(band.error[0]), n, level)
        if parts is not None and n > ONE:
            limits = widened(*parts.pseudo_values(band, value, least, most), limits, level)
        below.append(float(band.share[0]) * (value - limits[0]))
        above.append(float(band.share[0]) * (limits[1] - value))
    return max(centre - math.hypot(*below), least), min(centre + math.hypot(*above), most)


def _of_band(evaluated: Evaluated, value: float, error: float, n: float, level: float) -> tuple[float, float]:
    least, most = evaluated.bounds
    half = float(t_quantile(n, level)) * error if n > ONE else math.inf
    if not _bounded(evaluated):
        return value - half, value + half
    span = most - least
    share = float(_snapped((value - least) / span))
    at_edge = share in (0, 1) or n <= ONE
    low, high = share_interval(share, 0.0 if at_edge else error / span, n, level)
    low, high = least + span * low, least + span * high
    if at_edge and n > ONE:  # no observed spread; the remaining uncertainty comes from the number of samples
        return value - math.hypot(value - low, half), value + math.hypot(high - value, half)
    return low, high


def _snapped(shares: Any) -> Floats:
    """Clip shares to [0, 1] and snap those within rounding of 0 or 1."""
    clipped = np.clip(shares, 0.0, 1.0)
    return np.asarray(np.where(clipped < _EDGE, 0.0, np.where(clipped > 1 - _EDGE, 1.0, clipped)))


def _drawn_limits(
    evaluated: Evaluated, each: tuple[SampleBand, ...], level: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draws of the distributions of the lower and the upper limit, at least one for each draw of the weights."""
    lows, highs = np.zeros(1), np.zeros(1)
    for band in each:
        low, high = _drawn_of_band(evaluated, band, level, rng)
        lows, highs = lows + band.share * low, highs + band.share * high
    return np.maximum(lows, evaluated.bounds[0]), np.minimum(highs, evaluated.bounds[1])


def _drawn_of_band(
    evaluated: Evaluated, band: SampleBand, level: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    least, most = evaluated.bounds
    draws = max(len(band.value), 4000)
    values, errors, sizes = (
        np.broadcast_to(one, draws) if len(one) == 1 else one for one in (band.value, band.error, band.n)
    )
    if not _bounded(evaluated):
        if not np.isfinite(errors).all() or (sizes <= ONE).any():
            return np.full(draws, -math.inf), np.full(draws, math.inf)
        noise = rng.standard_t(sizes - 1) * errors
        return values + noise, values + noise
    span = most - least
    shares = _snapped((values - least) / span)
    at_edge = (shares == 0) | (shares == 1) | (sizes <= ONE)
    equal = bool(np.ptp(sizes) < 1e-6)  # quantiles of many sizes take long
    n = share_size(shares, np.where(at_edge, 0.0, errors / span), sizes[0] if equal else sizes, level)
    hits, misses = n * shares, n * (1 - shares)
    lows = np.where(hits > 0, rng.beta(np.maximum(hits, 1e-300), misses + 1), 0.0)
    highs = np.where(misses > 0, rng.beta(hits + 1, np.maximum(misses, 1e-300)), 1.0)
    lows, highs = least + span * lows, least + span * highs
    if (more := at_edge & (errors > 0) & (sizes > ONE)).any():
        noise = np.where(more, rng.standard_normal(draws) * errors, 0.0)
        return lows + noise, highs + noise
    return lows, highs


def _bounded(evaluated: Evaluated) -> bool:
    return math.isfinite(evaluated.bounds[0]) and math.isfinite(evaluated.bounds[1])
