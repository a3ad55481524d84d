"""What a model said of proposed points: once, or several times of a model that answers at random.

An attack that has the model (it needs gradients) sees what would have been said of points that are refused. One that
can only ask sees a failing answer there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.engine import objectives
from advrisk.engine.goal import Goal
from advrisk.engine.model import Model, predicted
from advrisk.engine.noise import Draw, Noise

# A success on a model that answers at random must be one in this share of so many draws. Most of them would not do: of
# many points that succeed now and then some would pass by luck, end the attack, and fail before the judge.
CONFIRM_DRAWS = 11
CONFIRM_SHARE = 0.8
_FAILING_LEAD = 50.0  # of the class that a sample should lose, in an answer that stands for none
_LEAD = 1e-5  # of the largest score: ten times what rounding was seen to change


@dataclass(frozen=True)
class Heard:
    """The answers to one batch of points, one for each draw, and which of them were refusals."""

    model: Model
    answers: tuple[Tensor, ...]  # as the attack sees them
    said: Tensor  # the first one as the model would have said it
    rejected: tuple[Tensor, ...] = ()  # as many, of a model that may refuse
    clear: bool = False  # a point counts only if its class leads by more than rounding could undo

    @property
    def n(self) -> int:
        return len(self.answers)

    @property
    def answer(self) -> Tensor:
        """The answer, or of several the mean (of classes, the most frequent one)."""
        if self.n == 1:
            return self.answers[0]
        return self.labels if self.model.capability == "labels" else torch.stack(self.answers).mean(0)

    @property
    def labels(self) -> Tensor:
        """The class that was said, most often."""
        told = [predicted(self.model, answer.detach()) for answer in self.answers]
        return told[0] if self.n == 1 else plurality(torch.stack(told), self.model.n_classes)

    def height(self, objective: str, goal: Goal) -> Tensor | None:
        """The objective at each point, on the average over draws; None for a model that says classes only."""
        if self.model.capability == "labels":
            return None
        heights = [objectives.value(objective, answer, goal) for answer in self.answers]
        return heights[0] if self.n == 1 else torch.stack(heights).mean(0)

    def hits(self, goal: Goal) -> Tensor:
        """In how many draws each point meets the goal and is not refused."""
        return torch.stack([self._met(place, goal) for place in range(self.n)]).sum(0)

    def met(self, goal: Goal) -> Tensor:
        """Whether each point meets the goal, in most draws."""
        return self._met(0, goal) if self.n == 1 else 2 * self.hits(goal) > self.n

    def _met(self, place: int, goal: Goal) -> Tensor:
        answer = self.answers[place].detach()
        met = goal.met(predicted(self.model, answer))
        if self.clear and answer.is_floating_point():
            met &= clear_lead(answer)
        return met & ~self.rejected[place] if self.rejected else met

    @property
    def n_rejected(self) -> Tensor | None:
        """In how many draws each point was refused; None where nothing ever is."""
        return torch.stack(self.rejected).sum(0) if self.rejected else None


def heard(
    model: Model, points: Tensor, rows: Tensor, chance: Noise | None, *, draws: int, blind: Goal | None, clear: bool
) -> Heard:
    """Ask about points so many times; `chance` are the streams of their samples.

    `blind` is the goal of an attack that can only ask: what is refused looks to it like a failure.
    """
    answers, rejected, said = [], [], []
    for _ in range(draws):
        reply = model.drawn(None if chance is None else Draw(chance, rows)).reply(points)
        answer = reply.answer
        said.append(answer)
        if reply.rejected is not None:
            rejected.append(reply.rejected)
            if blind is not None:
                failing = failing_scores(blind.reference, model.n_classes).to(answer.dtype)
                answer = torch.where(reply.rejected[:, None], failing, answer)
        answers.append(answer)
    return Heard(model, tuple(answers), said[0], tuple(rejected), clear)


def failing_scores(reference: Tensor, n_classes: int) -> Tensor:
    """Scores of points that were not asked about, or not answered: an attack sees a failure."""
    scores = torch.full((len(reference), n_classes), -_FAILING_LEAD, device=reference.device)
    return scores.scatter(1, reference[:, None], 0.0)


def plurality(labels: Tensor, n_classes: int, counting: Tensor | None = None) -> Tensor:
    """The most frequent class of each column, of several the first; `counting` marks the draws that count."""
    weight = torch.ones_like(labels) if counting is None else counting.to(labels.dtype)
    votes = torch.zeros(n_classes, labels.shape[1], dtype=labels.dtype, device=labels.device)
    return votes.scatter_add_(0, labels, weight).argmax(0)


def clear_lead(answer: Tensor) -> Tensor:
    """Whether the best score leads by more than what rounding, or another order of summing, could take away."""
    best = answer.topk(2, dim=1).values
    return best[:, 0] - best[:, 1] > _LEAD * best.abs().amax(1)
