"""How far apart two inputs of a data set can be: a size beyond that limits nothing, most often a slip of scale."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from advrisk.core.traits import Norm

LEVELS = 255  # of a picture
_ALMOST_ONE = 1 + 1e-6


@dataclass(frozen=True)
class Extent:
    """Between which bounds inputs lie, and how far apart two of them can be in each norm, in units of the scale."""

    low: float
    high: float
    farthest: Mapping[Norm, float]
    images: bool = True
    unit_scale: bool = True

    def __str__(self) -> str:
        return f"data in [{self.low:g}, {self.high:g}]{'' if self.unit_scale else ', in units of its scale'}"

    def complaint(self, size: float, norm: Norm) -> str:
        """What is wrong with a size that limits nothing, and what was probably meant; empty if nothing is."""
        farthest = self.farthest.get(norm, math.inf)
        if size <= farthest * _ALMOST_ONE:
            return ""
        if norm == "l0":
            return f"found {size:g} in l0, which counts features, and inputs have {farthest:g} that can change"
        limit = f"no two inputs are farther apart than {farthest:.6g} in {norm}"
        unit = self.unit_scale and self.high - self.low <= 1 and size / LEVELS <= farthest
        hint = f"did you mean {size:g}/{LEVELS}?" if unit else f"write at most {farthest:.6g}"
        return f"found {size:g} on {self}; {limit}; {hint}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        finite = {norm: size for norm, size in self.farthest.items() if math.isfinite(size)}
        return {**vars(self), "farthest": finite}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """What `as_dict` gave; anything else is a ValueError, TypeError, KeyError or AttributeError."""
        farthest = {norm: float(size) for norm, size in content["farthest"].items()}
        marks = {name: bool(content[name]) for name in ("images", "unit_scale")}
        return cls(float(content["low"]), float(content["high"]), farthest, **marks)
