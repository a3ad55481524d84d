"""Worst-case score of each attacked sample, and the exact ROC of these against the clean scores. Arrays only.

Here a detection is `score >= threshold`, which gives the ROC one point for each distinct score. Elsewhere an alarm is
`score > threshold`: alarms above t are detections at the next larger score.
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
    """ROC with one point for each distinct score, from (0, 0) to (1, 1); the first threshold is inf."""

    fpr: Floats
    tpr: Floats
    threshold: Floats


def worst_case_scores(scores: ArrayLike, success: ArrayLike) -> Floats:
    """Granese et al., "MEAD: A Multi-Armed Approach for Evaluation of Adversarial Examples Detectors", Eq. 7.

    A sample is detected only if every arm that broke it is: at least one success, and for all arms (success =>
    detected). So its score is the least over its successful arms. `scores` and `success` are (arms, samples); scores
    without a success are ignored. The result is nan for samples that no arm broke.
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
    """Exact ROC of checked scores."""
    values = np.unique(np.concatenate([clean, adversarial]))[::-1]
    fpr, tpr = (_share_from(np.sort(scores), values) for scores in (clean, adversarial))
    return Roc(np.append(0.0, fpr), np.append(0.0, tpr), np.append(np.inf, values))


def _share_from(ordered: Floats, values: Floats) -> Floats:
    """Share of scores that are at least each value."""
    return np.asarray((ordered.size - np.searchsorted(ordered, values, side="left")) / ordered.size)


def allowed_misses(n: ArrayLike, tpr: float) -> Integers:
    """Number of n attacked samples that may go undetected: the most with (n - misses) / n >= tpr; never all."""
    most = np.floor((1 - tpr) * np.asarray(n) + _ROUNDING)
    return np.asarray(np.clip(most, 0, np.maximum(np.asarray(n) - 1, 0)), dtype=np.int64)


def chance_auroc(successes: Integers) -> float:
    """AUROC of a detector with random scores: mean 1 / (K + 1) over samples that K >= 1 arms broke.

    The least of K random numbers exceeds another one with that probability.
    """
    return float((1 / (_broken(successes) + 1)).mean())


def chance_fpr(successes: Integers, tpr: float) -> float:
    """False-positive rate of a detector with random scores: s with mean s^K = tpr over the broken samples.

    If a share s of random scores exceeds the threshold, the least of K does with probability s^K.
    """
    broken = _broken(successes)
    n_arms, weights = np.unique(broken), _shares(broken)
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if float(weights @ middle**n_arms) >= tpr else (middle, high)
    return high


def chance_roc(successes: Integers) -> tuple[Floats, Floats]:
    """ROC of a detector with random scores: at a false-positive rate s it detects mean s^K of the samples.

    With one arm it is the diagonal, with more it lies below. Points are dense where the curve is steep.
    """
    broken = _broken(successes)
    even = np.linspace(0.0, 1.0, 101)
    fpr = np.union1d(even, even ** (1 / int(broken.max())))
    return fpr, np.asarray((fpr[:, None] ** np.unique(broken)) @ _shares(broken), dtype=np.float64)


def _shares(broken: Integers) -> Floats:
    """Share of samples by the number of arms that broke them, in ascending order."""
    return np.asarray(np.unique(broken, return_counts=True)[1] / broken.size)


def _broken(successes: Integers) -> Integers:
    broken = np.asarray(successes)[np.asarray(successes) > 0]
    if broken.size == 0:
        raise RiskError("no arm succeeded on any sample, so there is no chance level")
    return np.asarray(broken, dtype=np.int64)
