"""The registry of defences, and the interface of a defence."""

from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw

defences: Registry[DefenceTraits] = Registry("defences")


class Defence:
    """Three methods that a defence may override; each changes nothing by default.

    Rows are independent: a row's result must not depend on its batch mates. A random defence takes its random numbers
    from `draw` alone.
    """

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:  # noqa: ARG002
        """The inputs that the model gets instead of `x`."""
        return x

    def outputs(self, answer: Tensor, draw: Draw) -> Tensor:  # noqa: ARG002
        """The outputs that replace the model's: logits, log-probabilities, or classes of a label-only model."""
        return answer

    def rejects(self, answer: Tensor) -> Tensor | None:  # noqa: ARG002
        """Which rows the defence refuses; called only if its traits say that it rejects."""
        return None
