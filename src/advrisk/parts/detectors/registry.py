"""The registry of detectors, and what a detector is.

A detector gives every input a score; the higher, the more likely the input is adversarial. A registered part is a small
class (or a function that makes one): its keyword-only arguments are what a study may set, and its `score` works on a
batch of inputs to one model. A score is a function of that input and model alone: not of what shares the batch, and
not of a global random generator.
"""

from typing import Protocol

from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model


class Detector(Protocol):
    """Something that scores inputs. Where it asks the model by `model.ask`, torch can differentiate the score."""

    def score(self, x: Tensor, model: Model) -> Tensor:
        """One finite number for each row of `x`; higher = more likely adversarial."""


detectors: Registry[DetectorTraits] = Registry("detectors")
