"""Detectors: how likely it is that an input was tampered with."""

from advrisk.parts.detectors import confidence, feature_squeezing  # noqa: F401  (their decorators register them)
from advrisk.parts.detectors.registry import Detector, detectors

__all__ = ["Detector", "detectors"]
