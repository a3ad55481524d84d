"""Registries: one per kind of part, a decorator over a plain function.

Parameters are bound by the function's own signature: its keyword-only arguments are what a
study may set, and the defaults are recorded with every row. The registry knows nothing of what
the parts do; `traits` carries what each kind needs to say about itself.
"""

import contextlib
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from advrisk.core.containment import Containment
from advrisk.core.errors import RegistryError, StudyError
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import parse_number

Traits = TypeVar("Traits")
Function = TypeVar("Function", bound=Callable[..., Any])

REQUIRED = inspect.Parameter.empty

# What a type asks for, in words.
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    tuple: "a list",
    Path: "a path",
    Mapping: "a mapping",
}

# Limits as `annotated_types` states them: `Annotated[int, Ge(1)]`.
_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "more than"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
    "multiple_of": (lambda value, of: value % of == 0, "a multiple of"),
}


@dataclass(frozen=True)
class ByName:
    """In `Annotated`: a file gives the name of such a thing, and the function is handed the thing itself."""

    kind: str


@dataclass(frozen=True)
class Parameter:
    """One setting of a part: its name, type and default (`REQUIRED` when it has none)."""

    name: str
    annotation: Any
    default: Any

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def by_name(self) -> bool:
        """Whether a file gives a name, or a list of names, of what the function is handed."""
        return _by_name(self.annotation)

    @property
    def number(self) -> type | None:
        """`int` or `float`, where such a value is taken; None for parameters of other kinds."""
        return _number_in(self.annotation)

    @property
    def multiple_of(self) -> int:
        """Of which number a whole number must be a multiple."""
        return next((int(bound) for _, words, bound in _stated(self.annotation) if words == "a multiple of"), 1)

    def describe(self) -> str:
        """The parameter as a user reads it: `steps: int = 40, at least 1`."""
        default = "" if self.required else f" = {self.default!r}"
        limits = " and ".join(_limits(self.annotation))
        return f"{self.name}: {_type_name(self.annotation)}{default}" + (f", {limits}" if limits else "")


@dataclass(frozen=True)
class Part(Generic[Traits]):
    """A registered function with its name, version and traits.

    `version` is an integer that its author raises when results change; cells made by another
    version are run again.
    """

    kind: str
    name: str
    function: Callable[..., Any]
    version: int
    traits: Traits

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring; with the next one, where a colon leads to it."""
        paragraphs = [" ".join(text.split()) for text in (inspect.getdoc(self.function) or "").split("\n\n")]
        return " ".join(paragraphs[: 2 if paragraphs[0].endswith(":") else 1])

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        hints = get_type_hints(self.function, include_extras=True)
        return {
            name: Parameter(name, hints.get(name, Any), argument.default)
            for name, argument in inspect.signature(self.function).parameters.items()
            if argument.kind is inspect.Parameter.KEYWORD_ONLY
        }

    def bind(self, given: Mapping[str, object], *, folder: Path = Path(), beside: Iterable[str] = ()) -> dict[str, Any]:
        """Check the given settings against the signature and fill in the defaults.

        Relative paths are meant against `folder`, the one the study file lies in. `beside` names the keys
        that may stand beside the parameters, for the suggestion when a name is unknown.
        """
        for name in given:
            if name not in self.parameters:
                raise StudyError(unknown_parameter(self.name, name, self.parameters, beside))
        bound = {}
        for name, parameter in self.parameters.items():
            if name in given:
                bound[name] = _convert(given[name], parameter, self.name, folder)
            elif parameter.required:
                raise StudyError(f"{self.name} needs {parameter.describe()}")
            else:
                bound[name] = parameter.default
        return bound


def unknown_part(kind: str, name: str, known: Iterable[str]) -> str:
    """The complaint about a name that no part of this kind has."""
    return f"no {kind} called {name!r}; {did_you_mean(name, known)}"


def unknown_parameter(part: str, name: str, parameters: Iterable[str], beside: Iterable[str] = ()) -> str:
    """The complaint about a setting that a part does not have; `beside` are the keys that may stand there, too."""
    inside = "what the attack itself takes belongs into `settings`; " if "settings" in parameters else ""
    return f"{part} has no parameter {name!r}; {inside}{did_you_mean(name, [*parameters, *beside])}"


class Registry(Generic[Traits]):
    """The parts of one kind, built-in or brought by installed packages.

    Another package adds a part with an entry point in the group `advrisk.<kind>` that names a
    function decorated with `register`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Part[Traits]] = {}
        self._entry_points_read = False

    def register(self, name: str, *, traits: Traits, version: int = 1) -> Callable[[Function], Function]:
        """Register the decorated function under a kebab-case name."""
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise RegistryError(f"{name!r} is not a kebab-case name")

        def add(function: Function) -> Function:
            if name in self._parts:
                raise RegistryError(f"{self.kind} already has a part called {name!r}; choose another name")
            self._parts[name] = Part(self.kind, name, function, version, traits)
            return function

        return add

    def get(self, name: str) -> Part[Traits]:
        """The part of that name, or a RegistryError that suggests the nearest one."""
        self._read_entry_points()
        if name not in self._parts:
            raise RegistryError(unknown_part(self.kind, name, self._parts))
        return self._parts[name]

    def __iter__(self) -> Iterator[Part[Traits]]:
        self._read_entry_points()
        return iter(sorted(self._parts.values(), key=lambda part: part.name))

    def __contains__(self, name: object) -> bool:
        self._read_entry_points()
        return name in self._parts

    def _read_entry_points(self) -> None:
        if self._entry_points_read:
            return
        self._entry_points_read = True  # a part that is being loaded may ask the registry itself
        for entry in entry_points(group=f"advrisk.{self.kind}"):
            if fault := self._load(entry):
                self._entry_points_read = False
                where = f"the entry point {entry.name!r} of advrisk.{self.kind} names {entry.value}"
                raise RegistryError(f"{where}, which {fault}; repair or uninstall its package")

    def _load(self, entry: EntryPoint) -> str:
        """Import a part of another package, whose decorator registers it; why that failed, or nothing."""
        try:
            with Containment().around(entry.value):
                loaded = entry.load()
        except Exception as error:  # another package's code
            return f"cannot be loaded: {type(error).__name__}: {error}"
        return "" if any(part.function is loaded for part in self._parts.values()) else "is not registered"


def _named_kind(annotation: Any) -> str | None:
    """What a name stands for, where the type itself says that a name is given."""
    stated = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((one.kind for one in stated if isinstance(one, ByName)), None)


def _by_name(annotation: Any) -> bool:
    return _named_kind(annotation) is not None or any(map(_by_name, get_args(annotation)))


def _type_name(annotation: Any) -> str:
    if kind := _named_kind(annotation):
        return f"name of a {kind}"
    if get_origin(annotation) is tuple:
        return f"list, each {_type_name(get_args(annotation)[0])}" if _by_name(annotation) else _plain_name(annotation)
    if get_origin(annotation) is Annotated:
        return _type_name(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join("None" if choice is type(None) else _type_name(choice) for choice in get_args(annotation))
    if get_origin(annotation) in (list, dict):
        return f"{get_origin(annotation).__name__}[{', '.join(map(_type_name, get_args(annotation)))}]"
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__name__
    return _plain_name(annotation)


def _plain_name(annotation: Any) -> str:
    return re.sub(r"(typing|collections\.abc)\.", "", str(annotation))


def _convert(value: object, parameter: Parameter, part: str, folder: Path) -> Any:
    try:
        converted = as_type(value, parameter.annotation)
        return (folder / converted.expanduser()).resolve() if isinstance(converted, Path) else converted
    except (ValueError, TypeError) as error:
        raise StudyError(f"{part}.{parameter.name}: {error}") from None


def as_type(value: object, annotation: Any) -> Any:
    """Turn a YAML value into the annotated type, without guessing."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if kind := _named_kind(annotation):
        if not isinstance(value, str):
            raise ValueError(f"the name of a {kind} is needed, found {value!r}")
        return value
    if origin is Annotated:
        return _checked(as_type(value, arguments[0]), arguments[1:])
    if origin in (Union, types.UnionType):
        return _as_one_of(value, arguments)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"found {value!r}; {did_you_mean(value, map(str, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"a list is needed, found {value!r}")
        return tuple(as_type(item, arguments[0]) for item in value)
    if annotation is Path and isinstance(value, str):
        return Path(value)
    if annotation is float:
        return parse_number(value)
    if origin is Mapping and not isinstance(value, Mapping):
        raise ValueError(f"a mapping of names to values is needed, found {value!r}")
    if annotation is Any or origin is not None or typing.is_typeddict(annotation):
        return value
    if (annotation is int and isinstance(value, bool)) or not isinstance(value, annotation):
        raise ValueError(f"{_needed(annotation)} is needed, found {value!r}")
    return value


def _checked(value: Any, stated: tuple[Any, ...]) -> Any:
    for holds, words, bound in _bounds(stated):
        if not holds(value, bound):
            raise ValueError(f"must be {words} {bound}, found {value!r}")
    return value


def _bounds(stated: tuple[Any, ...]) -> Iterator[tuple[Callable[[Any, Any], bool], str, Any]]:
    for limit in stated:
        for field, (holds, words) in _LIMITS.items():
            bound = getattr(limit, field, None)  # `Interval` has all four, the unused ones None
            if bound is not None:
                yield holds, words, bound


def _limits(annotation: Any) -> list[str]:
    """`at least 1`, `less than 9`: the limits that are stated anywhere in a type."""
    return [f"{words} {bound}" for _, words, bound in _stated(annotation)]


def _stated(annotation: Any) -> list[tuple[Callable[[Any, Any], bool], str, Any]]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return [*_stated(arguments[0]), *_bounds(arguments[1:])]
    return [limit for argument in arguments if origin is not Literal for limit in _stated(argument)]


def _number_in(annotation: Any) -> type | None:
    """The kind of number that a type is, or is beside None."""
    if get_origin(annotation) is Annotated:
        return _number_in(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        return _number_in(members[0]) if len(members) == 1 else None
    return annotation if annotation in (int, float) else None


def _as_one_of(value: object, annotations: tuple[Any, ...]) -> Any:
    if value is None and type(None) in annotations:
        return None
    members = [annotation for annotation in annotations if annotation is not type(None)]
    if len(members) == 1:
        return as_type(value, members[0])  # its own complaint says more
    for member in members:
        with contextlib.suppress(ValueError):
            return as_type(value, member)
    raise ValueError(f"{' or '.join(map(_needed, members))} is needed, found {value!r}")


def _needed(annotation: Any) -> str:
    """What a value must be, in words: `a whole number of at least 1`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if kind := _named_kind(annotation):
        return f"the name of a {kind}"
    if origin is Annotated:
        limits = " and ".join(_limits(annotation))
        return f"{_needed(arguments[0])} of {limits}" if limits else _needed(arguments[0])
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    return _WORDS.get(origin or annotation, _type_name(annotation))
