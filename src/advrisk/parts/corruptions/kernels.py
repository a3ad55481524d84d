"""Blurring: an image under a kernel."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

_BLOCK = 2**17  # numbers that are worked on at once: they stay in the cache of a processor


def convolved(x: Tensor, kernel: Tensor) -> Tensor:
    """Images under one kernel of odd height and width; beyond the edge there is what the nearest pixel of it shows.

    Tap by tap, each a product and a sum: so the rounding of a row does not depend on how many there are.
    """
    (height, width), (down, right) = x.shape[2:], (size // 2 for size in kernel.shape)
    taps = [(int(i), int(j), float(kernel[i, j])) for i, j in kernel.nonzero()]
    results = []
    for some in x.split(max(1, _BLOCK // x[0].numel())):
        padded = F.pad(some, (right, right, down, down), mode="replicate")
        result, product = torch.zeros_like(some), torch.empty_like(some)
        for i, j, weight in taps:
            result += torch.mul(padded[:, :, i : i + height, j : j + width], weight, out=product)
        results.append(result)
    return torch.cat(results)


def shorter_side(x: Tensor) -> int:
    """Of the images, in pixels."""
    return min(x.shape[2:])
