"""The model that an attack queries, as the engine sees it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from advrisk.core.errors import ModelError
from advrisk.core.traits import Capability
from advrisk.engine.noise import Draw


class Reply(NamedTuple):
    """A model's answer to each row, and whether it refused; None for a model that never refuses."""

    answer: Tensor
    rejected: Tensor | None = None


@dataclass(frozen=True)
class Model:
    """A loaded model and its properties.

    `answer` takes inputs within `bounds` (normalisation happens inside) and returns logits
    (capability `gradients`: differentiable in the input), log-probabilities (`scores`) or class
    numbers (`labels`). Inputs are float32; answers in half precision become float32.

    `owner` is the original model, where `answer` is an optimised copy that differs by rounding: the original decides
    (`ask_owner`).

    `min_rows`: a pass with fewer rows is padded up to this many. torch's CPU kernels change their
    order of summation below about 16 rows; above, a row's result does not depend on how many others
    share its batch (measured, and tested by the conformance kit). Models that charge per query use 1.

    `random`: it may answer the same input differently the next time. Where advrisk draws the random numbers, `keyed`
    gives the same model with numbers from the streams of the rows that it will see (`drawn`); `unkeyed`: some part of
    it still draws from torch's generator.

    `rejects`: it may refuse to answer. `answer` then has one more column, 1 where it refuses and 0 elsewhere; `reply`
    returns both, `ask` the answer without refusals.

    `batch_dependent`: its answer to an input depends on the others in the batch.
    """

    name: str
    answer: Callable[[Tensor], Tensor]
    capability: Capability
    input_shape: tuple[int, ...]
    n_classes: int
    bounds: tuple[float, float]
    digest: str
    owner: Callable[[Tensor], Tensor] | None = None
    min_rows: int = 1
    random: bool = False
    device: str = "cpu"
    train_s: float | None = None
    train_process_s: float | None = None
    train_samples: int | None = None
    train_cost: float | None = None
    test_accuracy: float | None = None  # recorded by its training
    precision: str | None = None  # of its computation; None if unknown
    source_digest: str | None = None  # of the Python files that make it; not part of `digest`
    keyed: "Callable[[Draw], Model] | None" = None
    unkeyed: bool = False
    rejects: bool = False
    batch_dependent: bool = False

    @property
    def original(self) -> "Model":
        """The same model without its optimised copy."""
        return self if self.owner is None else replace(self, answer=self.owner, owner=None)

    def drawn(self, draw: Draw | None) -> "Model":
        """The model for one pass with these random streams; itself if it needs none."""
        return self if self.keyed is None or draw is None else self.keyed(draw)

    def ask(self, x: Tensor) -> Tensor:
        """Answers for a batch, padded if it is small, and checked for shape."""
        return self._as_reply(self._query(self.answer, x)).answer

    def reply(self, x: Tensor) -> Reply:
        """Answers for a batch, and which rows the model refuses."""
        return self._as_reply(self._query(self.answer, x))

    def ask_owner(self, x: Tensor) -> Tensor:
        """Answers of the original model: these are recorded and judged."""
        return self.reply_owner(x).answer

    def reply_owner(self, x: Tensor) -> Reply:
        """Answers of the original model, and which rows it refuses."""
        with torch.no_grad():
            return self._as_reply(self._query(self.owner or self.answer, x))

    def _as_reply(self, answer: Tensor) -> Reply:
        return Reply(answer[:, :-1], answer[:, -1] > 0) if self.rejects else Reply(answer)

    def _query(self, answering: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        # A copy, as the model may work in place; in one layout, as kernels for another layout round differently.
        whole = padded(x, self.min_rows).clone(memory_format=torch.contiguous_format)
        answer = answering(whole)
        expected = (len(whole),) if self.capability == "labels" else (len(whole), self.n_classes + self.rejects)
        if tuple(answer.shape) != expected:
            raise ModelError(f"{self.name} answered with shape {tuple(answer.shape)}; expected {expected}")
        return wide(answer[: len(x)])


def wide(values: Tensor) -> Tensor:
    """The same numbers in a type for every later step: half precision as float32, classes as int64.

    Gradients flow back through it. float32 and float64 stay as they are.
    """
    if not values.is_floating_point():
        return values.long()
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def padded(x: Tensor, min_rows: int) -> Tensor:
    """A batch of at least `min_rows` rows, filled up with copies of the first."""
    missing = min_rows - len(x)
    return torch.cat([x, x[:1].expand(missing, *x.shape[1:])]) if missing > 0 else x


def predicted(model: Model, answer: Tensor) -> Tensor:
    """The class of each answer."""
    return answer if model.capability == "labels" else answer.argmax(1)
