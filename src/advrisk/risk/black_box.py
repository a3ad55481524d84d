"""Successes of black-box attacks that gradient attacks missed.

Carlini et al. 2019 (arXiv:1902.06705, section 5.3): an attack with less access to a model must not do better.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MARGIN = 0.01  # a success counts if it is nearer by more than this, relatively
_ROUNDING = 1e-6  # relative tolerance of a success at its eps

Array = NDArray[np.float64]


def missed_by_gradients(black: Array, others: Array, sizes: Sequence[float], *, minimal: bool) -> NDArray[np.bool_]:
    """Which successes of black-box arms the other arms missed, as (black-box arms, samples).

    An arm at a fixed eps searches up to eps, not for the smallest distance. So the limit for a success at distance d is
    the least eps >= d among the gradient arms (`sizes`), or d itself if one of them minimises the distance (`minimal`).
    The others missed the success if they have none within that limit and a margin.
    """
    limit = np.where(np.isfinite(black), black if minimal else np.inf, np.inf)
    for eps in sizes:
        limit = np.where(black <= eps * (1 + _ROUNDING), np.minimum(limit, eps), limit)
    missed: NDArray[np.bool_] = np.isfinite(limit) & (others.min(0, initial=np.inf) > (1 + MARGIN) * limit)
    return missed
