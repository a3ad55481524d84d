"""The registry of detectors. No detector is built in yet; packages may bring theirs by entry point."""

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

detectors: Registry[SourceTraits] = Registry("detectors")

__all__ = ["detectors"]
