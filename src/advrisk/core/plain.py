"""Values for JSON as the standard has it: no NaN, no infinity, no arrays, no records, no keys but text."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

# Attribute -> its name in JSON; None leaves it out, and `""` puts its own fields in its place. Attributes that are no
# fields are added: properties, and those with dots, such as `distances.norm` (None where the first part is None).
InJson = Mapping[str, str | None]


def plain(value: Any) -> Any:
    """The same value in dicts, lists, text and numbers; what JSON has no number for becomes None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # numbers and arrays of numpy
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [plain(held) for held in value]
    if isinstance(value, set | frozenset):
        return [plain(held) for held in sorted(value)]
    if hasattr(value, "as_dict"):
        return plain(value.as_dict())
    return plain_fields(value) if is_dataclass(value) else str(value)


def plain_fields(value: Any) -> dict[str, Any]:
    """The public fields of a dataclass as plain values, with what its `in_json`, if it has one, makes of them."""
    own: InJson = {one.name: one.name for one in fields(value) if not one.name.startswith("_")}
    changes: InJson = getattr(value, "in_json", {})
    told: dict[str, Any] = {}
    for attribute, name in {**own, **changes}.items():
        if name is not None:
            held = plain(_attribute(value, attribute))
            told |= {name: held} if name else held
    return told


def _attribute(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def json_text(value: Any) -> str:
    """A value as strict JSON, for people and machines."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
