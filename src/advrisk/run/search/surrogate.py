"""GP-UCB (Srinivas et al. 2010, arXiv:0912.3995): try next where the risk may be largest.

A Gaussian process is fitted to the failure rates seen so far, over the unit cube. The next setting is the one of the
largest μ + √β·σ. Of a batch, each further setting is chosen as if the one before had given what is expected there
(Desautels, Krause & Burdick 2014): σ shrinks around it, and μ stays.
"""

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.seeds import key
from advrisk.engine.threads import one_thread
from advrisk.plan import Search, Setting
from advrisk.run.search.design import sobol, unlike
from advrisk.study import THEORY

CANDIDATES = 1024  # settings that are considered, and as many once more around the best of them
_NEAR = (0.1, 0.02)  # how far around, as shares of the cube
_AT_ONCE = 256  # settings that are asked about together: their covariances among each other are not needed
_DELTA = 0.1  # of the schedule: the probability that the bound fails somewhere

Points = NDArray[np.float64]


def beta_at(beta: float | str, n_round: int) -> float:
    """A fixed β, or that of the theory for finitely many candidates: β_t = 2 ln(|D| t² π² / 6δ), rounds from 1."""
    if beta != THEORY:
        return float(beta)
    return 2 * math.log(2 * CANDIDATES * n_round**2 * math.pi**2 / (6 * _DELTA))


def next_settings(
    search: Search, settings: Sequence[Setting], rates: Sequence[float], *, n_round: int, seed: int
) -> list[Setting]:
    """The next batch after these failure rates; fewer, or none, where the box holds no other setting."""
    position = np.array([search.position(setting) for setting in settings])
    root = math.sqrt(beta_at(search.beta, n_round))
    with one_thread(), _quiet():
        model = _fitted(position, np.asarray(rates, dtype=np.float64))
        chosen: list[Setting] = []
        for place in range(search.batch):
            candidates = _candidates(
                search, [*settings, *chosen], model, root, key("ucb", seed, search.model, search.name, n_round, place)
            )
            if not candidates:
                break
            bounds, means = _bounds(model, _positions(search, candidates), root)
            best = int(bounds.argmax())
            chosen.append(candidates[best])
            if place + 1 < search.batch:
                model = _as_if(model, _positions(search, [candidates[best]]), means[best])
    return chosen


@contextmanager
def _quiet() -> Iterator[None]:
    """BoTorch worries about surfaces that are flat, and its imports about torch's future: nothing to be done here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from botorch.exceptions.warnings import BotorchWarning
        from linear_operator.utils.warnings import NumericalWarning

        warnings.simplefilter("ignore", BotorchWarning)
        warnings.simplefilter("ignore", NumericalWarning)
        yield


def _fitted(x: Points, rates: Points) -> Any:
    """A Gaussian process with BoTorch's priors, for rates of mean 0 and deviation 1."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    spread = float(rates.std())
    scaled = (rates - rates.mean()) / (spread if spread > 0 else 1.0)
    model = SingleTaskGP(torch.from_numpy(x), torch.from_numpy(scaled)[:, None], outcome_transform=None)
    if spread > 0:  # a flat surface says nothing of how wide its hills are
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    model.eval()
    return model


def _bounds(model: Any, x: Points, root: float) -> tuple[Points, Points]:
    """μ + √β·σ and μ."""
    import torch

    means, deviations = [], []
    with torch.no_grad():
        for part in torch.split(torch.from_numpy(x), _AT_ONCE):
            posterior = model.posterior(part)
            means.append(posterior.mean[:, 0].numpy())
            deviations.append(posterior.variance[:, 0].clamp_min(0).sqrt().numpy())
    mean = np.concatenate(means)
    return mean + root * np.concatenate(deviations), mean


def _as_if(model: Any, x: Points, mean: float) -> Any:
    """The process once it were told that its expectation came true at a point."""
    import torch

    return model.condition_on_observations(torch.from_numpy(x), torch.tensor([[mean]], dtype=torch.float64))


def _candidates(search: Search, known: Sequence[Setting], model: Any, root: float, seed: int) -> list[Setting]:
    """Settings all over the box, and more around the most promising one; none that is known."""
    n_axes = len(search.axes)
    spread = unlike(map(search.setting, sobol(n_axes, CANDIDATES, seed).tolist()), known)
    if not spread:
        return unlike(_all_settings(search), known)
    best = np.array(search.position(spread[int(_bounds(model, _positions(search, spread), root)[0].argmax())]))
    around = sobol(n_axes, CANDIDATES, key("around", seed))
    parts = np.array_split(2 * around - 1, len(_NEAR))
    near = [np.clip(best + size * part, 0, 1) for size, part in zip(_NEAR, parts, strict=True)]
    return unlike([*spread, *map(search.setting, np.concatenate(near).tolist())], known)


def _all_settings(search: Search) -> list[Setting]:
    """Every setting of a box of whole numbers that is small enough to be exhausted; of others, none."""
    if not all(axis.whole for axis in search.axes):
        return []
    if math.prod(axis.n_values for axis in search.axes) > 10 * CANDIDATES:
        return []
    values: list[list[float]] = []
    for axis in search.axes:
        first = axis.whole * math.ceil(axis.low / axis.whole)
        values.append([first + axis.whole * step for step in range(axis.n_values)])
    names = [axis.name for axis in search.axes]
    return [dict(zip(names, point, strict=True)) for point in itertools.product(*values)]


def _positions(search: Search, settings: Sequence[Setting]) -> Points:
    return np.array([search.position(setting) for setting in settings])
