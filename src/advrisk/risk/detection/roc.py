"""One score for each attacked sample, and the exact ROC of these against the clean ones. Arrays only.

A threshold is tried as `score >= threshold`: that is how a ROC has one point for each distinct score. Elsewhere in
the house an alarm is `score > threshold`. The two meet in the scores themselves: alarms above t are detections at the
next larger score.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_ROUNDING = 1e-9  # 0.05 * 100 is a little more than 5, 0.29 * 100 a little less than 29


class Roc(NamedTuple):
    """One point for each distinct score, from (0, 0) to (1, 1); the first threshold, inf, detects nothing."""

    fpr: Floats
    tpr: Floats
    threshold: Floats


def worst_case_scores(scores: ArrayLike, success: ArrayLike) -> Floats:
    """Granese et al., "MEAD: A Multi-Armed Approach for Evaluation of Adversarial Examples Detectors", Eq. 7.

    A sample is detected only if every arm that broke it is: at least one success, and for all arms
    (success => detected). So its score is the least of its successful arms. `scores` and `success` are
    (arms, samples); the result is nan for samples that no arm broke. What stands in `scores` where an arm
    did not succeed does not count.
    """
    values, hits = np.asarray(scores, dtype=np.float64), np.asarray(success)
    if values.ndim != 2 or values.shape != hits.shape:
        raise RiskError(f"scores and success must both be (arms, samples), found {values.shape} and {hits.shape}")
    if hits.dtype != np.bool_:
        raise RiskError(f"success must hold true or false, found {hits.dtype}")
    least = np.where(hits, values, np.inf).min(axis=0, initial=np.inf)
    if np.isnan(least).any():
        arm, sample = np.argwhere(np.isnan(values) & hits)[0]
        raise RiskError(f"arm {arm}, sample {sample}: a success without a score; score every success")
    least[~hits.any(axis=0)] = np.nan
    return np.asarray(least, dtype=np.float64)


def exact_roc(clean: Floats, adversarial: Floats) -> Roc:
    """Every point of the ROC of checked scores."""
    values = np.unique(np.concatenate([clean, adversarial]))[::-1]
    fpr, tpr = (_share_from(np.sort(scores), values) for scores in (clean, adversarial))
    return Roc(np.append(0.0, fpr), np.append(0.0, tpr), np.append(np.inf, values))


def _share_from(ordered: Floats, values: Floats) -> Floats:
    """The share of scores that are at least each value."""
    return np.asarray((ordered.size - np.searchsorted(ordered, values, side="left")) / ordered.size)


def allowed_misses(n: ArrayLike, tpr: float) -> Integers:
    """Of n attacked samples, how many may go undetected: the most with (n - misses) / n >= tpr; never all."""
    most = np.floor((1 - tpr) * np.asarray(n) + _ROUNDING)
    return np.asarray(np.clip(most, 0, np.maximum(np.asarray(n) - 1, 0)), dtype=np.int64)


def chance_auroc(successes: Integers) -> float:
    """The AUROC of a detector that says random numbers: mean 1 / (K + 1) over samples that K >= 1 arms broke.

    The least of K random numbers lies above another one with that probability.
    """
    return float((1 / (_broken(successes) + 1)).mean())


def chance_fpr(successes: Integers, tpr: float) -> float:
    """The false-positive rate of a detector that says random numbers: s with mean s^K = tpr over the broken samples.

    Where a share s of all random numbers lies above the threshold, the least of K does with probability s^K.
    """
    broken = _broken(successes)
    known, weights = np.unique(broken), _shares(broken)
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if float(weights @ middle**known) >= tpr else (middle, high)
    return high


def chance_roc(successes: Integers) -> tuple[Floats, Floats]:
    """The ROC of a detector that says random numbers: at a false-positive rate s it detects mean s^K of the samples.

    With one arm that is the diagonal; with more it lies below. Points are dense wherever the curve is steep.
    """
    broken = _broken(successes)
    even = np.linspace(0.0, 1.0, 101)
    fpr = np.union1d(even, even ** (1 / int(broken.max())))
    return fpr, np.asarray((fpr[:, None] ** np.unique(broken)) @ _shares(broken), dtype=np.float64)


def _shares(broken: Integers) -> Floats:
    """Of each number of arms that broke a sample, from the least up, the share of samples."""
    return np.asarray(np.unique(broken, return_counts=True)[1] / broken.size)


def _broken(successes: Integers) -> Integers:
    found = np.asarray(successes)[np.asarray(successes) > 0]
    if found.size == 0:
        raise RiskError("no arm succeeded on any sample, so there is no chance level")
    return np.asarray(found, dtype=np.int64)
