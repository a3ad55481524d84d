"""The end point of a distribution, from the largest values of many batches drawn from it.

The largest of many values that cannot pass an end point follows, in the limit, a reverse Weibull law
G(y) = exp(−((a − y)/b)^c) for y < a (Fisher & Tippett 1928, Gnedenko 1943); its location a is that end point.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FARTHEST = 10.0  # spreads beyond the largest value: the end of the search, where the likelihood may still rise
_NEAREST = 1e-6
_SAME = 1e-6  # values that differ by so little of their size differ by rounding
_LARGEST_SHAPE = 1e3


def end_points(values: Array) -> Array:
    """The maximum-likelihood location of a reverse Weibull law for each column of `values` (batches × columns).

    The shape c is at least 1: below, the likelihood grows without bound as a approaches the largest value. The search
    for a ends ten spreads of the values beyond the largest; where all values are the same, a is that value.
    """
    largest = values.max(0)
    spread = largest - values.min(0)
    flat = spread <= _SAME * np.abs(largest)
    below = (largest - values) / np.where(flat, 1.0, spread)  # from 0 to 1
    beyond = np.geomspace(_NEAREST, FARTHEST, 61)[:, None].repeat(values.shape[1], 1)
    for _ in range(4):  # ever finer around the best so far
        likelihood = profile_likelihood(beyond[:, None] + below)
        best = likelihood.argmax(0)
        low, high = (_row(beyond, np.clip(best + step, 0, len(beyond) - 1)) for step in (-1, 1))
        chosen = _row(beyond, best)
        beyond = np.geomspace(low, high, 13)
    location: Array = np.where(flat, largest, largest + spread * chosen)
    return location


def _row(table: Array, index: NDArray[np.intp]) -> Array:
    """The entry at one index of every column."""
    picked: Array = np.take_along_axis(table, index[None], 0)[0]
    return picked


def profile_likelihood(distances: Array) -> Array:
    """The largest mean log-likelihood of a Weibull law with a shape of at least 1: … × values × columns, over values.

    With the best scale, b^c = mean z^c, it is ln c − ln mean z^c + (c − 1) mean ln z − 1.
    """
    unit = distances / distances.max(-2, keepdims=True)  # so that no power overflows
    logs = np.log(unit)
    shape = _shape(logs)
    powers = np.exp(shape[..., None, :] * logs).mean(-2)
    of_unit = np.log(shape) - np.log(powers) + (shape - 1) * logs.mean(-2) - 1
    likelihood: Array = of_unit - np.log(distances.max(-2))
    return likelihood


def _shape(logs: Array) -> Array:
    """The shape at which the likelihood is largest: the root, in 1 ≤ c, of Σ z^c ln z / Σ z^c − 1/c − mean ln z."""
    low = np.zeros(np.delete(np.array(logs.shape), -2))
    high = np.full_like(low, np.log(_LARGEST_SHAPE))
    mean = logs.mean(-2)
    for _ in range(40):
        middle = (low + high) / 2
        shape = np.exp(middle)
        powers = np.exp(shape[..., None, :] * logs)
        slope = (powers * logs).sum(-2) / powers.sum(-2) - 1 / shape - mean
        low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
    root: Array = np.exp(low)
    return root
