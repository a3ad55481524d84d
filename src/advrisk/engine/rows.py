"""Row numbers that may repeat: several points of one sample in one batch."""

import torch
from torch import Tensor


def occurrence(rows: Tensor) -> Tensor:
    """For each entry, the number of equal entries before it."""
    result = torch.zeros_like(rows)
    if ascending(rows):
        return result
    order = rows.argsort(stable=True)
    ranked = rows[order]
    first = torch.searchsorted(ranked, ranked)
    result[order] = torch.arange(len(rows), device=rows.device) - first
    return result


def one_of_each(rows: Tensor, *merits: Tensor) -> Tensor:
    """For each sample, the index of its point with the largest merits (the last one first), or of its latest point."""
    order = torch.arange(len(rows), device=rows.device)
    for column in (*merits, rows):  # stable sorts: later keys take precedence, later points win ties
        order = order[column[order].argsort(stable=True)]
    last = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
    last[:-1] = rows[order][1:] != rows[order][:-1]
    return order[last]


def ascending(rows: Tensor) -> bool:
    """Whether each row occurs once, in the order of the shard: the usual case."""
    return len(rows) < 2 or bool((rows[1:] > rows[:-1]).all())
