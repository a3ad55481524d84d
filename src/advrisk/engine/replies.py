"""A model's replies to proposed points: one, or several of a model that answers at random.

An attack with access to the model (it needs gradients) sees what the model would have answered at refused points. An
attack that can only query sees a failing answer there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.engine import objectives
from advrisk.engine.goal import Goal
from advrisk.engine.model import Model, predicted
from advrisk.engine.noise import Draw, Noise

# On a model that answers at random, a point must succeed in this share of so many draws. A majority is not enough: of
# many points that succeed now and then, some would pass by luck, end the attack, and fail before the judge.
CONFIRM_DRAWS = 11
CONFIRM_SHARE = 0.8
_FAILING_LEAD = 50.0  # of the class that a sample should lose, in the substitute for a missing answer
_LEAD = 1e-5  # of the largest score: ten times the largest measured effect of rounding


@dataclass(frozen=True)
class Replies:
    """The answers to one batch of points, one per draw, and which of them the model refused."""

    model: Model
    answers: tuple[Tensor, ...]  # as the attack sees them
    first_unmasked: Tensor  # the first answer, also where the model refuses it
    rejected: tuple[Tensor, ...] = ()  # per draw; empty for a model that never refuses
    clear: bool = False  # a point counts only if its class leads by more than rounding could undo

    @property
    def n(self) -> int:
        return len(self.answers)

    @property
    def answer(self) -> Tensor:
        """The only answer, or the mean of several (the most frequent class of a label-only model)."""
        if self.n == 1:
            return self.answers[0]
        return self.labels if self.model.capability == "labels" else torch.stack(self.answers).mean(0)

    @property
    def labels(self) -> Tensor:
        """The most frequent predicted class."""
        classes = [predicted(self.model, answer.detach()) for answer in self.answers]
        return classes[0] if self.n == 1 else plurality(torch.stack(classes), self.model.n_classes)

    def height(self, objective: str, goal: Goal) -> Tensor | None:
        """The objective at each point, averaged over draws; None for a label-only model."""
        if self.model.capability == "labels":
            return None
        heights = [objectives.value(objective, answer, goal) for answer in self.answers]
        return heights[0] if self.n == 1 else torch.stack(heights).mean(0)

    def hits(self, goal: Goal) -> Tensor:
        """Number of draws in which each point meets the goal and is not refused."""
        return torch.stack([self._met(draw, goal) for draw in range(self.n)]).sum(0)

    def met(self, goal: Goal) -> Tensor:
        """Whether each point meets the goal, in most draws."""
        return self._met(0, goal) if self.n == 1 else 2 * self.hits(goal) > self.n

    def _met(self, draw: int, goal: Goal) -> Tensor:
        answer = self.answers[draw].detach()
        met = goal.met(predicted(self.model, answer))
        if self.clear and answer.is_floating_point():
            met &= clear_lead(answer)
        return met & ~self.rejected[draw] if self.rejected else met

    @property
    def n_rejected(self) -> Tensor | None:
        """Number of draws in which the model refused each point; None for a model that never refuses."""
        return torch.stack(self.rejected).sum(0) if self.rejected else None


def ask_points(
    model: Model, points: Tensor, rows: Tensor, chance: Noise | None, *, draws: int, blind: Goal | None, clear: bool
) -> Replies:
    """Ask the model about points `draws` times; `chance` holds the random streams of their samples.

    `blind` is the goal of an attack that can only query: it sees a refusal as a failure.
    """
    answers, rejected, unmasked = [], [], []
    for _ in range(draws):
        reply = model.drawn(None if chance is None else Draw(chance, rows)).reply(points)
        answer = reply.answer
        unmasked.append(answer)
        if reply.rejected is not None:
            rejected.append(reply.rejected)
            if blind is not None:
                failing = failing_scores(blind.reference, model.n_classes).to(answer.dtype)
                answer = torch.where(reply.rejected[:, None], failing, answer)
        answers.append(answer)
    return Replies(model, tuple(answers), unmasked[0], tuple(rejected), clear)


def failing_scores(reference: Tensor, n_classes: int) -> Tensor:
    """Substitute scores of points that were not queried or not answered: the attack sees a failure."""
    scores = torch.full((len(reference), n_classes), -_FAILING_LEAD, device=reference.device)
    return scores.scatter(1, reference[:, None], 0.0)


def plurality(labels: Tensor, n_classes: int, counting: Tensor | None = None) -> Tensor:
    """The most frequent class of each column (the lowest of several); `counting` marks the draws that count."""
    weight = torch.ones_like(labels) if counting is None else counting.to(labels.dtype)
    votes = torch.zeros(n_classes, labels.shape[1], dtype=labels.dtype, device=labels.device)
    return votes.scatter_add_(0, labels, weight).argmax(0)


def clear_lead(answer: Tensor) -> Tensor:
    """Whether the best score leads by more than rounding, or another order of summation, could change."""
    best = answer.topk(2, dim=1).values
    return best[:, 0] - best[:, 1] > _LEAD * best.abs().amax(1)
