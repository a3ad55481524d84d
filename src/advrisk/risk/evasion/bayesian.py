"""The evasion curve of a detector with a threshold, a slope, false alarms and lapses, as a posterior."""

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

# Cells of threshold and width, by the number of rates that are learned. Of a steep curve the likelihood jumps where the
# threshold passes a size that was asked about; so the threshold needs many.
_CELLS = {0: (61, 31), 1: (45, 31), 2: (31, 21)}
_FINE = 4  # as many more of the threshold once their place is found
_RATE_CELLS = 8
_HUGE = 1e12  # a size that only a lapse misses
_INFORMATION_DRAWS = 1000
_ESTIMATE_DRAWS = 4000
_BLOCK = 2_000_000  # cells that are worked on at a time


@dataclass(frozen=True, eq=False)
class BayesianEvasion:
    """The mean curve of a posterior, and draws from it.

    If thresholds differ between labellers or images, curve and draws are those of the population: averaged
    over a labeller and an image that are new.
    """

    answers: Answers
    scale: Scale
    guess: float | None  # None: learned from the answers
    lapse: float | None
    plausible: tuple[float, float]
    forced_choice: bool
    _posterior: Posterior = field(repr=False)  # of log threshold, log width, guess, lapse, as if nobody differed
    _effects: Effects | None = field(repr=False)  # None: nobody differs

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        values = np.zeros(array.shape)
        finite = np.isfinite(array)
        different, place = np.unique(array[finite], return_inverse=True)
        values[finite] = self._mean(different)[place]
        return values

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:
        return self._curves(self._posterior.draws(n, rng) if self._effects is None else self._effects.draws(n, rng))

    def nodes(self, n: int) -> Sequence[Evasion]:
        """Curves that stand for the posterior; of Markov chains, all that they kept."""
        return self._curves(self._posterior.nodes(n)[0] if self._effects is None else self._effects.rows)

    def answer_draws(self, n: int, rng: np.random.Generator) -> Floats | None:
        """The probability that each answer is "undetected", (n, answers), under draws from the posterior in which
        labellers and images are new; None where nobody differs, and sizes alone say it."""
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
        """How many nats one more answer at each size is expected to tell about the curve.

        The entropy of the answer, less the mean of its entropy were the curve known (Houlsby et al. 2011,
        "Bayesian active learning by disagreement"). If labellers or images differ, the answer is one of a new
        labeller about a new image. In a forced choice what it would tell about lapses is left aside: easy choices
        teach those, and would otherwise be all that is asked.
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
        """What is to be known of the fit itself, if anything."""
        if self._effects is None or self._effects.settled:
            return None
        return (
            "The fit of differences between labellers and images did not settle: its intervals may be too narrow; ask "
            "more, or leave out who or what was asked about."
        )

    @property
    def labellers(self) -> Mapping[str, Estimate]:
        """The threshold of each labeller: the size of which half is noticed, but for false alarms and lapses."""
        if self.answers.labellers is None:
            return {}
        names, of_answer = numbered(self.answers.labellers)
        counts = np.bincount(of_answer, minlength=len(names)).tolist()
        logs = self._labeller_draws(len(names))
        return {name: _estimate(np.exp(logs[:, place]), counts[place]) for place, name in enumerate(names)}

    @property
    def spread_of_labellers(self) -> Estimate | None:
        """The standard deviation of log thresholds between labellers; None if there are not several."""
        return self._spread(None if self._effects is None else self._effects.of_labellers)

    @property
    def spread_of_images(self) -> Estimate | None:
        """The same between images; None if none was asked about several times."""
        return self._spread(None if self._effects is None else self._effects.of_images)

    def _spread(self, drawn: Floats | None) -> Estimate | None:
        return None if drawn is None else _estimate(drawn, self.answers.n)

    def _labeller_draws(self, n_labellers: int) -> Floats:
        """Log thresholds, (draws, labellers); a single labeller is what the answers are about."""
        if self._effects is not None and self._effects.labellers is not None:
            return self._effects.labellers
        parameters = (
            self._posterior.draws(_ESTIMATE_DRAWS, np.random.default_rng(0))
            if self._effects is None
            else self._effects.parameters
        )
        return np.asarray(parameters[:, :n_labellers])

    def _curves(self, points: Floats) -> Curves:
        """Of rows of log threshold, log width, guess, lapse and, if thresholds differ, spread."""
        parameters = np.concatenate([np.exp(points[:, :2]), points[:, 2:]], axis=1)
        return Curves(parameters, partial(one, self.scale), partial(many, self.scale))

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

    `guess` is the false-alarm rate, Psi(0) = 1 - guess, and `lapse` the rate at which even the
    largest perturbation is missed; None has them learned from the answers (half the prior says
    that there are none; otherwise their density is 9 (1 - rate)^8, up to 1/2).

    Priors: log threshold is normal with 95 % between the two `plausible` sizes (default: from a
    tenth of the least to ten times the largest size asked about), the log of the width, relative
    to the threshold, normal about log 0.3 with standard deviation 1.25.

    Only the likelihood of the answers enters, so sizes may have been chosen in the light of earlier
    answers. `few` takes any number of answers, even none: what is not answered, the prior says.

    With `forced_choice` two pictures were shown, one of them unchanged, and `undetected` says that
    the wrong one was named, of which the probability is Psi(s) / 2.

    `labellers` and `images` name who gave each answer and what it is about. With two labellers or
    more, and with two images or more of which one was asked about twice, the log threshold of an answer
    is log m + a(labeller) + b(image), a and b normal about 0; their standard deviations have
    half-normal priors of scale 1/2. The curve is then that of a new labeller and a new image.
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
    found = posterior(lambda *at: _log_density(answers, model, *at), axes)
    effects = effects_of(answers, model, found)
    return BayesianEvasion(answers, scale, guess, lapse, (low, high), forced_choice, found, effects)


def _log_density(answers: Answers, model: AnswerModel, *at: Floats) -> Floats:
    """Log of prior times likelihood; one term per size, since all at once would not fit in memory."""
    threshold, width, guess, lapse = at
    log = log_prior(model, threshold, width, guess, lapse)
    room = 1 - guess - lapse
    for size, total, hits in zip(*answers.pooled_counts(), strict=True):
        p = lapse + room * fall(size, threshold, width, model.scale)
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
    """The median, and the interval with equal tails."""
    low, middle, high = np.quantile(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2]).tolist()
    return Estimate(middle, low, high, level, n, "posterior")


# Checks


def _check_forced(answers: Answers, guess: float | None) -> None:
    if guess != 0:
        raise RiskError(
            "forced choice knows no false alarms, since one of two pictures must be named; guess must be 0, "
            f"found {guess}"
        )
    zeros = int((answers.sizes == 0).sum())
    if zeros:
        raise RiskError(
            f"{zeros} answers are about size 0, which forced choice cannot ask: neither picture is perturbed; "
            "leave them out"
        )


def _checked_rate(rate: float | None, name: str) -> float | None:
    if rate is not None and not 0 <= rate < MOST_RATE:
        raise RiskError(f"{name} must be at least 0 and below {MOST_RATE}, found {rate}; None has it learned")
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
