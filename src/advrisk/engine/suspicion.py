"""What a detector says of proposed points, and what asking it costs.

An arm that knows a detector asks for its score together with the model's answer. Detectors ask the model, too: those
passes belong to the samples whose points are scored.
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

    `score` gives points to a model one number each, higher = more suspicious. `passes` says how often it asks the model
    about a point that is scored alone, beside the one pass that the probe makes anyway; no point is charged less.
    `differentiable`: torch can follow the score back to the point, if it can follow the model's answer.
    """

    name: str
    score: Callable[[Tensor, Model], Tensor]
    passes: int = 0
    differentiable: bool = False


@dataclass(frozen=True)
class ScoredPoints:
    """The scores of some points, and the passes that each took: forward, and to follow it back.

    `n_backward` holds the pass that is made anyway, where the score depends on it; `n_forward` does not.
    """

    score: Tensor
    n_forward: int
    n_backward: int


def scored(suspicion: Suspicion, model: Model, points: Tensor, answer: Tensor) -> ScoredPoints:
    """Let the detector score points whose `answer` is known already; it is not asked for again.

    A detector that asks the same number of passes of every point is charged these. One that also asks about rows of its
    own, however many points there are, is charged its `passes`: the cost of a point must not depend on its batch mates.
    """
    follow = suspicion.differentiable and torch.is_grad_enabled()
    tally = _Tally(model.answer, points if follow else points.detach(), answer)
    watched = _Watched(**{one.name: getattr(model, one.name) for one in fields(Model)}, tally=tally)
    with torch.set_grad_enabled(follow):
        given = suspicion.score(tally.points, watched).to(points.device)
    if tuple(given.shape) != (len(points),):
        found = f"the detector {suspicion.name} scored {len(points)} points with shape {tuple(given.shape)}"
        raise ModelError(f"{found}; one number each is needed")
    n_backward = tally.each(tally.n_backward) + int(tally.shared) if given.requires_grad else 0
    return ScoredPoints(given, max(suspicion.passes, tally.each(tally.n_forward)), n_backward)


def steady(score: Tensor) -> Tensor:
    """Scores in float64 without their last digits, which depend on a row's place in the batch: 40 bits are left.

    Adding and taking away a large multiple rounds them, exactly as often as it is done; huge ones stay as they are.
    """
    exact = score.double()
    large = exact * (2.0**13 + 1)
    return torch.where(exact.abs() < 1e290, large - (large - exact), exact)


def measured(suspicion: Suspicion, model: Model, x: Tensor) -> Suspicion:
    """The same detector, with the number of passes that it was seen to take at these points, at most, one at a time."""
    blank = replace(suspicion, passes=0)
    with torch.no_grad(), torch.random.fork_rng(devices=()):
        taken = [scored(blank, model, point, model.ask(point)).n_forward for point in x[:, None]]
    return replace(suspicion, passes=max(taken))


@dataclass
class _Tally:
    """What a detector asked about these points, to which one answer is known."""

    answering: Callable[[Tensor], Tensor]
    points: Tensor
    answer: Tensor
    n_forward: int = 0
    n_backward: int = 0
    shared: bool = False

    def each(self, n_rows: int) -> int:
        """Where rows do not tell whose they are, all points have an equal part in them."""
        return -(-n_rows // len(self.points))


@dataclass(frozen=True)
class _Watched(Model):
    """The same model, which notes what it is asked; the answer that is known is not computed again."""

    tally: _Tally = field(kw_only=True)
    shares: bool = True

    @property
    def original(self) -> "_Watched":
        """Always asked: who wants the owner's module may look at what goes on inside it."""
        return replace(self, answer=self.owner or self.answer, owner=None, shares=False)

    def _asked(self, answering: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        tally = self.tally
        if self.shares and x is tally.points and answering is tally.answering and not self.random:
            tally.shared = True
            known = tally.answer if torch.is_grad_enabled() else tally.answer.detach()
            return F.pad(known, (0, 1)) if self.rejects else known  # the column that says what is refused
        answer = super()._asked(answering, x)
        tally.n_forward += len(x)
        tally.n_backward += len(x) if answer.requires_grad else 0
        return answer
