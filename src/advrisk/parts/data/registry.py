"""The registry of data sources: functions of their settings that return a `Dataset`."""

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

data: Registry[SourceTraits] = Registry("data")
