"""Random effects: log thresholds that vary between labellers and between images, as posterior draws."""

from dataclasses import dataclass

import numpy as np

from advrisk.risk.evasion.answers import Answers, numbered
from advrisk.risk.evasion.crossed import Chains, chains_for, crossed_draws, start
from advrisk.risk.evasion.curve import Floats
from advrisk.risk.evasion.grid import Indices, Posterior
from advrisk.risk.evasion.groups import grouped_posterior
from advrisk.risk.evasion.priors import AnswerModel
from advrisk.risk.evasion.psychometric import Scale, many

_DRAWS = 4096
_BLOCK = 2_000_000  # cells in memory at a time


@dataclass(frozen=True, eq=False)
class Effects:
    """Posterior draws of equal weight."""

    parameters: Floats  # (draws, 4): log threshold, log width, guess, lapse
    of_labellers: Floats | None  # (draws,): standard deviation of log thresholds; None without several labellers
    of_images: Floats | None
    labellers: Floats | None  # (draws, labellers): their log thresholds
    converged: bool = True  # of Markov chains

    @property
    def spread(self) -> Floats:
        """Standard deviation of the log threshold of a new labeller and a new image."""
        squares = [spread**2 for spread in (self.of_labellers, self.of_images) if spread is not None]
        return np.asarray(np.sqrt(np.sum(squares, axis=0)))

    @property
    def rows(self) -> Floats:
        """Log threshold, log width, guess, lapse and spread of every draw, (draws, 5)."""
        return np.column_stack([self.parameters, self.spread])

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """Log threshold, log width, guess, lapse and spread, (n, 5), using all stored draws equally often up to one."""
        stored = len(self.parameters)
        indices = np.concatenate([rng.permutation(stored) for _ in range(-(-n // stored))])[:n]
        return np.asarray(self.rows[indices])

    def answer_draws(self, answers: Answers, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Log threshold, log width, guess and lapse of n draws, and effects of new labellers and images.

        The effects, (n, answers), add to the log threshold of each answer.
        """
        indices = rng.integers(len(self.parameters), size=n)
        shift = np.zeros((n, answers.n))
        for spread, names in ((self.of_labellers, answers.labellers), (self.of_images, answers.images)):
            if spread is not None and names is not None:
                distinct, of_answer = numbered(names)
                shift += (spread[indices, None] * rng.standard_normal((n, len(distinct))))[:, of_answer]
        return self.parameters[indices], shift

    def mean(self, sizes: Floats, scale: Scale) -> Floats:
        """The mean curve at finite sizes."""
        rows = np.column_stack([np.exp(self.parameters[:, :2]), self.parameters[:, 2:], self.spread])
        block = max(1, _BLOCK // len(rows))
        parts = [many(scale, rows, sizes[first : first + block]).mean(axis=0) for first in range(0, sizes.size, block)]
        return np.concatenate([np.empty(0), *parts])


def effects_of(answers: Answers, model: AnswerModel, pooled: Posterior) -> Effects | None:
    """Effects of labellers and images; None without several labellers or images with repeated answers."""
    labellers, images = _labellers(answers), _images(answers)
    rng = np.random.default_rng(0)
    if labellers is not None and images is not None:
        return _crossed(answers, labellers, images, model, pooled, rng)
    if labellers is not None:
        parameters, thresholds = grouped_posterior(answers, labellers, model, pooled).draws(_DRAWS, rng)
        return Effects(parameters[:, :4], parameters[:, 4], None, thresholds)
    if images is not None:
        parameters = grouped_posterior(answers, images, model, pooled).draws(_DRAWS, rng, groups=0)[0]
        return Effects(parameters[:, :4], None, parameters[:, 4], None)
    return None


def _crossed(
    answers: Answers,
    labellers: Indices,
    images: Indices,
    model: AnswerModel,
    pooled: Posterior,
    rng: np.random.Generator,
) -> Effects:
    parameters = pooled.draws(chains_for(answers.n), rng)
    state = start(parameters, int(labellers.max()) + 1, int(images.max()) + 1, rng)
    learned = (pooled.axes[2].atom > 0, pooled.axes[3].atom > 0)
    drawn = crossed_draws(Chains(answers, labellers, images, model, state, learned, rng))
    curves = np.stack([drawn.threshold, drawn.width, drawn.guess, drawn.lapse], axis=1)
    return Effects(curves, drawn.of_labellers, drawn.of_images, drawn.labellers, drawn.converged)


def _labellers(answers: Answers) -> Indices | None:
    names, of_answer = numbered(answers.labellers or ())
    return of_answer if len(names) > 1 else None


def _images(answers: Answers) -> Indices | None:
    """Image of each answer; None unless there are several and a perturbed one has several answers."""
    names, of_answer = numbered(answers.images or ())
    perturbed = np.bincount(of_answer[answers.sizes[: of_answer.size] > 0], minlength=1)
    return of_answer if len(names) > 1 and perturbed.max() > 1 else None
