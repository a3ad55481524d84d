"""Random models: the loss is the mean over draws, and the worst of several points is chosen by cross-fitting.

The largest of several means over the same few draws exceeds the largest true mean on average (selection bias). So one
part of the draws chooses the point and the other part gives its loss, in both directions, and the two are averaged. The
expectation is the loss under an attacker who chooses by independent draws, which is at most that of the best choice.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def n_early(n_draws: int) -> int:
    """Number of draws in the first part."""
    return n_draws // 2


def worst(early: Floats, late: Floats, early_share: float, *, axis: int = 0) -> Floats:
    """Cross-fitted maximum along an axis: one part of the draws chooses, the other gives the value, and vice versa.

    `early` and `late` are means over the two parts; `early_share` is the share of draws in the first. For a
    deterministic model they are equal, and this is the maximum. The result is nan if any value is.
    """
    by_early, by_late = (np.expand_dims(_rounded(part).argmax(axis=axis), axis) for part in (early, late))
    chosen: Any = early_share * np.take_along_axis(early, by_late, axis)
    chosen = chosen + (1 - early_share) * np.take_along_axis(late, by_early, axis)
    return np.asarray(np.squeeze(chosen, axis), dtype=np.float64)


def _rounded(part: Floats) -> Floats:
    """Round away floating-point noise, since the last bits must not decide between equal values."""
    scale = float(np.abs(np.nan_to_num(part)).max(initial=0.0)) or 1.0
    return np.asarray(np.round(part / scale, 9))
