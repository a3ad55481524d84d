"""Blurring: an image under a kernel."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

_BLOCK = 2**17  # numbers that are worked on at once: they stay in the cache of a processor


def convolved(x: Tensor, kernels: Tensor) -> Tensor:
    """Images under a kernel of odd height and width each, or one for all: (rows or 1, height, width).

    Beyond the edge there is what the nearest pixel of it shows. Tap by tap, each a product and a sum: so the rounding
    of a row does not depend on how many there are.
    """
    size = max(1, _BLOCK // x[0].numel())
    each = kernels.to(x.device, x.dtype).expand(len(x), -1, -1)
    return torch.cat([_convolved(*some) for some in zip(torch.split(x, size), torch.split(each, size), strict=True)])


def _convolved(x: Tensor, kernels: Tensor) -> Tensor:
    (height, width), (down, right) = x.shape[2:], (size // 2 for size in kernels.shape[1:])
    padded = F.pad(x, (right, right, down, down), mode="replicate")
    result, product = torch.zeros_like(x), torch.empty_like(x)
    for i, j in kernels.any(0).nonzero().tolist():
        window = padded[:, :, i : i + height, j : j + width]
        result += torch.mul(window, kernels[:, i, j].view(-1, 1, 1, 1), out=product)
    return result


def shorter_side(x: Tensor) -> int:
    """Of the images, in pixels."""
    return min(x.shape[2:])
