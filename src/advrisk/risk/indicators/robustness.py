"""The robustness numbers that risks are compared with: mean minimal distance and adversarial risk."""

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
    """One model and one norm; None where no attack succeeded, or no arm has an eps."""

    model: str
    norm: str
    mean_distance: PerturbationSize | None  # over samples that were correct, and were broken
    rho_1: Estimate | None  # the paper's: samples that were wrong already are at 0; those that resisted are left out
    eps: float | None  # the largest that an arm was allowed
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
    """The mean of min ||r|| with f(x + r) wrong: 0 where f(x) is; of samples that no attack broke it is not known."""
    known = distances[distances < np.inf]
    return Estimate(*mean_interval(known, level), level, known.size, "mean, t")
