"""Bayesian evasion curve: the posterior of a detector's threshold, slope, false alarms and lapses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import did_you_mean
from advrisk.risk.evasion.answers import Answers, any_answers, checked_answers, checked_names, numbered
from advrisk.risk.evasion.curve import Curves, Evasion, Flags, Floats, checked_sizes, outside, values_of
from advrisk.risk.evasion.effects import Effects, effects_of
from advrisk.risk.evasion.grid import Axis, Posterior, posterior
from advrisk.risk.evasion.priors import MOST_RATE, WIDTH, AnswerModel, log_prior, rate_axis
from advrisk.risk.evasion.psychometric import PsychometricCurve, Scale, fall, many, one

__all__ = ["BayesianEvasion", "PsychometricCurve", "Scale", "fit_bayesian"]

# Cells of threshold and width, by the number of learned rates. The likelihood of a steep curve jumps where the
# threshold passes the size of an answer, so the threshold needs many cells.
_CELLS = {0: (61, 31), 1: (45, 31), 2: (31, 21)}
_FINE = 4  # refinement of the threshold's cells once the grid is located
_RATE_CELLS = 8
_HUGE = 1e12  # a size that only a lapse misses
_INFORMATION_DRAWS = 1000
_ESTIMATE_DRAWS = 4000
_BLOCK = 2_000_000  # cells in memory at a time


@dataclass(frozen=True, eq=False)
class BayesianEvasion:
    """The mean curve of a posterior, and draws from it.

    If thresholds differ between labellers or images, curve and draws are averages over a new labeller and a new image
    from the population.
    """

    answers: Answers
    scale: Scale
    guess: float | None  # None: learned from the answers
    lapse: float | None
    plausible: tuple[float, float]
    forced_choice: bool
    _posterior: Posterior = field(repr=False)  # of log threshold, log width, guess, lapse, without random effects
    _effects: Effects | None = field(repr=False)  # of labellers and images; None without random effects

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        values = np.zeros(array.shape)
        finite = np.isfinite(array)
        distinct, index = np.unique(array[finite], return_inverse=True)
        values[finite] = self._mean(distinct)[index]
        return values

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:
        return self._curves(self._posterior.draws(n, rng) if self._effects is None else self._effects.draws(n, rng))

    def nodes(self, n: int) -> Sequence[Evasion]:
        """Curves that represent the posterior; with Markov chains, all their draws."""
        return self._curves(self._posterior.nodes(n)[0] if self._effects is None else self._effects.rows)

    def answer_draws(self, n: int, rng: np.random.Generator) -> Floats | None:
        """Probability that each answer is "undetected", (n, answers), for draws with new labellers and images.

        None without random effects, as the curves then suffice.
        """
        if self._effects is None:
            return None
        at, shift = self._effects.answer_draws(self.answers, n, rng)
        fallen = fall(self.answers.sizes, at[:, :1] + shift, at[:, 1:2], self.scale)
        return (0.5 if self.forced_choice else 1.0) * (at[:, 3:4] + (1 - at[:, 2:3] - at[:, 3:4]) * fallen)

    def extrapolated(self, sizes: ArrayLike) -> Flags:
        if self.answers.n == 0:
            return np.isfinite(checked_sizes(sizes, "sizes"))
        return outside(sizes, self.answers.sizes)

    def expected_information(self, sizes: ArrayLike) -> Floats:
        """Expected information gain in nats of one more answer at each size.

        The entropy of the answer minus its expected entropy given the curve (Houlsby et al. 2011, "Bayesian active
        learning by disagreement"). With random effects, the answer is that of a new labeller about a new image. In a
        forced choice, information about lapses is ignored; otherwise only easy choices would be asked.
        """
        array = checked_sizes(sizes, "sizes")
        curves = self.draws(_INFORMATION_DRAWS, np.random.default_rng(0))
        p = values_of(curves, array.ravel())
        if self.forced_choice:
            lapse = values_of(curves, np.array([_HUGE]))
            p = (lapse.mean() + (1 - lapse.mean()) * (p - lapse) / np.maximum(1 - lapse, 1e-9)) / 2
        return np.asarray(_entropy(p.mean(axis=0)) - _entropy(p).mean(axis=0)).reshape(array.shape)

    @property
    def note(self) -> str | None:
        """Warning about the fit, if any."""
        if self._effects is None or self._effects.converged:
            return None
        return (
            "The fit of differences between labellers and images did not converge: its intervals may be too narrow; "
            "collect more answers, or leave out the labellers or the images."
        )

    @property
    def labellers(self) -> Mapping[str, Estimate]:
        """Threshold of each labeller: the size at which half goes undetected, apart from false alarms and lapses."""
        if self.answers.labellers is None:
            return {}
        names, of_answer = numbered(self.answers.labellers)
        counts = np.bincount(of_answer, minlength=len(names)).tolist()
        logs = self._labeller_draws(len(names))
        return {name: _estimate(np.exp(logs[:, index]), counts[index]) for index, name in enumerate(names)}

    @property
    def spread_of_labellers(self) -> Estimate | None:
        """Standard deviation of log thresholds between labellers; None if there are not several."""
        return self._spread(None if self._effects is None else self._effects.of_labellers)

    @property
    def spread_of_images(self) -> Estimate | None:
        """Standard deviation of log thresholds between images; None if no image has several answers."""
        return self._spread(None if self._effects is None else self._effects.of_images)

    def _spread(self, drawn: Floats | None) -> Estimate | None:
        return None if drawn is None else _estimate(drawn, self.answers.n)

    def _labeller_draws(self, n_labellers: int) -> Floats:
        """Log thresholds, (draws, labellers); that of a single labeller is the curve's."""
        if self._effects is not None and self._effects.labellers is not None:
            return self._effects.labellers
        parameters = (
            self._posterior.draws(_ESTIMATE_DRAWS, np.random.default_rng(0))
            if self._effects is None
            else self._effects.parameters
        )
        return np.asarray(parameters[:, :n_labellers])

    def _curves(self, points: Floats) -> Curves:
        """Curves from rows of log threshold, log width, guess, lapse and, with random effects, spread."""
        parameters = np.concatenate([np.exp(points[:, :2]), points[:, 2:]], axis=1)
        return Curves(parameters, partial(one, self.scale), partial(many, self.scale))

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, Floats, float]:
        """Log threshold and log width of cells with mass, their mass times mean 1 - guess - lapse, and mean lapse."""
        threshold, width, guess, lapse = (axis.values() for axis in self._posterior.axes)
        height = 1 - guess[:, None] - lapse[None, :]
        weight = np.einsum("twgl,gl->tw", self._posterior.mass, height)
        kept = np.nonzero(weight > 1e-9 * weight.max())
        rescaled = weight[kept] * (weight.sum() / weight[kept].sum())
        return threshold[kept[0]], width[kept[1]], rescaled, float(self._posterior.marginal(3) @ lapse)

    def _mean(self, sizes: Floats) -> Floats:
        if self._effects is not None:
            return self._effects.mean(sizes, self.scale)
        threshold, width, weight, lapse = self._cells
        values = np.empty(sizes.shape)
        block = max(1, _BLOCK // threshold.size)
        for start in range(0, sizes.size, block):
            part = slice(start, start + block)
            values[part] = fall(sizes[part, None], threshold, width, self.scale) @ weight
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
    forced_choice: bool = False,
    labellers: Sequence[object] | None = None,
    images: Sequence[object] | None = None,
) -> BayesianEvasion:
    """Psi(s) = lapse + (1 - guess - lapse) F(s) from a detector's answers; F is logistic in s or in log s.

    `guess` is the false-alarm rate, Psi(0) = 1 - guess, and `lapse` the rate at which even the largest perturbation is
    missed. None learns them from the answers (half the prior mass is at 0; otherwise the density is 9 (1 - rate)^8, up
    to 1/2).

    Priors: log threshold is normal with 95 % between the two `plausible` sizes (default: from a tenth of the least to
    ten times the largest size of the answers). The log of the width, relative to the threshold, is normal with mean
    log 0.3 and standard deviation 1.25.

    Only the likelihood of the answers enters, so sizes may depend on earlier answers. `few` allows any number of
    answers, even none; the prior then decides.

    With `forced_choice`, the detector saw two pictures, one of them unchanged. `undetected` means that it named the
    wrong one, which has probability Psi(s) / 2.

    `labellers` and `images` name the labeller and the image of each answer. With several labellers, or several images
    of which one has two answers, the log threshold of an answer is log m + a(labeller) + b(image), with a and b normal
    about 0. Their standard deviations have half-normal priors of scale 1/2. The curve is then that of a new labeller
    and a new image.
    """
    answers = any_answers(sizes, undetected) if few else checked_answers(sizes, undetected)
    answers = replace(
        answers,
        labellers=checked_names(labellers, answers.n, "labeller"),
        images=checked_names(images, answers.n, "image"),
    )
    if scale not in get_args(Scale):
        raise RiskError(f"no scale is called {scale!r}; {did_you_mean(scale, get_args(Scale))}")
    rates = [_checked_rate(guess, "guess"), _checked_rate(lapse, "lapse")]
    _check_zeros(answers, guess)
    if forced_choice:
        _check_forced(answers, guess)
    low, high = _checked_range(plausible) if plausible else _usual_range(answers)
    spread = np.log(high) - np.log(low)
    prior = (float(np.log(low) + np.log(high)) / 2, float(spread / (2 * 1.959964)))
    model = AnswerModel(scale, prior, forced_choice)
    n_thresholds, n_widths = _CELLS[sum(rate is None for rate in rates)]
    axes = [
        Axis(np.log(low) - spread, np.log(high) + spread, n_thresholds, fine=_FINE),
        Axis(WIDTH[0] - 6 * WIDTH[1], WIDTH[0] + 6 * WIDTH[1], n_widths),
        *[rate_axis(rate, _RATE_CELLS) for rate in rates],
    ]
    pooled = posterior(lambda *at: _log_density(answers, model, *at), axes)
    effects = effects_of(answers, model, pooled)
    return BayesianEvasion(answers, scale, guess, lapse, (low, high), forced_choice, pooled, effects)


def _log_density(answers: Answers, model: AnswerModel, *at: Floats) -> Floats:
    """Log of prior times likelihood; one term per size, since all at once would not fit in memory."""
    threshold, width, guess, lapse = at
    log = log_prior(model, threshold, width, guess, lapse)
    height = 1 - guess - lapse
    for size, total, hits in zip(*answers.pooled_counts(), strict=True):
        p = lapse + height * fall(size, threshold, width, model.scale)
        p = p / 2 if model.forced_choice else p
        if hits:
            log = log + hits * np.log(np.maximum(p, 1e-300))
        if hits < total:
            log = log + (total - hits) * np.log(np.maximum(1 - p, 1e-300))
    return np.asarray(log)


def _entropy(p: Floats) -> Floats:
    from scipy.special import entr

    return np.asarray(entr(p) + entr(1 - p))


def _estimate(drawn: Floats, n: int, level: float = 0.95) -> Estimate:
    """Median and equal-tailed interval of posterior draws."""
    low, middle, high = np.quantile(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2]).tolist()
    return Estimate(middle, low, high, level, n, "posterior")


# Checks


def _check_forced(answers: Answers, guess: float | None) -> None:
    if guess != 0:
        raise RiskError(
            "a forced choice has no false alarms, since one of two pictures must be named; guess must be 0, "
            f"found {guess}"
        )
    zeros = int((answers.sizes == 0).sum())
    if zeros:
        raise RiskError(
            f"{zeros} answers are about size 0, where neither picture of a forced choice is perturbed; leave them out"
        )


def _checked_rate(rate: float | None, name: str) -> float | None:
    if rate is not None and not 0 <= rate < MOST_RATE:
        raise RiskError(f"{name} must be at least 0 and below {MOST_RATE}, found {rate}; None learns it")
    return rate


def _check_zeros(answers: Answers, guess: float | None) -> None:
    false_alarms = int((~answers.undetected[answers.sizes == 0]).sum())
    if guess == 0 and false_alarms:
        raise RiskError(
            f"{false_alarms} unchanged inputs (size 0) were reported as perturbed, which guess=0 excludes; "
            "give the false-alarm rate, or guess=None to learn it"
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
