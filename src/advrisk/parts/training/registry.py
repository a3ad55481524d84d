"""The registry of training methods.

A method is a function `method(module, x, y, generator, *, …settings) -> loss` of one batch. It may
perturb the batch; it must not touch the optimiser, and it draws only from the generator.
"""

from advrisk.core.registry import Registry
from advrisk.core.traits import SourceTraits

training: Registry[SourceTraits] = Registry("training")
