"""An arm: one fully configured way to perturb an input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from advrisk.core.traits import Keep, Norm

ArmKind = Literal["clean", "corruption", "attack"]


@dataclass(frozen=True)
class Arm:
    """The change of an input: the part's name and version, and all its settings."""

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
    cause: str | None = None  # of a corruption: its branch of the tree of risks
    crafted_by: "Arm | None" = None  # of a transfer: the arm whose points it uses
    draws: int = 1  # queries per point of a model that answers at random
    name: str | None = None  # its name in the study: shown instead of the id; no part of the identity

    @property
    def shown(self) -> str:
        """The displayed name: the study's, or else the id."""
        return self.name or self.id

    @property
    def surrogate(self) -> str | None:
        """Of a transfer: the model that its points are crafted on."""
        return None if self.crafted_by is None else str(self.params["from"])

    def identity(self) -> dict[str, Any]:
        """Everything that decides this arm's result on a sample; the number of repeats does not."""
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
