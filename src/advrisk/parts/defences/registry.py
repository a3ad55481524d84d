"""The registry of defences, and what each of them may change."""

from torch import Tensor

from advrisk.core.registry import Registry
from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw

defences: Registry[DefenceTraits] = Registry("defences")


class Defence:
    """Three places at which a defence may step in; it changes nothing where it does not say otherwise.

    Rows stand alone: what is done to one must not depend on what shares its batch. One that draws takes its random
    numbers from `draw` alone.
    """

    def inputs(self, x: Tensor, bounds: tuple[float, float], draw: Draw) -> Tensor:  # noqa: ARG002
        """What the model is asked about in place of `x`."""
        return x

    def outputs(self, answer: Tensor, draw: Draw) -> Tensor:  # noqa: ARG002
        """What is said in place of the model's answer: logits or log-probabilities, or classes of a model that gives no
        more."""
        return answer

    def rejects(self, answer: Tensor) -> Tensor | None:  # noqa: ARG002
        """Which rows are refused; only of one whose traits say that it rejects."""
        return None
