"""Asking a model about points whose answers are recorded: once, or often enough to know what it mostly says."""

from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.engine import Draw, Goal, Model, Noise, predicted
from advrisk.engine.replies import plurality

JUDGE_DRAWS = 11  # odd, so that half is never reached


@dataclass(frozen=True)
class Redrawn:
    """What a model says of some points: draws × rows."""

    model: Model
    labels: Tensor
    rejected: Tensor
    answer: Tensor  # of several draws, the logarithm of the mean probability; of classes, the most frequent one
    scores: Tensor | None = None  # draws x rows x classes, log-probabilities; None of one draw, and of classes alone

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def rejection_rate(self) -> Tensor:
        """In what share of the draws each point is refused."""
        return self.rejected.float().mean(0)

    @property
    def said(self) -> Tensor:
        """The class of each draw, rows x draws; -1 where the point is refused."""
        return torch.where(self.rejected, -1, self.labels).T

    @property
    def most_frequent(self) -> Tensor:
        """The class that is said most often, or would be if it were not refused."""
        return self.labels[0] if self.n == 1 else plurality(self.labels, self.model.n_classes)

    def success_rate(self, goal: Goal) -> Tensor:
        """In what share of the draws each point meets the goal and is not refused."""
        return self._hits(goal).float().mean(0)

    def prediction(self, goal: Goal) -> Tensor:
        """The class that is said most often among the draws that decide: successes where most are, else the others.

        So a class is never recorded that contradicts the outcome beside it. Of a point that is always refused, the
        class that would have been said.
        """
        if self.n == 1:
            return self.labels[0]
        hits = self._hits(goal)
        deciding = torch.where(hits.float().mean(0) > 0.5, hits, ~hits & ~self.rejected)
        return plurality(self.labels, self.model.n_classes, counting=deciding | ~deciding.any(0))

    def _hits(self, goal: Goal) -> Tensor:
        return torch.stack([goal.met(label) for label in self.labels]) & ~self.rejected


def redrawn(model: Model, x: Tensor, rows: Tensor, chance: Noise | None) -> Redrawn:
    """Ask the model's owner about points; `rows` says which streams of `chance` are theirs."""
    answers, marks = [], []
    for _ in range(JUDGE_DRAWS if model.random else 1):
        answer, rejected = model.drawn(None if chance is None else Draw(chance, rows)).reply_owner(x)
        answers.append(answer)
        marks.append(torch.zeros(len(x), dtype=torch.bool, device=x.device) if rejected is None else rejected)
    labels = torch.stack([predicted(model, answer) for answer in answers])
    scores = None
    if len(answers) > 1 and model.capability != "labels":
        scores = torch.stack(answers).double().log_softmax(2)
    return Redrawn(model, labels, torch.stack(marks), _together(model, answers, labels, scores), scores)


def _together(model: Model, answers: list[Tensor], labels: Tensor, scores: Tensor | None) -> Tensor:
    if len(answers) == 1:
        return answers[0]
    if scores is None:
        return plurality(labels, model.n_classes)
    mean: Tensor = scores.logsumexp(0) - torch.tensor(len(answers), dtype=torch.float64).log().to(scores.device)
    return mean.to(answers[0].dtype)


def finite(answer: Tensor) -> Tensor:
    """Whether each row's answer is made of finite numbers."""
    if not answer.is_floating_point():
        return torch.ones(len(answer), dtype=torch.bool, device=answer.device)
    return torch.isfinite(answer).all(1)
