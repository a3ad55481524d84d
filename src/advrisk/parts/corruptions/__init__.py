"""Corruptions: changes of an input by nature and sensors, without an adversary."""

from advrisk.parts.corruptions import (  # noqa: F401  (their decorators register them)
    blur,
    brightness,
    colour_cast,
    column_drift,
    contrast,
    defocus,
    fog,
    frost,
    gaussian_noise,
    hot_pixels,
    jpeg,
    missing_values,
    motion_blur,
    pixelation,
    rain,
    rotation,
    salt_and_pepper,
    shadow,
    shot_noise,
    snow,
    speckle_noise,
    sun_flare,
    table_noise,
    uniform_noise,
    unit_error,
)
from advrisk.parts.corruptions.registry import corruptions

__all__ = ["corruptions"]
