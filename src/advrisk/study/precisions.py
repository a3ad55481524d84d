"""A model in several precisions: `precision: [float32, int8]` stands for one model each."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import WithJsonSchema

from advrisk.core.traits import Precision
from advrisk.study.source import Source

_ONE = {"enum": list(get_args(Precision))}
OnePrecision = Annotated[
    Precision, WithJsonSchema({"anyOf": [_ONE, {"type": "array", "items": _ONE, "minItems": 1, "uniqueItems": True}]})
]


def in_each_precision(data: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """The study with one model `name-precision` for each precision of a list; a single one keeps its name.

    `of` or `from` with the entry's name means all of them. Error messages about them name the entry's lines.
    """
    models = data.get("models")
    if not isinstance(models, Mapping):
        return dict(data)
    made: dict[Any, Any] = {}
    names: dict[Any, list[str]] = {}
    for name, spec in models.items():
        listed = spec.get("precision") if isinstance(spec, Mapping) else None
        if not isinstance(listed, list) or not listed:
            made[name] = spec
            continue
        names[name] = [f"{name}-{one}" if len(listed) > 1 else name for one in listed]
        for new in names[name]:
            if new != name and new in models:
                raise source.error(("models", name, "precision"), f"found another model {new!r}; rename one")
        made |= {new: {**spec, "precision": one} for new, one in zip(names[name], listed, strict=True)}
        _add_lines(source, name, names[name])
    naming = {key: _renamed(data[key], names) for key in ("defences", "arms") if key in data}
    return dict(data) | {"models": made} | naming


def _add_lines(source: Source, name: str, names: list[str]) -> None:
    own = {loc[2:]: line for loc, line in source.lines.items() if loc[:2] == ("models", name)}
    source.lines.update({("models", new, *rest): line for new in names for rest, line in own.items()})


def _renamed(value: Any, names: Mapping[Any, list[str]]) -> Any:
    """The value with all models of an entry wherever `of` or `from` names it."""
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _listed(one, names) if key in ("of", "from") else _renamed(one, names) for key, one in value.items()}


def _listed(value: Any, names: Mapping[Any, list[str]]) -> Any:
    entries = value if isinstance(value, list) else [value]
    if not any(isinstance(one, str) and one in names for one in entries):
        return value
    return [new for one in entries for new in (names.get(one, [one]) if isinstance(one, str) else [one])]
