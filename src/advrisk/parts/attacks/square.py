"""Square: random search with squares, from scores alone."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from advrisk.core.traits import AttackTraits, Box, Norm
from advrisk.engine import Probe
from advrisk.parts.attacks.moves import per_row, positions
from advrisk.parts.attacks.registry import attacks

PAPER_QUERIES = 10_000  # the queries that the paper's sizes assume
_HALVED_AFTER = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # of these
_BLOCK = 50  # steps whose random numbers are drawn at once: less work than drawing for each
_TILES = 5  # l2 and l1: squares in a column at the start
_SMALLEST = {"linf": 1, "l2": 3, "l1": 3}  # sides of a square
_POWER = {"l2": 2, "l1": 1}  # a length is made of the sum of |δ| to this power
_FALL = {"l2": 2, "l1": 4}  # the decay of a hill around its top
_WITHIN = 1 - 1e-6  # of eps: rounding would else take half of the points beyond it
_TINY = 1e-12

Layout = tuple[int, int, int]  # channels, height, width
Side = tuple[int, int]  # height and width of a square


@attacks.register(
    "square",
    traits=AttackTraits(
        needs="scores",
        norms=("linf", "l2", "l1"),
        objective="margin",
        passes=lambda settings, _: (settings["queries"] + 1, 0),
        use_when="a model gives no gradients, or useless ones; made for images",
        random=True,
        box={"p_init": Box(0.01, 1.0)},
    ),
)
def square(
    probe: Probe, *, queries: Annotated[int, Ge(1)] = 5000, p_init: Annotated[float, Gt(0), Le(1)] = 0.8
) -> None:
    """Square attack (Andriushchenko et al. 2020, arXiv:1912.00049; in l1: Croce & Hein 2021, arXiv:2103.01208).

    A step changes one square at a random place, and is taken if the objective rises. In linf the start is made of
    random vertical stripes, x0 ± eps, and a step is x ← project(x ± 2·eps) in the square, with one sign per channel. In
    l2 and l1 a second square gives up its change; the first gets that and what is left of eps, as its own change plus a
    hill and a hollow side by side. The square covers the share `p_init` of the image at first, then ever less. Inputs
    that are no images change in runs of neighbouring features. A step that changes nothing costs no query.
    """
    search(probe, queries, p_init, schedule=queries)


def search(probe: Probe, queries: int, p_init: float, *, schedule: int) -> None:
    """Search with `queries` queries, the start among them, and the square sizes of a search with `schedule` queries."""
    if not len(probe.active()):
        return
    layout = layout_of(probe)
    propose = _jump if probe.norm == "linf" else _shift
    state = _State.start(probe, layout)
    shares = [share_at(query, p_init, schedule) for query in range(queries - 1)]
    for side, steps in _blocks([sides(probe.norm, layout, share) for share in shares]):
        draws = _draw(probe, state.rows, layout, side, steps)
        for step in range(steps):
            if not len(state.rows):
                return
            staying = None if len(state.rows) == len(draws.rows) else positions(state.rows, draws.rows)
            draws = draws if staying is None else draws.of(staying)
            x, inside = propose(probe, state, draws, step)
            state = _step(probe, state, x, inside)
    if probe.task.keep == "last":  # the last query may have been turned down
        probe.forward(state.x, state.rows, gradient=False)


def _blocks(sides: Sequence[Side]) -> Iterator[tuple[Side, int]]:
    """Runs of equal squares, cut into blocks: each with its number of steps."""
    for side, run in groupby(sides):
        steps = len(list(run))
        for done in range(0, steps, _BLOCK):
            yield side, min(_BLOCK, steps - done)


def share_at(query: int, p_init: float, schedule: int) -> float:
    """The share of an image that a square covers at a query: p_init, halved at the paper's marks."""
    scaled = query * PAPER_QUERIES // schedule
    return p_init * 0.5 ** sum(scaled > mark for mark in _HALVED_AFTER)


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
    """The layout of an image, channels × height × width; any other input counts as one line of features."""
    shape = tuple(probe.x0.shape[1:])
    return (shape[0], shape[1], shape[2]) if len(shape) == 3 else (1, 1, math.prod(shape))


@dataclass(frozen=True)
class _State:
    """One entry per active row: its best point and the objective there. Written in place."""

    rows: Tensor
    clean: Tensor
    x: Tensor
    height: Tensor

    @classmethod
    def start(cls, probe: Probe, layout: Layout) -> "_State":
        rows = probe.active()
        move = _stripes(probe, rows, layout) if probe.norm == "linf" else _tiles(probe, rows, layout)
        clean = probe.x0[rows]
        x = probe.project(clean + move.reshape(clean.shape) * probe.space.scale, rows)
        return cls(rows, clean, x, probe.forward(x, rows, gradient=False).heights()).without_finished(probe)

    def without_finished(self, probe: Probe) -> "_State":
        left = probe.active()
        if len(left) == len(self.rows):
            return self
        staying = positions(left, self.rows)
        return _State(left, *(part.index_select(0, staying) for part in (self.clean, self.x, self.height)))


@dataclass(frozen=True)
class _Draws:
    """Random choices for a block of steps with squares of one size, (rows, steps, …) each."""

    rows: Tensor
    corners: Tensor  # the index of the upper left feature of two squares
    signs: Tensor  # one per channel
    turned: Tensor  # 1 where a hill and its hollow lie on their side
    layout: Layout
    side: Side

    def of(self, staying: Tensor) -> "_Draws":
        drawn = {name: getattr(self, name).index_select(0, staying) for name in ("rows", "corners", "signs", "turned")}
        return replace(self, **drawn)

    def window(self, which: int, step: int) -> Tensor:
        """The indices of the features in a square, for each row and channel."""
        channels, _, width = self.layout
        inside = _indices(*self.side, width, self.corners.device)
        return (self.corners[:, step, which] + inside).expand(-1, channels, -1)


def _draw(probe: Probe, rows: Tensor, layout: Layout, side: Side, steps: int) -> _Draws:
    channels, height, width = layout
    drawn = probe.noise.uniform(rows, (steps, 5 + channels))
    room = drawn.new_tensor([height - side[0] + 1, width - side[1] + 1])
    top, left = (drawn[..., :4].view(len(rows), steps, 2, 2) * room).long().unbind(3)
    signs = _signs(drawn[..., 5:, None])
    turned = (drawn[..., 4] < 0.5).long()
    return _Draws(rows, (top * width + left)[..., None, None], signs, turned, layout, side)


def _step(probe: Probe, state: _State, x: Tensor, inside: Tensor) -> _State:
    """Query the points whose square differs from that of the best points; higher points become the best."""
    x = probe.project(x.view_as(state.x), state.rows)
    before, after = (point.reshape(*inside.shape[:2], -1).gather(2, inside) for point in (state.x, x))
    changed = (before != after).flatten(1).any(1)
    height = probe.forward(x, state.rows, gradient=False, wanted=changed).heights()
    higher = (height > state.height).nonzero().squeeze(1)
    if len(higher):
        state.x.index_copy_(0, higher, x.index_select(0, higher))
        state.height.index_copy_(0, higher, height.index_select(0, higher))
    return state.without_finished(probe)


def _stripes(probe: Probe, rows: Tensor, layout: Layout) -> Tensor:
    """linf: each column of each channel moves by eps, up or down."""
    channels, height, width = layout
    signs = _signs(probe.noise.uniform(rows, (channels, 1, width)))
    return (probe.eps * signs).expand(-1, channels, height, width)


def _jump(probe: Probe, state: _State, draws: _Draws, step: int) -> tuple[Tensor, Tensor]:
    """linf: each channel of the square moves by 2·eps, up or down."""
    inside = draws.window(0, step)
    x = state.x.reshape(*inside.shape[:2], -1)
    scale = probe.space.scale
    scale = scale if scale.numel() == 1 else _in_layout(scale, x).gather(2, inside)
    jump = 2 * probe.eps * draws.signs[:, step] * scale
    return x.scatter_add(2, inside, jump.expand(inside.shape)), inside


def _tiles(probe: Probe, rows: Tensor, layout: Layout) -> Tensor:
    """l2 and l1: hills and hollows side by side all over the image; in l2 of length eps together."""
    channels, height, width = layout
    wide = max(1, (width if height == 1 else height) // _TILES)
    tall = min(wide, height)
    down, across = height // tall, width // wide
    signs = _signs(probe.noise.uniform(rows, (channels, down, across)))
    turned = (probe.noise.uniform(rows, (1, down, across)) < 0.5).long()
    tile = signs[..., None, None] * _both_ways(tall, wide, probe.norm, signs.device)[turned]
    tiled = tile.permute(0, 1, 2, 4, 3, 5).reshape(-1, channels, down * tall, across * wide)
    move = signs.new_zeros(len(rows), channels, height, width)
    top, left = (height - down * tall) // 2, (width - across * wide) // 2
    move[:, :, top : top + down * tall, left : left + across * wide] = tiled
    if probe.norm == "l1":
        return move  # each tile of length one: projection leaves the tops
    return move * per_row(probe.eps / _length(move.flatten(1), probe.norm)[:, 0], move)


def _shift(probe: Probe, state: _State, draws: _Draws, step: int) -> tuple[Tensor, Tensor]:
    """l2 and l1: the second square gives up its change; the first gets that, and what is left of eps."""
    norm, power = probe.norm, _POWER[probe.norm]
    to, of = (draws.window(which, step) for which in (0, 1))
    channels = to.shape[1]
    move = probe.space.in_units(state.x - state.clean).reshape(len(to), channels, -1)
    unused = (probe.eps**power - _length(move.flatten(1), norm) ** power).clamp_min(0)[:, None] / channels
    own = move.gather(2, to)
    move.scatter_(2, to, 0.0)
    released = move.gather(2, of)
    move.scatter_(2, of, 0.0)
    shape = _both_ways(*draws.side, norm, move.device).flatten(1).index_select(0, draws.turned[:, step])
    size = _length(own, norm)
    new = shape[:, None] * draws.signs[:, step] + own / size.clamp_min(_TINY)
    grown = (unused + size**power + _length(released, norm) ** power) ** (1 / power)
    if norm == "l1":
        grown = grown * channels  # as in the authors' code: the projection cuts off the excess
    move.scatter_(2, to, new * (grown / _length(new, norm).clamp_min(_TINY)))
    if norm == "l2":
        move *= (_WITHIN * probe.eps / _length(move.flatten(1), norm).clamp_min(_TINY))[:, None]
    return torch.addcmul(state.clean, move.view_as(state.clean), probe.space.scale), to


@cache
def _both_ways(tall: int, wide: int, norm: Norm, device: torch.device) -> Tensor:
    """Hill and hollow upright, and on their side; a run cannot be turned."""
    shape = hill_and_hollow(tall, wide, norm).to(device)
    return torch.stack([shape, shape.T if tall == wide else shape])


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


@cache
def _indices(tall: int, wide: int, width: int, device: torch.device) -> Tensor:
    """The indices of the features of a square whose upper left one has index 0."""
    down, across = (torch.arange(size, device=device) for size in (tall, wide))
    return (down[:, None] * width + across).flatten()


def _signs(drawn: Tensor) -> Tensor:
    return torch.where(drawn < 0.5, -1.0, 1.0)


def _in_layout(scale: Tensor, x: Tensor) -> Tensor:
    """The unit of each feature in the layout of x, (rows, channels, features)."""
    return scale.reshape(1, *x.shape[1:]).expand_as(x)


def _length(values: Tensor, norm: Norm) -> Tensor:
    """The length along the last dimension, which is kept."""
    length: Tensor = torch.linalg.vector_norm(values, ord=_POWER[norm], dim=-1, keepdim=True)
    return length
