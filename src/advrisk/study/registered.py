"""The registry of assessments: what the built-in ones say of themselves, in the order of the page.

The classes that answer register themselves in `assess`; packages bring theirs with an entry point
`advrisk.assessments`. Reading a requirement needs no more than what stands here.
"""

from collections.abc import Mapping
from typing import Any

from advrisk.core.names import did_you_mean
from advrisk.study.assess import (
    AttacksSpec,
    CertificateSpec,
    ConvergenceSpec,
    DamageSpec,
    DetectionSpec,
    FailuresSpec,
    GateSpec,
    IndicatorSpec,
    SearchesSpec,
    SurvivalSpec,
)
from advrisk.study.fields import validated
from advrisk.study.options import (
    CertificateOptions,
    DetectionOptions,
    FailuresOptions,
    GateOptions,
    IndicatorOptions,
    SurvivalOptions,
)
from advrisk.study.questions import Assessments, AssessmentTraits, Quantity
from advrisk.study.source import Source

_OF_RUN = {
    "error_rows": Quantity("rows that ended in an error or a timeout", "count", of="anything"),
    "flagged": Quantity("cells that are flagged", "count", of="anything", inside=("flag",)),
}
_OF_DAMAGE = {
    "damage": Quantity("probability that an attack does damage", "share", compared=True, bound=True),
    "broken": Quantity("share of samples broken within a size", "share", size="needed", compared=True, bound=True),
    "robust_accuracy": Quantity(
        "share of samples that stay right within a size", "share", size="needed", compared=True, bound=True
    ),
    "clean_accuracy": Quantity("share of clean inputs answered rightly", "share", compared=True),
    "clean_rejection": Quantity("share of clean inputs refused", "share", compared=True),
    "cost": Quantity("what an attacked input costs on average", "number", compared=True, bound=True),
}
_OF_INDICATORS = {
    "risk": Quantity("risk under a scenario", "number", inside=("scenario", "loss"), compared=True),
}
_OF_DETECTION = {
    "auroc": Quantity(
        "AUROC of a detector against all attacks together", "share", of="detector", inside=("model",), bound=True
    ),
    "fpr": Quantity(
        "false-positive rate of a detector against all attacks together",
        "share",
        of="detector",
        inside=("model",),
        bound=True,
    ),
}
_OF_SURVIVAL = {"survival": Quantity("mean time that a model survives, up to the limit", "number", bound=True)}
_OF_CERTIFICATE = {
    "certificate": Quantity("whether the certificate was given", "yes", size="allowed"),
    "certified_wrong": Quantity("certified bound on inputs wrong, clean or attacked", "share", size="allowed"),
    "certified_broken": Quantity("certified bound on inputs that the attacks break", "share", size="allowed"),
}
CERTIFIED = tuple(_OF_CERTIFICATE)

BUILT_IN: Mapping[str, AssessmentTraits] = {
    "gate": AssessmentTraits(
        "Gate", GateSpec, _OF_RUN, options=GateOptions, follows=("evasion", "cost"), brief="each requirement"
    ),
    "damage": AssessmentTraits(
        "Damage",
        DamageSpec,
        _OF_DAMAGE,
        help="Compare models by damage: successful, undetected attacks.",
        brief="also with a detector, or a cost",
    ),
    "convergence": AssessmentTraits(
        "Are there enough samples",
        ConvergenceSpec,
        help="Show how damage settles as samples are added.",
        brief="how the numbers settle",
    ),
    "detection": AssessmentTraits(
        "Detectors",
        DetectionSpec,
        _OF_DETECTION,
        options=DetectionOptions,
        follows=("arms",),
        help="Evaluate detectors against all attacks at once.",
        brief="detectors against all attacks",
    ),
    "indicators": AssessmentTraits(
        "Risk in your deployment",
        IndicatorSpec,
        _OF_INDICATORS,
        options=IndicatorOptions,
        follows=("arms",),
        help="Show the risk in each scenario, and what drives it.",
        brief="risk in each scenario",
    ),
    "failures": AssessmentTraits(
        "Failure modes",
        FailuresSpec,
        options=FailuresOptions,
        help="List the inputs that fail where a scenario hurts most.",
        brief="the inputs that fail",
    ),
    "survival": AssessmentTraits(
        "How long it survives",
        SurvivalSpec,
        _OF_SURVIVAL,
        options=SurvivalOptions,
        follows=("norm", "arms"),
        help="Show how long models survive, and what breaking them costs.",
        brief="how long each model survives",
    ),
    "search": AssessmentTraits(
        "Searches for the worst settings",
        SearchesSpec,
        help="List the settings that each search tried, the worst first.",
        brief="settings that searches tried",
    ),
    "certificate": AssessmentTraits(
        "Certificates",
        CertificateSpec,
        _OF_CERTIFICATE,
        options=CertificateOptions,
        help="Say what is certified: attacks break at most alpha of inputs.",
        brief="what is certified",
    ),
    "attacks": AssessmentTraits(
        "Which attacks earn their passes",
        AttacksSpec,
        follows=("norm", "arms"),
        help="Rank attacks by how close they come, and name those to drop.",
    ),
}
assessments = Assessments("assessments", BUILT_IN)


def traits_of(name: str) -> AssessmentTraits:
    """What an assessment says of itself; packages are loaded only for one that is not built in."""
    return assessments.built_in[name] if name in assessments.built_in else assessments.get(name).traits


def title_of(name: str) -> str:
    """The title of an assessment; its name where no installed package brings it."""
    return traits_of(name).title if name in assessments else name


def built_in_quantities() -> dict[str, Quantity]:
    """What can be required without any package, which none has to be loaded for."""
    return {name: quantity for traits in assessments.built_in.values() for name, quantity in traits.quantities.items()}


def quantities() -> dict[str, Quantity]:
    """Everything that can be required."""
    brought = (part.traits.quantities for part in assessments.brought())
    return built_in_quantities() | {name: quantity for held in brought for name, quantity in held.items()}


def quantity_named(name: str) -> Quantity | None:
    """What can be required under this name; packages are loaded only for a name that is not built in."""
    return built_in_quantities().get(name) or quantities().get(name)


def assessment_of(quantity: str) -> str | None:
    """The package's assessment that a quantity is of."""
    return next((part.name for part in assessments.brought() if quantity in part.traits.quantities), None)


def check_questions(asked: Any, source: Source, *, installed: bool = True) -> None:
    """Refuse what stands below `assess:` and is no question, or is asked with options that it does not have.

    With `installed=False`, questions of packages that are not installed are let through: a run can be read anywhere.
    """
    for name, options in asked.items() if isinstance(asked, Mapping) else ():
        if name in assessments.built_in:
            continue  # fields of `AssessSpec`
        if name not in assessments:
            if not installed:
                continue
            known = [*assessments.built_in, *(part.name for part in assessments.brought())]
            raise source.error(("assess", str(name)), f"unknown key; {did_you_mean(name, known)}")
        if not isinstance(options, Mapping | None):
            raise source.error(("assess", name), f"a mapping is needed, found {options!r}")
        validated(assessments.get(name).traits.spec, options or {}, source, within=("assess", name))
