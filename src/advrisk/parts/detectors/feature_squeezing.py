"""The change of the model's answer when the input is simplified."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from annotated_types import Ge, Le
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from advrisk.core.errors import StudyError
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model
from advrisk.parts.detectors.registry import detectors

_ROWS = 32  # images per batch of non-local means: they fit into a processor's cache
_NEVER = -80.0  # exponent of a weight of 1e-35; numbers smaller still are slow to compute with


@detectors.register(
    "feature-squeezing",
    traits=DetectorTraits("perturbations of images are small noise", needs="scores", images=True),
)
@dataclass(frozen=True, kw_only=True)
class FeatureSqueezing:
    """Xu, Evans & Qi (2018), "Feature Squeezing": the largest L1 change of the predicted probabilities.

    max over squeezers of ‖p(x) − p(squeezed x)‖₁, which lies in [0, 2]. Squeezers are `bits` of colour depth (the paper
    takes 1 for handwritten digits, 5 for photographs), the median of a square window of side `median` (2 in the paper)
    and `non_local_means`, written as there: side of the search window, side of the patch, strength in steps of 8 bits
    (none for handwritten digits, 13-3-2 for CIFAR-10, 11-3-4 for ImageNet). None leaves one out.
    """

    bits: Annotated[int, Ge(1), Le(16)] | None = 5
    median: Annotated[int, Ge(2), Le(15)] | None = 2
    non_local_means: str | None = None

    def __post_init__(self) -> None:
        if self.bits is None and self.median is None and self.non_local_means is None:
            raise StudyError("feature-squeezing: found neither bits nor median nor non_local_means; set at least one")
        if self.non_local_means is not None:
            parsed_windows(self.non_local_means)  # refuse it now

    def score(self, x: Tensor, model: Model) -> Tensor:
        plain = _probabilities(x, model)
        changes = [(plain - _probabilities(squeezed, model)).abs().sum(1) for squeezed in self._squeezed(x, model)]
        return torch.stack(changes).amax(0)

    def _squeezed(self, x: Tensor, model: Model) -> Iterator[Tensor]:
        if self.bits is not None:
            yield fewer_bits(x, self.bits, model.bounds)
        if self.median is not None:
            yield median_filtered(x, self.median)
        if self.non_local_means is not None:
            yield non_local_means(x, parsed_windows(self.non_local_means), model.bounds)


class Windows(NamedTuple):
    """The windows of non-local means: odd sides in pixels, and the strength in steps of 8 bits."""

    search: int
    patch: int
    strength: float


def parsed_windows(text: str) -> Windows:
    """`13-3-2` as windows of 13 and 3 pixels and a strength of 2."""
    match = re.fullmatch(r"(\d{1,2})-(\d{1,2})-(\d{1,3}(?:\.\d{1,6})?)", text)
    windows = Windows(int(match[1]), int(match[2]), float(match[3])) if match else None
    if windows is None or windows.search % 2 == 0 or windows.patch % 2 == 0 or windows.strength == 0:
        needed = "write search-patch-strength, two odd numbers of pixels and steps of 8 bits, such as 13-3-2"
        raise StudyError(f"feature-squeezing.non_local_means: found {text!r}; {needed}")
    return windows


def fewer_bits(x: Tensor, bits: int, bounds: tuple[float, float]) -> Tensor:
    """Every value at the nearest of 2^bits levels, which divide the bounds evenly.

    Gradients pass as if nothing were rounded, so that an attacker who knows the detector has gradients.
    """
    low, high = bounds
    steps = 2**bits - 1
    level: Tensor = ((x - low) / (high - low) * steps).round()
    squeezed: Tensor = (level / steps * (high - low) + low).detach()
    return squeezed + (x - x.detach())


def median_filtered(x: Tensor, side: int) -> Tensor:
    """The median of a square window, channel by channel; images are mirrored beyond their edges.

    As in the paper, the pixel itself is at the lower right of the middle of an even window, and of an even number of
    values the upper median counts.
    """
    before, after = side // 2, side - side // 2 - 1
    rows, columns = (torch.from_numpy(np.pad(np.arange(size), (before, after), "symmetric")) for size in x.shape[-2:])
    padded = x[..., rows, :][..., columns]
    windows = padded.unfold(-2, side, 1).unfold(-2, side, 1).flatten(-2)
    median: Tensor = windows.kthvalue(side * side // 2 + 1, dim=-1).values
    return median


def non_local_means(x: Tensor, windows: Windows, bounds: tuple[float, float]) -> Tensor:
    """Buades, Coll & Morel (2005): each pixel becomes a mean over its search window, weighted by patch similarity.

    A pixel weighs exp(−d / h²), d the mean square difference between the patch around it and the one in the middle,
    over all channels at once. Images are mirrored beyond their edges, as in OpenCV's fastNlMeansDenoising, which the
    authors used; unlike there nothing is rounded, no small weight is dropped, and colours are not turned to CIELAB.
    """
    low, high = bounds
    strength = windows.strength / 255 * (high - low)
    return torch.cat([_means(few, windows, strength) for few in torch.split(x, _ROWS)])


def _means(x: Tensor, windows: Windows, strength: float) -> Tensor:
    around = windows.search // 2 + windows.patch // 2
    rows, columns = (torch.from_numpy(np.pad(np.arange(size), around, "reflect")) for size in x.shape[-2:])
    padded = x[..., rows, :][..., columns]
    total, weight = torch.zeros_like(x), torch.zeros_like(x[:, :1])
    for down in range(windows.search):
        # Row by row, and computed again in the backward pass: storing all rows would take gigabytes.
        more, heavier = checkpoint(
            _row_of_means, padded, down, windows, strength, use_reentrant=False, preserve_rng_state=False
        )
        total, weight = total + more, weight + heavier
    return total / weight


def _row_of_means(padded: Tensor, down: int, windows: Windows, strength: float) -> tuple[Tensor, Tensor]:
    """The weighted sum of one row of the search window, and the sum of its weights."""
    reach, border = windows.search // 2, windows.patch // 2
    height, width = (size - 2 * reach for size in padded.shape[-2:])  # patches included
    middle = padded[..., reach : reach + height, reach : reach + width]
    total, weight = padded.new_zeros(()), padded.new_zeros(())
    for right in range(windows.search):
        other = padded[..., down : down + height, right : right + width]
        distance = _patch_means((middle - other).square().mean(1, keepdim=True), windows.patch)
        similarity = torch.exp((-distance / strength**2).clamp_min(_NEVER))
        weight = weight + similarity
        total = total + similarity * other[..., border : height - border, border : width - border]
    return total, weight


def _patch_means(x: Tensor, side: int) -> Tensor:
    """avg_pool2d(x, side, stride=1), several times as fast."""
    for axis in (-2, -1):
        size = x.shape[axis] - side + 1
        x = sum((x.narrow(axis, offset, size) for offset in range(1, side)), start=x.narrow(axis, 0, size))
    return x / side**2


def _probabilities(x: Tensor, model: Model) -> Tensor:
    return torch.softmax(model.ask(x).double(), 1)
