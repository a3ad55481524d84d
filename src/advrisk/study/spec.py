"""A study as the user writes it: one YAML file, checked field by field.

This is the only place that knows the file's shape. Names of parts and their parameters are
checked later, against the registries, by `plan`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from advrisk.core.errors import StudyError
from advrisk.core.names import did_you_mean, nearest
from advrisk.core.numbers import parse_number
from advrisk.core.traits import Keep, Norm
from advrisk.study.source import Loc, Source, read_yaml

TRANSFER = "transfer"  # the attack that takes over what another crafted against another model
AVERAGE = "average"  # the evasion curve that the compared models make themselves
_OF_TRANSFER = {"attack": "attack", "surrogates": "from", "arm": "arm"}  # field -> key

Checked = TypeVar("Checked", bound=BaseModel)

NUMBER_SCHEMA = {
    "anyOf": [
        {"type": "number"},
        {"type": "string", "pattern": r"^\s*[-+]?\d+(\.\d+)?\s*/\s*\d+(\.\d+)?\s*$", "description": "a fraction"},
    ]
}
# Sections of a study that later versions answer; asking for them now is refused, never ignored.
RESERVED = ("defences", "losses", "scenarios", "gate")


def _one_or_many(item_schema: dict[str, Any]) -> tuple[Any, Any]:
    def as_list(value: object) -> object:
        return value if isinstance(value, list) else [value]

    schema = {"anyOf": [item_schema, {"type": "array", "items": item_schema, "minItems": 1}]}
    return BeforeValidator(as_list), WithJsonSchema(schema)


Number = Annotated[float, BeforeValidator(parse_number), WithJsonSchema(NUMBER_SCHEMA)]
Size = Annotated[float, BeforeValidator(parse_number), Field(ge=0), WithJsonSchema(NUMBER_SCHEMA)]
Sizes = Annotated[list[Size], Field(min_length=1), *_one_or_many(NUMBER_SCHEMA)]
Names = Annotated[list[str], Field(min_length=1), *_one_or_many({"type": "string"})]
Norms = Annotated[list[Norm], Field(min_length=1), *_one_or_many({"enum": list(get_args(Norm))})]
Keeps = Annotated[list[Keep], Field(min_length=1), *_one_or_many({"enum": list(get_args(Keep))})]
# Strict: `true` and `'7'` are no whole numbers.
Count = Annotated[int, Field(strict=True, ge=0)]
PositiveInt = Annotated[int, Field(strict=True, gt=0)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class Strict(BaseModel):
    """Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Open(BaseModel):
    """Keys beyond the named ones are the part's own parameters, checked by its signature."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def params(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class DataSpec(Open):
    """Where the samples come from, and how many go into each split."""

    source: str
    evaluate: PositiveInt | Literal["all"]
    calibrate: Count = 0
    tune: Count = 0
    order: Literal["shuffled", "file"] = "shuffled"


class ModelSpec(Open):
    """A model to assess: a source, that source's parameters, and free tags (depth, training, …).

    With `surrogate` it is not assessed: it is what an attacker has, and transfer arms craft their points on it.
    """

    source: str
    surrogate: bool = False
    tags: dict[str, str | int | float | bool] = Field(default_factory=dict)


def _nearest_kind(params: Mapping[str, Any]) -> str:
    """` (did you mean 'attack'?)` where a key looks like a mistyped kind of arm."""
    for name in params:
        if close := nearest(name, ("attack", "corruption", "preset")):
            return f" (did you mean {close!r}?)"
    return ""


class ArmEntry(Open):
    """One line of `arms`: lists expand to a grid, other keys are the part's parameters."""

    attack: Names | None = None
    corruption: Names | None = None
    preset: Names | None = None
    norm: Norms | None = None
    eps: Sizes | None = None
    objective: Names | None = None
    keep: Keeps | None = None
    max_queries: PositiveInt | None = None
    repeats: Annotated[PositiveInt, Field(le=10_000)] = 1
    surrogates: Names | None = Field(default=None, alias="from")  # of a transfer: the models to craft on
    arm: "ArmEntry | None" = None  # of a transfer: what is done to them

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [name for name in ("attack", "corruption", "preset") if getattr(self, name)]
        if len(given) != 1:
            others = ", ".join(sorted(self.model_fields_set | set(self.params)))
            found = " and ".join(given) or (f"only {others}" if others else "none")
            hint = "" if given else _nearest_kind(self.params)
            raise ValueError(f"exactly one of attack, corruption, preset is needed, found {found}{hint}")
        return self

    @model_validator(mode="after")
    def _whole_transfer(self) -> Self:
        if TRANSFER not in (self.attack or ()):
            for name, value in (("from", self.surrogates), ("arm", self.arm)):
                if value is not None:
                    raise ValueError(f"found `{name}`, which belongs to `attack: {TRANSFER}`")
            return self
        if len(self.attack or ()) > 1:
            raise ValueError(f"{TRANSFER} found beside other attacks: give it an entry of its own")
        beside = [*sorted(self.model_fields_set & ArmEntry.model_fields.keys() - _OF_TRANSFER.keys()), *self.params]
        if self.surrogates is None or self.arm is None:
            found = [name for field, name in _OF_TRANSFER.items() if field in self.model_fields_set] + beside
            close = [near for name in beside if (near := nearest(name, ("from", "arm")))]
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            needed = f"{TRANSFER} needs `from`, a model, and `arm`, an attack on it"
            raise ValueError(f"{needed}; found {', '.join(found)}{hint}")
        if beside:
            where = "what configures the attack belongs into its `arm`"
            raise ValueError(f"found `{beside[0]}` beside {TRANSFER}: {where}")
        if TRANSFER in (self.arm.attack or ()) or self.arm.corruption:
            kind = "a corruption" if self.arm.corruption else f"a {TRANSFER}"
            raise ValueError(f"the arm of a {TRANSFER} must be an attack on one model, found {kind}")
        return self


def _named(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping | DetectorSpec):
        raise ValueError(f"a name, or a mapping with a name and parameters, is needed; found {value!r}")
    return value


class DetectorSpec(Open):
    """A detector: its name, and its parameters beside it; a name alone means its defaults."""

    name: str


DETECTOR_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    ]
}
Detector = Annotated[DetectorSpec, BeforeValidator(_named), WithJsonSchema(DETECTOR_SCHEMA)]


def _size_or_name(value: object) -> object:
    """A number, or a fraction in text, is a size; other text is a name."""
    if not isinstance(value, str | int | float) or isinstance(value, bool) or value == "":
        raise ValueError(f"`{AVERAGE}`, a file with an evasion curve, or a size is needed, found {value!r}")
    try:
        size = parse_number(value)
    except ValueError:
        if not isinstance(value, str):
            raise
        return value
    if size < 0:
        raise ValueError(f"a size is at least 0, found {value!r}")
    return size


_EVASION_SCHEMA = {"anyOf": [*NUMBER_SCHEMA["anyOf"], {"const": AVERAGE}, {"type": "string"}]}


class DamageSpec(Strict):
    """Which distances damage is computed from, what goes undetected, what damage costs, and how sure the intervals are.

    `evasion` is a file with an evasion curve, a size above which everything is detected, or `average`: the compared
    models stand in for a detector, and damage is relative to them. That is also what is done where nothing is said.
    """

    norm: Norm = "linf"
    arms: Names | None = None
    thresholds: Sizes | None = None
    evasion: Annotated[str | float, BeforeValidator(_size_or_name), WithJsonSchema(_EVASION_SCHEMA)] | None = None
    cost: Size | None = None
    level: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    resamples: Annotated[int, Field(strict=True, ge=100, le=100_000)] = 2000

    @property
    def evasion_file(self) -> str | None:
        """The file that holds the evasion curve, if one is named."""
        return self.evasion if isinstance(self.evasion, str) and self.evasion != AVERAGE else None

    @model_validator(mode="after")
    def _cost_of_a_probability(self) -> Self:
        if self.cost is not None and self.evasion in (None, AVERAGE):
            raise ValueError(
                f"found a cost of {self.cost:g} and no evasion curve: relative damage is no probability and has no "
                "cost; name a curve in `evasion`, as in {evasion: evasion.json, cost: 25000}"
            )
        return self


_NamedTarget = Literal["next", "least-likely"]
_TARGETS = get_args(_NamedTarget)


class TargetSpec(Strict):
    """Success means that the model says a given class: one for all samples, the next one, the least likely one, or
    one for each class."""

    target: Annotated[int, Field(strict=True, ge=0)] | _NamedTarget | dict[int, int]


def _checked_target(value: Any) -> Any:
    if isinstance(value, Mapping):
        for own, wanted in value.items():
            if not _is_class(own) or not _is_class(wanted) or own == wanted:
                found = f"found {own!r}: {wanted!r}"
                raise ValueError(f"a map takes each class to another, as in {{0: 1, 1: 7}}; {found}")
    elif not _is_class(value) and value not in _TARGETS:
        close = nearest(value, _TARGETS)
        hint = f"; did you mean {close!r}?" if close else ""
        raise ValueError(f"a class number, next, least-likely or a map of classes is needed, found {value!r}{hint}")
    return value


def _is_class(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class AssessSpec(Strict):
    """The questions to answer."""

    damage: DamageSpec = DamageSpec()


def _one_success(value: object) -> object:
    """One complaint about a wrong `success`, where the members of the union would each have theirs."""
    if isinstance(value, Mapping):
        for name in value:
            if name != "target":
                raise ValueError(f"found the key {name!r}; {did_you_mean(name, ('target',))}")
        if "target" not in value:
            raise ValueError("found no target; write label, prediction or {target: …}")
        return TargetSpec(target=_checked_target(value["target"]))
    if not isinstance(value, TargetSpec) and value not in ("label", "prediction"):
        raise ValueError(f"found {value!r}; {did_you_mean(value, ('label', 'prediction', '{target: …}'))}")
    return value


Success = Annotated[Literal["label", "prediction"] | TargetSpec, BeforeValidator(_one_success)]


class StudySpec(Strict):
    """The whole question: data, models, arms, and what to ask of the outcomes."""

    name: Identifier
    seed: Seed = 0
    device: str = "auto"
    data: DataSpec
    models: Annotated[dict[Identifier, ModelSpec], Field(min_length=1)]
    success: Success = "label"
    arms: Annotated[list[ArmEntry], Field(min_length=1)]
    detectors: list[Detector] = Field(default_factory=list)
    keep_inputs: Literal["none", "successful", "all"] = "successful"
    shard: Annotated[int, Field(strict=True, ge=1, le=4096)] = 64
    max_cell_s: Annotated[Number, Field(gt=0)] | None = None
    assess: AssessSpec = AssessSpec()

    _where: Source = PrivateAttr(default_factory=Source)

    @property
    def criterion(self) -> Literal["label", "prediction", "target"]:
        """What success is judged by."""
        return "target" if isinstance(self.success, TargetSpec) else self.success

    @property
    def where(self) -> Source:
        """The file and lines this study was read from."""
        return self._where


def load_study(path: str | Path) -> StudySpec:
    """Read and check a study file."""
    data, source = read_yaml(Path(path))
    return study_from(data, source)


def study_from(data: Mapping[str, Any], source: Source | None = None) -> StudySpec:
    """Check a study given as a mapping."""
    source = source or Source()
    for name in RESERVED:
        if name in data:
            raise source.error((name,), "this version cannot do this yet; remove the section")
    study = validated(StudySpec, data, source)
    study._where = source
    return study


def validated(model: type[Checked], data: Mapping[str, Any], source: Source) -> Checked:
    """An instance of a pydantic model, or a StudyError with every mistake on a line of its own."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        problems = [source.error(_loc(problem, data), _complaint(problem, model)) for problem in error.errors()]
        raise StudyError("\n".join(map(str, problems[:10]))) from None


def _loc(problem: Mapping[str, Any], data: Mapping[str, Any]) -> Loc:
    """The path to a mistake as the file has it, without what pydantic adds: members of unions, lists of one."""
    loc: Loc = ()
    value: Any = data
    for part in problem["loc"]:
        inside = part in value if isinstance(value, Mapping) else isinstance(value, list) and isinstance(part, int)
        if not inside:
            return (*loc, part) if problem["type"] == "missing" else loc
        loc = (*loc, str(part) if isinstance(value, Mapping) else part)
        value = value[part]
    return loc


def _complaint(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key; {did_you_mean(problem['loc'][-1], _fields_at(model, problem['loc'][:-1]))}"
    if problem["type"] == "missing":
        return "is missing"
    if problem["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
        return f"found {problem['input']!r}; {did_you_mean(problem['input'], known)}"
    if problem["type"] in ("model_type", "dict_type"):
        return f"a mapping is needed, found {problem['input']!r}"
    if problem["type"] == "too_short":
        return "found nothing in it; at least one is needed"
    message = problem["msg"].removeprefix("Value error, ")
    if "found" in message or isinstance(problem["input"], dict):
        return str(message)
    return f"{message[0].lower()}{message[1:]}, found {problem['input']!r}"


def _fields_at(model: type[BaseModel], loc: Loc) -> list[str]:
    """The keys that a nested model knows, by walking the path to it."""
    for part in loc:
        annotation = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return list(model.model_fields)
