"""Defences: what changes a model's inputs or its answers. A model with a defence is another model.

One that is part of training (noise on training samples, …) is a training method: `parts.training`.
"""

from advrisk.parts.defences import (  # noqa: F401  (their decorators register them)
    conf,
    feature_squeezing,
    gauss_at_input,
    gauss_out,
    jpeg,
    median_smoothing,
)
from advrisk.parts.defences.registry import Defence, defences
from advrisk.parts.defences.wrapping import defended_model

__all__ = ["Defence", "defences", "defended_model"]
