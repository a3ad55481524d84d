"""The registry of detectors, and what a detector is.

A detector gives every input a score; the higher, the more likely the input is adversarial. A registered part is a small
class (or a function that makes one): its keyword-only arguments are what a study may set, and its `score` works on a
batch of inputs to one model. A score is a function of that input and model alone: not of what shares the batch, and
not of a global random generator.

One that learns (its traits say from what) has `fit` beside it: the runner crafts the examples, stores the state that
`fit` returns as plain tensors, and hands it to `score`. The same examples and seed give the same state.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model

State = Mapping[str, Tensor]  # what a detector has learned, by name


@dataclass(frozen=True)
class Examples:
    """What a detector learns from: inputs of the split `train`, and the successes an arm made of some of them.

    `adversarial` holds no row for a detector that learns from clean inputs alone; `origin` names the row of `clean`
    that each was made from.
    """

    clean: Tensor
    label: Tensor
    adversarial: Tensor
    origin: Tensor
    seed: int


class Detector(Protocol):
    """Something that scores inputs. Where it asks the model by `model.ask`, torch can differentiate the score."""

    def score(self, x: Tensor, model: Model) -> Tensor:
        """One finite number for each row of `x`; higher = more likely adversarial."""


class LearningDetector(Protocol):
    """A detector that must be fitted to examples, for each model anew.

    An attribute `fewest`, where it has one, says how many clean inputs it must have: fewer are refused before any work.
    A method `doubt(examples, model, state) -> str`, where it has one, says why what it learned is worth nothing; "" if
    it is not so.
    """

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> State:
        """Learn; `on_progress` is told the share that is done. RiskError or DataError where examples are too few."""

    def score(self, x: Tensor, model: Model, state: State) -> Tensor:
        """As `Detector.score`, with what was learned."""


detectors: Registry[DetectorTraits] = Registry("detectors")
