"""Steps that several attacks share: starting points, the active set, the choice of classes."""

from collections.abc import Iterator
from typing import Annotated, Literal

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.engine import Probe
from advrisk.engine.norms import random_in_ball
from advrisk.engine.objectives import objectives

Candidates = Annotated[int, Ge(1)] | Literal["all"]

_NUDGE = 0.01
_FEATURES_AT_ONCE = 2**20


def positions(left: Tensor, rows: Tensor) -> Tensor:
    """The indices of the remaining rows among all rows (both ascending)."""
    return torch.searchsorted(rows, left)


def point_in_ball(probe: Probe, rows: Tensor, eps: float) -> Tensor:
    """A point drawn uniformly from the ball around each clean input, within the space and the arm's eps."""
    jump = random_in_ball(probe.noise, rows, tuple(probe.x0.shape[1:]), probe.norm, eps)
    return probe.project(probe.x0[rows] + jump * probe.space.scale, rows)


def random_inputs(probe: Probe, rows: Tensor, *, corners: bool) -> Tensor:
    """Points drawn uniformly from the box, or from its corners."""
    share = probe.noise.uniform(rows, tuple(probe.x0.shape[1:]))
    share = share.round() if corners else share
    return probe.space.project(probe.space.low + share * (probe.space.high - probe.space.low), probe.x0[rows])


def samples_at_once(probe: Probe, points: int) -> int:
    """The number of samples in a batch of `points` points each.

    A batch is no larger than the shard, or than a million features, where small batches would be slow.
    """
    return max(1, max(len(probe.x0), _FEATURES_AT_ONCE // probe.x0[0].numel()) // points)


def clean_start(probe: Probe, rows: Tensor) -> Tensor:
    """The clean inputs; for an objective whose slope vanishes there, points drawn from a hundredth of the ball."""
    if objectives.get(probe.task.objective).traits.from_clean:
        return point_in_ball(probe, rows, probe.eps * _NUDGE)
    return probe.x0[rows]


def per_row(values: Tensor, like: Tensor) -> Tensor:
    """One number per row, shaped to be multiplied with features."""
    return values.to(like.dtype).view(-1, *[1] * (like.dim() - 1))


def chosen(mask: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Rows of `yes` where marked, else of `no`: copying whole rows is faster than torch.where."""
    marked = mask.nonzero().squeeze(1)
    return yes if len(marked) == len(mask) else no.index_copy(0, marked, yes[marked])


def other_classes(probe: Probe, rows: Tensor, scores: Tensor, count: Candidates) -> Tensor:
    """The classes a sample might become, best first: its target, or the best ones without its reference."""
    goal = probe.goal.of(rows)
    if goal.target is not None:
        return goal.target[:, None]
    most = scores.shape[1] - 1
    others = scores.scatter(1, goal.reference[:, None], -torch.inf)
    return others.topk(most if count == "all" else min(count, most), dim=1).indices


def towards_classes(probe: Probe, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches for an attack that goes towards one class at a time: rows, and a class for each.

    First the likeliest class of every sample; then all other classes of the unbroken samples together, as few samples
    make slow batches. No batch is larger than the shard, unless it is a single sample's. Takes one forward pass at the
    clean inputs.
    """
    rows = probe.active()
    if not len(rows):
        return
    classes = other_classes(probe, rows, probe.forward(probe.x0[rows], rows, gradient=False).scores, count)
    yield rows, classes[:, 0]
    left = probe.is_active(rows)
    rows, others = rows[left], classes[left, 1:]
    each = others.shape[1]
    if each:
        n_samples = max(1, len(probe.x0) // each)
        for start in range(0, len(rows), n_samples):
            some = slice(start, start + n_samples)
            yield rows[some].repeat_interleave(each), others[some].flatten()


def n_others(count: Candidates, classes: int) -> int:
    """The most classes that `other_classes` returns."""
    return classes - 1 if count == "all" else min(count, classes - 1)


def rectangles(drawn: Tensor, height: int, width: int) -> Tensor:
    """Which pixels lie in random rectangles, (…, 1, height, width), from four numbers each, (…, 4)."""
    tall, wide = _run(drawn[..., :2], height), _run(drawn[..., 2:], width)
    return tall[..., None, :, None] & wide[..., None, None, :]


def _run(drawn: Tensor, length: int) -> Tensor:
    """A mask of a random run of indices; the logarithm of its length is uniform, from one index to all of them."""
    size = ((length + 1) ** drawn[..., :1].double()).floor().clamp_max(length)
    first = (drawn[..., 1:].double() * (length - size + 1)).floor()
    index = torch.arange(length, device=drawn.device)
    return (index >= first) & (index < first + size)
