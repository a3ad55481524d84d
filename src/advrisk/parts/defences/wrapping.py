"""Models behind a defence: each is another model, with a digest of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from advrisk.core.digest import digest
from advrisk.core.errors import ModelError
from advrisk.core.registry import Part
from advrisk.core.traits import DefenceTraits, gives
from advrisk.engine import Draw, Model, Noise
from advrisk.parts.defences.registry import Defence

_NO_DRAW = Draw(Noise([]), torch.empty(0, dtype=torch.int64))  # for defences that are not random


def defended_model(name: str, inner: Model, part: Part[DefenceTraits], params: Mapping[str, Any]) -> Model:
    """The model `inner` behind a defence, as are its optimised copy and its original.

    The model inside pads small batches, so this one need not. It has gradients where the model inside has them.
    """
    _refuse(name, inner, part)
    guard = _Guard(part.function(**params), part)
    shell = replace(
        inner,
        name=name,
        digest=digest([inner.digest, part.name, part.version, dict(params)]),
        min_rows=1,
        random=inner.random or part.traits.random,
        rejects=inner.rejects or part.traits.rejects,
        unkeyed=inner.unkeyed or (inner.random and inner.keyed is None),
        keyed=None,
    )
    model = guard.bound(shell, inner, None)
    if part.traits.random or inner.keyed is not None:
        model = replace(model, keyed=lambda draw: guard.bound(shell, inner.drawn(draw), draw))
    return model


def _refuse(name: str, inner: Model, part: Part[DefenceTraits]) -> None:
    """Refuse a defence that does not fit the inputs or outputs of the model inside."""
    if not gives(inner.capability, part.traits.needs):
        reason = f"{part.name} needs {part.traits.needs} of a model, but {inner.name} gives {inner.capability} only"
        raise ModelError(f"{name}: {reason}")
    if part.traits.images and len(inner.input_shape) != 3:
        reason = f"{part.name} is for images (channels × height × width), which {inner.name} does not take"
        raise ModelError(f"{name}: {reason}")


@dataclass(frozen=True)
class _Guard:
    """A defence with its parameters, and its registered part."""

    defence: Defence
    part: Part[DefenceTraits]

    def bound(self, shell: Model, inner: Model, draw: Draw | None) -> Model:
        """The model with random numbers from these streams; without streams, each input's content seeds them."""
        owner = None if inner.owner is None else self._answering(shell, inner.original, draw)
        return replace(shell, answer=self._answering(shell, inner, draw), owner=owner)

    def _answering(self, shell: Model, inner: Model, draw: Draw | None) -> Callable[[Tensor], Tensor]:
        def answer(x: Tensor) -> Tensor:
            stream = self._stream(x, draw)
            outputs, refused = inner.reply(self.defence.inputs(x, inner.bounds, stream))
            outputs = self.defence.outputs(outputs, stream)
            return self._marked(outputs, refused) if shell.rejects else outputs

        answer.__qualname__ = f"a model behind {self.part.name}"  # its name in error messages
        return answer

    def _stream(self, x: Tensor, draw: Draw | None) -> Draw:
        if not self.part.traits.random:
            return _NO_DRAW
        return Draw.by_content(x) if draw is None else draw

    def _marked(self, answer: Tensor, refused: Tensor | None) -> Tensor:
        """The answer with one more column: 1 where this defence, or one inside, refuses it."""
        marks = [mark for mark in (refused, self.defence.rejects(answer)) if mark is not None]
        rejected = torch.stack(marks).any(0)
        return torch.cat([answer, rejected[:, None].to(answer.dtype)], 1)
