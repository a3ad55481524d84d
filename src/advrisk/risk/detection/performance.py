"""Performance of a detector on clean and attacked inputs: AUROC and false-positive rate, with intervals."""

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
    """AUROC, false-positive rate and ROC of a detector on clean and attacked inputs."""

    auroc: Estimate  # probability that an attacked input scores higher than a clean one; ties count half
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
    """Compute AUROC and false-positive rate at `tpr` from scores; a higher score means "more likely adversarial".

    `adversarial_scores` come from `worst_case_scores`; nan marks a sample that no arm broke and is left out. If both
    arrays have the same length, their i-th values belong to the same sample, and whole samples are resampled.
    Otherwise the clean scores come from other samples, and both are resampled independently.
    """
    clean, adversarial = checked_scores(clean_scores, adversarial_scores)
    check_rates(tpr=tpr, level=level, resamples=resamples)
    paired = clean.size == adversarial.size
    adversarial = adversarial if paired else adversarial[~np.isnan(adversarial)]
    rates = arm_set_rates(clean, [adversarial], tpr=tpr, level=level, resamples=resamples, rng=rng, paired=paired)[0]
    attacked = adversarial[~np.isnan(adversarial)]
    return DetectionPerformance(auroc_estimate(rates, level), fpr_estimate(rates, level), tpr, (clean, attacked))


def auroc_estimate(rates: ArmSetRates, level: float) -> Estimate:
    """AUROC with Korn and Graubard's interval: Clopper and Pearson's at the size that gives a proportion this variance.

    The variance is that of the jackknife that deletes whole samples. Without any variance (AUROC 1, say), the size is
    the number of disjoint pairs of an attacked sample and another sample's clean score. If the AUROC were less than a,
    all pairs would be in order with probability less than a^pairs. The number of pairs also bounds the size otherwise,
    as a sample has at least the weight of one.

    The interval of an average is at most the average of the intervals of its parts, because the standard deviation of a
    sum is at most the sum of the standard deviations. That matters if a part has few samples.
    """
    low, high = _share_interval(rates.auroc, deletion_error(rates.deleted), rates, level)
    if rates.parts:
        parts = [auroc_estimate(part, level) for part in rates.parts]
        low, high = max(low, _mean(part.low for part in parts)), min(high, _mean(part.high for part in parts))
    low, high = min(low, rates.auroc), max(high, rates.auroc)  # rounding of sums
    return Estimate(rates.auroc, low, high, level, rates.n, "jackknife of samples, Korn-Graubard")


def fpr_estimate(rates: ArmSetRates, level: float) -> Estimate:
    """False-positive rate with the wider of bootstrap quantiles and order-statistic bounds.

    The bootstrap alone is unreliable for a minimum.
    """
    tail = (1 - level) / 2
    low, high = np.quantile(rates.resampled, [tail, 1 - tail])
    low, high = min(float(low), rates.bounds[0], rates.fpr), max(float(high), rates.bounds[1], rates.fpr)
    return Estimate(rates.fpr, low, high, level, rates.n, "bootstrap of samples, order statistics")


def auroc_difference(a: ArmSetRates, b: ArmSetRates, level: float) -> Estimate:
    """AUROC of `a` minus that of `b` on the same samples, with the paired interval."""
    value = a.auroc - b.auroc
    error = deletion_error(tuple(one - other for one, other in zip(a.deleted, b.deleted, strict=True)))
    pairs, n = min(a.pairs, b.pairs), min(a.n, b.n)
    if pairs == 0:
        half = 2.0
    elif error == 0:  # no observed variance does not mean no variance
        half = 1 - float(((1 - level) / 2) ** (1 / pairs))
    else:
        half = _t(n, level) * max(error, 1 / pairs)
    low, high = max(value - half, -1.0), min(value + half, 1.0)
    return Estimate(value, low, high, level, n, "paired, jackknife of samples, t")


def deletion_error(deleted: tuple[Floats, ...]) -> float:
    """Jackknife standard error; separate arrays are independent."""
    variance = 0.0
    for values in deleted:
        if values.size > 1 and np.ptp(values) > 0:
            centred = values - values.mean()
            variance += (values.size - 1) / values.size * float(centred @ centred)
    return math.sqrt(variance)


def checked_scores(clean_scores: ArrayLike, adversarial_scores: ArrayLike) -> tuple[Floats, Floats]:
    """Both scores as arrays without nan in the clean ones, and with some number in the adversarial ones."""
    try:
        clean = np.asarray(clean_scores, dtype=np.float64)
        adversarial = np.asarray(adversarial_scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"scores must be numbers: {error}") from None
    for name, scores in (("clean", clean), ("adversarial", adversarial)):
        if scores.ndim != 1 or scores.size == 0:
            raise RiskError(f"{name} scores must be one number for each sample, found an array of shape {scores.shape}")
    if np.isnan(clean).any():
        raise RiskError(f"{int(np.isnan(clean).sum())} of {clean.size} clean scores are nan; score every clean input")
    if np.isnan(adversarial).all():
        raise RiskError(f"no arm succeeded on any of {adversarial.size} samples, so there is nothing to detect")
    return clean, adversarial


def check_rates(*, tpr: float, level: float, resamples: int) -> None:
    """Refuse values out of range."""
    if not 0 < tpr <= 1:
        raise RiskError(f"tpr must be more than 0 and at most 1, found {tpr}")
    if not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level}")
    if resamples < 1:
        raise RiskError(f"resamples must be at least 1, found {resamples}")


def _share_interval(value: float, error: float, rates: ArmSetRates, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv, ndtri

    pairs = rates.pairs
    if pairs == 0:  # a single sample has no other one to compare with
        return 0.0, 1.0
    tail, variance, size = (1 - level) / 2, value * (1 - value), pairs
    if error > 0:
        narrowing = (float(ndtri(1 - tail)) / _t(rates.n, level)) ** 2  # the variance is itself an estimate
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
