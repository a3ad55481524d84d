"""Random effects of one kind of group, labellers or images: the posterior without sampling.

Given the curve's width and rates, the likelihood of a group depends on its threshold alone. It is tabulated and
averaged over the normal distribution of group thresholds; groups are then independent.
"""

from dataclasses import dataclass, replace

import numpy as np

from advrisk.risk.evasion.answers import Answers
from advrisk.risk.evasion.curve import Floats
from advrisk.risk.evasion.grid import Axis, Indices, Posterior, posterior
from advrisk.risk.evasion.priors import SPREAD, AnswerModel, log_prior, log_spread_prior
from advrisk.risk.evasion.psychometric import fall

# Cells of threshold and width, and points of a group's threshold, by the number of learned rates.
_CELLS = {0: (41, 21, 301), 1: (31, 17, 201), 2: (31, 13, 151)}
_RATE_CELLS = 4
_SPREAD_CELLS = 14
_BEYOND = 3.0  # margin of group thresholds beyond the grid, in scales of the spread's prior


@dataclass(frozen=True, eq=False)
class GroupedPosterior:
    """Posterior of log threshold, log width, guess, lapse and the root of the spread, with the group likelihoods."""

    posterior: Posterior  # of the root, since spreads near 0 need narrower cells
    points: Floats  # log thresholds of a group
    likelihood: Floats  # (groups, points, widths, guesses, lapses), its largest value along the points being 1

    def draws(self, n: int, rng: np.random.Generator, *, groups: int | None = None) -> tuple[Floats, Floats]:
        """Draw log threshold, log width, guess, lapse and spread, (n, 5), and group log thresholds, (n, groups).

        `groups` limits the thresholds to the first groups.
        """
        parameters, cells = self.posterior.nodes(n)
        parameters[:, 4] **= 2
        prior = _kernel(parameters[:, 0], parameters[:, 4], self.points)
        likelihoods = self.likelihood[:groups]
        thresholds = np.empty((n, len(likelihoods)))
        for group, likelihood in enumerate(likelihoods):
            weight = prior * np.moveaxis(likelihood, 0, -1)[cells[1], cells[2], cells[3]]
            thresholds[:, group] = _drawn(weight, self.points, rng)
        return parameters, thresholds


def grouped_posterior(answers: Answers, of_answer: Indices, model: AnswerModel, pooled: Posterior) -> GroupedPosterior:
    """Posterior with random effects of groups.

    `of_answer` is the group of each answer; `pooled` is the posterior without groups, where the search for the grid
    starts. It leaves a margin for steeper curves, since differences between groups make the pooled curve shallower.
    """
    threshold, width, *rates = pooled.axes
    learned = sum(axis.atom > 0 for axis in rates)
    n_thresholds, n_widths, n_points = _CELLS[learned]
    axes = [
        Axis(threshold.low - SPREAD, threshold.high + SPREAD, n_thresholds),
        Axis(width.low - 1.0, width.high, n_widths),
        *[replace(axis, cells=_RATE_CELLS) if axis.atom else axis for axis in rates],
        Axis(0.0, np.sqrt(3 * SPREAD), _SPREAD_CELLS, least=0.0),
    ]
    counts = _counts(answers, of_answer)
    grouped = posterior(lambda *at: _log_density(counts, model, n_points, *at), axes)
    values = [axis.values() for axis in grouped.axes]
    points = _points(values[0], n_points)
    return GroupedPosterior(grouped, points, np.exp(_tables(counts, model, points, *values[1:4])[0]))


def _log_density(counts: "_Counts", model: AnswerModel, n_points: int, *at: Floats) -> Floats:
    """Log of prior times likelihood, (thresholds, widths, guesses, lapses, roots of spreads)."""
    threshold, width, guess, lapse, root = at
    spread = root**2
    points = _points(threshold.ravel(), n_points)
    logs, largest = _tables(counts, model, points, width.ravel(), guess.ravel(), lapse.ravel())
    table = np.exp(logs).reshape(*logs.shape[:2], -1)
    log = np.empty((spread.size, threshold.size, table.shape[2]))
    for row, one_spread in enumerate(spread.ravel()):
        kernel = _kernel(threshold.ravel(), np.full(threshold.size, one_spread), points)
        log[row] = np.log(np.maximum(kernel @ table, 1e-300)).sum(axis=0)
    log = log.reshape(spread.size, threshold.size, *logs.shape[2:]) + largest.sum(axis=0)
    prior = log_prior(model, threshold, width, guess, lapse) + log_spread_prior(spread) + np.log(root)
    return np.asarray(np.moveaxis(log, 0, -1) + prior)


@dataclass(frozen=True)
class _Counts:
    """For each size, the groups with answers: (group, answers, undetected answers)."""

    n_groups: int
    by_size: tuple[tuple[float, tuple[tuple[int, int, int], ...]], ...]


def _counts(answers: Answers, of_answer: Indices) -> _Counts:
    counted: dict[float, dict[int, tuple[int, int]]] = {}
    for size, flag, group in zip(answers.sizes.tolist(), answers.undetected.tolist(), of_answer.tolist(), strict=True):
        rows = counted.setdefault(size, {})
        total, hits = rows.get(group, (0, 0))
        rows[group] = (total + 1, hits + flag)
    by_size = [(size, tuple((group, *row) for group, row in rows.items())) for size, rows in sorted(counted.items())]
    return _Counts(int(of_answer.max()) + 1, tuple(by_size))


def _tables(
    counts: _Counts, model: AnswerModel, points: Floats, width: Floats, guess: Floats, lapse: Floats
) -> tuple[Floats, Floats]:
    """Log likelihood of each group relative to its maximum over the points, and that maximum.

    The first is (groups, points, widths, guesses, lapses).
    """
    at_point, at_width, at_guess, at_lapse = np.ix_(points, width, guess, lapse)
    logs = np.zeros((counts.n_groups, points.size, width.size, guess.size, lapse.size))
    height = 1 - at_guess - at_lapse
    for size, rows in counts.by_size:
        p = model.share * (at_lapse + height * fall(np.array(size), at_point, at_width, model.scale))
        log_hit = np.log(np.maximum(p, 1e-300)) if any(hits for _, _, hits in rows) else p
        log_other = np.log(np.maximum(1 - p, 1e-300)) if any(hits < total for _, total, hits in rows) else p
        for group, total, hits in rows:
            if hits:
                logs[group] += hits * log_hit
            if hits < total:
                logs[group] += (total - hits) * log_other
    largest = logs.max(axis=1)
    return logs - largest[:, None], largest


def _points(thresholds: Floats, n: int) -> Floats:
    beyond = _BEYOND * SPREAD
    return np.linspace(thresholds.min() - beyond, thresholds.max() + beyond, n)


def _kernel(mean: Floats, spread: Floats, points: Floats) -> Floats:
    """Probability that a normal variable is nearest to each of the points, (means, points)."""
    from scipy.special import ndtr

    step = points[1] - points[0]
    edges = np.append(points - step / 2, points[-1] + step / 2)
    mass = np.diff(ndtr((edges - mean[:, None]) / np.maximum(spread, 1e-9)[:, None]), axis=1)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _drawn(weight: Floats, points: Floats, rng: np.random.Generator) -> Floats:
    """Draw a point for each row of weights, uniform within the cell around it."""
    ends = np.cumsum(weight, axis=1)
    cell = (ends < rng.random((len(weight), 1)) * ends[:, -1:]).sum(axis=1)
    step = points[1] - points[0]
    return np.asarray(points[np.minimum(cell, points.size - 1)] + (rng.random(len(weight)) - 0.5) * step)
