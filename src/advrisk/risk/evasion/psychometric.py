"""Psychometric curves with a threshold, a slope, false alarms and lapses, and their means over thresholds."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from advrisk.risk.evasion.curve import Floats, checked_sizes

Scale = Literal["log", "linear"]

# The logistic distribution as a mixture of normal ones, 1 / (1 + exp(-x)) = sum of weight * Phi(steepness * x) up to
# 2e-9: Monahan and Stefanski (1992), "Normal scale mixture approximations to the logistic distribution", 8 terms.
_WEIGHTS = (0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
            0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354)  # fmt: skip
_STEEPNESS = (1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
              0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306)  # fmt: skip
_NODES = np.linspace(-4.5, 4.5, 28)  # of a normal distribution, for the linear scale


@dataclass(frozen=True)
class PsychometricCurve:
    """Psi(s) = lapse + (1 - guess - lapse) F(s), where F decreases from 1 at 0; Psi(inf) = 0.

    On the log scale F(s) = 1 / (1 + (s / threshold)^(1 / width)). On the linear scale it is the logistic function of
    (threshold - s) / (threshold * width), divided by its value at 0. With a `spread`, F is the mean over thresholds
    whose log is normal about log threshold with that standard deviation.
    """

    threshold: float
    width: float
    guess: float  # the false-alarm rate: Psi(0) = 1 - guess
    lapse: float  # rate at which even the largest perturbation goes undetected
    scale: Scale
    spread: float = 0.0

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        finite = np.isfinite(array)
        values = np.zeros(array.shape)
        parameters = np.array([[self.threshold, self.width, self.guess, self.lapse, self.spread]])
        values[finite] = many(self.scale, parameters[:, : 5 if self.spread else 4], array[finite])[0]
        return values


def one(scale: Scale, parameters: Floats) -> PsychometricCurve:
    """Curve of one row of threshold, width, guess, lapse and, with random effects, spread."""
    threshold, width, guess, lapse, *spread = parameters.tolist()
    return PsychometricCurve(threshold, width, guess, lapse, scale, *spread)


def many(scale: Scale, parameters: Floats, sizes: Floats) -> Floats:
    """Values of the curves of several such rows at finite sizes, (rows, sizes)."""
    threshold, width, guess, lapse, *spread = parameters.T[:, :, None]
    log_threshold, log_width = np.log(threshold), np.log(width)
    fallen = (
        mean_fall(sizes, log_threshold, log_width, spread[0], scale)
        if spread
        else fall(sizes, log_threshold, log_width, scale)
    )
    return np.asarray(lapse + (1 - guess - lapse) * fallen)


def fall(sizes: Floats, log_threshold: Floats, log_width: Floats, scale: Scale) -> Floats:
    """F: 1 at size 0, 0 at inf."""
    from scipy.special import expit, log_expit

    steep = np.exp(-log_width)
    if scale == "log":
        with np.errstate(divide="ignore"):
            return np.asarray(expit((log_threshold - np.log(sizes)) * steep))
    at_zero = log_expit(steep)
    return np.asarray(np.exp(log_expit((1 - sizes * np.exp(-log_threshold)) * steep) - at_zero))


def mean_fall(sizes: Floats, log_threshold: Floats, log_width: Floats, spread: Floats, scale: Scale) -> Floats:
    """Mean of F over thresholds whose log is normal about `log_threshold`."""
    mean = _mean_logistic if scale == "log" else _mean_linear
    return np.minimum(mean(sizes, log_threshold, log_width, spread), 1.0)


def _mean_linear(sizes: Floats, log_threshold: Floats, log_width: Floats, spread: Floats) -> Floats:
    """Mean of F by the trapezoidal rule, which is nearly exact for a normal distribution."""
    from scipy.special import expit

    steep, relative = np.exp(-log_width), sizes * np.exp(-log_threshold)
    weights = np.exp(-(_NODES**2) / 2)
    mean: Floats = np.zeros(np.broadcast_shapes(relative.shape, steep.shape))
    for node, weight in zip(_NODES.tolist(), (weights / weights.sum()).tolist(), strict=True):
        mean += weight * expit(steep - relative * (steep * np.exp(-node * spread)))
    return np.asarray(mean / expit(steep))


def _mean_logistic(sizes: Floats, log_threshold: Floats, log_width: Floats, spread: Floats) -> Floats:
    """Mean of F by a normal mixture, since the mean of Phi(k x) over a normal x is again a Phi."""
    from scipy.special import ndtr

    width = np.exp(log_width)
    with np.errstate(divide="ignore"):
        distance = log_threshold - np.log(sizes)
    mean: Floats = np.zeros(np.broadcast_shapes(distance.shape, width.shape))
    for weight, steepness in zip(_WEIGHTS, _STEEPNESS, strict=True):
        mean += weight * ndtr(distance / np.sqrt((width / steepness) ** 2 + spread**2))
    return mean
