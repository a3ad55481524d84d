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
    ranks = _ranks(predicted[order])
    less, equal = counts_before(ranks[happened], before, ranks)
    return (int(less.sum()) + int(equal.sum()) / 2) / pairs


def counts_before(values: Integers, ends: Integers, wanted: Integers) -> tuple[Integers, Integers]:
    """For each query, how many of values[:end] are less than the wanted one, and how many equal it.

    Values are sorted by one bit after the other, from the highest (a wavelet matrix); each query follows its range.
    Queries are taken by what they want, so that neighbours look at the same places.
    """
    order = np.argsort(wanted, kind="stable")
    wanted, high = wanted[order], ends[order]
    less, low = np.zeros_like(high), np.zeros_like(high)
    top = int(max(values.max(), wanted.max(), 1))
    for bit in reversed(range(top.bit_length())):
        ones = (values >> bit) & 1 == 1
        zeros_before = np.zeros(len(values) + 1, dtype=np.int32)
        np.cumsum(~ones, out=zeros_before[1:])
        asked = (wanted >> bit) & 1 == 1
        low_zeros, high_zeros = zeros_before[low], zeros_before[high]
        n_zeros = zeros_before[-1]
        less += (high_zeros - low_zeros) * asked
        low = np.where(asked, n_zeros + low - low_zeros, low_zeros)
        high = np.where(asked, n_zeros + high - high_zeros, high_zeros)
        values = np.concatenate([values[~ones], values[ones]])
    counts = np.empty((2, len(order)), dtype=np.int32)
    counts[:, order] = less, high - low
    return counts[0], counts[1]


def _events_before(times: Floats, happened: NDArray[np.bool_]) -> Integers:
    """How many events each row, sorted by time, outlived: earlier ones and, if it is censored, those of its time."""
    up_to = np.concatenate([[0], np.cumsum(happened)]).astype(np.int32)
    new = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    lengths = np.diff(np.append(new, len(times)))
    return np.where(happened, np.repeat(up_to[new], lengths), np.repeat(up_to[new + lengths], lengths))


def _ranks(values: Floats) -> Integers:
    """Equal values have the same rank."""
    return np.unique(values, return_inverse=True)[1].astype(np.int32)
