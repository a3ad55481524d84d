"""Square: random search with squares, from scores alone."""

import math
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.traits import AttackTraits, Norm
from advrisk.engine import Probe
from advrisk.parts.attacks.moves import per_row, positions
from advrisk.parts.attacks.registry import attacks

PAPER_QUERIES = 10_000  # the number of queries that the paper's sizes are given for
_HALVED_AFTER = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # of these
_BLOCK = 50  # steps whose random numbers are drawn at once: less work than drawing for each
_TILES = 5  # l2 and l1: how many squares stand above each other at the start
_SMALLEST = {"linf": 1, "l2": 3, "l1": 3}  # sides of a square
_POWER = {"l2": 2, "l1": 1}  # a length is made of the sum of |δ| to this power
_FALL = {"l2": 2, "l1": 4}  # how fast a hill falls off around its top
_TINY = 1e-12

Layout = tuple[int, int, int]  # channels, height, width
Side = tuple[int, int]  # height and width of a square


@attacks.register(
    "square",
    traits=AttackTraits(
        needs="scores",
        norms=("linf", "l2", "l1"),
        objective="margin",
        passes=lambda given, _: (given["queries"] + 1, 0),
        use_when="a model gives no gradients, or useless ones; made for images",
        random=True,
    ),
)
def square(
    probe: Probe, *, queries: Annotated[int, Ge(1)] = 5000, p_init: Annotated[float, Gt(0), Le(1)] = 0.8
) -> None:
    """Square attack (Andriushchenko et al. 2020, arXiv:1912.00049; in l1: Croce & Hein 2021, arXiv:2103.01208).

    A step changes one square at a random place, and is taken if the objective rises. In linf the start is made of
    random vertical stripes, x0 ± eps, and a step is x ← project(x ± 2·eps) in the square, with one sign per channel. In
    l2 and l1 a second square gives up what it changed; the first gets that and what is left of eps, as its own change
    plus a hill and a hollow side by side. The square covers the share `p_init` of the image at first, then ever less.
    What is not an image is changed in runs of neighbouring features. A step that changes nothing asks nothing.
    """
    search(probe, queries, p_init, schedule=queries)


def search(probe: Probe, queries: int, p_init: float, *, schedule: int) -> None:
    """As many queries, the start among them, with the sizes that belong to `schedule` queries."""
    if not len(probe.active()):
        return
    layout = layout_of(probe)
    propose = _jump if probe.norm == "linf" else _shift
    state = _State.start(probe, layout)
    for place in range(queries - 1):
        if not len(state.rows):
            return
        if place % _BLOCK == 0:
            state = replace(state, drawn=probe.noise.uniform(state.rows, (_BLOCK, 5 + layout[0])))
        side = sides(probe.norm, layout, share_at(place, p_init, schedule))
        state = _step(probe, state, propose(probe, state, layout, side, state.drawn[:, place % _BLOCK]))
    if probe.task.keep == "last":  # the last query may have been turned down
        probe.forward(state.x, state.rows, gradient=False)


def share_at(place: int, p_init: float, schedule: int) -> float:
    """The share of an image that a square covers at a step: p_init, halved at the paper's marks."""
    place = place * PAPER_QUERIES // schedule
    return p_init * 0.5 ** sum(place > mark for mark in _HALVED_AFTER)


def sides(norm: Norm, layout: Layout, share: float) -> Side:
    """Height and width of the square (or run) that covers about this share; odd numbers in l2 and l1."""
    _, height, width = layout
    run = height == 1
    side = max(_SMALLEST[norm], round(share * width if run else math.sqrt(share * height * width)))
    if norm != "linf" and side % 2 == 0:
        side += 1
    side = min(side, width if run else min(height, width))
    return (1, side) if run else (side, side)


def layout_of(probe: Probe) -> Layout:
    """Images are channels × height × width; whatever else there is counts as one line of features."""
    shape = tuple(probe.x0.shape[1:])
    return (shape[0], shape[1], shape[2]) if len(shape) == 3 else (1, 1, math.prod(shape))


@dataclass(frozen=True)
class _State:
    """One entry per row that is still attacked: the best point, its height, random numbers for the next steps."""

    rows: Tensor
    x: Tensor
    height: Tensor
    drawn: Tensor

    @classmethod
    def start(cls, probe: Probe, layout: Layout) -> "_State":
        rows = probe.active()
        move = _stripes(probe, rows, layout) if probe.norm == "linf" else _tiles(probe, rows, layout)
        x0 = probe.x0[rows]
        x = probe.project(x0 + move.view_as(x0) * probe.space.scale, rows)
        height = probe.forward(x, rows, gradient=False).heights()
        return cls(rows, x, height, drawn=x.new_empty(len(rows), 0)).without_finished(probe)

    def without_finished(self, probe: Probe) -> "_State":
        left = probe.active()
        if len(left) == len(self.rows):
            return self
        staying = positions(left, self.rows)
        return _State(*(getattr(self, field.name)[staying] for field in fields(self)))


def _step(probe: Probe, state: _State, x: Tensor) -> _State:
    """Ask at these points what differs from the best ones; what is higher becomes the best."""
    x = probe.project(x.view_as(state.x), state.rows)
    changed = (x != state.x).flatten(1).any(1)
    height = probe.forward(x, state.rows, gradient=False, wanted=changed).heights()
    higher = height > state.height
    x = torch.where(higher.view(-1, *[1] * (x.dim() - 1)), x, state.x)
    return replace(state, x=x, height=torch.where(higher, height, state.height)).without_finished(probe)


def _stripes(probe: Probe, rows: Tensor, layout: Layout) -> Tensor:
    """linf: each column of each channel moves by eps, up or down."""
    channels, height, width = layout
    signs = _signs(probe.noise.uniform(rows, (channels, 1, width)))
    return (probe.eps * signs).expand(-1, channels, height, width).contiguous()


def _jump(probe: Probe, state: _State, layout: Layout, side: Side, drawn: Tensor) -> Tensor:
    """linf: each channel of the square moves by 2·eps, up or down."""
    channels = layout[0]
    x = state.x.reshape(len(state.x), channels, -1)
    inside = _window(layout, side, drawn[:, :2])
    reach = _scale(probe, layout).expand_as(x).gather(2, inside) * (2 * probe.eps)
    return x.scatter_add(2, inside, reach * _signs(drawn[:, -channels:, None]))


def _tiles(probe: Probe, rows: Tensor, layout: Layout) -> Tensor:
    """l2 and l1: hills and hollows side by side all over the image, of length eps together."""
    channels, height, width = layout
    wide = max(1, (width if height == 1 else height) // _TILES)
    tall = min(wide, height)
    down, across = height // tall, width // wide
    signs = _signs(probe.noise.uniform(rows, (channels, down, across)))
    turned = probe.noise.uniform(rows, (1, down, across)) < 0.5
    tile = signs[..., None, None] * _turned(hill_and_hollow(tall, wide, probe.norm).to(signs.device), turned)
    tiled = tile.permute(0, 1, 2, 4, 3, 5).reshape(-1, channels, down * tall, across * wide)
    move = signs.new_zeros(len(rows), channels, height, width)
    top, left = (height - down * tall) // 2, (width - across * wide) // 2
    move[:, :, top : top + down * tall, left : left + across * wide] = tiled
    return move * per_row(probe.eps / _length(move.flatten(1), probe.norm)[:, 0], move)


def _shift(probe: Probe, state: _State, layout: Layout, side: Side, drawn: Tensor) -> Tensor:
    """l2 and l1: the second square gives up its change; the first gets that, and what is left of eps."""
    norm, channels = probe.norm, layout[0]
    power = _POWER[norm]
    clean = probe.x0[state.rows].reshape(len(state.x), channels, -1)
    scale = _scale(probe, layout)
    move = (state.x.view_as(clean) - clean) / scale
    unused = (probe.eps**power - _length(move.flatten(1), norm) ** power).clamp_min(0)[:, None] / channels
    to, of = (_window(layout, side, drawn[:, place : place + 2]) for place in (0, 2))
    own = move.gather(2, to)
    move = move.scatter(2, to, 0.0)
    given = move.gather(2, of)
    shape = _turned(hill_and_hollow(*side, norm).to(clean.device), drawn[:, 4:5] < 0.5).flatten(-2)
    new = shape * _signs(drawn[:, -channels:, None]) + own / _length(own, norm).clamp_min(_TINY)
    size = (unused + _length(own, norm) ** power + _length(given, norm) ** power) ** (1 / power)
    new = new * (size / _length(new, norm).clamp_min(_TINY))
    if norm == "l1":
        new = new * channels
    move = move.scatter(2, of, 0.0).scatter(2, to, new)
    if norm == "l2":
        move = move * (probe.eps / _length(move.flatten(1), norm).clamp_min(_TINY))[:, None]
    return clean + move * scale


@cache
def hill_and_hollow(tall: int, wide: int, norm: Norm) -> Tensor:
    """Two halves of opposite signs and equal length, one above the other (in a run: side by side); length one."""
    if tall == 1:
        both = torch.cat([_hill(1, wide // 2, norm), -_hill(1, wide - wide // 2, norm)], 1)
    else:
        both = torch.cat([_hill(tall // 2, wide, norm), -_hill(tall - tall // 2, wide, norm)], 0)
    return both / _length(both.flatten(), norm)


def _hill(tall: int, wide: int, norm: Norm) -> Tensor:
    """Σ (k + 1)^−fall over the rectangles k = 0, 1, … around the middle that hold a feature; of length one."""
    down, across = ((torch.arange(size) - size // 2).abs() for size in (tall, wide))
    ring = torch.maximum(down[:, None], across)
    steps = (torch.arange(max(tall, wide) // 2 + 1) + 1.0) ** -_FALL[norm]
    hill = steps.flip(0).cumsum(0).flip(0)[ring]
    return hill / _length(hill.flatten(), norm)


def _turned(shape: Tensor, turned: Tensor) -> Tensor:
    """The shape (tall × wide) for each entry, turned on its side where marked; a run cannot be."""
    return torch.where(turned[..., None, None], shape.T, shape) if shape.shape[0] == shape.shape[1] else shape


def _window(layout: Layout, side: Side, drawn: Tensor) -> Tensor:
    """The places of the features in a square at a random position, for each row and channel."""
    channels, height, width = layout
    top, left = (
        (number * (room + 1)).long()
        for number, room in zip(drawn.unbind(1), (height - side[0], width - side[1]), strict=True)
    )
    down, across = (torch.arange(size, device=drawn.device) for size in side)
    inside = (down[:, None] * width + across).flatten()
    return ((top * width + left)[:, None] + inside)[:, None].expand(-1, channels, -1)


def _signs(drawn: Tensor) -> Tensor:
    return torch.where(drawn < 0.5, -1.0, 1.0)


def _scale(probe: Probe, layout: Layout) -> Tensor:
    """The unit of each feature, as (1, channels, places)."""
    return probe.space.scale.expand(probe.x0.shape[1:]).reshape(1, layout[0], -1)


def _length(values: Tensor, norm: Norm) -> Tensor:
    """Of the last dimension, which is kept."""
    length: Tensor = torch.linalg.vector_norm(values, ord=_POWER[norm], dim=-1, keepdim=True)
    return length
