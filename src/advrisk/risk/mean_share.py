"""The mean of values between 0 and 1, one for each sample: a share of samples, or of queries to a random model.

What a sample has or has not is 0 or 1. Of a model that answers at random it is the share of draws, and the samples
being independent, their spread holds both sources of chance: which samples were taken, and which draws.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.bounded_mean import exceeds_zero, mean_limits
from advrisk.risk.paired_share import at_least, share_difference
from advrisk.risk.proportion import proportion

Floats = NDArray[np.float64]
METHOD = "samples and draws, Gaffke"


def are_flags(*values: ArrayLike) -> bool:
    """Whether all values are 0 or 1."""
    return all(bool(np.isin(np.asarray(one, dtype=np.float64), (0.0, 1.0)).all()) for one in values)


def mean_share(values: ArrayLike, *, level: float = 0.95, unknown: int = 0) -> Estimate:
    """The mean with its interval: Clopper and Pearson's of 0 and 1, else Gaffke's, which is the same for those.

    `unknown` values beside these count as 1 for the upper limit and as 0 for the lower one.
    """
    own = _checked(values)
    if are_flags(own):
        hits, whole = int(own.sum()), own.size + unknown
        found = proportion(hits, own.size, level=level)
        if not unknown:
            return found
        low, high = proportion(hits, whole, level=level).low, proportion(hits + unknown, whole, level=level).high
        return Estimate(found.value, low, high, level, own.size, found.method)
    low = mean_limits(np.append(own, np.zeros(unknown)), 0.0, 1.0, level)[0]
    high = mean_limits(np.append(own, np.ones(unknown)), 0.0, 1.0, level)[1]
    value = float(own.mean())
    return Estimate(value, min(low, value), max(high, value), level, own.size, METHOD)


def mean_difference(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, unknown: int = 0) -> Estimate:
    """The mean of the first less that of the second, on the same samples; `unknown` pairs count at their worst."""
    one, other = _checked(first), _checked(second)
    if are_flags(one, other):
        up, down = _only(one, other), _only(other, one)
        return share_difference(up, down, one.size, level=level, unknown=unknown)
    gaps = one - other
    low = mean_limits(np.append(gaps, -np.ones(unknown)), -1.0, 1.0, level)[0]
    high = mean_limits(np.append(gaps, np.ones(unknown)), -1.0, 1.0, level)[1]
    value = float(gaps.mean())
    return Estimate(value, min(low, value), max(high, value), level, one.size, f"paired, {METHOD}")


def difference_at_least(first: ArrayLike, second: ArrayLike, margin: float, *, unknown: int = 0) -> float:
    """The one-sided p-value of "the first exceeds the second by the margin or more"; unknown pairs do, by 1."""
    one, other = _checked(first), _checked(second)
    if are_flags(one, other):
        return at_least(_only(one, other) + unknown, _only(other, one), one.size + unknown, margin)
    return exceeds_zero(np.concatenate([one - other, np.ones(unknown + 1)]) - margin)


def _only(one: Floats, other: Floats) -> int:
    return int(((one == 1) & (other == 0)).sum())


def _checked(values: ArrayLike) -> Floats:
    own = np.asarray(values, dtype=np.float64)
    if own.ndim != 1 or not own.size or not ((own >= 0) & (own <= 1)).all():
        raise RiskError(f"a share is the mean of values from 0 to 1, at least one, found {own.size} values")
    return own
