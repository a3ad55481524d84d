"""The registry of corruptions.

A corruption is a function `corruption(x, noise, rows, space, *, …strength) -> x'` on a batch; `space` says
between which bounds inputs lie, and the runner projects the result into it. Strength is a physical parameter with
its unit in its name; a `level` is a preset of it.
"""

from advrisk.core.registry import Registry
from advrisk.core.traits import CorruptionTraits

corruptions: Registry[CorruptionTraits] = Registry("corruptions")
