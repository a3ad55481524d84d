"""The task of an attack, and the bounds around the inputs that it starts from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from advrisk.engine.goal import Goal
from advrisk.engine.rows import ascending
from advrisk.engine.space import Space
from advrisk.engine.suspicion import Suspicion
from advrisk.study import Keep, Norm


@dataclass(frozen=True)
class Task:
    """The task of an attack against one shard of samples.

    `within_eps`: the attack promises never to propose a point beyond eps. `crafted`: points made for these samples
    against another model, for a transfer attack. `suspicion`: the detector that the attack knows; it scores every
    point, and the `strongest` success is the least suspicious one. `draws`: queries per point of a model that answers
    at random. `sees_through`: the attack has the model, and sees what it would have answered at points that it refuses.
    `pulse`: called after each pass with the forward passes of each sample, and which samples are done.
    """

    x0: Tensor
    goal: Goal
    space: Space
    norm: Norm | None
    eps: float | None
    objective: str = "ace"
    keep: Keep = "first"
    max_queries: int | None = None
    within_eps: bool = True
    deadline: float = float("inf")  # on time.monotonic's clock
    crafted: Tensor | None = None
    suspicion: Suspicion | None = None
    draws: int = 1
    pulse: Callable[[Tensor, Tensor], None] | None = None
    sees_through: bool = True


@dataclass(frozen=True)
class Around:
    """The clean inputs of some rows and the bounds around them. `version` shows whether `rows` was changed since."""

    task: Task
    rows: Tensor
    version: int

    @cached_property
    def x0(self) -> Tensor:
        return self.task.x0.index_select(0, self.rows)

    @cached_property
    def ascending(self) -> bool:
        """Whether each sample has one row, in the order of the shard."""
        return ascending(self.rows)

    @cached_property
    def box(self) -> tuple[Tensor, Tensor] | None:
        """In linf, the bounds within eps, if all points between them are allowed."""
        if self.task.norm != "linf" or self.task.eps is None:
            return None
        return self.task.space.linf_box(self.x0, self.task.eps)

    @cached_property
    def room(self) -> tuple[Tensor, Tensor]:
        """The distance that each feature can move down and up."""
        return self.task.space.room(self.x0)
