"""Detectors: how likely it is that an input was tampered with."""

from advrisk.parts.detectors import (  # noqa: F401  (their decorators register them)
    confidence,
    feature_squeezing,
    kd_bu,
    lid,
    magnet,
    nss,
)
from advrisk.parts.detectors.registry import Detector, Examples, LearningDetector, State, detectors

__all__ = ["Detector", "Examples", "LearningDetector", "State", "detectors"]
