"""An arm: one fully configured way to perturb an input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from advrisk.core.traits import Keep, Norm

ArmKind = Literal["clean", "corruption", "attack"]


@dataclass(frozen=True)
class Arm:
    """What is done to an input: the part's name and version, and everything that configures it."""

    id: str
    kind: ArmKind
    family: str
    version: int = 1
    norm: Norm | None = None
    eps: float | None = None
    objective: str | None = None
    keep: Keep = "last"
    max_queries: int | None = None
    repeats: int = 1
    params: Mapping[str, Any] = field(default_factory=dict)
    cause: str | None = None  # of a corruption: the branch of the tree of risks that it belongs to
    crafted_by: "Arm | None" = None  # of a transfer: the arm whose points it takes over
    draws: int = 1  # how often a model that answers at random is asked about a point
    name: str | None = None  # what the study calls it: shown in place of the id, and decides nothing

    @property
    def shown(self) -> str:
        """What people see and refer to: the name, or the id where the study gives none."""
        return self.name or self.id

    @property
    def surrogate(self) -> str | None:
        """Of a transfer: the model that its points are crafted on."""
        return None if self.crafted_by is None else str(self.params["from"])

    def identity(self) -> dict[str, Any]:
        """Everything that decides what this arm does to a sample; how often it is repeated does not."""
        identity = {
            "kind": self.kind,
            "family": self.family,
            "version": self.version,
            "norm": self.norm,
            "eps": self.eps,
            "objective": self.objective,
            "keep": self.keep,
            "max_queries": self.max_queries,
            "params": dict(self.params),
        }
        if self.draws > 1:
            identity["draws"] = self.draws
        return identity if self.crafted_by is None else identity | {"crafted_by": self.crafted_by.identity()}


CLEAN = Arm("clean", "clean", "clean")
