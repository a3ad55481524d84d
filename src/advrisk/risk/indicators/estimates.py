"""From a linear combination of leaves to an estimate with its interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.indicators.evaluation import Evaluated
from advrisk.risk.indicators.matching import Node
from advrisk.risk.indicators.tensor import Floats
from advrisk.risk.proportion import share_interval, share_size, t_quantile

Rng = Callable[[], np.random.Generator]  # made only where something is drawn

_NOTHING = 1e-12  # a spread below it, relative to the values, is rounding


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
    """Of the value, as far as samples go."""
    errors, _ = _errors(found, combined.weights[None])
    return float(combined.scale * errors[0])


def weights_part(found: Evaluated, combined: Combination) -> float:
    """Share of the variance that comes from uncertain weights: what more samples cannot make smaller."""
    if not combined.uncertain:
        return 0.0
    of_weights = float(combined.drawn_values(found).var())
    of_samples = standard_error(found, combined) ** 2
    return of_weights / (of_weights + of_samples) if of_weights > 0 else 0.0


def estimate(found: Evaluated, combined: Combination, value: float, level: float, rng: Rng) -> Estimate:
    """The value (`value_of` the node that is so combined) with its interval.

    A loss of known range has Korn and Graubard's interval: Clopper and Pearson's at the size that would give a
    proportion this variance, which never has width 0. Others have a t interval. With uncertain weights each draw of
    them has its own interval, as a distribution, and the limits are quantiles of the mixture.
    """
    used = combined.weights != 0
    centre = float(combined.weights[used] @ found.mean[used])
    n = found.n_under(combined.weights)
    low, high = _limits(found, combined, centre, level, rng)
    method = "samples, Korn-Graubard" if _bounded(found) else "samples, t"
    method = f"{method}, uncertain weights" if combined.uncertain else method
    return Estimate(value, min(low, value), max(high, value), level, n, method)


def _limits(found: Evaluated, combined: Combination, centre: float, level: float, rng: Rng) -> tuple[float, float]:
    if not combined.uncertain:
        errors, sizes = _errors(found, combined.weights[None])
        low, high = _certain(found, centre, float(errors[0]), float(sizes[0]), level)
        return combined.scale * low, combined.scale * high
    weights = combined.weights[None] if combined.drawn_weights is None else combined.drawn_weights
    values = weights @ np.nan_to_num(found.mean)
    errors, sizes = _errors(found, weights)
    lows, highs = _drawn_limits(found, values, errors, sizes, level, rng())
    scale = combined.scale if combined.drawn_scale is None else combined.drawn_scale
    lows, highs, tail = np.atleast_1d(scale * lows), np.atleast_1d(scale * highs), (1 - level) / 2
    return float(np.quantile(lows, tail, method="lower")), float(np.quantile(highs, 1 - tail, method="higher"))


def _certain(found: Evaluated, centre: float, error: float, n: float, level: float) -> tuple[float, float]:
    least, most = found.bounds
    if not _bounded(found):
        half = float(t_quantile(n, level)) * error if n > 1 else math.inf
        return max(centre - half, least), min(centre + half, most)
    span = most - least
    low, high = share_interval(min(max((centre - least) / span, 0.0), 1.0), error / span, n, level)
    return least + span * low, least + span * high


def _drawn_limits(
    found: Evaluated, values: Floats, errors: Floats, sizes: Floats, level: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draws of the lower and of the upper limit's distribution, one for each draw of the weights (or more)."""
    least, most = found.bounds
    draws = max(len(values), 4000)
    values, errors, sizes = (np.broadcast_to(one, draws) if len(one) == 1 else one for one in (values, errors, sizes))
    if not _bounded(found):
        noise = rng.standard_t(np.maximum(sizes - 1, 1)) * errors
        return np.maximum(values + noise, least), np.minimum(values + noise, most)
    span = most - least
    shares = np.clip((values - least) / span, 0.0, 1.0)
    alike = bool(np.ptp(sizes) < 1e-6)  # quantiles of many sizes take long
    n = share_size(shares, errors / span, sizes[0] if alike else sizes, level)
    hits, misses = n * shares, n * (1 - shares)
    lows = np.where(hits > 0, rng.beta(np.maximum(hits, 1e-300), misses + 1), 0.0)
    highs = np.where(misses > 0, rng.beta(hits + 1, np.maximum(misses, 1e-300)), 1.0)
    return least + span * lows, least + span * highs


def _errors(found: Evaluated, weights: Floats) -> tuple[Floats, Floats]:
    """Standard errors, and the numbers of samples that weigh as much, for rows of weights."""
    sizes = 1 / ((weights @ found.overlap) * weights).sum(axis=1)
    variance = ((weights @ found.covariance) * weights).sum(axis=1)
    error = np.sqrt(np.maximum(variance, 0.0) * np.where(sizes > 1, sizes / np.maximum(sizes - 1, 1e-9), 0.0))
    scale = np.abs(weights) @ np.abs(np.nan_to_num(found.mean))
    return np.where(error > _NOTHING * scale, error, 0.0), sizes


def _bounded(found: Evaluated) -> bool:
    return math.isfinite(found.bounds[0]) and math.isfinite(found.bounds[1])
