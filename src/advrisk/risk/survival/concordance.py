"""Harrell's concordance, in O(n log n): how often the row that is predicted to last longer does."""

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.survival.frames import Floats

Integers = NDArray[np.int32]


def concordance(duration: Floats, predicted: Floats, event: Floats) -> float:
    """Over all pairs in which one row has an event and the other certainly lasted longer; equal predictions count half.

    Two rows with an event at the same time are no pair; one that is censored then lasted longer than one whose event
    was seen then (as lifelines has it). 0.5 says that the covariates do not order the times.
    """
    order = np.argsort(duration, kind="stable")
    times, happened = duration[order], event[order] > 0
    before = _events_before(times, happened)
    pairs = int(before.sum())
    if not pairs:
        raise RiskError("no two rows can be compared: no row is known to last longer than one with an event")
    predicted = predicted[order]
    by_value = np.argsort(predicted)
    ranks = np.empty(len(times), dtype=np.int32)
    ranks[by_value] = np.cumsum(np.diff(predicted[by_value], prepend=-np.inf) > 0)  # equal values have the same rank
    less, equal = counts_before(ranks[happened], before[by_value], ranks[by_value])
    return (int(less.sum()) + int(equal.sum()) / 2) / pairs


def counts_before(values: Integers, ends: Integers, wanted: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each query, how many of values[:end] are less than the wanted one, and how many equal it.

    Values are sorted by one bit after the other, from the highest (a wavelet matrix); each query follows its range.
    It is quickest if queries are sorted by what they want: neighbours look at the same places then.
    """
    low, high = np.zeros_like(ends), ends
    less = np.zeros(len(ends), dtype=np.int64)
    zeros_before = np.zeros(len(values) + 1, dtype=np.int32)
    for bit in reversed(range(int(max(values.max(), wanted.max(), 1)).bit_length())):
        ones = (values >> bit) & 1 == 1
        np.cumsum(~ones, out=zeros_before[1:])
        asked = (wanted >> bit) & 1 == 1
        low_zeros, high_zeros = zeros_before.take(low), zeros_before.take(high)
        less += (high_zeros - low_zeros) * asked
        low = np.where(asked, zeros_before[-1] + low - low_zeros, low_zeros)
        high = np.where(asked, zeros_before[-1] + high - high_zeros, high_zeros)
        values = np.concatenate([values[~ones], values[ones]])
    return less, (high - low).astype(np.int64)


def _events_before(times: Floats, happened: NDArray[np.bool_]) -> Integers:
    """How many events each row, sorted by time, outlived: earlier ones and, if it is censored, those of its time."""
    up_to = np.concatenate([[0], np.cumsum(happened)]).astype(np.int32)
    new = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    lengths = np.diff(np.append(new, len(times)))
    return np.where(happened, np.repeat(up_to[new], lengths), np.repeat(up_to[new + lengths], lengths))
