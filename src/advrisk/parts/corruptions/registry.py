"""The registry of corruptions.

A corruption is a function `corruption(x, noise, rows, *, …strength) -> x'` on a batch; the runner
projects its result into the space. Strength is a physical parameter with its unit in its name.
"""

from advrisk.core.registry import Registry
from advrisk.core.traits import CorruptionTraits

corruptions: Registry[CorruptionTraits] = Registry("corruptions")
