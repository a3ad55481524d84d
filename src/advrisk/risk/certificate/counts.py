"""How many samples of a calibration set failed, checked whole numbers; and how evenly chance makes groups fall."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 10**7  # samples; up to here everything is tested


@dataclass(frozen=True, slots=True)
class Count:
    """Failures among the n samples of one calibration set, which is told by its fingerprint."""

    failures: int
    n: int
    calibration: str

    def __post_init__(self) -> None:
        checked_counts(self.failures, self.n)


def checked_counts(failures: ArrayLike, n: ArrayLike) -> tuple[Ints, Ints]:
    """Both as whole numbers, 0 <= failures <= n and n > 0; what is not one is refused, never rounded."""
    counts, sizes = _whole("failures", failures), _whole("n", n)
    if counts.size == 0 or sizes.size == 0:
        raise RiskError("there are no counts to test; count the failures on a calibration set first")
    if sizes.min() < 1:
        raise RiskError(f"a calibration set needs at least one sample, found n = {sizes.min()}")
    if counts.min() < 0:
        raise RiskError(f"failures are counted from 0 up, found {counts.min()}")
    if sizes.max() > MOST:
        raise RiskError(f"n goes up to {MOST:,}, found {sizes.max():,}")
    try:
        excess = counts > sizes
    except ValueError:
        raise RiskError(f"failures of shape {counts.shape} do not go with n of shape {sizes.shape}") from None
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
    """Refuse numbers that do not go with the counts that they are for."""
    try:
        np.broadcast_shapes(np.shape(value), *(part.shape for part in counts))
    except ValueError:
        found = " and ".join(str(part.shape) for part in counts)
        raise RiskError(f"{name} of shape {np.shape(value)} does not go with counts of shape {found}") from None


def _whole(name: str, value: ArrayLike) -> Ints:
    try:
        found = np.asarray(value)
        if found.size == 0 or np.issubdtype(found.dtype, np.integer):
            return found.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise RiskError(f"{name} must be whole numbers, found {value!r}; give counts, not rates or sums of floats")


def as_even_as_can_be(counts: Sequence[int]) -> float:
    """The probability that n draws from equally frequent groups fall as evenly as n allows.

    With n = q k + r that is n! / (q!^(k-r) (q+1)!^r) k^-n, times the ways to choose the r larger groups. Draws from
    groups that are not equally frequent fall as evenly even less often.
    """
    n, k = sum(counts), len(counts)
    q, r = divmod(n, k)
    each = math.lgamma(n + 1) - (k - r) * math.lgamma(q + 1) - r * math.lgamma(q + 2) - n * math.log(k)
    return min(1.0, math.exp(each + math.log(math.comb(k, r))))
