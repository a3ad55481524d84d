"""Options for a finished run, in addition to a study's: arguments of `Run`, and options of `show`."""

from typing import Annotated, Any

from pydantic import Field

from advrisk.study.assess import (
    ArmNames,
    CertificateSpec,
    DetectionSpec,
    FailuresSpec,
    GateSpec,
    IndicatorSpec,
    SurvivalSpec,
)
from advrisk.study.fields import Names, OptionText

ModelNames = Annotated[Names | None, Field(description="Count this model only."), OptionText("--model", "MODEL")]


class DetectionOptions(DetectionSpec):
    """`threshold` is a score, or `{"false_alarms": 0.05}`."""

    detectors: Annotated[
        Names | None, Field(description="Show this detector only."), OptionText("--detector", "DETECTOR")
    ] = None
    models: ModelNames = None
    threshold: float | dict[str, float] | None = None


class IndicatorOptions(IndicatorSpec):
    """Other scenarios, losses and weights than those of the study."""

    scenario: Annotated[Names | None, Field(description="Show this scenario only."), OptionText(metavar="SCENARIO")] = (
        None
    )
    scenarios: Any = None  # trees by name, `Scenario`s, or a file
    losses: Any = None  # names, mappings as in a study, or functions of the outputs
    what_if: dict[str, Any] | None = None
    arms: ArmNames = None
    models: ModelNames = None


class FailuresOptions(FailuresSpec):
    """One scenario, one loss and one model; or `every` scenario and loss, of the models with the least risk."""

    scenario: str | None = None
    loss: str | None = None
    model: str | None = None
    every: bool = False


class SurvivalOptions(SurvivalSpec):
    """Only some models."""

    models: ModelNames = None


class CertificateOptions(CertificateSpec):
    """Only some models; all of the run share zeta."""

    models: ModelNames = None


class GateOptions(GateSpec):
    """Requirements in addition to the study's, at another level, evasion curve or cost."""

    require: Names | None = None
    level: float | None = None
    evasion: Any = None  # a curve, a file, `average`, or a size
    cost: float | None = None
