"""Monte Carlo damage: a detector scores the attacks themselves, without an evasion curve.

Klemenc & Trittenbach, "Selecting Models based on the Risk of Damage Caused by Adversarial Attacks", Algorithm 1. A
sample is damaged if an attack succeeds and the detector raises no alarm:

    P = (1/I) sum_i [d_i < inf] [score(x_i'') <= threshold]

x_i'' is the success with the least score over all arms, or the clean input itself if it is wrong already. A sample is
damaged if any success raises no alarm, so another arm can only raise the damage. A score above the threshold is an
alarm; an equal score is not. The paper's x_i'' is the nearest success (never reset between observations there; here it
is); ties go to the least score. `nearest` has that number. It is not a bound: a nearer point may have a higher score
than a farther one, so a better attack may lower it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.absolute import EvasionComparison, compare_damage, damage_probability
from advrisk.risk.evasion import threshold as detected_above
from advrisk.risk.proportion import proportion

FALSE_ALARMS = "false_alarms"
Threshold = float | Mapping[str, float]  # a score, or {"false_alarms": share of clean inputs}
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Walk:
    """Successful inputs against one model and their detector scores, by sample.

    The detector sees the nearest success, or the clean input if that is wrong already.
    """

    size: Floats  # of the nearest kept success; 0 where the clean input is wrong already, inf where no arm succeeded
    score: Floats  # of the input that the detector sees; nan where no arm succeeded
    least_score: Floats  # over the successes of all arms; nan where there is none, or one without a score
    arm: tuple[str, ...]  # of the nearest success; "" where that is the clean input, or there is none
    clean_score: Floats
    correct: Flags  # whether the clean prediction is the label


@dataclass(frozen=True, eq=False)
class MonteCarloDamage:
    """Damage of models on the same samples, with one detector in front of each."""

    detector: str  # its full name in the ledger
    models: tuple[str, ...]
    n: int  # samples
    level: float
    thresholds: Mapping[str, float]  # scores above are alarms; equal for all models unless set by false-alarm rate
    estimates: Mapping[str, Estimate]  # share of samples with a success that raises no alarm
    damaged: Mapping[str, Flags]  # the same, by sample
    clean_error: Mapping[str, float]  # the part of the value from clean inputs that are wrong and undetected
    nearest: Mapping[str, Estimate]  # the paper's number: the damage by the nearest success
    success: Mapping[str, Estimate]  # the damage without a detector
    false_alarms: Mapping[str, Estimate | None]  # rate among correctly classified clean inputs; None without any
    known_to: tuple[str, ...]  # the arms that are adapted to this detector
    warnings: tuple[str, ...]
    _comparison: EvasionComparison = field(repr=False)

    @property
    def probability_best(self) -> Mapping[str, float]:
        """Probability that a model has the least damage."""
        return self._comparison.probability_best

    def difference(self, a: str, b: str) -> Estimate:
        """Damage of `a` minus damage of `b`, with the interval of the *paired* difference."""
        return self._comparison.difference(a, b)

    def undecided(self, a: str, b: str) -> bool:
        """Whether the paired interval of the difference contains 0."""
        return self._comparison.undecided(a, b)

    def probability_lower(self, a: str, b: str) -> float:
        """Probability that `a` has less damage than `b`; ties count half."""
        return self._comparison.probability_lower(a, b)

    def standard_errors(self, a: str, b: str) -> tuple[float, float]:
        """Standard error of the difference, which more samples reduce; and 0, since there is no curve."""
        return self._comparison.standard_errors(a, b)


class DetectorAnswers(NamedTuple):
    """A detector's answers to inputs of different size, as arguments of `risk.evasion.fit_…` and `differs`."""

    sizes: Floats
    undetected: Flags
    models: tuple[str, ...]
    arms: tuple[str, ...]  # "clean" for unchanged inputs


def walked_damage(
    walked: Mapping[str, Walk],
    thresholds: Mapping[str, float],
    *,
    detector: str,
    known_to: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
    level: float = 0.95,
    rng: np.random.Generator,
) -> MonteCarloDamage:
    """Algorithm 1 on arrays: the successes against each model, and the threshold of its detector."""
    damaged = {
        model: undetected_successes(walk.size, walk.least_score, thresholds[model]) for model, walk in walked.items()
    }
    comparison = compare_damage(
        {model: _as_sizes(flags) for model, flags in damaged.items()}, detected_above(0.0), level=level, rng=rng
    )
    return MonteCarloDamage(
        detector=detector,
        models=comparison.models,
        n=comparison.n,
        level=level,
        thresholds=dict(thresholds),
        estimates=comparison.estimates,
        damaged=damaged,
        clean_error={model: float((damaged[model] & _shown_clean(walk)).mean()) for model, walk in walked.items()},
        nearest={model: _nearest(walk, thresholds[model], level) for model, walk in walked.items()},
        success={
            model: proportion(int(np.isfinite(walk.size).sum()), walk.size.size, level=level)
            for model, walk in walked.items()
        },
        false_alarms={model: _false_alarms(walk, thresholds[model], level) for model, walk in walked.items()},
        known_to=known_to,
        warnings=warnings,
        _comparison=comparison,
    )


def walked_answers(walked: Mapping[str, Walk], thresholds: Mapping[str, float]) -> DetectorAnswers:
    """Answers of a detector to the clean inputs and to the nearest successes against each model."""
    sizes, undetected, models, arms = [], [], [], []
    for model, walk in walked.items():
        attacked = np.array([arm != "" for arm in walk.arm])
        sizes += [np.zeros(walk.size.size), walk.size[attacked]]
        undetected += [~alarms(score, thresholds[model]) for score in (walk.clean_score, walk.score[attacked])]
        arms += ["clean"] * walk.size.size + [arm for arm in walk.arm if arm]
        models += [model] * (walk.size.size + int(attacked.sum()))
    return DetectorAnswers(np.concatenate(sizes), np.concatenate(undetected), tuple(models), tuple(arms))


def monte_carlo_from_answers(
    undetected_by_sample: ArrayLike, *, level: float = 0.95, rng: np.random.Generator
) -> Estimate:
    """Algorithm 1 with answers from another source, such as people: one value in [0, 1] for *every* sample.

    The value is 0 if no arm succeeded or the success was detected, and 1 if it went undetected; with several people, it
    is the share who did not notice. Zeros and ones have Clopper and Pearson's interval, shares Gaffke's, as in
    `compare_damage`.
    """
    return damage_probability(_as_sizes(undetected_by_sample), _undetected, level=level, rng=rng)


def alarms(scores: ArrayLike, threshold: float) -> Flags:
    """Which scores lie strictly above the threshold."""
    return np.asarray(np.asarray(scores, dtype=np.float64) > threshold, dtype=np.bool_)


def threshold_at(clean_scores: ArrayLike, false_alarms: float) -> float:
    """The smallest of the clean scores above which at most a share `false_alarms` of them lies."""
    scores = np.sort(np.asarray(clean_scores, dtype=np.float64).ravel())
    if scores.size == 0:
        raise RiskError("a threshold for a rate of false alarms needs scores of clean inputs, found none")
    if not 0 <= false_alarms < 1:
        raise RiskError(f"{FALSE_ALARMS} is a share of clean inputs, at least 0 and less than 1, found {false_alarms}")
    most = int(np.floor(false_alarms * scores.size + 1e-9))  # 0.29 * 100 is a little less than 29
    return float(scores[scores.size - 1 - most])


def undetected_successes(sizes: ArrayLike, scores: ArrayLike, threshold: float) -> Flags:
    """Whether each sample is damaged: an attack succeeded (size < inf) and raised no alarm."""
    broken = np.asarray(sizes, dtype=np.float64) < np.inf
    if broken.shape != np.shape(scores):
        raise RiskError(f"there are {np.size(sizes)} sizes and {np.size(scores)} scores; each sample needs both")
    if np.isnan(np.asarray(scores, dtype=np.float64)[broken]).any():
        raise RiskError("found a success without a score; score every success, since damage depends on all of them")
    return broken & ~alarms(scores, threshold)


def _shown_clean(walk: Walk) -> Flags:
    """Samples whose clean input is wrong already, so that the detector sees it."""
    return np.asarray(np.isfinite(walk.size) & np.array([arm == "" for arm in walk.arm]), dtype=np.bool_)


def _nearest(walk: Walk, threshold: float, level: float) -> Estimate:
    damaged = undetected_successes(walk.size, walk.score, threshold)
    return proportion(int(damaged.sum()), damaged.size, level=level)


def _false_alarms(walk: Walk, threshold: float, level: float) -> Estimate | None:
    scores = walk.clean_score[walk.correct]
    return proportion(int(alarms(scores, threshold).sum()), scores.size, level=level) if scores.size else None


def model_thresholds(
    clean_scores: Mapping[str, Floats], threshold: Threshold, aside: Mapping[str, Floats]
) -> tuple[dict[str, float], list[str]]:
    """Threshold of each model; and the models without `aside` scores, whose threshold comes from `clean_scores`."""
    value = threshold.get(FALSE_ALARMS) if isinstance(threshold, Mapping) else threshold
    wrong_key = isinstance(threshold, Mapping) and set(threshold) != {FALSE_ALARMS}
    if wrong_key or isinstance(value, bool) or not isinstance(value, Real) or np.isnan(float(value)):
        raise RiskError(f"threshold must be a score or {{{FALSE_ALARMS!r}: share}}, found {threshold!r}")
    number = float(value)
    if not isinstance(threshold, Mapping):
        return dict.fromkeys(clean_scores, number), []
    thresholds = {model: threshold_at(aside.get(model, scores), number) for model, scores in clean_scores.items()}
    return thresholds, [model for model in clean_scores if model not in aside]


def _as_sizes(undetected: ArrayLike) -> Floats:
    """Sizes whose evasion under `_undetected`, or a threshold of 0 for zeros and ones, is `undetected`."""
    try:
        values = np.asarray(undetected, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"give one value in [0, 1] for every sample: {error}") from None
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        index = int(np.flatnonzero(wrong.ravel())[0])
        raise RiskError(f"sample {index}: found {values.ravel()[index]}; undetected is a share between 0 and 1")
    sizes = 1 - values
    sizes[values == 0] = np.inf
    return np.asarray(sizes, dtype=np.float64)


def _undetected(sizes: ArrayLike, /) -> Floats:
    return 1 - np.asarray(sizes, dtype=np.float64)
