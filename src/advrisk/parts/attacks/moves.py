"""What several attacks do alike: following the active set, choosing classes, closing in on a boundary."""

from typing import Annotated, Literal

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.engine import Pass, Probe
from advrisk.engine.norms import random_in_ball
from advrisk.engine.objectives import objectives

Candidates = Annotated[int, Ge(1)] | Literal["all"]

_NUDGE = 0.01
_ABOVE = 1e-3  # how far above the boundary to aim, as a share of the climb
_SLACK = 0.01  # how far beyond the estimated boundary to try, as a share of the way that is left


def positions(left: Tensor, rows: Tensor) -> Tensor:
    """Where the rows that are left stand among the rows there were (both ascending)."""
    return torch.searchsorted(rows, left)


def point_in_ball(probe: Probe, rows: Tensor, eps: float) -> Tensor:
    """A point drawn uniformly from the ball around each clean input, within the space and the arm's eps."""
    jump = random_in_ball(probe.noise, rows, tuple(probe.x0.shape[1:]), probe.norm, eps)
    return probe.project(probe.x0[rows] + jump * probe.space.scale, rows)


def clean_start(probe: Probe, rows: Tensor) -> Tensor:
    """The clean inputs; for an objective whose slope vanishes there, points drawn from a hundredth of the ball."""
    if objectives.get(probe.task.objective).traits.from_clean:
        return point_in_ball(probe, rows, probe.eps * _NUDGE)
    return probe.x0[rows]


def per_row(values: Tensor, like: Tensor) -> Tensor:
    """One number per row, shaped to be multiplied with features."""
    return values.to(like.dtype).view(-1, *[1] * (like.dim() - 1))


def other_classes(probe: Probe, rows: Tensor, scores: Tensor, count: Candidates) -> Tensor:
    """The classes a sample might become, best first: its target, or the best but its reference."""
    goal = probe.goal.of(rows)
    if goal.target is not None:
        return goal.target[:, None]
    most = scores.shape[1] - 1
    others = scores.scatter(1, goal.reference[:, None], -torch.inf)
    return others.topk(most if count == "all" else min(count, most), dim=1).indices


def classes_to_try(probe: Probe, count: int) -> list[Tensor]:
    """For an attack that tries classes one by one: in each round, a class for every sample of the shard.

    Takes one forward pass at the clean inputs.
    """
    rows = probe.active()
    if not len(rows):
        return []
    scores = probe.forward(probe.x0[rows], rows, gradient=False).scores
    chosen = other_classes(probe, rows, scores, count)
    classes = chosen.new_zeros((len(probe.x0), chosen.shape[1]))
    classes[rows] = chosen
    return list(classes.unbind(1))


def rival(probe: Probe, rows: Tensor, scores: Tensor) -> Tensor:
    """The class that stands in the way of success: the reference, or the best but the target."""
    goal = probe.goal.of(rows)
    if goal.target is None:
        return goal.reference
    return scores.scatter(1, goal.target[:, None], -torch.inf).argmax(1)


def nearest_boundary(
    probe: Probe, answered: Pass, rows: Tensor, classes: Tensor, *, wanted: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Of some classes, the slope of the lead of the one whose linearised boundary is nearest, and what it lacks."""
    scores = answered.scores
    over = rival(probe, rows, scores)
    gaps = (scores.gather(1, over[:, None]) - scores.gather(1, classes)).to(probe.x0.dtype)
    slopes = answered.gradients(classes, over=over, wanted=wanted)
    steepness = torch.stack([probe.space.steepness(slope, probe.norm) for slope in slopes.unbind(1)], 1)
    nearest = (gaps.abs() / steepness.clamp_min(1e-30)).argmin(1)
    each = torch.arange(len(rows), device=rows.device)
    return slopes[each, nearest], gaps[each, nearest]


def n_others(count: Candidates, classes: int) -> int:
    """How many classes `other_classes` gives at most."""
    return classes - 1 if count == "all" else min(count, classes - 1)


class Nearest:
    """The nearest success of each sample that an attack has seen, and a search between it and the clean input."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._point = probe.x0.clone()
        self._margin = torch.zeros(len(probe.x0), dtype=torch.float64, device=probe.x0.device)
        self.distance = torch.full((len(probe.x0),), torch.inf, dtype=probe.x0.dtype, device=probe.x0.device)

    def note(self, x: Tensor, rows: Tensor, answered: Pass) -> Tensor:
        """Whether each row succeeds; the nearest are remembered."""
        hit = answered.met
        distance = self._probe.space.distance(x, self._probe.x0[rows], self._probe.norm)
        nearer = hit & (distance < self.distance[rows])
        if bool(nearer.any()):
            self._point[rows[nearer]], self.distance[rows[nearer]] = x[nearer], distance[nearer]
            self._margin[rows[nearer]] = answered.heights("margin")[nearer]
        return hit

    def close_in(self, tries: int) -> None:
        """Look for nearer successes on the way to the clean input: one pass there, and `tries` in between."""
        probe = self._probe
        rows = probe.active()
        rows = rows[self.distance[rows].isfinite()]
        if len(rows) and tries:
            clean = probe.forward(probe.x0[rows], rows, gradient=False).heights("margin")
            heights = torch.stack([clean, self._margin[rows]])
            close_in(probe, probe.x0[rows], self._point[rows], rows, heights, tries=tries)


def close_in(probe: Probe, outside: Tensor, inside: Tensor, rows: Tensor, heights: Tensor, *, tries: int) -> None:
    """Look for a nearer success between points that fail (`outside`) and points that succeed (`inside`).

    `heights` holds the margins of both, (2, rows). Along a straight line the margin is nearly linear: try just beyond
    the place where it should be zero, and go on between that point and its neighbour on the other side. Where the last
    point counts, the success that was found is that.
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
        hit = answered.met
        shown = per_row(hit, x) > 0
        inside, outside = torch.where(shown, x, inside), torch.where(shown, outside, x)
        high, low = torch.where(hit, height, high), torch.where(hit, low, height)
