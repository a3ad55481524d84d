"""Finding the nearest point beyond a decision boundary: one step, a shrinking ball, a straight line."""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from advrisk.engine import Pass, Probe
from advrisk.engine.rows import ascending, one_of_each
from advrisk.parts.attacks.moves import Candidates, chosen, other_classes, per_row
from advrisk.study import Norm

_ABOVE = 1e-3  # aim this far above the boundary, as a share of the climb
_SLACK = 0.01  # try this far beyond the estimated boundary, as a share of the remaining way
_BEYOND = 1.05  # factor of a step across a linearised boundary


def rival(probe: Probe, rows: Tensor, scores: Tensor) -> Tensor:
    """The class to overtake: the reference, or the best class besides the target."""
    goal = probe.goal.of(rows)
    if goal.target is None:
        return goal.reference
    return scores.scatter(1, goal.target[:, None], -torch.inf).argmax(1)


def nearest_boundary(
    probe: Probe, answered: Pass, rows: Tensor, classes: Tensor, *, wanted: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """For the class with the nearest linearised boundary, the slope of its lead and the gap to the boundary."""
    scores = answered.scores
    over = rival(probe, rows, scores)
    gaps = (scores.gather(1, over[:, None]) - scores.gather(1, classes)).to(probe.x0.dtype)
    slopes = answered.gradients(classes, over=over, wanted=wanted)
    steepness = torch.stack([probe.space.steepness(slope, probe.norm) for slope in slopes.unbind(1)], 1)
    nearest = (gaps.abs() / steepness.clamp_min(1e-30)).argmin(1)
    each = torch.arange(len(rows), device=rows.device)
    return slopes[each, nearest], gaps[each, nearest]


class Nearest:
    """The nearest success of each sample so far, and a search between it and the clean input.

    Nearest in `norm`, by default the arm's.
    """

    def __init__(self, probe: Probe, norm: Norm | None = None) -> None:
        self._probe, self.norm = probe, norm or probe.norm
        self.point = probe.x0.clone()
        self._margin = torch.zeros(len(probe.x0), dtype=torch.float64, device=probe.x0.device)
        self.distance = torch.full((len(probe.x0),), torch.inf, dtype=probe.x0.dtype, device=probe.x0.device)

    def note(self, x: Tensor, rows: Tensor, answered: Pass) -> Tensor:
        """Whether each row succeeds; keeps the nearest successes."""
        hit = answered.met
        distance = self._probe.space.distance(x, self._probe.x0[rows], self.norm)
        nearer = (hit & (distance < self.distance[rows])).nonzero().squeeze(1)
        if len(nearer):
            if not ascending(rows):
                nearer = nearer[one_of_each(rows[nearer], -distance[nearer])]
            self.point[rows[nearer]], self.distance[rows[nearer]] = x[nearer], distance[nearer]
            self._margin[rows[nearer]] = answered.heights("margin")[nearer]
        return hit

    def ask(self, x: Tensor, rows: Tensor, *, gradient: bool = True) -> tuple[Tensor, Pass, Tensor]:
        """Query the allowed points nearest to x; return them, the answers, and whether each row succeeds."""
        x = self._probe.space.project(x, self._probe.x0[rows])
        answered = self._probe.forward(x, rows, gradient=gradient)
        return x, answered, self.note(x, rows, answered)

    def measured_in(self, norm: Norm) -> Self:
        """The same successes for a search in another norm."""
        other = type(self)(self._probe, norm)
        other.point, other._margin = self.point.clone(), self._margin.clone()
        distance = self._probe.space.distance(self.point, self._probe.x0, norm)
        other.distance = torch.where(self.distance.isfinite(), distance, torch.inf)
        return other

    def take(self, other: Self) -> None:
        """Take over the successes of `other` that are nearer."""
        nearer = other.distance < self.distance
        self.point = chosen(nearer, other.point, self.point)
        self._margin = torch.where(nearer, other._margin, self._margin)
        self.distance = torch.minimum(self.distance, other.distance)

    def close_in(self, tries: int, rows: Tensor | None = None) -> None:
        """Search for nearer successes on the line to the clean input: one pass there, and `tries` in between.

        Where the last point counts, query the nearest success once more instead, so that it is the last.
        """
        probe = self._probe
        rows = probe.active() if rows is None else rows
        rows = rows[self.distance[rows].isfinite()]
        if not len(rows):
            return
        if probe.task.keep == "last":
            probe.forward(self.point[rows], rows, gradient=False)
        elif tries:
            clean = probe.forward(probe.x0[rows], rows, gradient=False).heights("margin")
            heights = torch.stack([clean, self._margin[rows]])
            close_in(probe, probe.x0[rows], self.point[rows], rows, heights, tries=tries, nearest=self)


def close_in(
    probe: Probe,
    outside: Tensor,
    inside: Tensor,
    rows: Tensor,
    heights: Tensor,
    *,
    tries: int,
    nearest: Nearest | None = None,
) -> None:
    """Search for a nearer success between points that fail (`outside`) and points that succeed (`inside`).

    `heights` holds the margins of both, (2, rows). Along a straight line the margin is nearly linear: try just beyond
    its estimated zero, and continue between that point and its neighbour on the other side. Do nothing where the last
    point counts, as the last point is then the success so far.
    """
    if probe.task.keep == "last":
        return
    low, high = heights[0].clone(), heights[1].clone()
    aim = _ABOVE * (high - low)  # not at the boundary itself, where rounding decides
    for _ in range(tries):
        if not len(rows):
            return
        share = ((low - aim) / (low - high)).nan_to_num(nan=0.5).clamp(0, 1)
        share = share + _SLACK * (1 - share)
        x = probe.space.project(outside + per_row(share, outside) * (inside - outside), probe.x0[rows])
        answered = probe.forward(x, rows, gradient=False)
        height = answered.heights("margin")
        hit = answered.met if nearest is None else nearest.note(x, rows, answered)
        inside, outside = chosen(hit, x, inside), chosen(hit, outside, x)
        high, low = torch.where(hit, height, high), torch.where(hit, low, height)


def step_across(probe: Probe, rows: Tensor, candidates: Candidates, norm: Norm | None = None) -> Tensor:
    """DeepFool's first step: from the clean inputs just beyond the nearest linearised boundary to some classes.

    The step is the shortest in `norm`, by default the arm's. Takes one forward pass, and a backward pass for each
    class.
    """
    x = probe.x0[rows]
    answered = probe.forward(x, rows)
    slope, gap = nearest_boundary(probe, answered, rows, other_classes(probe, rows, answered.scores, candidates))
    return probe.space.project(x + _BEYOND * probe.space.step_to(x, slope, gap, norm or probe.norm), x)


@dataclass(frozen=True)
class StepSchedule:
    """First and last change of balls and steps; in between they follow half a cosine."""

    give: tuple[float, float]  # the share by which a ball shrinks below a success, or grows without one
    stride: tuple[float, float]  # the length of a step
    of_ball: bool = True  # whether that is a share of the ball and in its norm, or a length in l2

    def at(self, share: float) -> tuple[float, float]:
        """Give and stride after this share of the steps."""
        left = (1 + math.cos(math.pi * share)) / 2
        give, stride = (last + (first - last) * left for first, last in (self.give, self.stride))
        return give, stride


FEW_STEPS = StepSchedule(give=(0.3, 0.01), stride=(0.5, 0.02))


def shrink(
    probe: Probe, nearest: Nearest, x: Tensor, rows: Tensor, steps: int, schedule: StepSchedule = FEW_STEPS
) -> None:
    """Climb the margin within a ball around each clean input that shrinks below each success.

    While a sample has no success, its ball reaches just beyond the linearised boundary; afterwards it grows after each
    failure, and shrinks below the nearest success after each success.
    """
    walk = _Walk(probe, nearest, rows, x, nearest.distance[rows])
    for step in range(steps):
        if not len(walk.rows):
            return
        walk.step(*schedule.at(step / max(1, steps - 1)), of_ball=schedule.of_ball)
    if len(walk.rows):
        nearest.ask(walk.x, walk.rows, gradient=False)


@dataclass
class _Walk:
    """One entry per row: its point (whole numbers not yet rounded), and the size of its ball."""

    probe: Probe
    nearest: Nearest
    rows: Tensor
    x: Tensor
    limit: Tensor

    def step(self, give: float, stride: float, *, of_ball: bool) -> None:
        space, norm = self.probe.space, self.nearest.norm
        _, answered, hit = self.nearest.ask(self.x, self.rows)
        slope = answered.gradient("margin")
        self.limit = self._next_limit(answered, hit, slope, give)
        if of_ball:
            move = per_row(stride * self.limit, slope) * space.direction(slope, norm)
        else:
            move = stride * space.direction(slope, "l2")
        moved = self.x + move * space.scale
        self.x = space.unrounded.project(moved, self.probe.x0[self.rows], norm=norm, eps=self.limit)
        going = self.probe.is_active(self.rows)
        if not bool(going.all()):
            self.rows, self.x, self.limit = self.rows[going], self.x[going], self.limit[going]

    def _next_limit(self, answered: Pass, hit: Tensor, slope: Tensor, give: float) -> Tensor:
        """The next size of each row's ball."""
        best = self.nearest.distance[self.rows]
        if self.nearest.norm == "l0":  # whole features: one more or one fewer at least
            limit = torch.where(self.limit.isinf(), 0.0, self.limit)
            fewer = torch.minimum(best - 1, (best * (1 - give)).floor())
            more = torch.maximum(limit + 1, (limit * (1 + give)).floor())
            return torch.where(hit, fewer, torch.minimum(more, best)).clamp_min(1)
        grown = torch.minimum(self.limit * (1 + give), best)
        lost = best.isinf().nonzero().squeeze(1)
        if len(lost):
            gap = -answered.heights("margin")[lost].to(slope.dtype)
            grown[lost] = self._reach(lost, slope[lost], gap)
        return torch.where(hit, best * (1 - give), grown)

    def _reach(self, lost: Tensor, slope: Tensor, gap: Tensor) -> Tensor:
        """The distance of the linearised boundary from the clean input."""
        space, norm, x = self.probe.space, self.nearest.norm, self.x[lost]
        step = space.step_to(x, slope, gap, norm)
        return space.distance(x + _BEYOND * step, self.probe.x0[self.rows[lost]], norm)
