"""What a detector says of proposed points, and what asking it costs.

An arm that knows a detector asks for its score together with the model's answer. Detectors ask the model, too: those
passes belong to the samples whose points are scored.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.engine.model import Model


@dataclass(frozen=True)
class Suspicion:
    """A detector as the probe sees it.

    `score` gives points to a model one number each, higher = more suspicious. `passes` says how often it asks the model
    about a point, beside the one pass that the probe makes anyway. `differentiable`: torch can follow the score back to
    the point, if it can follow the model's answer.
    """

    name: str
    score: Callable[[Tensor, Model], Tensor]
    passes: int = 0
    differentiable: bool = False


@dataclass(frozen=True)
class Scored:
    """The scores of some points, and the passes that each took: forward, and to follow it back.

    `n_backward` holds the pass that is made anyway, where the score depends on it; `n_forward` does not.
    """

    score: Tensor
    n_forward: int
    n_backward: int


def scored(suspicion: Suspicion, model: Model, points: Tensor, answer: Tensor) -> Scored:
    """Let the detector score points whose `answer` is known already; it is not asked for again."""
    follow = suspicion.differentiable and torch.is_grad_enabled()
    tally = _Tally(model.answer, points if follow else points.detach(), answer)
    with torch.set_grad_enabled(follow), _counted(model, tally) as watched:
        given = suspicion.score(tally.points, watched)
    if tuple(given.shape) != (len(points),):
        found = f"the detector {suspicion.name} scored {len(points)} points with shape {tuple(given.shape)}"
        raise ModelError(f"{found}; one number each is needed")
    n_backward = tally.each(tally.n_backward) + int(tally.shared) if given.requires_grad else 0
    return Scored(given, tally.each(tally.n_forward), n_backward)


def measured(suspicion: Suspicion, model: Model, x: Tensor) -> int:
    """How often the detector asks the model about a point beside the probe, seen at these."""
    with torch.no_grad():
        return scored(suspicion, model, x, model.ask(x)).n_forward


@dataclass
class _Tally:
    """What a detector asked about these points, to which one answer is known."""

    answering: Callable[[Tensor], Tensor]
    points: Tensor
    answer: Tensor
    n_forward: int = 0
    n_backward: int = 0
    shared: bool = False
    asking: bool = False

    def add(self, n_rows: int, *, followed: bool) -> None:
        self.n_forward += n_rows
        self.n_backward += n_rows if followed else 0

    def each(self, n_rows: int) -> int:
        """Where rows do not tell whose they are, all points have an equal part in them."""
        return -(-n_rows // len(self.points))


@dataclass(frozen=True)
class _Watched(Model):
    """The same model, which notes what it is asked."""

    tally: _Tally = field(kw_only=True)

    def _asked(self, answering: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        tally = self.tally
        if x is tally.points and answering is tally.answering and not self.random:
            tally.shared = True
            return tally.answer if torch.is_grad_enabled() else tally.answer.detach()
        tally.asking = True
        try:
            answer = super()._asked(answering, x)
        finally:
            tally.asking = False
        tally.add(len(x), followed=answer.requires_grad)
        return answer


@contextmanager
def _counted(model: Model, tally: _Tally) -> Iterator[Model]:
    """The model for a detector. Its module is watched as well: who looks at hidden layers calls it directly."""

    def note(module: nn.Module, given: tuple[Tensor, ...], answer: Tensor) -> None:  # noqa: ARG001
        if not tally.asking:
            n = len(tally.points)
            n_rows = n if len(answer) == max(n, model.min_rows) else len(answer)  # padding belongs to nobody
            tally.add(n_rows, followed=torch.is_grad_enabled())

    modules = {id(one): one for one in (model.answer, model.owner) if isinstance(one, nn.Module)}
    hooks = [module.register_forward_hook(note) for module in modules.values()]
    try:
        yield _Watched(**{one.name: getattr(model, one.name) for one in fields(Model)}, tally=tally)
    finally:
        for hook in hooks:
            hook.remove()
