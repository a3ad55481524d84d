"""A detector's scores of proposed points, and the passes that they cost.

An arm that knows a detector gets its score together with the model's answer. Detectors query the model, too: those
passes are charged to the samples whose points are scored.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from advrisk.core.errors import ModelError
from advrisk.engine.model import Model


@dataclass(frozen=True)
class Suspicion:
    """A detector as the probe sees it.

    `score` maps points and a model to one number each, higher = more suspicious. `passes`: its queries of the model for
    one point scored alone, besides the pass that the probe makes anyway; no point is charged less.
    `differentiable`: torch can differentiate the score, if it can differentiate the model's answer.
    """

    name: str
    score: Callable[[Tensor, Model], Tensor]
    passes: int = 0
    differentiable: bool = False


@dataclass(frozen=True)
class ScoredPoints:
    """The scores of some points, and the forward and backward passes that each took.

    `n_backward` includes the probe's own pass, where the score depends on it; `n_forward` does not.
    """

    score: Tensor
    n_forward: int
    n_backward: int


def scored(suspicion: Suspicion, model: Model, points: Tensor, answer: Tensor) -> ScoredPoints:
    """Score points whose `answer` the model has already given; it is not computed again.

    A detector with the same number of passes for every point is charged these. One that also queries rows of its own,
    however many points there are, is charged its `passes`: the cost of a point must not depend on its batch mates.
    """
    follow = suspicion.differentiable and torch.is_grad_enabled()
    tally = _Tally(model.answer, points if follow else points.detach(), answer)
    counting = _CountingModel(**{one.name: getattr(model, one.name) for one in fields(Model)}, tally=tally)
    with torch.set_grad_enabled(follow):
        score = suspicion.score(tally.points, counting).to(points.device)
    if tuple(score.shape) != (len(points),):
        problem = f"the detector {suspicion.name} scored {len(points)} points with shape {tuple(score.shape)}"
        raise ModelError(f"{problem}; it must return one number each")
    n_backward = tally.each(tally.n_backward) + int(tally.shared) if score.requires_grad else 0
    return ScoredPoints(score, max(suspicion.passes, tally.each(tally.n_forward)), n_backward)


def steady(score: Tensor) -> Tensor:
    """Scores in float64 without their last digits, which depend on a row's place in the batch: 40 bits are left.

    Adding and subtracting a large multiple rounds them; rounding twice changes nothing. Huge scores stay as they are.
    """
    exact = score.double()
    large = exact * (2.0**13 + 1)
    return torch.where(exact.abs() < 1e290, large - (large - exact), exact)


def measured(suspicion: Suspicion, model: Model, x: Tensor) -> Suspicion:
    """The same detector with `passes` set to the most that it takes for one of these points, scored alone."""
    blank = replace(suspicion, passes=0)
    with torch.no_grad(), torch.random.fork_rng(devices=()):
        taken = [scored(blank, model, point, model.ask(point)).n_forward for point in x[:, None]]
    return replace(suspicion, passes=max(taken))


@dataclass
class _Tally:
    """The queries of a detector about these points, and the answer that the probe has."""

    answering: Callable[[Tensor], Tensor]
    points: Tensor
    answer: Tensor
    n_forward: int = 0
    n_backward: int = 0
    shared: bool = False

    def each(self, n_rows: int) -> int:
        """The equal part of each point, as rows do not show which point they belong to; rounded up."""
        return -(-n_rows // len(self.points))


@dataclass(frozen=True)
class _CountingModel(Model):
    """The same model, counting its queries; it reuses the answer that the probe has."""

    tally: _Tally = field(kw_only=True)
    shares: bool = True

    @property
    def original(self) -> "_CountingModel":
        """The original model; it always runs, as a detector may read its hidden layers."""
        return replace(self, answer=self.owner or self.answer, owner=None, shares=False)

    def _query(self, answering: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        tally = self.tally
        if self.shares and x is tally.points and answering is tally.answering and not self.random:
            tally.shared = True
            reused = tally.answer if torch.is_grad_enabled() else tally.answer.detach()
            return F.pad(reused, (0, 1)) if self.rejects else reused  # the column of refusals
        answer = super()._query(answering, x)
        tally.n_forward += len(x)
        tally.n_backward += len(x) if answer.requires_grad else 0
        return answer
