"""How well a detector tells attacked inputs from clean ones: AUROC and false-positive rate, with their intervals."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.detection.arm_sets import ArmSetRates, arm_set_rates
from advrisk.risk.detection.roc import Floats, Roc, exact_roc

RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class DetectionPerformance:
    """A detector against clean and attacked inputs."""

    auroc: Estimate  # probability that an attacked input scores higher than a clean one, equal ones counting half
    fpr_at_tpr: Estimate  # share of clean inputs above the threshold that detects `tpr` of the attacked ones
    tpr: float
    _scores: tuple[Floats, Floats] = field(repr=False)

    @property
    def roc(self) -> Roc:
        """False- and true-positive rate at every distinct threshold; `score >= threshold` is a detection."""
        return exact_roc(*self._scores)


def detection_performance(
    clean_scores: ArrayLike,
    adversarial_scores: ArrayLike,
    *,
    tpr: float = 0.95,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
) -> DetectionPerformance:
    """AUROC and false-positive rate at `tpr`, of scores of which higher ones mean "more likely adversarial".

    `adversarial_scores` are those of `worst_case_scores`: nan stands for a sample that no arm broke, and is left out.
    Where both arrays are of one length, the i-th of both belong to the same sample, and samples are resampled whole.
    Where they are not, clean scores come from elsewhere, and each are resampled by themselves.
    """
    clean, adversarial = checked_scores(clean_scores, adversarial_scores)
    check_rates(tpr=tpr, level=level, resamples=resamples)
    paired = clean.size == adversarial.size
    adversarial = adversarial if paired else adversarial[~np.isnan(adversarial)]
    found = arm_set_rates(clean, [adversarial], tpr=tpr, level=level, resamples=resamples, rng=rng, paired=paired)[0]
    attacked = adversarial[~np.isnan(adversarial)]
    return DetectionPerformance(auroc_estimate(found, level), fpr_estimate(found, level), tpr, (clean, attacked))


def auroc_estimate(found: ArmSetRates, level: float) -> Estimate:
    """With Korn and Graubard's interval: Clopper and Pearson's at the size that would give a proportion this variance.

    The variance is that of the jackknife that deletes whole samples. A record without any variance (AUROC 1, say)
    rests on as many disjoint pairs of an attacked sample and another's clean score: were the AUROC less than a, all of
    them would be in order with probability less than a^pairs. So that many is the size then, and it bounds the size
    otherwise, as one sample cannot weigh less than one.

    An average reaches no further than the average of the intervals of its parts: these hold together whatever depends
    on what, as the spread of a sum is at most the sum of the spreads. It matters where a part rests on few samples.
    """
    low, high = _share_interval(found.auroc, deletion_error(found.deleted), found, level)
    if found.parts:
        parts = [auroc_estimate(part, level) for part in found.parts]
        low, high = max(low, _mean(part.low for part in parts)), min(high, _mean(part.high for part in parts))
    low, high = min(low, found.auroc), max(high, found.auroc)  # sums of floats
    return Estimate(found.auroc, low, high, level, found.n, "jackknife of samples, Korn-Graubard")


def fpr_estimate(found: ArmSetRates, level: float) -> Estimate:
    """Quantiles of the resamples, or further out if order statistics say so: a minimum resamples badly."""
    tail = (1 - level) / 2
    low, high = np.quantile(found.resampled, [tail, 1 - tail])
    low, high = min(float(low), found.bounds[0], found.fpr), max(float(high), found.bounds[1], found.fpr)
    return Estimate(found.fpr, low, high, level, found.n, "bootstrap of samples, order statistics")


def auroc_difference(a: ArmSetRates, b: ArmSetRates, level: float) -> Estimate:
    """AUROC of `a` less that of `b` on the same samples: what they share cancels."""
    value = a.auroc - b.auroc
    error = deletion_error(tuple(one - other for one, other in zip(a.deleted, b.deleted, strict=True)))
    pairs, n = min(a.pairs, b.pairs), min(a.n, b.n)
    if pairs == 0:
        half = 2.0
    elif error == 0:  # the spread is unknown rather than none
        half = 1 - float(((1 - level) / 2) ** (1 / pairs))
    else:
        half = _t(n, level) * max(error, 1 / pairs)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Estimate(value, low, high, level, n, "paired, jackknife of samples, t")


def deletion_error(deleted: tuple[Floats, ...]) -> float:
    """The jackknife's standard error; parts that are deleted apart are independent."""
    variance = 0.0
    for values in deleted:
        if values.size > 1 and np.ptp(values) > 0:
            centred = values - values.mean()
            variance += (values.size - 1) / values.size * float(centred @ centred)
    return math.sqrt(variance)


def checked_scores(clean_scores: ArrayLike, adversarial_scores: ArrayLike) -> tuple[Floats, Floats]:
    """Both as arrays; clean ones are numbers, and some adversarial one is."""
    try:
        clean = np.asarray(clean_scores, dtype=np.float64)
        adversarial = np.asarray(adversarial_scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"scores must be numbers ({error})") from None
    for name, scores in (("clean", clean), ("adversarial", adversarial)):
        if scores.ndim != 1 or scores.size == 0:
            raise RiskError(f"{name} scores must be one number for each sample, found an array of shape {scores.shape}")
    if np.isnan(clean).any():
        raise RiskError(f"{int(np.isnan(clean).sum())} of {clean.size} clean scores are nan; score every clean input")
    if np.isnan(adversarial).all():
        raise RiskError(f"no arm succeeded on any of {adversarial.size} samples, so there is nothing to detect")
    return clean, adversarial


def check_rates(*, tpr: float, level: float, resamples: int) -> None:
    """Refuse what is no rate, no level or no number of resamples."""
    if not 0 < tpr <= 1:
        raise RiskError(f"tpr must be more than 0 and at most 1, found {tpr}")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    if resamples < 1:
        raise RiskError(f"resamples must be at least 1, found {resamples}")


def _share_interval(value: float, error: float, found: ArmSetRates, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv, ndtri

    pairs = found.pairs
    if pairs == 0:  # one sample says nothing: there is no other one to compare it with
        return 0.0, 1.0
    tail, variance, size = (1 - level) / 2, value * (1 - value), pairs
    if error > 0:
        narrowing = (float(ndtri(1 - tail)) / _t(found.n, level)) ** 2  # the variance is itself an estimate
        size = min(narrowing * variance / error**2, max(pairs, variance * pairs**2))
    successes = size * value
    low = float(betaincinv(successes, size - successes + 1, tail)) if value > 0 else 0.0
    high = float(betaincinv(successes + 1, size - successes, 1 - tail)) if value < 1 else 1.0
    return min(low, value), max(high, value)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _t(n: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(n - 1, 1), (1 + level) / 2))
