"""Exact tests of clean accuracy against chance and expectation, and possible explanations of a shortfall."""

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError

LEVEL = 0.01  # significance level of every test here
SHORTFALL = 0.05  # a smaller gap below the expected accuracy gives a warning only
USEFUL = 0.25  # share of the way from chance to perfect; a model at chance and significantly below it is random

Classes = NDArray[np.int64]


def chance_accuracy(predicted: Classes, labels: Classes, n_classes: int) -> float:
    """Expected accuracy of the same predictions on shuffled labels: Σ P(predicted k) · P(label k).

    With a single label that would be the accuracy itself, so chance is then 1 / n_classes.
    """
    _refuse_empty(predicted, labels)
    if len(np.unique(labels)) == 1:
        return 1 / n_classes
    size = max(n_classes, int(labels.max()) + 1, int(predicted.max()) + 1)
    shares = [np.bincount(classes, minlength=size) / len(classes) for classes in (predicted, labels)]
    return float(shares[0] @ shares[1])


def probability_at_most(n_correct: int, n: int, accuracy: float) -> float:
    """Binomial probability that at most `n_correct` of n samples are correct at that accuracy."""
    from scipy.special import bdtr

    return float(bdtr(n_correct, n, accuracy)) if n_correct < n else 1.0


def probability_at_least(n_correct: int, n: int, accuracy: float) -> float:
    """Binomial probability that at least `n_correct` of n samples are correct at that accuracy."""
    return 1.0 if n_correct == 0 else 1.0 - probability_at_most(n_correct - 1, n, accuracy)


def is_near_chance(n_correct: int, n: int, chance: float) -> bool:
    """Whether a model is no better than chance, and the samples suffice to show it.

    Two exact binomial tests, each at `LEVEL`: "no better than chance" is not rejected, and "at least a quarter of the
    way from chance to perfect" is.
    """
    better = probability_at_least(n_correct, n, chance) <= LEVEL
    return not better and probability_at_most(n_correct, n, chance + USEFUL * (1 - chance)) <= LEVEL


def is_below(n_correct: int, n: int, expected: float) -> bool:
    """Whether an exact binomial test at `LEVEL` rejects "the accuracy is at least the expected one"."""
    return probability_at_most(n_correct, n, expected) <= LEVEL


def is_far_below(n_correct: int, n: int, expected: float) -> bool:
    """Whether `is_below` holds and the measured accuracy is lower by `SHORTFALL` or more."""
    return is_below(n_correct, n, expected) and n_correct / n <= expected - SHORTFALL


def paired_p_value(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    """One-sided p-value of McNemar's exact test that more samples became correct than incorrect."""
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return probability_at_least(gained, gained + lost, 0.5) if gained + lost else 1.0


def best_shift(predicted: Classes, labels: Classes) -> tuple[int, float]:
    """The shift of −1 or 1 that matches most labels to the predictions, and the share of samples it explains."""
    _refuse_empty(predicted, labels)
    shares = {shift: float((predicted == labels + shift).mean()) for shift in (-1, 1)}
    shift = max(shares, key=shares.__getitem__)
    return shift, shares[shift]


def relabelling(predicted: Classes, labels: Classes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which held-out samples are correct before, and which after, the best permutation of the labels.

    The Hungarian method chooses the permutation on samples with even index; those with odd index test it. A choice on
    all samples would appear to improve any model a little.
    """
    from scipy.optimize import linear_sum_assignment

    _refuse_empty(predicted, labels)
    size = int(max(predicted.max(), labels.max())) + 1
    votes = np.zeros((size, size))
    np.add.at(votes, (labels[::2], predicted[::2]), 1)
    votes[np.diag_indices(size)] += 0.5  # a class without votes keeps its label
    permutation = linear_sum_assignment(votes, maximize=True)[1]
    return predicted[1::2] == labels[1::2], predicted[1::2] == permutation[labels[1::2]]


def _refuse_empty(predicted: Classes, labels: Classes) -> None:
    if len(predicted) != len(labels) or len(labels) == 0:
        raise RiskError(
            f"found {len(predicted)} predictions and {len(labels)} labels; give one prediction for each label"
        )
