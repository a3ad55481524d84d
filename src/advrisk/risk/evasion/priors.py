"""What is thought of a detector before it has answered, and how likely its answers are then."""

from dataclasses import dataclass

import numpy as np

from advrisk.risk.evasion.curve import Floats
from advrisk.risk.evasion.grid import Axis
from advrisk.risk.evasion.psychometric import Scale

WIDTH = (float(np.log(0.3)), 1.25)  # prior mean and standard deviation of the log of the relative width
MOST_RATE = 0.5  # a guess or lapse rate beyond it would not be one
RATE_POWER = 8.0  # density 9 (1 - rate)^8 of a rate that is not 0
NO_RATE = 0.5  # prior probability that a rate is 0
# Scale of the half-normal prior of how much log thresholds differ between labellers, or between images: two thirds say
# that somebody who is one standard deviation off has a threshold at most 1.65 times the usual one.
SPREAD = 0.5


@dataclass(frozen=True)
class AnswerModel:
    """How answers come about: the scale of sizes, the prior of log threshold, and whether the choice was forced."""

    scale: Scale
    threshold: tuple[float, float]  # mean and standard deviation
    forced_choice: bool = False

    @property
    def share(self) -> float:
        """The probability of a wrong answer when nothing was noticed."""
        return 0.5 if self.forced_choice else 1.0


def log_prior(model: AnswerModel, threshold: Floats, width: Floats, guess: Floats, lapse: Floats) -> Floats:
    """Of log threshold, log width and the rates, up to a constant; atoms at rate 0 are left to the caller."""
    mean, deviation = model.threshold
    log = -(((threshold - mean) / deviation) ** 2) / 2 - ((width - WIDTH[0]) / WIDTH[1]) ** 2 / 2
    for rate in (guess, lapse):
        log = log + np.where(rate > 0, np.log(RATE_POWER + 1) + RATE_POWER * np.log1p(-rate), 0.0)
    return np.asarray(log)


def log_spread_prior(spread: Floats) -> Floats:
    return np.asarray(-((spread / SPREAD) ** 2) / 2)


def rate_axis(rate: float | None, cells: int) -> Axis:
    """One cell for a rate that is given; an atom at 0 and cells up to MOST_RATE for one that is learned."""
    if rate is None:
        return Axis(0.0, MOST_RATE, cells, least=0.0, most=MOST_RATE, atom=NO_RATE)
    return Axis(rate, rate, 1, least=rate, most=rate)
