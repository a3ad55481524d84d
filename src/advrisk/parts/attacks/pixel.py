"""Pixel: evolutionary search for few changed pixels, from scores alone."""

from functools import partial
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.parts.attacks.moves import rectangles
from advrisk.parts.attacks.nsga import Genes, evolve, groups, most_queries
from advrisk.parts.attacks.registry import attacks
from advrisk.parts.attacks.square import layout_of


@attacks.register(
    "pixel",
    traits=AttackTraits(
        needs="scores",
        norms=("l0",),
        passes=most_queries,
        use_when="you ask how few pixels must change, from scores alone",
        keep="smallest",
        needs_eps=False,
        random=True,
    ),
)
def pixel(
    probe: Probe,
    *,
    pixels: Annotated[int, Ge(1)] | None = None,
    population: Annotated[int, Ge(2)] = 20,
    generations: Annotated[int, Ge(1)] = 250,
) -> None:
    """Few-pixel attack (Su et al. 2019, arXiv:1710.08864; Kotyan & Vargas 2022, arXiv:1906.06026) by NSGA-II.

    A candidate's costs are its distance from success and its number of changed features. At the start candidates have
    1, …, as many random pixels as eps allows. A child is its mother with a rectangle of its father's; then it loses one
    of its changed pixels, gets a new one, or both. Every other new one lies at or beside a changed one. A pixel is all
    channels at one position, or one feature of an input that is no image. `eps` limits changed features, as l0 counts
    them; `pixels` limits changed pixels, however many channels they have.
    """
    most = _n_pixels(probe) if pixels is None else pixels
    for rows in groups(probe, population):
        evolve(
            probe,
            _some_pixels(probe, rows, population, most),
            rows,
            generations=generations,
            build=lambda genes, _: genes[0].reshape(-1, *probe.x0.shape[1:]),
            vary=partial(_exchange, probe, most),
        )


def _n_pixels(probe: Probe) -> int:
    """The number of pixels of an input."""
    _, height, width = layout_of(probe)
    return height * width


def _some_pixels(probe: Probe, rows: Tensor, population: int, pixels: int) -> Genes:
    """The clean inputs with random pixels: 1 for the first candidate, as many as may change for the last."""
    free, (channels, height, width) = _free_pixels(probe), layout_of(probe)
    features = len(free) * channels if probe.task.eps is None else min(len(free) * channels, probe.eps)
    spread = torch.linspace(0, 1, population, dtype=torch.float64, device=free.device)
    count = (min(max(1, int(features) // channels), pixels) ** spread).round()
    lot = probe.noise.uniform(rows, (population, len(free)))
    changed = torch.zeros(len(rows), population, height * width, dtype=torch.bool, device=free.device)
    changed[:, :, free] = lot.argsort(dim=2, stable=True).argsort(dim=2) < count[:, None]
    value = _random_values(probe, rows, (population, channels, height, width))
    x = torch.where(changed.view(len(rows), population, 1, height, width), value, _clean(probe, rows))
    return (_allowed(probe, rows, x, pixels),)


def _exchange(probe: Probe, pixels: int, mothers: Genes, fathers: Genes, rows: Tensor) -> Genes:
    """A rectangle of the father's pixels; then a third of the children each lose a pixel, gain one, or do both."""
    n, (channels, height, width) = mothers[0].shape[1], layout_of(probe)
    drawn, clean = probe.noise.uniform(rows, (n, 11)), _clean(probe, rows)
    x = torch.where(rectangles(drawn[..., :4], height, width), fathers[0], mothers[0])
    changed = (x != clean).any(2).flatten(2)
    loses = drawn[..., 4] < 2 / 3
    gains = (drawn[..., 4] > 1 / 3) | (changed.sum(2) < 2)  # some pixel must differ
    lost, gained = _one_of(changed, drawn[..., 5]), _new_pixels(probe, changed, drawn[..., 6:])
    value = _random_values(probe, rows, (n, channels, 1, 1))
    for index, wanted, new in ((lost, loses, clean), (gained, gains, value)):
        here = (torch.arange(height * width, device=x.device) == index[..., None]) & wanted[..., None]
        x = torch.where(here.view(-1, n, 1, height, width), new, x)
    return (_allowed(probe, rows, x, pixels),)


def _new_pixels(probe: Probe, changed: Tensor, drawn: Tensor) -> Tensor:
    """Anywhere, or, every other time, at or beside a pixel that has changed; from five numbers each."""
    free, (_, height, width) = _free_pixels(probe), layout_of(probe)
    anywhere = free[(drawn[..., 0] * len(free)).long()]
    start = _one_of(changed, drawn[..., 1])
    down, right = (drawn[..., 2:4] * 3).long().sub(1).unbind(-1)
    i, j = (start // width + down).clamp(0, height - 1), (start % width + right).clamp(0, width - 1)
    return torch.where((drawn[..., 4] < 0.5) & changed.any(2), i * width + j, anywhere)


def _one_of(changed: Tensor, drawn: Tensor) -> Tensor:
    """The index of a random changed pixel; beyond the last index if none has changed."""
    nth = (drawn * changed.sum(2)).long() + 1
    return torch.searchsorted(changed.cumsum(2), nth[..., None]).squeeze(2)


def _random_values(probe: Probe, rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Normal around the middle of the bounds, half their range wide, as in Su et al.: a third lies at a bound."""
    low, high = (_in_layout(probe, bound) for bound in (probe.space.low, probe.space.high))
    return low + (0.5 + probe.noise.normal(rows, shape) / 2).clamp(0, 1) * (high - low)


def _in_layout(probe: Probe, bound: Tensor) -> Tensor:
    return bound if bound.numel() == 1 else bound.expand(probe.x0.shape[1:]).reshape(layout_of(probe))


def _free_pixels(probe: Probe) -> Tensor:
    """The pixels that can change; all, if none can."""
    channels, height, width = layout_of(probe)
    pixels = torch.arange(height * width, device=probe.x0.device)
    if probe.space.immutable is None:
        return pixels
    still = probe.space.immutable.expand(probe.x0.shape[1:]).reshape(channels, -1).all(0)
    return pixels if bool(still.all()) else pixels[~still]


def _clean(probe: Probe, rows: Tensor) -> Tensor:
    return probe.x0[rows].view(-1, 1, *layout_of(probe))


def _allowed(probe: Probe, rows: Tensor, x: Tensor, pixels: int) -> Tensor:
    """Candidates projected into the space and within eps; of too many changed pixels, those changed most stay."""
    points = _most_changed(probe, rows, x, pixels).reshape(-1, *probe.x0.shape[1:])
    return probe.project(points, rows.repeat_interleave(x.shape[1])).view_as(x)


def _most_changed(probe: Probe, rows: Tensor, x: Tensor, pixels: int) -> Tensor:
    """Candidates that keep at most `pixels` changed pixels; the others are clean again."""
    clean = _clean(probe, rows)
    by = (x - clean).abs().sum(2).flatten(2)
    if pixels >= by.shape[2]:
        return x
    kept = torch.zeros_like(by, dtype=torch.bool).scatter_(2, by.topk(pixels, dim=2).indices, True)
    return torch.where(kept.view(*by.shape[:2], 1, *x.shape[3:]), x, clean)
