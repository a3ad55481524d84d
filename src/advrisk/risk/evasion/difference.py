"""Whether one evasion curve holds for all: for every model, arm or labeller that the answers came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.evasion.answers import checked_answers
from advrisk.risk.evasion.curve import Floats, values_of
from advrisk.risk.evasion.logistic import fit_logistic, log_likelihood, maximum

_FEWEST = 5  # answers of a group that is tested
_MOST_TESTED = 3000  # answers
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
    """Whether Psi differs between groups of answers, as a p-value.

    A falling logistic curve is fitted to all answers and to each group, with a weak penalty, since ten
    answers of a group are often separated. How often chance alone gives as large a gain is counted in
    `resamples` sets of answers, at the sizes and in the groups as they are, each from a common curve
    drawn from the posterior: the likeliest curve alone is steeper than the true one when answers are
    few. Chi-squared tables would need many answers. That there are curves of another shape than the
    logistic is not taken into account.
    """
    answers = checked_answers(sizes, undetected)
    names, of_answer = _checked_groups(groups, answers.n)
    if resamples < 1:
        raise RiskError(f"resamples must be at least 1, found {resamples}")
    curves = fit_logistic(answers.sizes, answers.undetected).draws(resamples, rng)
    drawn = rng.random((resamples, answers.n)) < values_of(curves, answers.sizes)
    z = (answers.sizes - answers.sizes.mean()) / answers.sizes.std()
    every = np.concatenate([answers.undetected[None], drawn]).astype(np.float64)
    gain = _gains(z, every, of_answer, len(names))
    at_least = 1 + int((gain[1:] >= gain[0] - 1e-9).sum())
    return DifferenceTest(names, answers.n, float(gain[0]), at_least / (resamples + 1))


def tested_groups(
    sizes: ArrayLike,
    undetected: ArrayLike,
    groups: Mapping[str, Sequence[str | None]],
    *,
    rng: np.random.Generator,
) -> list[DifferenceTest]:
    """Whether answers differ between models, arms or whatever `groups` name; of very many, some are tested.

    Answers of no group (None) and groups with few answers are left out.
    """
    answers = checked_answers(sizes, undetected)
    chosen = np.arange(answers.n)
    if answers.n > _MOST_TESTED:
        chosen = np.sort(rng.choice(answers.n, _MOST_TESTED, replace=False))
    found = []
    for of_answer in groups.values():
        labels = np.array(["" if group is None else group for group in of_answer])[chosen]
        names, counts = np.unique(labels, return_counts=True)
        used = np.isin(labels, names[(counts >= _FEWEST) & (names != "")])
        kept = chosen[used]
        if any(np.unique(part).size < 2 for part in (answers.sizes[kept], answers.undetected[kept], labels[used])):
            continue
        found.append(differs(answers.sizes[kept], answers.undetected[kept], labels[used], resamples=199, rng=rng))
    return found


def _gains(z: Floats, every: Floats, of_answer: NDArray[np.int64], n_groups: int) -> Floats:
    """Twice the gain in penalised log likelihood by a curve for each group, for each row of answers."""
    apart = sum(
        (_best(z[of_answer == group], every[:, of_answer == group]) for group in range(n_groups)),
        start=np.zeros(len(every)),
    )
    return np.asarray(2 * (apart - _best(z, every)))


def _best(z: Floats, rows: Floats) -> Floats:
    """The largest penalised log likelihood of each row of answers; equal sizes are counted together."""
    different, place = np.unique(z, return_inverse=True)
    total = np.bincount(place).astype(np.float64)
    hits = rows @ np.eye(different.size)[place]
    found = maximum(different, total, hits, ridge=_RIDGE)
    return np.asarray(log_likelihood(found, different, total, hits) - _RIDGE / 2 * (found**2).sum(axis=1))


def _checked_groups(groups: Sequence[object] | NDArray[np.str_], n: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    labels = [str(group) for group in groups]
    if len(labels) != n:
        raise RiskError(f"there are {n} answers and {len(labels)} groups; each answer needs its group")
    names = sorted(set(labels))
    if len(names) < 2:
        raise RiskError(f"all answers are of one group, {names[0]!r}: there is nothing to compare it with")
    return tuple(names), np.array([names.index(label) for label in labels], dtype=np.int64)
