"""Corruptions: what nature and sensors do to an input, with no adversary."""

from advrisk.parts.corruptions import (  # noqa: F401  (their decorators register them)
    column_drift,
    fog,
    frost,
    gaussian_noise,
    missing_values,
    rain,
    snow,
    sun_flare,
    table_noise,
    unit_error,
)
from advrisk.parts.corruptions.registry import corruptions

__all__ = ["corruptions"]
