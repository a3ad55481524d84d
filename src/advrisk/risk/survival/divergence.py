"""Why a likelihood has no maximum: a direction along which it never falls.

In (beta/sigma, 1/sigma) the log-likelihood is concave, with z = ln t/sigma - x beta/sigma. It grows without end along a
direction if that leaves z as it is for exact events, does not raise it for censored rows, and does not narrow an
interval. Whether there is one is a linear programme.
"""

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.risk.survival.coding import Coding
from advrisk.risk.survival.frames import Floats
from advrisk.risk.survival.likelihood import LawLikelihood
from advrisk.risk.survival.newton import Maximum

_HUGE_ERROR = 100.0  # of a coefficient over its covariate's whole range: exp(100) times as long
_HUGE_SPREAD = 1000.0


def refuse_divergence(model: LawLikelihood, found: Maximum, coding: Coding) -> None:
    """An error that names what the likelihood runs off along, if it does."""
    if not _suspicious(found):
        return
    way = growing_direction(model)
    if way is not None and way[-1] > 1e-6:
        raise RiskError(
            "the covariates predict every duration exactly, so there is no spread to fit; leave out covariates, or "
            "gather more rows"
        )
    if way is not None:
        owner = ["", *(one.name for one in coding.covariates for _ in one.columns)]
        named = dict.fromkeys(owner[i] for i in range(1, len(owner)) if abs(way[i]) > 1e-6)
        raise RiskError(
            f"{' and '.join(map(repr, named))} together tell rows without an event from those with one, so the effects "
            "have no finite estimate; leave one out, or leave out the rows that they settle"
        )
    _, u = model.predictors(found.at)
    if np.exp(u).max() > _HUGE_SPREAD:
        raise RiskError(
            f"the {model.family.name} fit spreads the log durations without end (sigma = {np.exp(u).max():.3g}): "
            "events come at once or not at all; compare shares that fail instead of times"
        )
    if not found.converged:
        raise RiskError(
            f"the {model.family.name} fit did not converge in {found.iterations} steps; leave out covariates of the "
            "scale or of the shape"
        )


def growing_direction(model: LawLikelihood) -> Floats | None:
    """A change of (beta/sigma, 1/sigma) along which the likelihood grows for ever; None if there is none.

    This holds for a constant shape.
    """
    from scipy.optimize import linprog

    rows = model.rows
    moves = np.hstack([-model.x, rows.log_t[:, None]])  # of z
    late = moves[rows.intervals]
    low = np.hstack([-model.x[rows.intervals], rows.log_lower[:, None]])[np.isfinite(rows.log_lower)]
    falling = np.vstack([moves[rows.censored], low, -late])  # each at most 0
    fixed = moves[rows.exact]
    bounds = [(-1, 1)] * model.n_scale + [(0, 1)]
    goal = falling.sum(axis=0) - np.eye(model.n_scale + 1)[-1]
    found = linprog(
        goal,
        A_ub=falling if len(falling) else None,
        b_ub=np.zeros(len(falling)) if len(falling) else None,
        A_eq=fixed if len(fixed) else None,
        b_eq=np.zeros(len(fixed)) if len(fixed) else None,
        bounds=bounds,
    )
    return np.asarray(found.x) if found.status == 0 and found.fun < -1e-6 else None


def _suspicious(found: Maximum) -> bool:
    if not found.converged:
        return True
    try:
        spread = np.diag(np.linalg.inv(-found.likelihood.hessian))
    except np.linalg.LinAlgError:
        return True
    return bool((spread < 0).any() or spread.max() > _HUGE_ERROR**2)
