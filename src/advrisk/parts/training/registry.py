"""The registry of training methods.

A method is a function `method(module, x, y, generator, *, …settings) -> loss` of one batch. It may
perturb the batch; it must not touch the optimiser, and it draws only from the generator.
A parameter of type `Frozen` is another model of the same recipe: a recipe gives its name, and the
method is handed the trained module, in evaluation mode and without gradients of its weights.
"""

from typing import Annotated

from torch import nn

from advrisk.core.registry import ByName, Registry
from advrisk.core.traits import TrainingTraits

Frozen = Annotated[nn.Module, ByName("model of this recipe")]

training: Registry[TrainingTraits] = Registry("training")
