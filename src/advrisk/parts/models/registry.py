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
    """A model as its source returns it, before it is checked against the data.

    `content` names the weights and the architecture. torch models also have a `module`. Values that the source leaves
    open (`None`) are determined by queries.
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
    test_accuracy: float | None = None  # recorded by its training
    precision: Precision | None = None  # None: that of the source
    source_digest: str | None = None  # of the Python files that make it
