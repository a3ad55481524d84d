"""Multiple testing: arms of a frozen list, sizes of a grid, several models.

*A list of arms.* The hypothesis is "some arm of the list has a risk above alpha", and its p-value is the largest of the
arms. If the risk of arm l is above alpha, max p <= zeta requires p_l <= zeta, which has probability at most zeta. So no
correction is needed.

*A grid of sizes* (fixed-sequence testing; Maurer, Hothorn & Lehmacher 1995). Sizes are tested at zeta in an order fixed
in advance, until the first failure. A false certificate requires that the first size with a risk above alpha is
certified, which has probability at most zeta. p need not increase with eps.

*Several models* (Holm 1979; Bretz, Maurer, Brannath & Posch 2009). Each of M models begins with zeta/M for its own
sequence. A model whose whole grid is certified passes its share to the unfinished ones, in equal parts. Say that m
models have a size above alpha. Before the first false certificate none of them is finished, so each is tested at
zeta/m or less. The first such size of each is certified with at most that probability, and m times zeta/m is zeta. With
one size each, this is Holm's procedure.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.plain import InJson
from advrisk.risk.certificate.counts import Floats, check_rate

Name = TypeVar("Name", bound=Hashable)  # of a model, or of a model and a norm


@dataclass(frozen=True)
class CertifiedSizes:
    """A grid of eps, tested in ascending order until the first failure."""

    eps: tuple[float, ...]
    p: tuple[float, ...]
    n_certified: int  # number of certified sizes, the smallest first
    level: float  # level of the last test: zeta, or its share among several models

    in_json: ClassVar[InJson] = {"largest": "largest", "stopped_at": "stopped_at"}

    @property
    def largest(self) -> float | None:
        """The largest certified eps; None if not even the smallest is."""
        return self.eps[self.n_certified - 1] if self.n_certified else None

    @property
    def stopped_at(self) -> float | None:
        """The first size that failed, which ends the tests; None if all are certified."""
        return self.eps[self.n_certified] if self.n_certified < len(self.eps) else None


def fixed_sequence(p_by_eps: Mapping[float, float], zeta: float) -> CertifiedSizes:
    """The largest certified eps of a grid that was fixed in advance, in ascending order."""
    return certified_sizes({"": p_by_eps}, zeta)[""]


def certified_sizes(p_by_eps: Mapping[Name, Mapping[float, float]], zeta: float) -> dict[Name, CertifiedSizes]:
    """The largest certified eps of each model; the probability that any of them is too large is at most zeta."""
    check_rate("zeta", zeta)
    if not p_by_eps:
        raise RiskError("there is no model to test")
    grids = {model: _checked_grid(model, grid) for model, grid in p_by_eps.items()}
    done, level = dict.fromkeys(grids, 0), dict.fromkeys(grids, zeta / len(grids))
    progress = True
    while progress:
        unfinished = [model for model in grids if done[model] < len(grids[model][0])]
        level |= dict.fromkeys(unfinished, zeta / max(len(unfinished), 1))
        ready = [model for model in unfinished if grids[model][1][done[model]] <= level[model]]
        done |= {model: done[model] + 1 for model in ready}
        progress = bool(ready)
    return {model: CertifiedSizes(eps, p, done[model], level[model]) for model, (eps, p) in grids.items()}


def holm(p: ArrayLike) -> Floats:
    """Holm (1979): adjusted p-values; rejecting those up to zeta has a family-wise error rate of at most zeta."""
    values = checked_p(p)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(values.size, 0, -1)
    adjusted = np.empty(values.size)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def checked_p(p: ArrayLike) -> Floats:
    """p-values as an array, each between 0 and 1."""
    try:
        values = np.asarray(p, dtype=np.float64)
    except (TypeError, ValueError):
        raise RiskError(f"p-values must be numbers, found {p!r}") from None
    if values.ndim != 1 or values.size == 0:
        raise RiskError(f"p-values must be a list of numbers, found an array of shape {values.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        raise RiskError(f"p-values lie between 0 and 1, found {values[~((values >= 0) & (values <= 1))][0]}")
    return values


def _checked_grid(model: Hashable, grid: Mapping[float, float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    name = ", ".join(map(str, model)) if isinstance(model, tuple) else str(model)
    eps, owner = tuple(float(size) for size in grid), f" of {name}" if name else ""
    if any(not later > sooner for sooner, later in pairwise(eps)) or not all(np.isfinite(eps)):
        listed = ", ".join(f"{size:g}" for size in eps)
        raise RiskError(f"the sizes{owner} must ascend, as they are tested in that order; found {listed}")
    return eps, tuple(float(value) for value in checked_p(list(grid.values())))
