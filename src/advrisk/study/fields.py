"""Kinds of fields that study and recipe files share, and the validation of a whole file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from advrisk.core.mistakes import joined
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import parse_number, parse_rate, parse_share
from advrisk.core.traits import Keep, Norm
from advrisk.study.source import Loc, Source

Checked = TypeVar("Checked", bound=BaseModel)

NUMBER_SCHEMA = {
    "anyOf": [
        {"type": "number"},
        {"type": "string", "pattern": r"^\s*[-+]?\d+(\.\d+)?\s*/\s*\d+(\.\d+)?\s*$", "description": "a fraction"},
    ]
}

SHARE_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%\s*$", "description": "per cent"},
    ]
}

RATE_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        NUMBER_SCHEMA["anyOf"][1],
        SHARE_SCHEMA["anyOf"][1],
    ]
}

SIZE_KEYS = ("eps", "thresholds")  # of a study, whose values are sizes


def _one_or_many(item_schema: dict[str, Any]) -> tuple[Any, Any]:
    def as_list(value: object) -> object:
        return value if isinstance(value, list) else [value]

    schema = {"anyOf": [item_schema, {"type": "array", "items": item_schema, "minItems": 1}]}
    return BeforeValidator(as_list), WithJsonSchema(schema)


Number = Annotated[float, BeforeValidator(parse_number), WithJsonSchema(NUMBER_SCHEMA)]
Size = Annotated[float, BeforeValidator(parse_number), Field(ge=0), WithJsonSchema(NUMBER_SCHEMA)]
Share = Annotated[float, BeforeValidator(parse_share), WithJsonSchema(SHARE_SCHEMA)]
Rate = Annotated[float, BeforeValidator(parse_rate), WithJsonSchema(RATE_SCHEMA)]
Sizes = Annotated[list[Size], Field(min_length=1), *_one_or_many(NUMBER_SCHEMA)]
Names = Annotated[list[str], Field(min_length=1), *_one_or_many({"type": "string"})]
Norms = Annotated[list[Norm], Field(min_length=1), *_one_or_many({"enum": list(get_args(Norm))})]
Keeps = Annotated[list[Keep], Field(min_length=1), *_one_or_many({"enum": list(get_args(Keep))})]
Levels = Annotated[
    list[Annotated[int, Field(strict=True, ge=1, le=100)]],
    Field(min_length=1),
    *_one_or_many({"type": "integer", "minimum": 1}),
]
# Strict: `true` and `'7'` are no whole numbers.
Count = Annotated[int, Field(strict=True, ge=0)]
PositiveInt = Annotated[int, Field(strict=True, gt=0)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


@dataclass(frozen=True)
class OptionText:
    """In `Annotated`: the option and metavar of a field on the command line, where its name and type do not fit."""

    option: str = ""
    metavar: str = ""


class Strict(BaseModel):
    """A model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Open(BaseModel):
    """A model with further keys: the parameters of a part, checked against its signature."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


def written_sizes(data: object, inside: bool = False) -> dict[float, str]:
    """Size -> its text in the study, for sizes that it writes as fractions: 8/255."""
    if isinstance(data, Mapping):
        return {
            size: text for key, value in data.items() for size, text in written_sizes(value, key in SIZE_KEYS).items()
        }
    if isinstance(data, list):
        return {size: text for value in data for size, text in written_sizes(value, inside).items()}
    if not inside or not isinstance(data, str) or "/" not in data:
        return {}
    try:
        return {parse_number(data): re.sub(r"\s", "", data)}
    except ValueError:
        return {}


def plain_sizes(data: Any, inside: bool = False) -> Any:
    """A study's content with its sizes as numbers."""
    if isinstance(data, Mapping):
        return {key: plain_sizes(value, key in SIZE_KEYS) for key, value in data.items()}
    if isinstance(data, list):
        return [plain_sizes(value, inside) for value in data]
    return next(iter(written_sizes(data, inside)), data)


def as_written(data: Any, written: Mapping[float, str], inside: bool = False) -> Any:
    """A study's content with its sizes as the user wrote them."""
    if isinstance(data, Mapping):
        return {key: as_written(value, written, key in SIZE_KEYS) for key, value in data.items()}
    if isinstance(data, list):
        return [as_written(value, written, inside) for value in data]
    return written.get(data, data) if inside and isinstance(data, float) else data


def validated(model: type[Checked], data: Mapping[str, Any], source: Source, *, within: Loc = ()) -> Checked:
    """An instance of a pydantic model, or a StudyError with every mistake on a line of its own.

    `within` is the location of the data in the file.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        raise joined(
            source.error((*within, *_loc(problem, data)), _message(problem, model)) for problem in error.errors()
        ) from None


def _loc(problem: Mapping[str, Any], data: Mapping[str, Any]) -> Loc:
    """The path to a mistake in the file, without the parts that pydantic adds: members of unions, lists of one."""
    loc: Loc = ()
    value: Any = data
    for part in problem["loc"]:
        inside = part in value if isinstance(value, Mapping) else isinstance(value, list) and isinstance(part, int)
        if not inside:
            return (*loc, part) if problem["type"] == "missing" else loc
        loc = (*loc, str(part) if isinstance(value, Mapping) else part)
        value = value[part]
    return loc


def _message(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key; {did_you_mean(problem['loc'][-1], _fields_at(model, problem['loc'][:-1]))}"
    if problem["type"] == "missing":
        return "is missing"
    if problem["type"] == "literal_error":
        expected = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
        return f"found {problem['input']!r}; {did_you_mean(problem['input'], expected)}"
    if problem["type"] in ("model_type", "dict_type"):
        return f"must be a mapping, found {problem['input']!r}"
    if problem["type"] == "list_type":
        kind = "a mapping; begin it with `- `" if isinstance(problem["input"], Mapping) else repr(problem["input"])
        return f"must be a list, found {kind}"
    if problem["type"] == "too_short":
        return "found an empty list or mapping; add at least one entry"
    if problem["type"] == "string_pattern_mismatch":
        return f"must consist of letters, digits, `.`, `_` and `-`, found {problem['input']!r}"
    message = problem["msg"].removeprefix("Value error, ")
    if "found" in message or isinstance(problem["input"], dict):
        return str(message)
    return f"{message[0].lower()}{message[1:]}, found {problem['input']!r}"


def _fields_at(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys of the nested model at a path."""
    for part in loc:
        if str(part) in model.model_fields:
            model = _model_in(model.model_fields[str(part)].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in a field's type, also inside an optional, a list or a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)
