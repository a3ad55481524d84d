"""Priors of Bayesian evasion curves."""

from dataclasses import dataclass

import numpy as np

from advrisk.risk.evasion.curve import Floats
from advrisk.risk.evasion.grid import Axis
from advrisk.risk.evasion.psychometric import Scale

WIDTH = (float(np.log(0.3)), 1.25)  # prior mean and standard deviation of the log of the relative width
MOST_RATE = 0.5  # upper limit of guess and lapse rates
RATE_POWER = 8.0  # density 9 (1 - rate)^8 of a rate that is not 0
NO_RATE = 0.5  # prior probability that a rate is 0
# Scale of the half-normal prior of the standard deviation of log thresholds between labellers, or between images. With
# probability two thirds, a labeller one standard deviation above the mean has at most 1.65 times the usual threshold.
SPREAD = 0.5


@dataclass(frozen=True)
class AnswerModel:
    """Model of the answers: the scale of sizes, the prior of log threshold, and whether the choice is forced."""

    scale: Scale
    threshold: tuple[float, float]  # mean and standard deviation
    forced_choice: bool = False

    @property
    def share(self) -> float:
        """Probability of a wrong answer if nothing was noticed."""
        return 0.5 if self.forced_choice else 1.0


def log_prior(model: AnswerModel, threshold: Floats, width: Floats, guess: Floats, lapse: Floats) -> Floats:
    """Log prior of log threshold, log width and the rates, up to a constant and without the atoms at rate 0."""
    mean, deviation = model.threshold
    log = -(((threshold - mean) / deviation) ** 2) / 2 - ((width - WIDTH[0]) / WIDTH[1]) ** 2 / 2
    for rate in (guess, lapse):
        log = log + np.where(rate > 0, np.log(RATE_POWER + 1) + RATE_POWER * np.log1p(-rate), 0.0)
    return np.asarray(log)


def log_spread_prior(spread: Floats) -> Floats:
    return np.asarray(-((spread / SPREAD) ** 2) / 2)


def rate_axis(rate: float | None, cells: int) -> Axis:
    """One cell for a fixed rate; an atom at 0 and cells up to MOST_RATE for a learned one."""
    if rate is None:
        return Axis(0.0, MOST_RATE, cells, least=0.0, most=MOST_RATE, atom=NO_RATE)
    return Axis(rate, rate, 1, least=rate, most=rate)
