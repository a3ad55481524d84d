"""Harrell's concordance, in O(n log n): how often the row that is predicted to last longer does."""

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.survival.frames import Floats

Integers = NDArray[np.int64]


def concordance(duration: Floats, predicted: Floats, event: Floats) -> float:
    """Over all pairs in which one row has an event and the other certainly lasted longer; equal predictions count half.

    Two rows with an event at the same time are no pair; one that is censored then lasted longer than one whose event
    was seen then (as lifelines has it). 0.5 says that the covariates do not order the times.
    """
    happened = event > 0
    times = np.sort(duration[happened], kind="stable")
    before = np.where(
        happened, np.searchsorted(times, duration, side="left"), np.searchsorted(times, duration, side="right")
    )
    pairs = int(before.sum())
    if not pairs:
        raise RiskError("no two rows can be compared: no row is known to last longer than one with an event")
    _, ranks = np.unique(predicted, return_inverse=True)
    order = np.argsort(duration[happened], kind="stable")
    less, equal = counts_before(
        ranks[happened][order].astype(np.int64), before.astype(np.int64), ranks.astype(np.int64)
    )
    return (int(less.sum()) + int(equal.sum()) / 2) / pairs


def counts_before(values: Integers, ends: Integers, wanted: Integers) -> tuple[Integers, Integers]:
    """For each query, how many of values[:end] are less than the wanted one, and how many equal it.

    Values are sorted by one bit after the other, from the highest (a wavelet matrix); each query follows its range.
    """
    less = np.zeros(len(ends), dtype=np.int64)
    low, high = np.zeros(len(ends), dtype=np.int64), ends
    top = int(max(values.max(), wanted.max(), 1))
    for bit in reversed(range(top.bit_length())):
        ones = (values >> bit) & 1
        zeros_before = np.concatenate([[0], np.cumsum(1 - ones)])
        asked = (wanted >> bit) & 1 == 1
        low_zeros, high_zeros = zeros_before[low], zeros_before[high]
        less += np.where(asked, high_zeros - low_zeros, 0)
        n_zeros = zeros_before[-1]
        low = np.where(asked, n_zeros + low - low_zeros, low_zeros)
        high = np.where(asked, n_zeros + high - high_zeros, high_zeros)
        values = np.concatenate([values[ones == 0], values[ones == 1]])
    return less, high - low
