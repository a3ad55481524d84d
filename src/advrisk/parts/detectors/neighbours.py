"""Distances between rows and points, and estimates from them: kernel density, and local intrinsic dimension.

In float64 and by products of matrices. These always have the same number of rows, as the order of summation depends on
it: so a row's result does not depend on the number of other rows. Nothing here knows models.
"""

import math

import torch
from torch import Tensor

LARGEST_DIMENSION = 1e4  # where all neighbours are equally far and the dimension is undefined
_FEATURES = 8192  # per block
_ROWS = 32  # per block; fewer are padded
_SAME = 1e-12  # of the squared lengths: a smaller squared distance is rounding, the points are the same


def squared_distances(x: Tensor, points: Tensor) -> Tensor:
    """‖x_i − p_j‖² for rows × points; exactly 0 where they are equal up to rounding."""
    rows = torch.split(torch.nn.functional.pad(x, (0, 0, 0, -len(x) % _ROWS)), _ROWS)
    nothing = torch.zeros(_ROWS, len(points), dtype=torch.float64, device=x.device)
    total, size = [nothing] * len(rows), [nothing] * len(rows)
    for start in range(0, x.shape[1], _FEATURES):
        some = points[:, start : start + _FEATURES].double()
        centre = some.mean(0)
        some = some - centre
        lengths = some.square().sum(1)
        for index, block in enumerate(rows):
            moved = block[:, start : start + _FEATURES].double() - centre
            both = moved.square().sum(1)[:, None] + lengths
            total[index] = total[index] + (both - 2 * moved @ some.T)
            size[index] = size[index] + both.detach()
    squared, scale = torch.cat(total), torch.cat(size)
    return torch.where(squared > _SAME * scale, squared, 0.0)[: len(x)]


def log_density(squared: Tensor, bandwidth: float, features: int) -> Tensor:
    """The logarithm of a kernel density estimate, from squared distances to its points; infinite ones are left out.

    log (1/n) Σ_j (2πh²)^(−D/2) exp(−d_j² / 2h²), summed by logsumexp: it stays finite however far a row lies from all
    points.
    """
    n = torch.isfinite(squared).sum(1).double()  # the logarithm of whole numbers has few digits
    kernels = torch.logsumexp(squared / (-2 * bandwidth**2), 1)
    return kernels - n.log() - features / 2 * math.log(2 * math.pi * bandwidth**2)


def local_dimension(squared: Tensor, neighbours: int) -> Tensor:
    """The local intrinsic dimension by maximum likelihood, from squared distances to points in the last dimension.

    −(1/k Σ_i log(r_i / r_k))⁻¹ over the k nearest. Points at distance 0 are the row itself or its duplicate and do not
    count. With fewer than k others, all count; with fewer than two the dimension is 0. Where all are equally far, the
    formula gives infinity, and this function `LARGEST_DIMENSION`.
    """
    others = torch.where(squared > 0, squared, torch.inf)
    nearest = others.topk(neighbours, dim=-1, largest=False).values
    finite = torch.isfinite(nearest)
    logs = torch.where(finite, nearest, 1.0).log() / 2
    n = finite.sum(-1)
    farthest = logs.gather(-1, (n - 1).clamp(min=0)[..., None])
    spread = torch.where(finite, farthest - logs, 0.0).sum(-1) / n.clamp(min=1)
    return torch.where(n >= 2, 1 / spread.clamp(min=1 / LARGEST_DIMENSION), 0.0)
