"""The registry of defences. No defence is built in yet; packages may bring theirs by entry point."""

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

defences: Registry[SourceTraits] = Registry("defences")

__all__ = ["defences"]
