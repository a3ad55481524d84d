"""Whether a model gets as many clean samples right as it should: exact tests, and what would explain it if not."""

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError

LEVEL = 0.01  # of every test here
SHORTFALL = 0.05  # of accuracy: less than so much below what is expected is a doubt, and stops nothing
USEFUL = 0.25  # of the way from chance to perfect: a model significantly below that, and at chance, knows nothing

Classes = NDArray[np.int64]


def chance_accuracy(predicted: Classes, labels: Classes, n_classes: int) -> float:
    """The accuracy that the same predictions would have on labels in random order: Σ P(predicted k) · P(label k).

    With one label only that would be the accuracy itself: then it is one in the number of classes.
    """
    _refuse_empty(predicted, labels)
    if len(np.unique(labels)) == 1:
        return 1 / n_classes
    size = max(n_classes, int(labels.max()) + 1, int(predicted.max()) + 1)
    shares = [np.bincount(classes, minlength=size) / len(classes) for classes in (predicted, labels)]
    return float(shares[0] @ shares[1])


def probability_at_most(n_correct: int, n: int, accuracy: float) -> float:
    """The probability that so few of n samples are correct, or fewer, at that accuracy (binomial)."""
    from scipy.special import bdtr

    return float(bdtr(n_correct, n, accuracy)) if n_correct < n else 1.0


def probability_at_least(n_correct: int, n: int, accuracy: float) -> float:
    """The probability that so many of n samples are correct, or more, at that accuracy (binomial)."""
    return 1.0 if n_correct == 0 else 1.0 - probability_at_most(n_correct - 1, n, accuracy)


def is_near_chance(n_correct: int, n: int, chance: float) -> bool:
    """Whether a model is not better than chance, and the samples suffice to say so.

    Two exact binomial tests, each at `LEVEL`: "no better than chance" is not rejected, and "at least a quarter of the
    way from chance to perfect" is.
    """
    better = probability_at_least(n_correct, n, chance) <= LEVEL
    return not better and probability_at_most(n_correct, n, chance + USEFUL * (1 - chance)) <= LEVEL


def is_below(n_correct: int, n: int, expected: float) -> bool:
    """Whether "the accuracy is at least what is expected" is rejected: an exact binomial test at `LEVEL`."""
    return probability_at_most(n_correct, n, expected) <= LEVEL


def is_far_below(n_correct: int, n: int, expected: float) -> bool:
    """The same, and the measured accuracy is lower by `SHORTFALL` or more."""
    return is_below(n_correct, n, expected) and n_correct / n <= expected - SHORTFALL


def paired_p_value(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    """How surprising it is that so many more samples became correct than incorrect: McNemar's exact test, one-sided."""
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return probability_at_least(gained, gained + lost, 0.5) if gained + lost else 1.0


def best_shift(predicted: Classes, labels: Classes) -> tuple[int, float]:
    """The shift of −1 or 1 that brings most labels to what is predicted, and the share of samples it explains."""
    _refuse_empty(predicted, labels)
    shares = {shift: float((predicted == labels + shift).mean()) for shift in (-1, 1)}
    shift = max(shares, key=lambda one: shares[one])
    return shift, shares[shift]


def relabelling(predicted: Classes, labels: Classes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which samples are correct as they are and after the best exchange of labels, among those that did not choose it.

    The exchange is a one-to-one map of classes that the samples in even places choose (Hungarian method); those in odd
    places check it. A free choice on all samples would explain any model a little.
    """
    from scipy.optimize import linear_sum_assignment

    _refuse_empty(predicted, labels)
    size = int(max(predicted.max(), labels.max())) + 1
    votes = np.zeros((size, size))
    np.add.at(votes, (labels[::2], predicted[::2]), 1)
    votes[np.diag_indices(size)] += 0.5  # a class that nothing speaks for keeps its own name
    exchange = linear_sum_assignment(votes, maximize=True)[1]
    return predicted[1::2] == labels[1::2], predicted[1::2] == exchange[labels[1::2]]


def _refuse_empty(predicted: Classes, labels: Classes) -> None:
    if len(predicted) != len(labels) or len(labels) == 0:
        raise RiskError(f"one prediction for each label is needed, found {len(predicted)} and {len(labels)}")
