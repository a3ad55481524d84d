"""Which successes of attacks without gradients were missed by those with gradients.

Carlini et al. 2019 (arXiv:1902.06705, section 5.3): attacks that see less of a model must not do better.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MARGIN = 0.01  # how much nearer, relatively, a success must be to count
_ROUNDING = 1e-6  # a success may lie beyond its eps by that, relatively

Array = NDArray[np.float64]


def missed_by_gradients(black: Array, others: Array, rooms: Sequence[float], *, minimal: bool) -> NDArray[np.bool_]:
    """Which successes of black-box arms the other arms missed, as (black-box arms, samples).

    An arm at a fixed eps is not asked to be nearer than eps, nor allowed beyond it. So a success at distance d is held
    against the smallest room that contains it: the least eps >= d of the arms with gradients (`rooms`), or d itself
    where one of them looks for the smallest perturbation (`minimal`). It was missed if the others found nothing within
    that room and a margin.
    """
    room = np.where(np.isfinite(black), black if minimal else np.inf, np.inf)
    for eps in rooms:
        room = np.where(black <= eps * (1 + _ROUNDING), np.minimum(room, eps), room)
    missed: NDArray[np.bool_] = np.isfinite(room) & (others.min(0, initial=np.inf) > (1 + MARGIN) * room)
    return missed
