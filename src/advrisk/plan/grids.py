"""Grids: every combination of listed values; and values as text."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from advrisk.core.errors import AdvriskError
from advrisk.core.registry import Part


def grid(params: Mapping[str, Any], part: Part[Any]) -> Iterator[dict[str, Any]]:
    """Every combination of listed values; a list for a parameter that takes a list is one value."""
    choices = [_choices(part, name, value) for name, value in params.items()]
    for name, values in zip(params, choices, strict=True):
        if not values:
            raise AdvriskError(f"{part.name}.{name}: an empty list leaves no arm; name a value or remove the key")
    for combination in itertools.product(*choices):
        yield dict(zip(params, combination, strict=True))


def _choices(part: Part[Any], name: str, value: Any) -> list[Any]:
    if isinstance(value, Mapping):  # nested settings are a grid, too
        return list(grid(value, part))
    return value if isinstance(value, list) and not _takes_list(part, name) else [value]


def _takes_list(part: Part[Any], name: str) -> bool:
    return name in part.parameters and "tuple" in str(part.parameters[name].annotation)


def flat(params: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values; a mapping is replaced by its own items, sorted, as their order in the file means nothing."""
    for name, value in params.items():
        yield from sorted(value.items()) if isinstance(value, Mapping) else [(name, value)]


def shown(value: Any) -> str | None:
    """A value as text for names and ids."""
    if value is None:
        return None
    if isinstance(value, float):
        return f"{value:.6g}"
    return "+".join(str(shown(item)) for item in value) if isinstance(value, tuple) else str(value)
