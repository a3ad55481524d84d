"""How far a curve that is known at some sizes only can take the difference of two models."""

import numpy as np

from advrisk.risk.evasion import Floats, MonotoneCurve


def difference_bounds(curve: MonotoneCurve, first: Floats, second: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The least and largest sum_i w_i (Psi(first_i) - Psi(second_i)) over all falling curves through the knots.

    Between two knots the extreme curves jump once from the one value to the other. With c(s) the
    weight of `first` less that of `second` at size s, a jump after s leaves the sum of c up to s at
    the upper value: so each gap adds its lower value times all of its c, and the height of its jump
    times the largest (or least) sum of its first c. `weights` is (draws, samples).
    """
    sizes, excess = _excess(first, second, weights)
    if not sizes.size:
        return np.zeros(len(weights)), np.zeros(len(weights))
    low, high = MonotoneCurve(curve.knots, curve.middle, curve.middle).bounds(sizes)
    segment = np.searchsorted(curve.knots, sizes, side="left") + np.searchsorted(curve.knots, sizes, side="right")
    starts = np.flatnonzero(np.diff(segment, prepend=-1))
    running = np.cumsum(excess, axis=1)
    before = np.where(starts > 0, running[:, starts - 1], 0.0)
    whole = np.add.reduceat(excess, starts, axis=1)
    most = np.maximum(np.maximum.reduceat(running, starts, axis=1) - before, 0.0)
    least = np.minimum(np.minimum.reduceat(running, starts, axis=1) - before, 0.0)
    jump, base = (high - low)[starts], whole @ low[starts]
    return base + least @ jump, base + most @ jump


def _excess(first: Floats, second: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The different finite sizes, ascending, and c(s) of each in every draw."""
    sizes = np.concatenate([first, second])
    signed = np.concatenate([weights, -weights], axis=1)
    order = np.argsort(sizes, kind="stable")
    order = order[np.isfinite(sizes[order])]
    different, starts = np.unique(sizes[order], return_index=True)
    if not starts.size:
        return different, np.empty((len(weights), 0))
    return different, np.add.reduceat(signed[:, order], starts, axis=1)
