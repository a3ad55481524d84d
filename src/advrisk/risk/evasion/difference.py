"""Test whether one evasion curve fits every model, arm or labeller of the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.evasion.answers import checked_answers
from advrisk.risk.evasion.curve import Floats, values_of
from advrisk.risk.evasion.logistic import fit_logistic, log_likelihood, maximum

_FEWEST = 5  # answers of a tested group at least
_MOST_TESTED = 3000  # answers; of more, a random subset is tested
_RIDGE = 0.1  # a normal prior of standard deviation 3 on the standardised parameters


@dataclass(frozen=True)
class DifferenceTest:
    """Likelihood-ratio test of one curve for all groups against a curve for each."""

    groups: tuple[str, ...]
    n: int
    statistic: float  # twice the gain in penalised log likelihood; less than 0 if the penalty exceeds it
    p_value: float
    method: str = "likelihood ratio, posterior predictive"


def differs(
    sizes: ArrayLike,
    undetected: ArrayLike,
    groups: Sequence[object] | NDArray[np.str_],
    *,
    resamples: int = 999,
    rng: np.random.Generator,
) -> DifferenceTest:
    """Test whether Psi differs between groups of answers.

    A decreasing logistic curve is fitted to all answers and to each group, with a weak penalty, since ten answers of a
    group are often separated. The p-value is posterior predictive: `resamples` replicates with the same sizes and
    groups, each from a common curve drawn from the posterior. The maximum-likelihood curve alone is too steep with few
    answers, and chi-squared needs many. The test assumes the logistic shape.
    """
    answers = checked_answers(sizes, undetected)
    names, of_answer = _checked_groups(groups, answers.n)
    if resamples < 1:
        raise RiskError(f"resamples must be at least 1, found {resamples}")
    curves = fit_logistic(answers.sizes, answers.undetected).draws(resamples, rng)
    drawn = rng.random((resamples, answers.n)) < values_of(curves, answers.sizes)
    z = (answers.sizes - answers.sizes.mean()) / answers.sizes.std()
    rows = np.concatenate([answers.undetected[None], drawn]).astype(np.float64)
    gain = _gains(z, rows, of_answer, len(names))
    at_least = 1 + int((gain[1:] >= gain[0] - 1e-9).sum())
    return DifferenceTest(names, answers.n, float(gain[0]), at_least / (resamples + 1))


def tested_groups(
    sizes: ArrayLike,
    undetected: ArrayLike,
    groups: Mapping[str, Sequence[str | None]],
    *,
    rng: np.random.Generator,
) -> list[DifferenceTest]:
    """Test each grouping of the answers, such as by model or by arm, on at most `_MOST_TESTED` of them.

    Answers without a group (None) and groups with few answers are left out.
    """
    answers = checked_answers(sizes, undetected)
    chosen = np.arange(answers.n)
    if answers.n > _MOST_TESTED:
        chosen = np.sort(rng.choice(answers.n, _MOST_TESTED, replace=False))
    tests = []
    for of_answer in groups.values():
        labels = np.array(["" if group is None else group for group in of_answer])[chosen]
        names, counts = np.unique(labels, return_counts=True)
        used = np.isin(labels, names[(counts >= _FEWEST) & (names != "")])
        kept = chosen[used]
        if any(np.unique(part).size < 2 for part in (answers.sizes[kept], answers.undetected[kept], labels[used])):
            continue
        tests.append(differs(answers.sizes[kept], answers.undetected[kept], labels[used], resamples=199, rng=rng))
    return tests


def _gains(z: Floats, rows: Floats, of_answer: NDArray[np.int64], n_groups: int) -> Floats:
    """Twice the gain in penalised log likelihood by a curve for each group, for each row of answers."""
    separate = sum(
        (_best(z[of_answer == group], rows[:, of_answer == group]) for group in range(n_groups)),
        start=np.zeros(len(rows)),
    )
    return np.asarray(2 * (separate - _best(z, rows)))


def _best(z: Floats, rows: Floats) -> Floats:
    """The largest penalised log likelihood of each row of answers; equal sizes are pooled."""
    distinct, index = np.unique(z, return_inverse=True)
    total = np.bincount(index).astype(np.float64)
    hits = rows @ np.eye(distinct.size)[index]
    at = maximum(distinct, total, hits, ridge=_RIDGE)
    return np.asarray(log_likelihood(at, distinct, total, hits) - _RIDGE / 2 * (at**2).sum(axis=1))


def _checked_groups(groups: Sequence[object] | NDArray[np.str_], n: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    labels = [str(group) for group in groups]
    if len(labels) != n:
        raise RiskError(f"there are {n} answers and {len(labels)} groups; each answer needs its group")
    names = sorted(set(labels))
    if len(names) < 2:
        raise RiskError(f"all answers are of one group, {names[0]!r}; give answers of two groups or more")
    return tuple(names), np.array([names.index(label) for label in labels], dtype=np.int64)
