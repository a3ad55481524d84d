"""How much the model changes its answer when the input is simplified."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Le
from torch import Tensor

from advrisk.core.errors import StudyError
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model
from advrisk.parts.detectors.registry import detectors


@detectors.register(
    "feature-squeezing",
    traits=DetectorTraits("perturbations of images are small noise", needs="scores", images=True),
)
@dataclass(frozen=True, kw_only=True)
class FeatureSqueezing:
    """Xu, Evans & Qi (2018), "Feature Squeezing": the largest L1 change of the predicted probabilities.

    max over squeezers of ‖p(x) − p(squeezed x)‖₁, which lies in [0, 2]. Squeezers are `bits` of colour depth (the paper
    takes 1 for handwritten digits, 5 for photographs) and the median of a square window of side `median` (2 in the
    paper); None leaves one out. The paper's third one, non-local means, is not here.
    """

    bits: Annotated[int, Ge(1), Le(16)] | None = 5
    median: Annotated[int, Ge(2), Le(15)] | None = 2

    def __post_init__(self) -> None:
        if self.bits is None and self.median is None:
            raise StudyError("feature-squeezing: found neither bits nor median; at least one squeezer is needed")

    def score(self, x: Tensor, model: Model) -> Tensor:
        plain = _probabilities(x, model)
        changes = [(plain - _probabilities(squeezed, model)).abs().sum(1) for squeezed in self._squeezed(x, model)]
        return torch.stack(changes).amax(0)

    def _squeezed(self, x: Tensor, model: Model) -> Iterator[Tensor]:
        if self.bits is not None:
            yield fewer_bits(x, self.bits, model.bounds)
        if self.median is not None:
            yield median_filtered(x, self.median)


def fewer_bits(x: Tensor, bits: int, bounds: tuple[float, float]) -> Tensor:
    """Every value at the nearest of 2^bits levels, which divide the bounds evenly.

    A slope goes straight through, as if nothing were rounded: that of rounding is zero, which would tell an attacker
    who knows this detector nothing.
    """
    low, high = bounds
    steps = 2**bits - 1
    level: Tensor = ((x - low) / (high - low) * steps).round()
    squeezed: Tensor = level / steps * (high - low) + low
    return squeezed.detach() + (x - x.detach())


def median_filtered(x: Tensor, side: int) -> Tensor:
    """The median of a square window, channel by channel; images go on mirrored beyond their edges.

    As in the paper, the pixel itself is at the lower right of the middle of an even window, and of an even number of
    values the upper median counts.
    """
    before, after = side // 2, side - side // 2 - 1
    rows, columns = (np.pad(np.arange(size), (before, after), mode="symmetric") for size in x.shape[-2:])
    padded = x[..., torch.from_numpy(rows), :][..., torch.from_numpy(columns)]
    windows = padded.unfold(-2, side, 1).unfold(-2, side, 1).flatten(-2)
    median: Tensor = windows.kthvalue(side * side // 2 + 1, dim=-1).values
    return median


def _probabilities(x: Tensor, model: Model) -> Tensor:
    return torch.softmax(model.ask(x).double(), 1)
