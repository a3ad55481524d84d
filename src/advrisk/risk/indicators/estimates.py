"""From a linear combination of leaves to an estimate with its interval."""

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

Rng = Callable[[], np.random.Generator]  # made only where something is drawn

ONE = 1 + 1e-9  # samples up to which nothing is known of a spread
_EDGE = 1e-9  # a share so near to 0 or 1 is rounding


@dataclass(frozen=True, eq=False)
class Combination:
    """Leaves with weights that sum to 1, and the whole times a scale; drawn where weights are uncertain."""

    weights: Floats  # (leaves,)
    scale: float = 1.0
    drawn_weights: Floats | None = None  # (draws, leaves)
    drawn_scale: Floats | None = None  # (draws,)

    @property
    def uncertain(self) -> bool:
        return self.drawn_weights is not None or self.drawn_scale is not None

    def of_scale(self, scale: float, drawn: Floats | None) -> "Combination":
        return Combination(self.weights, scale, self.drawn_weights, drawn)

    def drawn_values(self, found: Evaluated) -> Floats:
        """The value under each draw of the weights, the samples being as they are."""
        mean = np.nan_to_num(found.mean)
        values = self.weights @ mean if self.drawn_weights is None else self.drawn_weights @ mean
        return np.asarray((self.scale if self.drawn_scale is None else self.drawn_scale) * values)


def combination(node: Node, n_leaves: int) -> Combination:
    """What a node is made of."""
    if node.leaf is not None:
        return Combination(np.eye(n_leaves)[node.leaf])
    below = [combination(child, n_leaves) for child in node.children]
    weights = np.asarray(sum(share * one.weights for share, one in zip(node.shares, below, strict=True)))
    if node.drawn is None and all(one.drawn_weights is None for one in below):
        return Combination(weights)
    drawn: Floats = np.zeros((1, n_leaves))
    for place, one in enumerate(below):
        share = node.shares[place] if node.drawn is None else node.drawn[:, place, None]
        drawn = drawn + share * (one.weights[None] if one.drawn_weights is None else one.drawn_weights)
    return Combination(weights, drawn_weights=drawn)


def value_of(found: Evaluated, node: Node, weight: float = 1.0) -> float:
    """The mean of a node times a weight, summed from its leaves up: a parent's is exactly the sum of its children's."""
    if node.leaf is not None:
        return weight * float(found.mean[node.leaf]) if weight else 0.0
    shares = node.shares.tolist()
    return float(sum(value_of(found, one, weight * share) for one, share in zip(node.children, shares, strict=True)))


def standard_error(found: Evaluated, combined: Combination) -> float:
    """Of the value, as far as samples go; infinite where a branch rests on one sample of a loss without range."""
    each = bands(found, combined.weights[None], combined.weights)
    return float(combined.scale * math.hypot(*(float(one.share[0] * one.error[0]) for one in each)))


def weights_part(found: Evaluated, combined: Combination) -> float:
    """Share of the variance that comes from uncertain weights: what more samples cannot make smaller."""
    if not combined.uncertain:
        return 0.0
    of_weights = float(combined.drawn_values(found).var())
    of_samples = standard_error(found, combined) ** 2
    return of_weights / (of_weights + of_samples) if of_weights > 0 else 0.0


def estimate(found: Evaluated, combined: Combination, value: float, level: float, rng: Rng) -> Estimate:
    """The value (`value_of` the node that is so combined) with its interval.

    Samples of like weight have one interval. A loss of known range has the wider, at either end, of two: Korn and
    Graubard's, which is Clopper and Pearson's at the size that would give a proportion this variance and never has
    width 0; and Gaffke's, which also holds where the value rests on rare great losses. Others have a t interval, which
    holds for no rare losses that the samples do not show. Of several
    bands, distances between value and limit are put together as roots of sums of squares (Zou and Donner, 2008). Where
    the leaves together allow less, their limits count (`_of_leaves`). With uncertain weights each draw of them has its
    own interval, as a distribution, and the limits are quantiles of the mixture.
    """
    used = combined.weights != 0
    centre = float(combined.weights[used] @ found.mean[used])
    n = found.n_under(combined.weights)
    low, high = _limits(found, combined, centre, level, rng)
    method = "samples, Korn-Graubard and Gaffke" if _bounded(found) else "samples, t"
    method = f"{method}, uncertain weights" if combined.uncertain else method
    return Estimate(value, min(low, value), max(high, value), level, n, method)


def _limits(found: Evaluated, combined: Combination, centre: float, level: float, rng: Rng) -> tuple[float, float]:
    if not combined.uncertain:
        low, high = _certain(found, combined.weights, centre, level)
        least, most = _of_leaves(found, combined.weights, (low, high), level)
        return combined.scale * max(low, least), combined.scale * min(high, most)
    weights = combined.weights[None] if combined.drawn_weights is None else combined.drawn_weights
    lows, highs = _drawn_limits(found, bands(found, weights, combined.weights), level, rng())
    below, above = _for_rare_losses(found, combined.weights, centre, level)
    scale = combined.scale if combined.drawn_scale is None else combined.drawn_scale
    lows, highs = np.atleast_1d(scale * (lows - below)), np.atleast_1d(scale * (highs + above))
    tail = (1 - level) / 2
    return float(np.quantile(lows, tail, method="lower")), float(np.quantile(highs, 1 - tail, method="higher"))


def _for_rare_losses(found: Evaluated, weights: Floats, centre: float, level: float) -> tuple[float, float]:
    """By how much Gaffke's interval is wider at either end, under the average weights."""
    if not _bounded(found):
        return 0.0, 0.0
    usual, wide = (_certain(found, weights, centre, level, rare_losses=rare) for rare in (False, True))
    return usual[0] - wide[0], wide[1] - usual[1]


def _of_leaves(found: Evaluated, weights: Floats, limits: tuple[float, float], level: float) -> tuple[float, float]:
    """What the leaves allow: their limits, which hold for all of them at once (Bonferroni), times their weights.

    Where not even the narrower ones of them allow less than `limits`, the wider ones are not computed.
    """
    used = np.flatnonzero(weights)
    if len(used) < 2 or not _bounded(found):
        return -math.inf, math.inf
    low, high = _leaf_limits(found, weights, used, level, rare_losses=False)
    if low <= limits[0] and limits[1] <= high:
        return low, high
    return _leaf_limits(found, weights, used, level, rare_losses=True)


def _leaf_limits(
    found: Evaluated, weights: Floats, used: NDArray[np.intp], level: float, *, rare_losses: bool
) -> tuple[float, float]:
    strict = 1 - (1 - level) / len(used)
    rows = np.eye(len(weights))[used]
    limits = [
        _certain(found, row, float(found.mean[leaf]), strict, rare_losses=rare_losses)
        for leaf, row in zip(used, rows, strict=True)
    ]
    low, high = np.array(limits).T
    return float(weights[used] @ low), float(weights[used] @ high)


def _certain(
    found: Evaluated, weights: Floats, centre: float, level: float, *, rare_losses: bool = True
) -> tuple[float, float]:
    """The limits under known weights; without `rare_losses`, those that the spread alone gives."""
    key = (weights.tobytes(), level, rare_losses)
    if key not in found.held_limits:
        found.held_limits[key] = _computed(found, weights, centre, level, rare_losses=rare_losses)
    return found.held_limits[key]


def _computed(
    found: Evaluated, weights: Floats, centre: float, level: float, *, rare_losses: bool
) -> tuple[float, float]:
    least, most = found.bounds
    parts = Contributions.of(found, weights) if rare_losses and _bounded(found) else None
    below, above = [], []
    for band in bands(found, weights[None], weights):
        value, n = float(band.value[0]), float(band.n[0])
        limits = _of_band(found, value, float(band.error[0]), n, level)
        if parts is not None and n > ONE:
            limits = widened(*parts.pseudo_values(band, value, least, most), limits, level)
        below.append(float(band.share[0]) * (value - limits[0]))
        above.append(float(band.share[0]) * (limits[1] - value))
    return max(centre - math.hypot(*below), least), min(centre + math.hypot(*above), most)


def _of_band(found: Evaluated, value: float, error: float, n: float, level: float) -> tuple[float, float]:
    least, most = found.bounds
    half = float(t_quantile(n, level)) * error if n > ONE else math.inf
    if not _bounded(found):
        return value - half, value + half
    span = most - least
    share = float(_snapped((value - least) / span))
    at_edge = share in (0, 1) or n <= ONE
    low, high = share_interval(share, 0.0 if at_edge else error / span, n, level)
    low, high = least + span * low, least + span * high
    if at_edge and n > ONE:  # no spread of their own; what is left comes from how many of them there are
        return value - math.hypot(value - low, half), value + math.hypot(high - value, half)
    return low, high


def _snapped(shares: Any) -> Floats:
    """Between 0 and 1, and exactly there where only rounding is in the way."""
    clipped = np.clip(shares, 0.0, 1.0)
    return np.asarray(np.where(clipped < _EDGE, 0.0, np.where(clipped > 1 - _EDGE, 1.0, clipped)))


def _drawn_limits(
    found: Evaluated, each: tuple[SampleBand, ...], level: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draws of the lower and of the upper limit's distribution, one for each draw of the weights (or more)."""
    lows, highs = np.zeros(1), np.zeros(1)
    for band in each:
        low, high = _drawn_of_band(found, band, level, rng)
        lows, highs = lows + band.share * low, highs + band.share * high
    return np.maximum(lows, found.bounds[0]), np.minimum(highs, found.bounds[1])


def _drawn_of_band(found: Evaluated, band: SampleBand, level: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    least, most = found.bounds
    draws = max(len(band.value), 4000)
    values, errors, sizes = (
        np.broadcast_to(one, draws) if len(one) == 1 else one for one in (band.value, band.error, band.n)
    )
    if not _bounded(found):
        if not np.isfinite(errors).all() or (sizes <= ONE).any():
            return np.full(draws, -math.inf), np.full(draws, math.inf)
        noise = rng.standard_t(sizes - 1) * errors
        return values + noise, values + noise
    span = most - least
    shares = _snapped((values - least) / span)
    at_edge = (shares == 0) | (shares == 1) | (sizes <= ONE)
    alike = bool(np.ptp(sizes) < 1e-6)  # quantiles of many sizes take long
    n = share_size(shares, np.where(at_edge, 0.0, errors / span), sizes[0] if alike else sizes, level)
    hits, misses = n * shares, n * (1 - shares)
    lows = np.where(hits > 0, rng.beta(np.maximum(hits, 1e-300), misses + 1), 0.0)
    highs = np.where(misses > 0, rng.beta(hits + 1, np.maximum(misses, 1e-300)), 1.0)
    lows, highs = least + span * lows, least + span * highs
    if (more := at_edge & (errors > 0) & (sizes > ONE)).any():
        noise = np.where(more, rng.standard_normal(draws) * errors, 0.0)
        return lows + noise, highs + noise
    return lows, highs


def _bounded(found: Evaluated) -> bool:
    return math.isfinite(found.bounds[0]) and math.isfinite(found.bounds[1])
