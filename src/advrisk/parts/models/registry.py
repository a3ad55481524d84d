"""The registry of model sources: functions of their settings that return a `Loaded` model."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import Capability, Precision, SourceTraits

models: Registry[SourceTraits] = Registry("models")


@dataclass(frozen=True)
class Loaded:
    """What a source brings, before it is checked against the data.

    `content` names the weights and the architecture. `module` is there for torch models.
    What the source does not know (`None`) is found out by asking.
    """

    answer: Callable[[Tensor], Tensor]
    content: str
    capability: Capability = "gradients"
    module: torch.nn.Module | None = None
    input_shape: tuple[int, ...] | None = None
    n_classes: int | None = None
    bounds: tuple[float, float] | None = None
    min_rows: int = 1
    train_s: float | None = None
    train_process_s: float | None = None
    train_samples: int | None = None
    test_accuracy: float | None = None  # what its training noted on test samples
    precision: Precision | None = None  # None: as the source gives it
    source_digest: str | None = None  # of the Python files that make it
