"""Questions about the outcomes of a run: changing them runs no cell again, except for a certificate."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from advrisk.core.numbers import parse_number
from advrisk.core.traits import Norm
from advrisk.study.fields import NUMBER_SCHEMA, Names, Number, OptionText, Rate, Size, Sizes, Strict

ArmNames = Annotated[Names | None, Field(description="Count this arm only; * is allowed."), OptionText("--arm", "ARM")]
AVERAGE = "average"  # the evasion curve made from the compared models


def _size_or_name(value: object) -> object:
    """A number, or a fraction in text, is a size; other text is a name."""
    if not isinstance(value, str | int | float) or isinstance(value, bool) or value == "":
        raise ValueError(f"must be `{AVERAGE}`, a file with an evasion curve, or a size, found {value!r}")
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


class AlarmSpec(Strict):
    """A detector of the study, and its alarm threshold: a score, or the share of clean inputs with an alarm."""

    name: str
    threshold: Number | None = None
    false_alarms: Annotated[Number, Field(ge=0, lt=1)] | None = None

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        if (self.threshold is None) == (self.false_alarms is None):
            found = "neither" if self.threshold is None else "both"
            raise ValueError(f"set either threshold, a score, or false_alarms, a share; found {found}")
        return self

    @property
    def alarm(self) -> float | dict[str, float]:
        """The threshold as `risk.monte_carlo` takes it."""
        return {"false_alarms": self.false_alarms or 0.0} if self.threshold is None else self.threshold


class DamageSpec(Strict):
    """The distances for damage, the evasion curve or detector, the cost of damage, and the level of intervals.

    `evasion` is a file with an evasion curve, a size above which everything is detected, or `average`, the default: the
    compared models replace a detector, and damage is relative to them. `detector` scores the attacks themselves.
    """

    norm: Norm = "linf"
    arms: Names | None = None
    thresholds: Sizes | None = None
    evasion: Annotated[str | float, BeforeValidator(_size_or_name), WithJsonSchema(_EVASION_SCHEMA)] | None = None
    detector: AlarmSpec | None = None
    cost: Size | None = None
    level: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    resamples: Annotated[int, Field(strict=True, ge=100, le=100_000)] = 2000

    @property
    def evasion_file(self) -> str | None:
        """The file that holds the evasion curve, if one is named."""
        return self.evasion if isinstance(self.evasion, str) and self.evasion != AVERAGE else None

    @model_validator(mode="after")
    def _one_ranking(self) -> Self:
        if self.evasion == AVERAGE and self.detector is not None:
            raise ValueError(
                f"found `evasion: {AVERAGE}`, which replaces a detector, and the detector {self.detector.name!r}; "
                "choose one"
            )
        return self

    @model_validator(mode="after")
    def _cost_of_a_probability(self) -> Self:
        if self.cost is not None and self.evasion in (None, AVERAGE) and self.detector is None:
            raise ValueError(
                f"found a cost of {self.cost:g} and neither an evasion curve nor a detector: relative damage is no "
                "probability and has no cost; name a curve, as in {evasion: evasion.json, cost: 25000}"
            )
        return self


class ConvergenceSpec(Strict):
    """The resolution of the convergence of damage; `damage` has its other settings."""

    points: Annotated[int, Field(strict=True, ge=1, le=1000, description="Numbers of samples to show.")] = 40
    resamples: Annotated[int, Field(strict=True, ge=1, le=10_000, description="Draws of samples behind each band.")] = (
        50
    )


class AttacksSpec(Strict):
    """The attacks to compare, and their norm; by default those of damage."""

    norm: Norm | None = None
    arms: Names | None = None


class DetectionSpec(Strict):
    """The attacks that test detectors, the detection rate for the false-positive rate, and the alarm threshold.

    `false_alarms` is the share of clean inputs above the threshold for the evasion rate of each arm.
    """

    arms: ArmNames = None
    tpr: Annotated[Number, Field(gt=0, le=1, description="The share of attacks to detect.")] = 0.95
    false_alarms: Annotated[Number, Field(ge=0, lt=1)] = 0.05
    level: Annotated[Number, Field(gt=0, lt=1)] = 0.95
    resamples: Annotated[int, Field(strict=True, ge=100, le=100_000)] = 1000


class IndicatorSpec(Strict):
    """The level of intervals of key risk indicators; `losses` and `scenarios` of the study define the indicators."""

    level: Annotated[Number, Field(gt=0, lt=1)] = 0.95


class FailuresSpec(Strict):
    """The number of samples to list for the most harmful branches; by default fewer in the report."""

    samples: Annotated[int, Field(strict=True, ge=1, le=1000, description="Samples to list per branch.")] = 12


class HardwareSpec(Strict):
    """The cost of an hour of a machine, in any unit."""

    name: str
    per_hour: Size


def _level_text(value: object) -> object:
    """A level as text, also where YAML reads a number."""
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"must be a level, as in {{defence: none}}; found {value!r}")


def _unit(value: object) -> object:
    """A size above 0, kept as written, so that `1/255` stays `1/255`."""
    if not parse_number(value) > 0:
        raise ValueError(f"a unit is a number above 0, found {value!r}")
    return value


Level = Annotated[str, BeforeValidator(_level_text)]
Unit = Annotated[str | int | float, BeforeValidator(_unit), WithJsonSchema(NUMBER_SCHEMA)]


class SurvivalSpec(Strict):
    """The measure of durations, their covariates, and the threshold of a broken model.

    `covariates` are properties before the attack: eps, attack, norm, objective, model, tags of models, strata; by
    default those that differ. `shape_covariates` change the shape of the law, too. `reference` is the level of a
    covariate to compare others with, as in `{defence: none}`; `units` is the unit of an effect, as in `{eps: 1/255}`. A
    law is not reported if its error on held-out samples exceeds `tolerance` and chance. `until` is the time limit of
    means; by default, and at most, the time for which every model was attacked. `eps_max` limits the sizes whose cost
    is reported. A model counts as broken if training on a sample took `broken_factor` times longer than breaking one.
    """

    measure: Annotated[
        Literal["forward", "gradient", "seconds", "process-seconds"], Field(description="The unit of durations.")
    ] = "forward"
    # An empty list: no covariates.
    covariates: Annotated[
        list[str] | None, Field(description="A covariate of durations: eps, model, a tag, …"), OptionText("--covariate")
    ] = None
    shape_covariates: Annotated[list[str], OptionText("--shape-covariate")] = Field(
        default_factory=list, description="A covariate of the shape of the law."
    )
    reference: Annotated[dict[str, Level], OptionText(metavar="COVARIATE=LEVEL")] = Field(
        default_factory=dict, description="The level to compare others with, as in model=plain."
    )
    units: Annotated[dict[str, Unit], OptionText("--unit", "COVARIATE=SIZE")] = Field(
        default_factory=dict, description="The unit of an effect, as in eps=1/255."
    )
    tolerance: Annotated[Number, Field(gt=0, lt=1, description="The largest error of a law to report it.")] = 0.02
    family: Annotated[
        Literal["auto", "weibull", "lognormal", "loglogistic"],
        Field(description="The law of durations; auto is the one that explains unseen samples best."),
    ] = "auto"
    norm: Annotated[Norm | None, Field(description="The norm in which distances count.")] = None
    arms: ArmNames = None
    level: Annotated[Number, Field(gt=0, lt=1, description="The level of intervals.")] = 0.95
    until: Annotated[
        Annotated[Number, Field(gt=0)] | None, Field(description="Take means up to this many passes or seconds.")
    ] = None
    eps_max: Annotated[
        Annotated[Number, Field(gt=0)] | None, Field(description="Count costs of sizes up to this one.")
    ] = None
    broken_factor: Annotated[
        Number,
        Field(gt=0, description="Call a model broken if training takes this many times as long as breaking."),
    ] = 10.0
    hardware: HardwareSpec | None = None


class SearchesSpec(Strict):
    """The models whose searches are shown; by default all."""

    models: Annotated[
        Names | None, Field(description="Show searches against this model only."), OptionText("--model", "MODEL")
    ] = None


class GateSpec(Strict):
    """Whether a requirement cannot pass if the attacks behind it are flagged."""

    strict_flags: bool = False


class SearchGuaranteeSpec(Strict):
    """Assumptions about p as a function of an attack's setting, for a guarantee from the search.

    PROSAC, Theorem 4: its norm in the Hilbert space of the kernel is at most `norm_bound`, it is observed with
    `noise`-sub-Gaussian noise, and the guarantee fails with a probability of at most `delta`. `length_scale` is a share
    of each parameter's range. The data cannot confirm these assumptions.
    """

    norm_bound: Annotated[Number, Field(ge=0, le=1e12)]
    noise: Annotated[Number, Field(ge=0, le=1e12)]
    kernel: Literal["squared-exponential", "matern-5/2"]
    length_scale: Annotated[Number, Field(ge=1e-6, le=1e6)]
    delta: Rate


class CertificateSpec(Strict):
    """The claim to certify: the attacks break at most a share `alpha` of inputs; `zeta` bounds the error probability.

    `arms` names attacks of the study, each with a norm and an eps; by default all such attacks. The results of searches
    are added to them. `population` names the population of the calibration split where classes or strata are equally
    frequent. `search_guarantee` has the assumptions for a guarantee about settings that no search tried. Unlike the
    other questions, this one runs cells: on the calibration split.
    """

    alpha: Annotated[Rate, Field(description="The risk to certify: 0.1, or 10 %.")] = 0.1
    zeta: Annotated[Rate, Field(description="The largest probability of a false certificate.")] = 0.05
    arms: ArmNames = None
    method: Annotated[Literal["exact", "hoeffding-bentkus", "betting"], Field(description="The bound on the risk.")] = (
        "exact"
    )
    population: Literal["as-sampled", "balanced"] | None = None
    search_guarantee: SearchGuaranteeSpec | None = None


def _asked(value: object) -> object:
    """`survival:` without a value means survival with all its defaults."""
    return {} if value is None else value


class AssessSpec(Strict):
    """The questions to answer; packages can add others (`study.registered`)."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    gate: GateSpec = GateSpec()
    damage: DamageSpec = DamageSpec()
    convergence: ConvergenceSpec = ConvergenceSpec()
    detection: DetectionSpec = DetectionSpec()
    indicators: IndicatorSpec = IndicatorSpec()
    failures: FailuresSpec = FailuresSpec()
    survival: Annotated[SurvivalSpec, BeforeValidator(_asked)] = SurvivalSpec()
    search: SearchesSpec = SearchesSpec()
    certificate: CertificateSpec | None = None
    attacks: AttacksSpec = AttacksSpec()

    @property
    def brought(self) -> dict[str, dict[str, Any]]:
        """What is asked of assessments that packages bring, with its options."""
        return {name: dict(options or {}) for name, options in (self.model_extra or {}).items()}
