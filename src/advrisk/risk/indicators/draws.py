"""A model that answers at random: its loss is the mean over draws, and the worst of several points is chosen fairly.

The largest of several means over the same few draws is larger, on average, than the largest true mean: chance is
picked along with harm. So one part of the draws chooses the point and the other part says what it costs, both ways
round, and the two are averaged (cross-fitting). On average that is the loss under an attacker who chose by draws that
are over by then: never above the loss under the best choice.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def n_early(n_draws: int) -> int:
    """How many of the draws make the first part."""
    return n_draws // 2


def worst(early: Floats, late: Floats, early_share: float, *, axis: int = 0) -> Floats:
    """The largest along an axis: chosen by one part of the draws, valued by the other, both ways round.

    `early` and `late` are means over the two parts; `early_share` is the share of draws in the first. Of a model that
    does not draw they are equal, and this is the maximum. Where any value is nan, so is the result.
    """
    by_early, by_late = (np.expand_dims(_rounded(part).argmax(axis=axis), axis) for part in (early, late))
    chosen: Any = early_share * np.take_along_axis(early, by_late, axis)
    chosen = chosen + (1 - early_share) * np.take_along_axis(late, by_early, axis)
    return np.asarray(np.squeeze(chosen, axis), dtype=np.float64)


def _rounded(part: Floats) -> Floats:
    """To what is no rounding: one part is computed from the other, whose last bits must not decide between equals."""
    scale = float(np.abs(np.nan_to_num(part)).max(initial=0.0)) or 1.0
    return np.asarray(np.round(part / scale, 9))
