"""Names that a study may use, read from the sources of the built-in parts: importing them takes seconds, for torch.

What is listed here is checked again against the registries, which also know types, limits and parts of packages. So a
name that only a package, or code that the study names, could bring passes.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from pydantic import BaseModel

from advrisk.core.errors import RegistryError, StudyError
from advrisk.core.names import one_or_many
from advrisk.core.registry import unknown_parameter, unknown_part
from advrisk.core.traits import DETECTOR, TRANSFER
from advrisk.study.defence import TRAINED, DefenceSpec
from advrisk.study.gate import parse_requirement
from advrisk.study.ground import unknown_model
from advrisk.study.own_code import may_register_parts
from advrisk.study.search import SearchEntry
from advrisk.study.source import Loc, Source
from advrisk.study.spec import ArmEntry, DataSpec, DetectorSpec, MeasureSpec, ModelSpec, NamedSpec, called_so

_HOMES = ("parts", "engine/objectives.py", "risk/losses.py")  # of everything that a registry holds
_REGISTERED = re.compile(r'^@(\w+)\.register\(\s*"([^"]+)"', re.MULTILINE)
_OBJECT = "object"  # a model that is handed over in Python
_NO_PARAMETERS = frozenset((DETECTOR, *ArmEntry.model_fields, "from"))

Complaint = tuple[Loc, str]


def unknown_names(data: Mapping[str, Any], source: Source) -> list[StudyError]:
    """Parts, parameters and models that a study names and that do not exist, each with file and line."""
    complaints = list(_complaints(data))
    if complaints and may_register_parts(data, source.folder):
        return []  # a name may be one of its parts: the registries decide, once it is loaded
    return [source.error(loc, message) for loc, message in complaints]


@cache
def part_names(kind: str) -> dict[str, str]:
    """The built-in parts of a kind, each with the source of its module."""
    texts = [text for home in _HOMES for text in _texts(files("advrisk").joinpath(home))]
    return {name: text for text in texts for own, name in _REGISTERED.findall(text) if own == kind}


@cache
def parameter_names(kind: str, name: str) -> tuple[str, ...]:
    """What a built-in part lets a study set."""
    for node in ast.parse(part_names(kind)[name]).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and any(
            _registers(one, kind, name) for one in node.decorator_list
        ):
            return tuple(_keywords(node))
    raise RegistryError(f"{kind} {name}: its source has no definition")


def _texts(home: Traversable) -> Iterator[str]:
    if home.is_dir():
        for one in home.iterdir():
            yield from _texts(one)
    elif home.name.endswith(".py"):
        yield home.read_text(encoding="utf-8")


def _registers(decorator: ast.expr, kind: str, name: str) -> bool:
    match decorator:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=own), attr="register"), args=[ast.Constant(value=registered), *_]
        ):
            return (own, registered) == (kind, name)
    return False


def _keywords(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """The keyword-only arguments of a function; the fields of a dataclass."""
    if isinstance(node, ast.FunctionDef):
        yield from (argument.arg for argument in node.args.kwonlyargs)
        return
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            yield from _keywords(one)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield from [one.target.id] if not ast.unparse(one.annotation).startswith("ClassVar") else []


def _complaints(data: Mapping[str, Any]) -> Iterator[Complaint]:
    yield from _of_part("data", data.get("data"), "source", DataSpec, ("data",))
    for name, spec in _items(data.get("models")):
        if not (isinstance(spec, Mapping) and spec.get("source") == _OBJECT):
            yield from _of_part("models", spec, "source", ModelSpec, ("models", name))
    for name, spec in _items(data.get("defences")):
        yield from _of_part("defences", spec, "name", DefenceSpec, ("defences", name))
    for index, entry in _items(data.get("arms")):
        yield from _of_arm(entry, ("arms", index))
    for index, entry in _items(data.get("detectors")):
        yield from _of_detector(entry, ("detectors", index))
    for kind, spec in (("measures", MeasureSpec), ("losses", NamedSpec)):
        for index, entry in _items(data.get(kind)):
            yield from _of_part(kind, entry, "name", spec, (kind, index))
    for index, entry in _items(data.get("search")):
        yield from _of_attack(entry, ("search", index), SearchEntry)
    yield from _of_gate(data)


def _items(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _of_arm(entry: Any, loc: Loc) -> Iterator[Complaint]:
    if not isinstance(entry, Mapping):
        return
    yield from _of_attack(entry, loc, ArmEntry)
    for kind, key in (("corruptions", "corruption"), ("presets", "preset")):
        for name in _names(entry.get(key)):
            yield from _unknown(kind, name, _settings(entry, ArmEntry), loc, ArmEntry)
    yield from _of_arm(entry.get("arm"), (*loc, "arm"))


def _of_attack(entry: Any, loc: Loc, spec: type[BaseModel]) -> Iterator[Complaint]:
    """An attack with its objectives, in `arms` or in `search`."""
    if not isinstance(entry, Mapping):
        return
    for name in _names(entry.get("attack")):
        settings = () if name == TRANSFER else _settings(entry, spec)
        yield from _unknown("attacks", name, settings, loc, spec)
    for name in _names(entry.get("objective")):
        yield from _unknown("objectives", name, (), (*loc, "objective"), spec)


def _of_detector(entry: Any, loc: Loc) -> Iterator[Complaint]:
    key = "detector" if isinstance(entry, Mapping) and "detector" in entry else "name"
    name = entry.get(key) if isinstance(entry, Mapping) else entry
    if isinstance(name, str) and ("," in name or "@" in name):
        return  # as a ledger shows it: the plan says how a study writes it
    for where, message in _of_part("detectors", entry, key, DetectorSpec, loc):
        yield where, message if where != loc else f"{message} {called_so(str(name))}"
    for index, arm in _items(entry.get("arms")) if isinstance(entry, Mapping) else ():
        yield from _of_arm(arm, (*loc, "arms", index))


def _of_part(kind: str, entry: Any, key: str, spec: type[BaseModel], loc: Loc) -> Iterator[Complaint]:
    """A part by its name alone, or a mapping with its name under `key`."""
    name = entry.get(key) if isinstance(entry, Mapping) else entry
    if isinstance(name, str):
        yield from _unknown(kind, name, _settings(entry, spec) if isinstance(entry, Mapping) else (), loc, spec)


def _settings(entry: Mapping[str, Any], spec: type[BaseModel]) -> list[str]:
    """The keys that are a part's own parameters."""
    return [key for key in map(str, entry) if key not in spec.model_fields and key not in _NO_PARAMETERS]


def _unknown(kind: str, name: str, settings: Sequence[str], loc: Loc, spec: type[BaseModel]) -> Iterator[Complaint]:
    known = part_names(kind)
    if name not in known:
        if kind == "defences" and name in TRAINED:
            yield (*loc, "name"), TRAINED[name]
        elif not entry_points(group=f"advrisk.{kind}"):
            yield loc, unknown_part(kind, name, known)
        return
    parameters = parameter_names(kind, name) if settings else ()
    for setting in settings:
        if setting not in parameters:
            yield (*loc, setting), unknown_parameter(name, setting, parameters, spec.model_fields)


def _names(value: Any) -> list[str]:
    return [name for name in one_or_many(value) if isinstance(name, str)] if value is not None else []


def _of_gate(data: Mapping[str, Any]) -> Iterator[Complaint]:
    """Models that a requirement names; behind defences there may be others, which lists of settings bring."""
    models = data.get("models")
    if not isinstance(models, Mapping) or data.get("defences"):
        return
    for index, text in _items(data.get("gate")):
        try:
            requirement = parse_requirement(text)
        except (StudyError, TypeError):  # its shape is checked elsewhere
            continue
        for term in requirement.terms:
            if term.what.of == "model" and (complaint := unknown_model(term, list(map(str, models)))):
                yield ("gate", index), f"`{requirement}`: {complaint}"
