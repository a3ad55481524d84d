"""NSGA-II (Deb et al. 2002): the search for good compromises between costs, for many samples at once.

Costs are (samples, candidates, costs) and smaller is better. Every sample has a population of its own, and nothing here
makes one population depend on another. The attack defines candidates and how they change.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from advrisk.engine import Probe
from advrisk.engine.objectives import NEUTRAL

_AT_ONCE = 512  # candidates in a batch, unless the shard has more samples, or a sample more candidates
_NUMBERS = 2**24  # features of all candidates that are in memory at once
_TINY = 1e-12

Genes = tuple[Tensor, ...]  # (samples, candidates, …) each
Build = Callable[[Genes, Tensor], Tensor]


def most_queries(settings: Mapping[str, Any], _: int) -> tuple[int, int]:
    """The passes of a search: the first population, the children of every generation, and the best once more."""
    return settings["population"] * (settings["generations"] + 1) + 1, 0


def fronts(costs: Tensor) -> Tensor:
    """The front of each candidate: 0 if none dominates it, 1 if only those of front 0 do, and so on.

    A candidate dominates another if it is nowhere worse and somewhere better.
    """
    mine, theirs = costs[:, :, None], costs[:, None]
    dominated = (theirs <= mine).all(3) & (theirs < mine).any(3)
    front = torch.full_like(costs[..., 0], -1, dtype=torch.int64)
    index = 0
    while bool((front < 0).any()):
        left = front < 0
        front[left & ~(dominated & left[:, None]).any(2)] = index
        index += 1
    return front


def crowding(costs: Tensor, front: Tensor) -> Tensor:
    """The distance between a candidate's neighbours within its front: Σ over costs of (next − previous) / range.

    Infinite for the first and the last of a front in any cost.
    """
    distance = torch.zeros_like(front, dtype=costs.dtype)
    for cost in costs.unbind(2):
        order = cost.argsort(dim=1, stable=True)
        order = order.gather(1, front.gather(1, order).argsort(dim=1, stable=True))
        value, group = cost.gather(1, order), front.gather(1, order)
        starts = torch.ones_like(group, dtype=torch.bool)
        starts[:, 1:] = group[:, 1:] != group[:, :-1]
        ends = torch.ones_like(starts)
        ends[:, :-1] = starts[:, 1:]
        gap = value.roll(-1, 1) - value.roll(1, 1)
        share = torch.where(gap > 0, gap / _range_of(value, group), 0.0)
        distance.scatter_add_(1, order, share.masked_fill(starts | ends, torch.inf))
    return distance


def _range_of(value: Tensor, group: Tensor) -> Tensor:
    """The range of the values of each one's group."""
    least, most = torch.full_like(value, torch.inf), torch.full_like(value, -torch.inf)
    least = least.scatter_reduce(1, group, value, "amin").gather(1, group)
    most = most.scatter_reduce(1, group, value, "amax").gather(1, group)
    return most - least


def best_first(costs: Tensor) -> Tensor:
    """The indices of the candidates by their front, then the least crowded first; (samples, candidates)."""
    front = fronts(costs)
    order = crowding(costs, front).argsort(dim=1, descending=True, stable=True)
    return order.gather(1, front.gather(1, order).argsort(dim=1, stable=True))


def groups(probe: Probe, population: int) -> Iterator[Tensor]:
    """The rows of the samples to attack, as many at a time as populations fit into `_NUMBERS`."""
    yield from torch.split(probe.active(), max(1, _NUMBERS // (population * probe.x0[0].numel())))


def evolve(
    probe: Probe,
    genes: Genes,
    rows: Tensor,
    *,
    generations: int,
    build: Build,
    vary: Callable[[Genes, Genes, Tensor], Genes],
) -> None:
    """Evolve the populations of these samples towards success and a small change.

    `build(genes, rows)` makes inputs of genes, with the row number of each. `vary(mothers, fathers, rows)` makes the
    genes of as many children. Parents win tournaments of two by front and crowding, but every other mother is the
    candidate nearest to the goal; the better half of parents and children survives.
    """
    costs = _costs(probe, genes, rows, build)
    n = costs.shape[1]
    for _ in range(generations):
        staying = probe.is_active(rows)
        rows, costs, genes = rows[staying], costs[staying], tuple(gene[staying] for gene in genes)
        if not len(rows):
            return
        order = best_first(costs)[:, :n]
        costs, genes = _taken(costs, order), tuple(_taken(gene, order) for gene in genes)
        parents = (probe.noise.uniform(rows, (2, n, 2)) * n).long().amin(3)  # the better one stands before the other
        parents[:, 0, ::2] = _nearest(costs)
        mothers, fathers = (tuple(_taken(gene, parents[:, which]) for gene in genes) for which in (0, 1))
        children = vary(mothers, fathers, rows)
        costs = torch.cat([costs, _costs(probe, children, rows, build)], 1)
        genes = tuple(torch.cat(both, 1) for both in zip(genes, children, strict=True))
    if probe.task.keep == "last":  # the last child is not the best candidate
        _ask_best(probe, genes, costs, rows, build)


def _ask_best(probe: Probe, genes: Genes, costs: Tensor, rows: Tensor, build: Build) -> None:
    """Query the candidate nearest to the goal of each sample once more."""
    probe.forward(build(tuple(_taken(gene, _nearest(costs)) for gene in genes), rows), rows, gradient=False)


def _nearest(costs: Tensor) -> Tensor:
    """The index of the smallest success of each sample, or of the candidate nearest to one; (samples, 1)."""
    order = costs[..., 1].argsort(dim=1, stable=True)
    return order.gather(1, costs[..., 0].gather(1, order).argsort(dim=1, stable=True)[:, :1])


def _costs(probe: Probe, genes: Genes, rows: Tensor, build: Build) -> Tensor:
    """The distance of each candidate from success, and its size.

    The lead of a success over the other classes counts only if the strongest is wanted.
    """
    n = genes[0].shape[1]
    at_once = max(1, max(len(probe.x0), _AT_ONCE) // n)
    costs = []
    for some in torch.split(torch.arange(len(rows), device=rows.device), at_once):
        repeated = rows[some].repeat_interleave(n)
        x = build(tuple(gene[some] for gene in genes), repeated)
        passed = probe.forward(x, repeated, gradient=False)
        lack = -passed.heights(NEUTRAL)
        if probe.task.keep != "strongest":
            lack = torch.where(passed.met, 0.0, lack.clamp_min(_TINY))
        size = probe.space.distance(x, probe.x0[repeated], probe.norm)
        costs.append(torch.stack([lack, size.double()], 1).view(-1, n, 2))
    return torch.cat(costs)


def _taken(values: Tensor, indices: Tensor) -> Tensor:
    """The candidates with these indices of each sample."""
    expanded = indices.view(*indices.shape, *[1] * (values.dim() - 2))
    return values.gather(1, expanded.expand(*indices.shape, *values.shape[2:]))
