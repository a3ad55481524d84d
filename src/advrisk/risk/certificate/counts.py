"""Counts of failures on a calibration set, checked as integers; and the probability of evenly sized groups."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 10**7  # samples; the numerics are tested up to here


@dataclass(frozen=True, slots=True)
class Count:
    """Failures among the n samples of one calibration set."""

    failures: int
    n: int
    calibration: str  # fingerprint of the set

    def __post_init__(self) -> None:
        checked_counts(self.failures, self.n)


def checked_counts(failures: ArrayLike, n: ArrayLike) -> tuple[Ints, Ints]:
    """Failures and n as integers with 0 <= failures <= n and n > 0; other numbers are refused, never rounded."""
    counts, sizes = _whole("failures", failures), _whole("n", n)
    if counts.size == 0 or sizes.size == 0:
        raise RiskError("there are no counts to test; count the failures on a calibration set first")
    if sizes.min() < 1:
        raise RiskError(f"a calibration set needs at least one sample, found n = {sizes.min()}")
    if counts.min() < 0:
        raise RiskError(f"failures must be at least 0, found {counts.min()}")
    if sizes.max() > MOST:
        raise RiskError(f"n must be at most {MOST:,}, found {sizes.max():,}")
    try:
        excess = counts > sizes
    except ValueError:
        raise RiskError(f"failures of shape {counts.shape} do not match n of shape {sizes.shape}") from None
    if excess.any():
        k, size = (int(np.broadcast_to(part, excess.shape)[excess][0]) for part in (counts, sizes))
        raise RiskError(f"more failures than samples: {k} of {size}; count each sample once")
    return counts, sizes


def check_rate(name: str, value: Any, *, several: bool = False) -> None:
    """Refuse a rate, or any of several, that is not strictly between 0 and 1."""
    try:
        rates = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise RiskError(f"{name} must be a number between 0 and 1, found {value!r}") from None
    if rates.size == 0 or not ((rates > 0) & (rates < 1)).all():
        raise RiskError(f"{name} must lie between 0 and 1, both excluded, found {value}")
    if rates.ndim and not several:
        raise RiskError(f"{name} must be one number, found an array of shape {rates.shape}")


def check_shapes(name: str, value: ArrayLike, *counts: Ints) -> None:
    """Refuse values whose shape does not match that of their counts."""
    try:
        np.broadcast_shapes(np.shape(value), *(part.shape for part in counts))
    except ValueError:
        shapes = " and ".join(str(part.shape) for part in counts)
        raise RiskError(f"{name} of shape {np.shape(value)} does not match counts of shape {shapes}") from None


def _whole(name: str, value: ArrayLike) -> Ints:
    try:
        array = np.asarray(value)
        if array.size == 0 or np.issubdtype(array.dtype, np.integer):
            return array.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise RiskError(f"{name} must be whole numbers, found {value!r}; give counts, not rates or sums of floats")


def probability_of_even_counts(counts: Sequence[int]) -> float:
    """Probability that n draws from k equally frequent groups have counts that differ by at most 1.

    With n = q k + r it is n! / (q!^(k-r) (q+1)!^r) k^-n, times the ways to choose the r larger groups. For groups of
    unequal frequency the probability is smaller.
    """
    n, k = sum(counts), len(counts)
    q, r = divmod(n, k)
    each = math.lgamma(n + 1) - (k - r) * math.lgamma(q + 1) - r * math.lgamma(q + 2) - n * math.log(k)
    return min(1.0, math.exp(each + math.log(math.comb(k, r))))
