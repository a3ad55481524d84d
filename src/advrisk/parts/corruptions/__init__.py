"""Corruptions: what nature and sensors do to an input, with no adversary."""

from advrisk.parts.corruptions import gaussian_noise  # noqa: F401  (its decorator registers it)
from advrisk.parts.corruptions.registry import corruptions

__all__ = ["corruptions"]
