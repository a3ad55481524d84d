"""Damage by asking a detector about the attacks themselves, without a curve in between.

Klemenc & Trittenbach, "Selecting Models based on the Risk of Damage Caused by Adversarial Attacks",
Algorithm 1. Damage is done if an attack succeeds and the detector does not see it:

    P = (1/I) sum_i [d_i < inf] [score(x_i'') <= threshold]

x_i'' is, of all arms, the success with the least score, or the clean input itself where the model has it
wrong already: a sample is damaged if any success against it raises no alarm, so another arm can only raise
the damage. A score above the threshold is an alarm; one that equals it is not. The paper's x_i'' is the
nearest success (never reset between observations there; here it is), of equally near ones the one with the
least score. `nearest` holds that number. It is no bound: a nearer point may look more suspicious than one
further away, so that a better attack lowers it.
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
from advrisk.risk.evasion import threshold as seen_above
from advrisk.risk.proportion import proportion

FALSE_ALARMS = "false_alarms"
Threshold = float | Mapping[str, float]  # a score, or {"false_alarms": share of clean inputs}
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Walk:
    """For one model, sample by sample: what its attacker arrives at, and what the detector says of it."""

    size: Floats  # of the nearest kept success; 0 where the clean input is wrong already, inf where no arm succeeded
    score: Floats  # of what is shown: the nearest success, or the clean input if that is wrong; nan where nothing is
    least_score: Floats  # the least of all successes of the arms: what looks most innocent; nan where nothing is shown,
    # and where any of them has no score
    arm: tuple[str, ...]  # that made it; "" where the clean input is shown, or nothing
    clean_score: Floats
    correct: Flags  # the clean input is classified as its label says


@dataclass(frozen=True, eq=False)
class MonteCarloDamage:
    """Damage of models on the same samples, with one detector in front of each."""

    detector: str  # its full name in the ledger
    models: tuple[str, ...]
    n: int  # samples
    level: float
    thresholds: Mapping[str, float]  # alarms begin above; one for all, unless a rate of false alarms was asked for
    estimates: Mapping[str, Estimate]  # some success of some arm raises no alarm
    damaged: Mapping[str, Flags]  # the same, sample by sample
    clean_error: Mapping[str, float]  # the part of the value that is clean inputs, wrong and unnoticed
    nearest: Mapping[str, Estimate]  # the paper's: the damage if the nearest success is taken
    success: Mapping[str, Estimate]  # what the damage would be if nobody looked
    false_alarms: Mapping[str, Estimate | None]  # among clean inputs classified correctly; None where there is none
    known_to: tuple[str, ...]  # the arms that were made to get past this very detector
    warnings: tuple[str, ...]
    _comparison: EvasionComparison = field(repr=False)

    @property
    def probability_best(self) -> Mapping[str, float]:
        """How probable it is that a model has the least damage."""
        return self._comparison.probability_best

    def difference(self, a: str, b: str) -> Estimate:
        """Damage of `a` minus damage of `b`, with the interval of the *paired* difference."""
        return self._comparison.difference(a, b)

    def undecided(self, a: str, b: str) -> bool:
        """Whether the paired interval of the difference contains 0."""
        return self._comparison.undecided(a, b)

    def probability_lower(self, a: str, b: str) -> float:
        """How probable it is that `a` has less damage than `b`, equal ones counting half."""
        return self._comparison.probability_lower(a, b)

    def standard_errors(self, a: str, b: str) -> tuple[float, float]:
        """Of the difference: what more samples would make smaller; and 0, since there is no curve."""
        return self._comparison.standard_errors(a, b)


class DetectorAnswers(NamedTuple):
    """A detector's answers about inputs of different size, as `risk.evasion.fit_…` and `differs` take them."""

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
    """Algorithm 1 on arrays: what each model's attacker arrives at, and the threshold of its detector."""
    damaged = {
        model: undetected_successes(walk.size, walk.least_score, thresholds[model]) for model, walk in walked.items()
    }
    comparison = compare_damage(
        {model: _as_sizes(found) for model, found in damaged.items()}, seen_above(0.0), level=level, rng=rng
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
    """The answers of a detector to what each model's attacker arrives at."""
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
    """Algorithm 1 with answers from elsewhere, of people say: one value in [0, 1] for *every* sample.

    0 where no arm succeeded or the success was detected, 1 where it went undetected; the share of
    people who did not notice, where several were asked. Zeros and ones get Clopper and Pearson's
    interval, shares that of a mean in [0, 1] (Gaffke's, as in `compare_damage`).
    """
    return damage_probability(_as_sizes(undetected_by_sample), _unseen, level=level, rng=rng)


def alarms(scores: ArrayLike, threshold: float) -> Flags:
    """Which scores lie above the threshold; one that equals it does not."""
    return np.asarray(np.asarray(scores, dtype=np.float64) > threshold, dtype=np.bool_)


def threshold_at(clean_scores: ArrayLike, false_alarms: float) -> float:
    """The smallest threshold above which at most that share of the clean scores lies: one of the scores itself."""
    scores = np.sort(np.asarray(clean_scores, dtype=np.float64).ravel())
    if scores.size == 0:
        raise RiskError("a threshold for a rate of false alarms needs scores of clean inputs, found none")
    if not 0 <= false_alarms < 1:
        raise RiskError(f"{FALSE_ALARMS} is a share of clean inputs, at least 0 and less than 1, found {false_alarms}")
    most = int(np.floor(false_alarms * scores.size + 1e-9))  # 0.29 * 100 is a little less than 29
    return float(scores[scores.size - 1 - most])


def undetected_successes(sizes: ArrayLike, scores: ArrayLike, threshold: float) -> Flags:
    """For every sample whether damage is done: an attack succeeded (size < inf) and raised no alarm."""
    broken = np.asarray(sizes, dtype=np.float64) < np.inf
    if broken.shape != np.shape(scores):
        raise RiskError(f"there are {np.size(sizes)} sizes and {np.size(scores)} scores; each sample needs both")
    if np.isnan(np.asarray(scores, dtype=np.float64)[broken]).any():
        raise RiskError("a success without a score: score all of them, or damage would be counted where none is known")
    return broken & ~alarms(scores, threshold)


def _shown_clean(walk: Walk) -> Flags:
    """Samples whose clean input is wrong already, and is what the detector sees."""
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
    """One for each model; and the models of which no score was set `aside`, so that `clean_scores` serve."""
    given = threshold.get(FALSE_ALARMS) if isinstance(threshold, Mapping) else threshold
    unlike = isinstance(threshold, Mapping) and set(threshold) != {FALSE_ALARMS}
    if unlike or isinstance(given, bool) or not isinstance(given, Real) or np.isnan(float(given)):
        raise RiskError(f"threshold must be a score or {{{FALSE_ALARMS!r}: share}}, found {threshold!r}")
    number = float(given)
    if not isinstance(threshold, Mapping):
        return dict.fromkeys(clean_scores, number), []
    found = {model: threshold_at(aside.get(model, scores), number) for model, scores in clean_scores.items()}
    return found, [model for model in clean_scores if model not in aside]


def _as_sizes(undetected: ArrayLike) -> Floats:
    """Numbers from which `_unseen`, and at 0 and inf a threshold of 0, gives back the given ones."""
    try:
        values = np.asarray(undetected, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"one value in [0, 1] is needed for every sample ({error})") from None
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        place = int(np.flatnonzero(wrong.ravel())[0])
        raise RiskError(f"sample {place}: found {values.ravel()[place]}; undetected is a share between 0 and 1")
    sizes = 1 - values
    sizes[values == 0] = np.inf
    return np.asarray(sizes, dtype=np.float64)


def _unseen(sizes: ArrayLike, /) -> Floats:
    return 1 - np.asarray(sizes, dtype=np.float64)
