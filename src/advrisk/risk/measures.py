"""The mean of a measure over samples, with its interval."""

from collections.abc import Sequence

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.proportion import mean_interval


def mean_estimate(values: Sequence[float], weights: Sequence[float] | None = None, *, level: float = 0.95) -> Estimate:
    """The mean with its t interval; samples of weight 0 do not count."""
    each = np.asarray(values, dtype=np.float64)
    if not each.size or not np.isfinite(each).all():
        raise RiskError(f"a mean needs finite values, at least one; found {len(each)}: {each[:5].tolist()}")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    weight = np.ones(each.size) if weights is None else np.asarray(weights, dtype=np.float64)
    counts = weight > 0
    if weight.shape != each.shape or not counts.any() or not np.isfinite(weight).all():
        raise RiskError(f"a mean needs a weight for each of {len(each)} values, some above 0; found {weight.tolist()}")
    interval = mean_interval(each[counts], level, None if weights is None else weight[counts])
    return Estimate(*interval, level, int(counts.sum()), "t interval of the mean")
