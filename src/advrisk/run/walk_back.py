"""How near the clean input a success still is one: the judge's measurement of distance.

An attack at a fixed eps stops wherever it first succeeds, or at eps, so the distance of its kept point says where the
attack stopped, not where the model fails. The judge walks each success back to the clean input and measures the nearest
success that it meets. The kept point stays as it is.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from advrisk.core.traits import Capability, gives
from advrisk.engine import Draw, Goal, Noise, Space
from advrisk.engine.norms import NORMS
from advrisk.engine.objectives import margin
from advrisk.engine.replies import clear_lead
from advrisk.run.perturb import AttackedShard
from advrisk.run.redrawing import finite, redrawn
from advrisk.study import Arm, Norm

# Passes per success; what more of each would gain: `python -m bench walk_back`.
LINE = 6  # on the straight line to the clean input
TURNS = 2  # for arms that use gradients, times that the line is turned towards the linearised boundary: 2 passes each …
TURNED = 3  # … and so many on the new line
_BEYOND = 0.02  # how far beyond the estimated boundary to try, as a share of the way that is left
_AHEAD = 1.05  # the same on a new line, where no success is known yet, as a share of the way so far
_GRID = 4096  # places between the clean input and the kept point: finer differences are rounding of the margin


@dataclass(frozen=True)
class WalkedBack:
    """Distances of the nearest successes, by norm, one entry per row; and the passes that each took."""

    distances: dict[Norm, Tensor]
    n_passes: int


def walks_back(arm: Arm) -> bool:
    """Whether the distance of what an arm keeps says where the attack stopped rather than where the model fails."""
    return arm.kind == "attack" and arm.norm is not None and arm.keep in ("first", "strongest")


def walk_back(
    target: AttackedShard,
    kept: Tensor,
    answer: Tensor,
    rows: Tensor,
    norm: Norm,
    needs: Capability,
    chance: Noise | None = None,
    *,
    turns: int = TURNS,
) -> WalkedBack:
    """Measure the nearest success between the kept points of `rows` and their clean inputs; `answer` is that at `kept`.

    First along the straight line to the clean input. For an arm that needs gradients, the boundary is then linearised
    at the nearest success, and the line turned towards the point of it that is nearest to the clean input, as FAB does
    (Croce & Hein, 2020). What is used of a model is what the arm itself needs (`needs`), never more: so all models that
    an arm attacks are measured alike. A try counts as a success by the judge's own rule, and only with a lead that
    rounding cannot undo.
    """
    walk = _Walk(target, kept[rows].clone(), rows, norm, chance)
    capability = target.model.capability  # an arm that needs more than a model gives is refused before it runs
    walk.along_line(answer[rows], graded=needs != "labels" and gives(capability, "scores"))
    for _ in range(turns if needs == "gradients" and gives(capability, "gradients") and norm != "l0" else 0):
        walk.turn()
    space, x0 = target.space.to("cpu"), target.x0[rows].cpu().double()
    return WalkedBack({name: space.distance(walk.nearest.cpu().double(), x0, name) for name in NORMS}, walk.n_passes)


@dataclass
class _Walk:
    """The nearest success of each row so far."""

    target: AttackedShard
    nearest: Tensor
    rows: Tensor
    norm: Norm
    chance: Noise | None
    n_passes: int = 0
    x0: Tensor = field(init=False)
    goal: Goal = field(init=False)

    def __post_init__(self) -> None:
        self.x0, self.goal = self.target.x0[self.rows], self.target.goal.of(self.rows)

    def along_line(self, answer: Tensor, *, graded: bool) -> None:
        """Between the clean input (0) and the kept point (1).

        The margin is nearly linear there: try just beyond its estimated zero, and continue between the last failure and
        the last success, halving that interval where the last try did not. If not `graded`, by halving alone.
        """
        kept, n = self.nearest.clone(), len(self.rows)
        low, high = torch.zeros(n, dtype=torch.float64), torch.ones(n, dtype=torch.float64)
        below, above = high, high
        if graded:
            below, above = self._margins(self.target.clean_answer[self.rows]), self._margins(answer)
        bisect = torch.full((n,), not graded)
        for _ in range(LINE):
            share = _between(low, high, below, above, bisect)
            hit, height = self._try(_on_line(self.target.space, self.x0, kept, share, self.norm))
            halved = (high - low) / 2
            low, high = torch.where(hit, low, share), torch.where(hit, share, high)
            if graded:
                below, above = torch.where(hit, below, height), torch.where(hit, height, above)
            bisect = (high - low > halved) | (not graded)

    def turn(self) -> None:
        """Linearise the boundary at the nearest success, and walk towards its point nearest to the clean input."""
        slope, height = self._slope()
        reached = ((self.x0 - self.nearest) * slope).flatten(1).sum(1)
        step = self.target.space.step_to(self.x0, slope, -(height + reached), self.norm)
        share = torch.full((len(self.rows),), _AHEAD, dtype=torch.float64)
        most = (self._distance(self.nearest) / self._distance(self.x0 + step)).nan_to_num(nan=1.0).cpu().double()
        clean = self._margins(self.target.clean_answer[self.rows])
        for _ in range(TURNED):
            hit, height = self._try(_on_line(self.target.space, self.x0, self.x0 + step, share, self.norm))
            crossing = (share * clean / (clean - height)).nan_to_num(nan=1.0, posinf=1.0, neginf=1.0)
            ahead = crossing * torch.where(hit, 1 + _BEYOND / 4, 1 + _BEYOND)
            share = torch.where(hit, torch.minimum(ahead, share), torch.maximum(ahead, share)).clamp_min(0)
            share = torch.minimum(share, most)

    def _slope(self) -> tuple[Tensor, Tensor]:
        """The slope of the margin at the nearest success, and the margin there: a forward and a backward pass."""
        draw = None if self.chance is None else Draw(self.chance, self.rows)
        with torch.enable_grad():
            x = self.nearest.detach().clone().requires_grad_()
            height = margin(self.target.model.original.drawn(draw).ask(x), self.goal)
            (slope,) = torch.autograd.grad(height.sum(), x)
        self.n_passes += 2
        return slope, height.detach().to(slope.dtype)

    def _try(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Whether each point is a success, and its margin; the nearest successes are kept."""
        asked = redrawn(self.target.model, x, self.rows, self.chance)
        self.n_passes += asked.n
        hit = (asked.success_rate(self.goal) > 0.5) & finite(asked.answer) & self.target.space.valid(x, self.x0)
        if not asked.answer.is_floating_point():
            height = torch.zeros(len(x), dtype=torch.float64)
        else:
            hit &= clear_lead(asked.answer)
            height = self._margins(asked.answer)
        nearer = self._distance(x) < self._distance(self.nearest)
        self.nearest = torch.where((hit & nearer).view(-1, *[1] * (x.dim() - 1)), x, self.nearest)
        return hit.cpu(), height

    def _distance(self, x: Tensor) -> Tensor:
        return self.target.space.distance(x, self.x0, self.norm)

    def _margins(self, answer: Tensor) -> Tensor:
        """Below 0 for a failure, above for a success; float64 of float32, as the last digits are noise."""
        return margin(answer.float(), self.goal).double().cpu()


def _between(low: Tensor, high: Tensor, below: Tensor, above: Tensor, bisect: Tensor) -> Tensor:
    """Where between `low`, which fails, and `high`, which succeeds, to try next."""
    crossing = (below / (below - above)).nan_to_num(nan=0.5).clamp(0, 1)
    crossing = torch.where(bisect, 0.5, crossing + _BEYOND * (1 - crossing))
    return ((low + crossing * (high - low)) * _GRID).ceil() / _GRID


def _on_line(space: Space, x0: Tensor, x1: Tensor, share: Tensor, norm: Norm) -> Tensor:
    """The allowed point at that share of the way from x0 to x1; in l0, with that share of the changed features."""
    share = share.to(x0.device)
    if norm != "l0":
        return space.project(x0 + share.view(-1, *[1] * (x0.dim() - 1)).to(x0.dtype) * (x1 - x0), x0)
    moved = space.difference(x1, x0).abs().flatten(1)
    rank = moved.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    stays = rank < (share * (moved > 0).sum(1)).ceil()[:, None]
    return torch.where(stays.view_as(x0), x1, x0)
