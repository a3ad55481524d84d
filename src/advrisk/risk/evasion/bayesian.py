"""The evasion curve of a detector with a threshold, a slope, false alarms and lapses, as a posterior."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.risk.evasion.answers import Answers, any_answers, checked_answers
from advrisk.risk.evasion.curve import Curves, Evasion, Flags, Floats, checked_sizes, outside, values_of
from advrisk.risk.evasion.grid import Axis, Posterior, posterior

Scale = Literal["log", "linear"]

_WIDTH = (np.log(0.3), 1.25)  # prior mean and standard deviation of the log of the relative width
_MOST_RATE = 0.5  # a guess or lapse rate beyond it would not be one
_RATE_PRIOR = 9.0  # density 9 (1 - rate)^8 of a rate that is not 0
_NO_RATE = 0.5  # prior probability that a rate is 0
# Cells of threshold and width, by the number of rates that are learned. Of a steep curve the likelihood jumps where the
# threshold passes a size that was asked about; so the threshold needs many.
_CELLS = {0: (61, 31), 1: (45, 31), 2: (31, 21)}
_FINE = 4  # as many more of the threshold once their place is found
_RATE_CELLS = 8
_INFORMATION_DRAWS = 1000
_BLOCK = 2_000_000  # cells that are worked on at a time


@dataclass(frozen=True)
class PsychometricCurve:
    """Psi(s) = lapse + (1 - guess - lapse) F(s), where F falls from 1 at 0; Psi(inf) = 0.

    On the log scale F(s) = 1 / (1 + (s / threshold)^(1 / width)); on the linear scale it is the
    logistic curve (threshold - s) / (threshold * width), divided by its value at 0.
    """

    threshold: float
    width: float
    guess: float  # the false-alarm rate: Psi(0) = 1 - guess
    lapse: float  # how often even the largest perturbation goes unseen
    scale: Scale

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        finite = np.isfinite(array)
        values = np.zeros(array.shape)
        parameters = np.array([[self.threshold, self.width, self.guess, self.lapse]])
        values[finite] = _many(self.scale, parameters, array[finite])[0]
        return values


@dataclass(frozen=True, eq=False)
class BayesianEvasion:
    """The mean curve of a posterior, and draws from it."""

    answers: Answers
    scale: Scale
    guess: float | None  # None: learned from the answers
    lapse: float | None
    plausible: tuple[float, float]
    _posterior: Posterior = field(repr=False)  # of log threshold, log width, guess, lapse

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        values = np.zeros(array.shape)
        finite = np.isfinite(array)
        different, place = np.unique(array[finite], return_inverse=True)
        values[finite] = self._mean(different)[place]
        return values

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:
        drawn = self._posterior.draws(n, rng)
        drawn[:, :2] = np.exp(drawn[:, :2])
        return Curves(drawn, partial(_one, self.scale), partial(_many, self.scale))

    def extrapolated(self, sizes: ArrayLike) -> Flags:
        if self.answers.n == 0:
            return np.isfinite(checked_sizes(sizes, "sizes"))
        return outside(sizes, self.answers.sizes)

    def expected_information(self, sizes: ArrayLike) -> Floats:
        """How many nats one more answer at each size is expected to tell about the curve.

        The entropy of the answer, less the mean of its entropy were the curve known (Houlsby et al. 2011,
        "Bayesian active learning by disagreement").
        """
        array = checked_sizes(sizes, "sizes")
        p = values_of(self.draws(_INFORMATION_DRAWS, np.random.default_rng(0)), array.ravel())
        return np.asarray(_entropy(p.mean(axis=0)) - _entropy(p).mean(axis=0)).reshape(array.shape)

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, Floats, float]:
        """Log threshold and log width of the cells that matter, the mean of 1 - guess - lapse in each times its
        mass, and the mean lapse rate."""
        threshold, width, guess, lapse = (axis.values() for axis in self._posterior.axes)
        room = 1 - guess[:, None] - lapse[None, :]
        weight = np.einsum("twgl,gl->tw", self._posterior.mass, room)
        held = np.nonzero(weight > 1e-9 * weight.max())
        rescaled = weight[held] * (weight.sum() / weight[held].sum())
        return threshold[held[0]], width[held[1]], rescaled, float(self._posterior.marginal(3) @ lapse)

    def _mean(self, sizes: Floats) -> Floats:
        threshold, width, weight, lapse = self._cells
        values = np.empty(sizes.shape)
        block = max(1, _BLOCK // threshold.size)
        for start in range(0, sizes.size, block):
            part = slice(start, start + block)
            values[part] = _fall(sizes[part, None], threshold, width, self.scale) @ weight
        return np.asarray(np.minimum(lapse + values, 1.0))


def fit_bayesian(
    sizes: ArrayLike,
    undetected: ArrayLike,
    *,
    scale: Scale = "log",
    guess: float | None = 0.0,
    lapse: float | None = 0.0,
    plausible: tuple[float, float] | None = None,
    few: bool = False,
) -> BayesianEvasion:
    """Psi(s) = lapse + (1 - guess - lapse) F(s) from a detector's answers; F is logistic in s or in log s.

    `guess` is the false-alarm rate, Psi(0) = 1 - guess, and `lapse` the rate at which even the
    largest perturbation is missed; None has them learned from the answers (half the prior says
    that there are none; otherwise their density is 9 (1 - rate)^8, up to 1/2).

    Priors: log threshold is normal with 95 % between the two `plausible` sizes (default: from a
    tenth of the least to ten times the largest size asked about), the log of the width, relative
    to the threshold, normal about log 0.3 with standard deviation 1.25.

    Only the likelihood of the answers enters, so sizes may have been chosen in the light of earlier
    answers. `few` takes any number of answers, even none: what is not answered, the prior says.
    """
    answers = any_answers(sizes, undetected) if few else checked_answers(sizes, undetected)
    if scale not in get_args(Scale):
        raise RiskError(f"no scale is called {scale!r}; {did_you_mean(scale, get_args(Scale))}")
    rates = [_checked_rate(guess, "guess"), _checked_rate(lapse, "lapse")]
    _check_zeros(answers, guess)
    low, high = _checked_range(plausible) if plausible else _usual_range(answers)
    n_thresholds, n_widths = _CELLS[sum(rate is None for rate in rates)]
    spread = np.log(high) - np.log(low)
    axes = [
        Axis(np.log(low) - spread, np.log(high) + spread, n_thresholds, fine=_FINE),
        Axis(_WIDTH[0] - 6 * _WIDTH[1], _WIDTH[0] + 6 * _WIDTH[1], n_widths),
        *[_rate_axis(rate) for rate in rates],
    ]
    prior = (float(np.log(low) + np.log(high)) / 2, float(spread / (2 * 1.959964)))
    found = posterior(lambda *at: _log_density(answers, scale, prior, *at), axes)
    return BayesianEvasion(answers, scale, guess, lapse, (low, high), found)


def _log_density(answers: Answers, scale: Scale, prior: tuple[float, float], *at: Floats) -> Floats:
    """Log of prior times likelihood; one term per size, since all at once would not fit in memory."""
    threshold, width, guess, lapse = at
    log = -(((threshold - prior[0]) / prior[1]) ** 2) / 2 - ((width - _WIDTH[0]) / _WIDTH[1]) ** 2 / 2
    for rate in (guess, lapse):
        log = log + np.where(rate > 0, np.log(_RATE_PRIOR) + (_RATE_PRIOR - 1) * np.log1p(-rate), 0.0)
    room = 1 - guess - lapse
    for size, total, hits in zip(*answers.pooled_counts(), strict=True):
        p = lapse + room * _fall(size, threshold, width, scale)
        if hits:
            log = log + hits * np.log(np.maximum(p, 1e-300))
        if hits < total:
            log = log + (total - hits) * np.log(np.maximum(1 - p, 1e-300))
    return np.asarray(log)


def _fall(sizes: Floats, log_threshold: Floats, log_width: Floats, scale: Scale) -> Floats:
    """F: 1 at size 0, 0 at inf."""
    from scipy.special import expit, log_expit

    steep = np.exp(-log_width)
    if scale == "log":
        with np.errstate(divide="ignore"):
            return np.asarray(expit((log_threshold - np.log(sizes)) * steep))
    at_zero = log_expit(steep)
    return np.asarray(np.exp(log_expit((1 - sizes * np.exp(-log_threshold)) * steep) - at_zero))


def _one(scale: Scale, parameters: Floats) -> PsychometricCurve:
    threshold, width, guess, lapse = parameters.tolist()
    return PsychometricCurve(threshold, width, guess, lapse, scale)


def _many(scale: Scale, parameters: Floats, sizes: Floats) -> Floats:
    threshold, width, guess, lapse = parameters.T[:, :, None]
    fallen = _fall(sizes, np.log(threshold), np.log(width), scale)
    return np.asarray(lapse + (1 - guess - lapse) * fallen)


def _rate_axis(rate: float | None) -> Axis:
    """One cell for a rate that is given; an atom at 0 and cells up to _MOST_RATE for one that is learned."""
    if rate is None:
        return Axis(0.0, _MOST_RATE, _RATE_CELLS, least=0.0, most=_MOST_RATE, atom=_NO_RATE)
    return Axis(rate, rate, 1, least=rate, most=rate)


def _entropy(p: Floats) -> Floats:
    from scipy.special import entr

    return np.asarray(entr(p) + entr(1 - p))


# Checks


def _checked_rate(rate: float | None, name: str) -> float | None:
    if rate is not None and not 0 <= rate < _MOST_RATE:
        raise RiskError(f"{name} must be at least 0 and below {_MOST_RATE}, found {rate}; None has it learned")
    return rate


def _check_zeros(answers: Answers, guess: float | None) -> None:
    false_alarms = int((~answers.undetected[answers.sizes == 0]).sum())
    if guess == 0 and false_alarms:
        raise RiskError(
            f"{false_alarms} unchanged inputs (size 0) were taken for perturbed, which guess=0 says cannot happen; "
            "give the false-alarm rate, or guess=None to have it learned"
        )


def _usual_range(answers: Answers) -> tuple[float, float]:
    positive = answers.sizes[answers.sizes > 0]
    if not positive.size:
        raise RiskError("no answer is about a perturbation greater than 0; ask about some, or give `plausible` sizes")
    return float(positive.min() / 10), float(positive.max() * 10)


def _checked_range(plausible: tuple[float, float]) -> tuple[float, float]:
    if len(plausible) != 2:
        raise RiskError(f"plausible must be two sizes, found {len(plausible)}")
    low, high = (float(end) for end in plausible)
    if not 0 < low < high < np.inf:
        raise RiskError(f"plausible must be two sizes, 0 < low < high < inf, found {low:g} and {high:g}")
    return low, high
