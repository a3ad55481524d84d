"""The registry of detectors, and the interface of a detector.

A detector gives every input a score; the higher, the more likely the input is adversarial. A registered part is a small
class (or a function that makes one): a study can set its keyword-only arguments, and its `score` works on a batch of
inputs to one model. A score is a function of that input and model alone: not of its batch mates, nor of a global random
generator.

A detector that learns (its traits say from which examples) also has `fit`: the runner crafts the examples, stores the
state that `fit` returns as plain tensors, and passes it to `score`. The same examples and seed give the same state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model

State = Mapping[str, Tensor]  # what a detector has learned, as named tensors


@dataclass(frozen=True)
class Examples:
    """The examples of a detector: inputs of the split `train`, and an arm's successes on some of them.

    `adversarial` has no rows for a detector that learns from clean inputs alone; `origin` is the row of `clean` of each
    success.
    """

    clean: Tensor
    label: Tensor
    adversarial: Tensor
    origin: Tensor
    seed: int


class Detector(Protocol):
    """A scorer of inputs. torch can differentiate the score if the detector queries the model by `model.ask`."""

    def score(self, x: Tensor, model: Model) -> Tensor:
        """One finite number for each row of `x`; higher = more likely adversarial."""


class LearningDetector(Protocol):
    """A detector that must be fitted to examples, separately for each model.

    An optional attribute `fewest` is the number of clean inputs that it needs: fewer are refused before any work. An
    optional method `doubt(examples, model, state) -> str` returns the reason why the fit is worthless; "" if it is not.
    """

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> State:
        """Learn; call `on_progress` with the share done. RiskError or DataError where examples are too few."""

    def score(self, x: Tensor, model: Model, state: State) -> Tensor:
        """As `Detector.score`, with the fitted state."""


detectors: Registry[DetectorTraits] = Registry("detectors")
