"""Detectors: how likely it is that an input was tampered with."""

from advrisk.parts.detectors import confidence, feature_squeezing  # noqa: F401  (their decorators register them)
from advrisk.parts.detectors.registry import Detector, Examples, LearningDetector, State, detectors

__all__ = ["Detector", "Examples", "LearningDetector", "State", "detectors"]
