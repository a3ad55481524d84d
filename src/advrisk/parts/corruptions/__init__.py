"""Corruptions: what nature and sensors do to an input, with no adversary."""

from advrisk.parts.corruptions import (  # noqa: F401  (their decorators register them)
    blur,
    brightness,
    colour_cast,
    contrast,
    defocus,
    gaussian_noise,
    hot_pixels,
    jpeg,
    motion_blur,
    pixelation,
    rotation,
    salt_and_pepper,
    shadow,
    shot_noise,
    speckle_noise,
    uniform_noise,
)
from advrisk.parts.corruptions.registry import corruptions

__all__ = ["corruptions"]
