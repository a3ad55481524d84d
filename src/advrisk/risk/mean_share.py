"""Mean of one value in [0, 1] per sample: a share of samples, or of queries to a random model.

A deterministic model has values 0 or 1; a random model has shares of draws. Samples are independent, so their spread
covers both sources of chance, the samples and the draws.
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
    """The mean with its interval: Clopper and Pearson's if all values are 0 or 1, else Gaffke's, its generalisation.

    `unknown` additional values count as 1 for the upper limit and as 0 for the lower one.
    """
    checked = _checked(values)
    if are_flags(checked):
        hits, n = int(checked.sum()), checked.size + unknown
        share = proportion(hits, checked.size, level=level)
        if not unknown:
            return share
        low, high = proportion(hits, n, level=level).low, proportion(hits + unknown, n, level=level).high
        return Estimate(share.value, low, high, level, checked.size, share.method)
    low = mean_limits(np.append(checked, np.zeros(unknown)), 0.0, 1.0, level)[0]
    high = mean_limits(np.append(checked, np.ones(unknown)), 0.0, 1.0, level)[1]
    value = float(checked.mean())
    return Estimate(value, min(low, value), max(high, value), level, checked.size, METHOD)


def mean_difference(first: ArrayLike, second: ArrayLike, *, level: float = 0.95, unknown: int = 0) -> Estimate:
    """Mean of the first minus that of the second, on the same samples; `unknown` pairs take their worst values."""
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
    """One-sided p-value of "the first exceeds the second by at least the margin"; unknown pairs exceed it by 1."""
    one, other = _checked(first), _checked(second)
    if are_flags(one, other):
        return at_least(_only(one, other) + unknown, _only(other, one), one.size + unknown, margin)
    return exceeds_zero(np.concatenate([one - other, np.ones(unknown + 1)]) - margin)


def _only(one: Floats, other: Floats) -> int:
    return int(((one == 1) & (other == 0)).sum())


def _checked(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size or not ((array >= 0) & (array <= 1)).all():
        raise RiskError(f"a share is the mean of values from 0 to 1, at least one, found {array.size} values")
    return array
