"""The goal of an attack for each sample: to lose a class, or to become another."""

from dataclasses import dataclass, replace

from torch import Tensor


@dataclass(frozen=True)
class Goal:
    """One entry per row.

    `reference` is the class that a sample must lose: its label, or the model's own clean prediction.
    `target`, if any, is the class that it must become. `clean` holds the scores of the clean
    input, for objectives that measure from there.
    """

    reference: Tensor
    target: Tensor | None = None
    clean: Tensor | None = None

    def of(self, rows: Tensor) -> "Goal":
        """The goals of some of the rows."""
        target = None if self.target is None else self.target.index_select(0, rows)
        clean = None if self.clean is None else self.clean.index_select(0, rows)
        return Goal(self.reference.index_select(0, rows), target, clean)

    def towards(self, target: Tensor) -> "Goal":
        """The same rows with these targets."""
        return replace(self, target=target)

    def met(self, prediction: Tensor) -> Tensor:
        """Whether each prediction is a success."""
        if self.target is None:
            return prediction != self.reference
        return (prediction == self.target) & (self.target != self.reference)  # a cat called a cat is no success
