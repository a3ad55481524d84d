"""What a data set calls its classes and features, where it states names; without them they are numbered."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Labels:
    """Names of classes and of features, each in order; empty where the data states none."""

    classes: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Labels":
        """The names that a record holds; whatever else it holds there is no name."""
        return cls(*(_names(found.get(field)) for field in ("classes", "features")))

    def class_name(self, number: int | None) -> str:
        """`cat`, or `3`."""
        return _named(self.classes, number) or str(number)

    def feature_name(self, number: int) -> str:
        """`age`, or `no. 3`."""
        return _named(self.features, number) or f"no. {number}"


NUMBERED = Labels()  # of data that states no names


def _named(names: tuple[str, ...], number: int | None) -> str:
    return names[number] if number is not None and 0 <= number < len(names) else ""


def _names(found: Any) -> tuple[str, ...]:
    return tuple(found) if isinstance(found, list) and all(isinstance(one, str) for one in found) else ()
