"""A study: one YAML file, validated field by field.

Only this module knows the structure of the file. `plan` checks names of parts and their parameters later, against the
registries.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, WithJsonSchema, model_validator

from advrisk.core.errors import StudyError
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import did_you_mean, nearest
from advrisk.core.traits import TRANSFER
from advrisk.study.assess import AssessSpec
from advrisk.study.defence import DefenceSpec
from advrisk.study.fields import (
    Count,
    Identifier,
    Keeps,
    Levels,
    Names,
    Norms,
    Number,
    Open,
    PositiveInt,
    Seed,
    Share,
    Sizes,
    Strict,
    validated,
    written_sizes,
)
from advrisk.study.gate import parse_requirement
from advrisk.study.precisions import OnePrecision, in_each_precision
from advrisk.study.registered import check_questions
from advrisk.study.resources import ResourcesSpec
from advrisk.study.search import SearchEntry
from advrisk.study.source import Source, read_yaml

_OF_TRANSFER = {"attack": "attack", "surrogates": "from", "arm": "arm", "name": "name"}  # field -> key


class DataSpec(Open):
    """The source of the samples, and the number in each split."""

    source: str
    evaluate: PositiveInt | Literal["all"]
    calibrate: Count = 0
    tune: Count = 0
    train: Count = 0
    order: Literal["shuffled", "balanced", "file"] = "shuffled"


class ModelSpec(Open):
    """A model to assess: a source, that source's parameters, and free tags (depth, training, …).

    With `surrogate` it is not assessed: an attacker has it, and transfer arms craft their points on it. `precision` is
    that of its computation. `expect_accuracy` is its expected clean accuracy: a run stops before the attacks if it is
    far below; 0 expects nothing. The cost of its training can be stated: seconds of the clock (`train_s`) and of
    processors (`train_process_s`), the number of training samples, and its cost in any unit. These take precedence over
    the records of `advrisk train`.
    """

    source: str
    surrogate: bool = False
    precision: OnePrecision | None = None  # None: that of the source
    batch: PositiveInt | None = None  # inputs per query; None: any number
    expect_accuracy: Share | None = None
    tags: dict[str, str | int | float | bool] = Field(default_factory=dict)
    train_s: Annotated[Number, Field(gt=0)] | None = None
    train_process_s: Annotated[Number, Field(gt=0)] | None = None
    train_samples: PositiveInt | None = None
    train_cost: Annotated[Number, Field(gt=0)] | None = None

    @property
    def training(self) -> dict[str, Any]:
        """The stated properties of its training."""
        names = ("train_s", "train_process_s", "train_samples", "train_cost")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def _nearest_kind(params: Mapping[str, Any]) -> str:
    """` (did you mean 'attack'?)` where a key looks like a mistyped kind of arm."""
    for name in params:
        if close := nearest(name, ("attack", "corruption", "preset")):
            return f" (did you mean {close!r}?)"
    return ""


class ArmEntry(Open):
    """One entry of `arms`: lists expand to a grid, other keys are the part's parameters."""

    name: Identifier | None = None  # of the arm; for several arms, the beginning of their names
    attack: Names | None = None
    corruption: Names | None = None
    preset: Names | None = None
    norm: Norms | None = None
    eps: Sizes | None = None
    objective: Names | None = None
    keep: Keeps | None = None
    max_queries: PositiveInt | None = None
    level: Levels | None = None  # of a corruption: its strength from 1, the weakest
    repeats: Annotated[PositiveInt, Field(le=10_000)] = 1
    draws: Annotated[PositiveInt, Field(le=1000)] = 1  # queries per point of a model that answers at random
    surrogates: Names | None = Field(default=None, alias="from")  # of a transfer: the models to craft on
    arm: "ArmEntry | None" = None  # of a transfer: the attack on them

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [name for name in ("attack", "corruption", "preset") if getattr(self, name)]
        if len(kinds) != 1:
            others = ", ".join(sorted(self.model_fields_set | set(self.params)))
            found = " and ".join(kinds) or (f"only {others}" if others else "none")
            hint = "" if kinds else _nearest_kind(self.params)
            raise ValueError(f"set exactly one of attack, corruption, preset; found {found}{hint}")
        return self

    @model_validator(mode="after")
    def _whole_transfer(self) -> Self:
        if TRANSFER not in (self.attack or ()):
            for name, value in (("from", self.surrogates), ("arm", self.arm)):
                if value is not None:
                    raise ValueError(f"found `{name}`, which belongs to `attack: {TRANSFER}`")
            return self
        if len(self.attack or ()) > 1:
            raise ValueError(f"found {TRANSFER} with other attacks; give it an entry of its own")
        beside = [*sorted(self.model_fields_set & ArmEntry.model_fields.keys() - _OF_TRANSFER.keys()), *self.params]
        if self.surrogates is None or self.arm is None:
            found = [key for field, key in _OF_TRANSFER.items() if field in self.model_fields_set] + beside
            close = [near for name in beside if (near := nearest(name, ("from", "arm")))]
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            needed = f"{TRANSFER} needs `from`, a model, and `arm`, an attack on it"
            raise ValueError(f"{needed}; found {', '.join(found)}{hint}")
        if beside:
            raise ValueError(f"found `{beside[0]}` with {TRANSFER}; settings of the attack belong in its `arm`")
        if self.arm.name is not None:
            raise ValueError(f"found `name: {self.arm.name}` in the arm of a {TRANSFER}; name the {TRANSFER} itself")
        if TRANSFER in (self.arm.attack or ()) or self.arm.corruption:
            kind = "a corruption" if self.arm.corruption else f"a {TRANSFER}"
            raise ValueError(f"the arm of a {TRANSFER} must be an attack on one model, found {kind}")
        return self


_NamedTarget = Literal["next", "least-likely"]
_TARGETS = get_args(_NamedTarget)


class TargetSpec(Strict):
    """Success means a target class: one for all samples, the next one, the least likely one, or one for each class."""

    target: Annotated[int, Field(strict=True, ge=0)] | _NamedTarget | dict[int, int]


def _checked_target(value: Any) -> Any:
    if isinstance(value, Mapping):
        for own, wanted in value.items():
            if not _is_class(own) or not _is_class(wanted) or own == wanted:
                raise ValueError(f"must map each class to another, as in {{0: 1, 1: 7}}; found {own!r}: {wanted!r}")
    elif not _is_class(value) and value not in _TARGETS:
        close = nearest(value, _TARGETS)
        hint = f"; did you mean {close!r}?" if close else ""
        raise ValueError(f"must be a class number, next, least-likely or a map of classes, found {value!r}{hint}")
    return value


def _is_class(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _one_success(value: object) -> object:
    """Check `success` with one message, where each member of the union would have its own."""
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


def _named(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping | NamedSpec):
        raise ValueError(f"must be a name, or a mapping with a name and parameters; found {value!r}")
    return value


class NamedSpec(Open):
    """A part by its name, with its parameters; a name alone means the defaults."""

    name: str


class DetectorSpec(Open):
    """A detector; one that learns from attacks uses the successes of all its `arms`.

    `{detector: lid, name: neighbours}` is shown as `neighbours`. Without `detector`, `name` is the part's name, and the
    detector is shown by its settings.
    """

    detector: str
    name: Identifier | None = None
    arms: Annotated[list[ArmEntry], Field(min_length=1)] | None = None


def _a_detector(value: object) -> object:
    if isinstance(value, str):
        return {"detector": value}
    if not isinstance(value, Mapping | DetectorSpec):
        raise ValueError(f"must be a name, or a mapping with a detector and parameters; found {value!r}")
    if isinstance(value, Mapping) and "detector" not in value:
        if "name" not in value:
            raise ValueError("found no `detector`; name one, as in {detector: lid, neighbours: 20}")
        return {"detector": value["name"]} | {key: setting for key, setting in value.items() if key != "name"}
    return value


def called_so(name: str) -> str:
    """The remedy for a detector's own name in place of its kind."""
    return f"(to give a detector this name, write, for example, {{detector: lid, name: {name}}})"


class MeasureSpec(NamedSpec):
    """A number about each model at clean inputs.

    `samples` is the number of first samples of the evaluation split to measure; by default all.
    """

    samples: PositiveInt | None = None


NAMED_SCHEMA = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    ]
}
_DETECTOR_SCHEMA = {
    "anyOf": [
        *NAMED_SCHEMA["anyOf"],
        {
            "type": "object",
            "properties": {"detector": {"type": "string"}, "name": {"type": "string"}},
            "required": ["detector"],
        },
    ]
}
Detector = Annotated[DetectorSpec, BeforeValidator(_a_detector), WithJsonSchema(_DETECTOR_SCHEMA)]
Measure = Annotated[MeasureSpec, BeforeValidator(_named), WithJsonSchema(NAMED_SCHEMA)]
Named = Annotated[NamedSpec, BeforeValidator(_named), WithJsonSchema(NAMED_SCHEMA)]


def _a_tree(value: object) -> object:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"must be a mapping of branches to weights, as in {{rain: 0.3}}; found {value!r}")
    return value


# `risk.indicators` checks the content of a tree of likelihoods.
Tree = Annotated[dict[str, Any], BeforeValidator(_a_tree), WithJsonSchema({"type": "object", "minProperties": 1})]


def _a_requirement(text: str) -> str:
    parse_requirement(text)
    return text


class StudySpec(Strict):
    """A whole study: data, models, arms, and the questions about the outcomes."""

    name: Identifier
    seed: Seed = 0
    device: str = "auto"
    data: DataSpec
    models: Annotated[dict[Identifier, ModelSpec], Field(min_length=1)]
    defences: dict[Identifier, DefenceSpec] = Field(default_factory=dict)
    success: Success = "label"
    arms: Annotated[list[ArmEntry], Field(min_length=1)]
    detectors: list[Detector] = Field(default_factory=list)
    measures: list[Measure] = Field(default_factory=list)
    losses: list[Named] = Field(default_factory=list)
    scenarios: dict[Identifier, Tree] = Field(default_factory=dict)
    search: list[SearchEntry] = Field(default_factory=list)
    keep_inputs: Literal["none", "successful", "all"] = "successful"
    shard: Annotated[int, Field(strict=True, ge=1, le=4096)] = 64
    max_cell_s: Annotated[Number, Field(gt=0)] | None = None
    max_load_s: Annotated[Number, Field(gt=0)] = 300.0  # for a model that runs code of the user, until its first answer
    resources: ResourcesSpec = ResourcesSpec()
    assess: AssessSpec = AssessSpec()
    gate: list[Annotated[str, AfterValidator(_a_requirement)]] = Field(default_factory=list)

    _where: Source = PrivateAttr(default_factory=Source)
    _written: dict[float, str] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _named_population(self) -> Self:
        certified = self.assess.certificate
        if self.data.order == "balanced" and certified is not None and certified.population is None:
            raise ValueError(
                "found `order: balanced` and a certificate without a population: set `population: balanced` in "
                "assess.certificate, or `population: as-sampled` if all classes are equally frequent in deployment"
            )
        return self

    @property
    def criterion(self) -> Literal["label", "prediction", "target"]:
        """The criterion of success."""
        return "target" if isinstance(self.success, TargetSpec) else self.success

    def loss_entries(self) -> list[dict[str, Any]]:
        """The losses as in the study: name and parameters."""
        return [loss.model_dump() for loss in self.losses]

    @property
    def written(self) -> Mapping[float, str]:
        """Size -> its fraction in the study: 8/255."""
        return self._written

    @property
    def where(self) -> Source:
        """The file and lines this study was read from."""
        return self._where


NameCheck = Callable[[Mapping[str, Any], Source], Iterable[StudyError]]


def no_check(data: Mapping[str, Any], source: Source) -> Iterable[StudyError]:
    """Names of parts are checked where the parts are imported."""
    del data, source
    return ()


def load_study(path: str | Path, *, installed: bool = True, names: NameCheck = no_check) -> StudySpec:
    """Read and check a study file; with `installed=False`, it may use assessments of missing packages.

    `names` yields the unknown names of parts and parameters, which are reported with all other mistakes.
    """
    data, source = read_yaml(Path(path))
    return study_from(data, source, installed=installed, names=names)


def study_from(
    data: Mapping[str, Any], source: Source | None = None, *, installed: bool = True, names: NameCheck = no_check
) -> StudySpec:
    """A validated study from a mapping; a StudyError lists every mistake."""
    source = source or Source()
    mistakes = Mistakes()
    with mistakes.collect():
        check_questions(data.get("assess"), source, installed=installed)
    whole = dict(data)
    with mistakes.collect():
        whole = in_each_precision(data, source)
    mistakes.add(*names(whole, source))
    study = None
    with mistakes.collect():
        study = validated(StudySpec, whole, source)
    mistakes.refuse()
    assert study is not None  # or there is a mistake
    study._where = source
    study._written = written_sizes(data)
    return study
