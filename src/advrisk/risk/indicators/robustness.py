"""Robustness measures to compare risks with: mean adversarial distance and adversarial risk."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.core.estimate import Estimate
from advrisk.risk.damage import PerturbationSize, mean_perturbation_size
from advrisk.risk.mean_share import mean_share
from advrisk.risk.proportion import mean_interval
from advrisk.risk.queries import QueryPoints


@dataclass(frozen=True)
class Robustness:
    """Robustness of one model in one norm; None where no attack succeeded, or no arm has an eps."""

    model: str
    norm: str
    mean_distance: PerturbationSize | None  # over samples that were correct clean and broken
    rho_1: Estimate | None  # the paper's: 0 for samples that were wrong already, without those that resisted
    eps: float | None  # the largest of all arms
    adversarial_risk: Estimate | None  # rho_2: share wrong under the strongest attack within eps


def model_robustness(
    model: str,
    norm: str,
    own: NDArray[np.float64],
    eps: float | None,
    level: float,
    points: QueryPoints | None,
    *,
    sized: bool,
) -> Robustness:
    broken = (own > 0) & (own < np.inf)
    return Robustness(
        model=model,
        norm=norm,
        mean_distance=mean_perturbation_size(own, level=level) if sized and broken.any() else None,
        rho_1=_rho_1(own, level) if sized and broken.any() else None,
        eps=eps,
        adversarial_risk=None
        if eps is None
        else mean_share(own <= eps if points is None else 1 - points.correct(eps), level=level),
    )


def _rho_1(distances: NDArray[np.float64], level: float) -> Estimate:
    """Mean of min ||r|| with f(x + r) wrong, over samples that are wrong clean (0) or broken."""
    finite = distances[distances < np.inf]
    return Estimate(*mean_interval(finite, level), level, finite.size, "mean, t")
