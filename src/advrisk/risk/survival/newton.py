"""Damped Newton's method: every step increases the likelihood."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from advrisk.risk.survival.frames import Floats
from advrisk.risk.survival.likelihood import Likelihood

_STEPS = 200  # from least squares it takes five or six; from far away, z comes down by 1 in a step
_HALVINGS = 40
_LONGEST = 20.0
_CLOSE = 1e-10  # what is left to gain; the step that is taken last leaves about its square


class Maximum(NamedTuple):
    """Result of Newton's method."""

    at: Floats
    likelihood: Likelihood
    iterations: int
    converged: bool


def maximise(
    objective: Callable[[Floats], Likelihood], start: Floats, *, longest: Floats | float = _LONGEST
) -> Maximum:
    """Climb by Newton steps, none of which moves a coefficient by more than `longest`.

    Where the Hessian is not negative definite, it is made so by a ridge that grows; a step that does not climb is
    halved. With a constant shape, the log-likelihood is concave in (beta/sigma, 1/sigma) (Burridge, 1981), so it has
    one stationary point and every climb ends there, wherever it begins.
    """
    at, now = start, _tried(objective, start)
    if not _finite(now):
        return Maximum(at, now, 0, False)
    for iteration in range(1, _STEPS + 1):
        step = _ascent(now)
        gain = float(now.gradient @ step) / 2
        step = step / max(1.0, float(np.abs(step / longest).max()))
        found = _climbed(objective, at, now, step)
        if found is None:
            return Maximum(at, now, iteration, bool(gain < 1e-6 * (1 + abs(now.value))))
        at, now = found
        if gain < _CLOSE * (1 + 1e-3 * abs(now.value)):
            return Maximum(at, now, iteration, True)
    return Maximum(at, now, _STEPS, False)


def _ascent(now: Likelihood) -> Floats:
    information = -now.hessian
    size = np.maximum(np.abs(np.diag(information)), 1e-12)
    ridge = 0.0
    while True:
        try:
            raised = information + np.diag(ridge * size) if ridge else information
            np.linalg.cholesky(raised)  # fails unless positive definite
            return np.asarray(np.linalg.solve(raised, now.gradient))
        except np.linalg.LinAlgError:
            ridge = max(4 * ridge, 1e-8)


def _climbed(
    objective: Callable[[Floats], Likelihood], at: Floats, now: Likelihood, step: Floats
) -> tuple[Floats, Likelihood] | None:
    """Backtracking line search: halve the step until it gains a fair share of the predicted increase."""
    promised = float(now.gradient @ step)
    share = 1.0
    for _ in range(_HALVINGS):
        tried = at + share * step
        found = _tried(objective, tried)
        rounding = 1e-13 * abs(now.value)
        if _finite(found) and found.value >= now.value + 1e-4 * share * promised - rounding:
            return tried, found
        share /= 2
    return None


def _tried(objective: Callable[[Floats], Likelihood], at: Floats) -> Likelihood:
    """Evaluate the objective without warnings, as it may overflow far from the data."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return objective(at)


def _finite(found: Likelihood) -> bool:
    return bool(np.isfinite(found.value) and np.isfinite(found.hessian).all())
