"""A probe's model as a torch module for other libraries, which counts passes."""

import time
from dataclasses import replace

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.core.traits import gives
from advrisk.engine.noise import Draw, Noise
from advrisk.engine.probe import OutOfTimeError, Probe


class Counted(nn.Module):
    """Maps inputs in units of the space's scale, so that lengths equal the arm's, to scores.

    A label-only model returns one-hot classes. The model sees only inputs that could exist: a point is moved into the
    bounds and whole numbers are rounded; gradients ignore both. Immutable features keep their values from `clean`: one
    sample, as the module cannot know which sample a point belongs to.
    """

    def __init__(self, probe: Probe) -> None:
        super().__init__()
        self.model, self.n_forward, self.n_backward = probe.model, 0, 0
        self._space, self._deadline = probe.space, probe.task.deadline
        self._movable = replace(probe.space, immutable=None)
        self.clean = probe.x0
        # The module cannot know which sample a point belongs to, so all samples share one random stream.
        every = torch.arange(len(probe.x0))
        self._chance = None if probe.chance is None else Noise([probe.chance.seed(every)], device=probe.x0.device)
        self.eval()

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """The lowest and the highest value of each feature, or of all."""
        return self._space.in_units(self._space.low), self._space.in_units(self._space.high)

    def units(self, x: Tensor) -> Tensor:
        """Inputs in units of the scale, as the other library sees them."""
        return self._space.in_units(x)

    def inputs(self, units: Tensor) -> Tensor:
        """The inputs that the model sees for these points; gradients pass straight through."""
        x = units.float() * self._space.scale
        if self._space.immutable is not None:
            x = torch.where(self._space.immutable, self.clean, x)
        flat = x.detach()
        return self._movable.project(flat, flat.round()) + (x - flat)

    def forward(self, units: Tensor) -> Tensor:
        """Scores of these points; counts each forward and backward pass."""
        if time.monotonic() > self._deadline:
            raise OutOfTimeError
        if units.requires_grad and torch.is_grad_enabled() and not gives(self.model.capability, "gradients"):
            raise ModelError(
                f"the attack asked for gradients, but {self.model.name} gives {self.model.capability} only"
            )
        draw = None if self._chance is None else Draw(self._chance, torch.zeros(len(units), dtype=torch.int64))
        answer = self.model.drawn(draw).ask(self.inputs(units))
        self.n_forward += len(units)
        if self.model.capability == "labels":
            return F.one_hot(answer, self.model.n_classes).float()
        if answer.requires_grad:
            answer.register_hook(self._count_slope)  # type: ignore[no-untyped-call]
        return answer

    def _count_slope(self, slope: Tensor) -> None:
        self.n_backward += len(slope)
