"""Threshold: evolutionary search for a small change of all features, from scores alone."""

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

_SMALLEST_AT_FIRST = 2.0**-4  # as a share of the largest size
_SMALLEST = 2.0**-16
_SPREAD = 0.1  # how far a child's size strays from its parents', on a logarithmic scale


@attacks.register(
    "threshold",
    traits=AttackTraits(
        needs="scores",
        norms=("linf",),
        passes=most_queries,
        use_when="you ask how little all features must change, from scores alone; at a fixed eps square finds more",
        keep="smallest",
        needs_eps=False,
        random=True,
    ),
)
def threshold(
    probe: Probe, *, population: Annotated[int, Ge(2)] = 20, generations: Annotated[int, Ge(1)] = 250
) -> None:
    """Threshold attack (Kotyan & Vargas 2022, arXiv:1906.06026) by NSGA-II.

    A candidate is a size and a sign for each feature: x0 ± size. Its costs are its distance from success and its size,
    which is at the start between 1/16 of eps (or of the range of the bounds) and all of it. A child has its mother's
    signs, except for a rectangle of its father's and another with one new sign in each channel; its size lies between
    its parents', or little beyond.
    """
    for rows in groups(probe, population):
        evolve(
            probe,
            _stripes(probe, rows, population),
            rows,
            generations=generations,
            build=partial(_at_size, probe),
            vary=partial(_exchange, probe),
        )


def _stripes(probe: Probe, rows: Tensor, population: int) -> Genes:
    """Vertical stripes of random signs, as Square begins with; sizes, as shares of the largest."""
    channels, height, width = layout_of(probe)
    signs = _signs(probe.noise.uniform(rows, (population, channels, 1, width)))
    share = _SMALLEST_AT_FIRST ** torch.linspace(1, 0, population, dtype=torch.float64, device=rows.device)
    return signs.expand(-1, -1, -1, height, -1), share.expand(len(rows), -1)


def _at_size(probe: Probe, genes: Genes, rows: Tensor) -> Tensor:
    """x0 ± size, in the space and within eps."""
    signs, share = genes
    space = probe.space
    largest = float(space.in_units(space.high - space.low).max()) if probe.task.eps is None else probe.eps
    move = (signs * (largest * share).to(signs.dtype)[..., None, None, None]).reshape(-1, *probe.x0.shape[1:])
    return probe.project(probe.x0[rows] + move * space.scale, rows)


def _exchange(probe: Probe, mothers: Genes, fathers: Genes, rows: Tensor) -> Genes:
    """A rectangle of the father's signs, another with new ones, and a size about between the parents'."""
    n, (channels, height, width) = mothers[0].shape[1], layout_of(probe)
    drawn = probe.noise.uniform(rows, (n, 9 + channels))
    signs = torch.where(rectangles(drawn[..., :4], height, width), fathers[0], mothers[0])
    signs = torch.where(rectangles(drawn[..., 4:8], height, width), _signs(drawn[..., 9:, None, None]), signs)
    mine, theirs = mothers[1].log(), fathers[1].log()
    stray = _SPREAD * probe.noise.normal(rows, (n,)).double()
    share = (mine + drawn[..., 8].double() * (theirs - mine) + stray).exp()
    return signs, share.clamp(_SMALLEST, 1)


def _signs(drawn: Tensor) -> Tensor:
    return torch.where(drawn < 0.5, -1.0, 1.0)
