"""What an attack is up against: a model as the engine sees it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from advrisk.core.errors import ModelError
from advrisk.core.traits import Capability
from advrisk.engine.noise import Draw


class Reply(NamedTuple):
    """What a model said of each row, and whether it refused to say it; None where it never refuses."""

    answer: Tensor
    rejected: Tensor | None = None


@dataclass(frozen=True)
class Model:
    """A loaded model and what it states about itself.

    `answer` takes inputs within `bounds` (normalisation happens inside) and returns logits
    (capability `gradients`: differentiable in the input), log-probabilities (`scores`) or class
    numbers (`labels`). Inputs are float32; what a model answers in half precision is made float32 as it comes in.

    `owner` is the model as its owner gave it, where `answer` is a quicker version that differs by rounding: it has the
    last word (`ask_owner`).

    `min_rows`: a pass with fewer rows is padded up to this many. torch's CPU kernels change their
    order of summation below about 16 rows; above, a row's result does not depend on how many others
    share its batch (measured, and tested by the conformance kit). Models that charge per query say 1.

    `random`: it may answer the same input differently the next time. Where that is our own doing, `keyed` gives the
    same model with its random numbers taken from the streams of the rows that it will be asked about (`drawn`);
    `unkeyed` says that something in it draws from torch's generator all the same.

    `rejects`: it may refuse to answer. `answer` then has one column more, which is 1 where it does and 0 elsewhere;
    `reply` tells both, `ask` what it would have said.

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
    test_accuracy: float | None = None  # what its training noted on test samples
    precision: str | None = None  # what it computes in; None where that is unknown
    source_digest: str | None = None  # of the Python files that make it; not part of `digest`
    keyed: "Callable[[Draw], Model] | None" = None
    unkeyed: bool = False
    rejects: bool = False
    batch_dependent: bool = False

    @property
    def original(self) -> "Model":
        """The same model without the quicker version of it."""
        return self if self.owner is None else replace(self, answer=self.owner, owner=None)

    def drawn(self, draw: Draw | None) -> "Model":
        """The same model for one pass, with these streams for its random numbers; itself if it has no use for them."""
        return self if self.keyed is None or draw is None else self.keyed(draw)

    def ask(self, x: Tensor) -> Tensor:
        """Answers for a batch, padded if it is small, and checked for shape."""
        return self._told(self._asked(self.answer, x)).answer

    def reply(self, x: Tensor) -> Reply:
        """The same, and which rows it refuses to answer."""
        return self._told(self._asked(self.answer, x))

    def ask_owner(self, x: Tensor) -> Tensor:
        """The same from the model as it was given: what is recorded and judged."""
        return self.reply_owner(x).answer

    def reply_owner(self, x: Tensor) -> Reply:
        """What the model as it was given says, and which rows it refuses to answer."""
        with torch.no_grad():
            return self._told(self._asked(self.owner or self.answer, x))

    def _told(self, answer: Tensor) -> Reply:
        return Reply(answer[:, :-1], answer[:, -1] > 0) if self.rejects else Reply(answer)

    def _asked(self, answering: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        # A copy, as it may work in place; and in one layout, as kernels for another one round in another way.
        whole = padded(x, self.min_rows).clone(memory_format=torch.contiguous_format)
        answer = answering(whole)
        expected = (len(whole),) if self.capability == "labels" else (len(whole), self.n_classes + self.rejects)
        if tuple(answer.shape) != expected:
            raise ModelError(f"{self.name} answered with shape {tuple(answer.shape)}, {expected} was expected")
        return wide(answer[: len(x)])


def wide(values: Tensor) -> Tensor:
    """The same numbers in a type that every later step can compute with: half precision as float32, classes as int64.

    Gradients flow back through it. float32 and float64 stay as they are.
    """
    if not values.is_floating_point():
        return values.long()
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def padded(x: Tensor, min_rows: int) -> Tensor:
    """A batch with at least so many rows, the first one repeated at its end."""
    missing = min_rows - len(x)
    return torch.cat([x, x[:1].expand(missing, *x.shape[1:])]) if missing > 0 else x


def predicted(model: Model, answer: Tensor) -> Tensor:
    """The class of each answer."""
    return answer if model.capability == "labels" else answer.argmax(1)
