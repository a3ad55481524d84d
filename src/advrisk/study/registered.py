"""The registry of assessments: the traits of the built-in ones, in the order of the page.

The classes of assessments register themselves in `assess`; packages add theirs by the entry point
`advrisk.assessments`. Parsing a requirement needs only this module.
"""

from collections.abc import Mapping
from typing import Any

from advrisk.core.mistakes import Mistakes
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
from advrisk.study.questions import Assessments, AssessmentTraits, LimitKind, Quantity
from advrisk.study.source import Source


def _reported(meaning: str, kind: LimitKind = "share", *, label: str = "", bound: bool = False) -> Quantity:
    """A number that is reported, but not for requirements."""
    return Quantity(meaning, kind, label=label, bound=bound, required=False)


_OF_RUN = {
    "error_rows": Quantity("rows that ended in an error or a timeout", "count", of="anything"),
    "flagged": Quantity("flagged cells", "count", of="anything", inside=("flag",)),
}
_OF_DAMAGE = {
    "damage": Quantity("probability that an attack does damage", "share", compared=True, bound=True),
    "broken": Quantity(
        "share of samples broken within a size, those that are incorrect clean included",
        "share",
        label="attack success rate",
        size="needed",
        compared=True,
        bound=True,
    ),
    "robust_accuracy": Quantity(
        "share of samples that are correct clean and not broken within a size",
        "share",
        label="robust accuracy",
        size="needed",
        compared=True,
        bound=True,
    ),
    "clean_accuracy": Quantity("share of clean inputs answered rightly", "share", compared=True),
    "clean_rejection": Quantity("share of clean inputs refused", "share", compared=True),
    "cost": Quantity("what an attacked input costs on average", "number", compared=True, bound=True),
    "clean_loss": _reported("clean accuracy given up against the best model"),
    "mean_distance": _reported("mean adversarial distance", "number"),
    "relative_damage": _reported(
        "compares these models with each other; no probability", "number", label="relative damage"
    ),
    "damage_difference": _reported("difference of damage", "number"),
    "unnoticed_by_people": _reported("share of attacked inputs that people did not notice"),
    "detector_any_arm": _reported("damage with the detector in front, by any success", bound=True),
    "detector_monte_carlo": _reported("damage with the detector in front, by the nearest success", bound=True),
    "detector_by_curve": _reported("damage under the curve fitted to the detector's answers", bound=True),
    "detector_false_alarms": _reported("false alarms of the detector among clean inputs classified correctly"),
}
_OF_INDICATORS = {
    "risk": Quantity("risk under a scenario", "number", inside=("scenario", "loss"), compared=True),
    "branch_risk": _reported("risk given a branch of a scenario", "number"),
    "stratum_risk": _reported("risk under a scenario, of the samples of one stratum", "number"),
    "corruption_risk": _reported("mean loss under a corruption", "number"),
    "risk_difference": _reported("difference of risk", "number"),
    "measure": _reported("mean of a measure over samples", "number"),
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
_OF_SURVIVAL = {
    "survival": Quantity("mean time that a model survives, up to the limit", "number", bound=True),
    "survival_median": _reported("median time that a model survives", "number", bound=True),
    "failure_rate_clean": _reported("failures of clean inputs per unit of time", "number"),
    "failure_rate_attacked": _reported("failures under attack per unit of time", "number", bound=True),
    "training_cost_ratio": _reported("training time per sample over time to break one", "number", bound=True),
}
_OF_CERTIFICATE = {
    "certificate": Quantity("whether the certificate was given", "yes", size="allowed"),
    "certified_wrong": Quantity("certified bound on inputs wrong, clean or attacked", "share", size="allowed"),
    "certified_broken": Quantity("certified bound on inputs that the attacks break", "share", size="allowed"),
}
CERTIFIED = tuple(_OF_CERTIFICATE)
# Shares of the calibration samples; the bounds above also hold for unseen inputs.
_OF_CALIBRATION = {
    "calibration_error": _reported("clean error on the calibration samples"),
    "calibration_wrong": _reported("calibration samples wrong in the end"),
    "calibration_broken_by_worst": _reported("calibration samples broken by the worst attack"),
    "calibration_broken": _reported("calibration samples broken by any attack"),
}

BUILT_IN: Mapping[str, AssessmentTraits] = {
    "gate": AssessmentTraits(
        "Gate",
        GateSpec,
        _OF_RUN,
        options=GateOptions,
        follows=("evasion", "cost"),
        brief="each requirement",
        question="Is every requirement met?",
    ),
    "damage": AssessmentTraits(
        "Damage",
        DamageSpec,
        _OF_DAMAGE,
        help="Compare models by damage: successful, undetected attacks.",
        brief="also with a detector, or a cost",
        question="How much damage do attacks do?",
    ),
    "convergence": AssessmentTraits(
        "Are there enough samples",
        ConvergenceSpec,
        help="Show how damage settles as samples are added.",
        brief="how the numbers settle",
        question="Are there enough samples?",
    ),
    "detection": AssessmentTraits(
        "Detectors",
        DetectionSpec,
        _OF_DETECTION,
        options=DetectionOptions,
        follows=("arms",),
        help="Evaluate detectors against all attacks at once.",
        brief="detectors against all attacks",
        question="Do the detectors hold?",
    ),
    "indicators": AssessmentTraits(
        "Risk in your deployment",
        IndicatorSpec,
        _OF_INDICATORS,
        options=IndicatorOptions,
        follows=("arms",),
        help="Show the risk in each scenario, and what drives it.",
        brief="risk in each scenario",
        question="How large is the risk in your deployment?",
    ),
    "failures": AssessmentTraits(
        "Failure modes",
        FailuresSpec,
        options=FailuresOptions,
        help="List the inputs that fail where a scenario hurts most.",
        brief="the inputs that fail",
        question="Which inputs fail?",
    ),
    "survival": AssessmentTraits(
        "How long it survives",
        SurvivalSpec,
        _OF_SURVIVAL,
        options=SurvivalOptions,
        follows=("norm", "arms"),
        help="Show how long models survive, and what breaking them costs.",
        brief="how long each model survives",
        question="How long does each model survive?",
    ),
    "search": AssessmentTraits(
        "Searches for the worst settings",
        SearchesSpec,
        help="List the settings that each search tried, the worst first.",
        brief="settings that searches tried",
        question="What are the worst settings?",
    ),
    "certificate": AssessmentTraits(
        "Certificates",
        CertificateSpec,
        _OF_CERTIFICATE | _OF_CALIBRATION,
        options=CertificateOptions,
        help="Say what is certified: attacks break at most alpha of inputs.",
        brief="what is certified",
        question="What is certified?",
    ),
    "attacks": AssessmentTraits(
        "Which attacks earn their passes",
        AttacksSpec,
        follows=("norm", "arms"),
        help="Rank attacks by how close they come, and name those to drop.",
        question="Which attacks earn their passes?",
    ),
}
assessments = Assessments("assessments", BUILT_IN)


def traits_of(name: str) -> AssessmentTraits:
    """The traits of an assessment; packages are loaded only for a name that is not built in."""
    return assessments.built_in[name] if name in assessments.built_in else assessments.get(name).traits


def title_of(name: str) -> str:
    """The title of an assessment; its name if its package is not installed."""
    return traits_of(name).title if name in assessments else name


def question_of(name: str) -> str:
    """The question that an assessment answers; its title where it states none."""
    return (traits_of(name).question if name in assessments else "") or title_of(name)


def built_in_quantities() -> dict[str, Quantity]:
    """The quantities for requirements of built-in assessments; loads no package."""
    return {name: quantity for traits in assessments.built_in.values() for name, quantity in traits.required.items()}


def quantities() -> dict[str, Quantity]:
    """All quantities for requirements."""
    added = (part.traits.required for part in assessments.from_packages())
    return built_in_quantities() | {name: quantity for one in added for name, quantity in one.items()}


def quantity_named(name: str) -> Quantity | None:
    """The quantity of this name; packages are loaded only for a name that is not built in."""
    return built_in_quantities().get(name) or quantities().get(name)


def assessment_of(quantity: str) -> str | None:
    """The assessment with this quantity; packages are loaded only for one that is not built in."""
    own = (name for name, traits in assessments.built_in.items() if quantity in traits.required)
    others = (part.name for part in assessments.from_packages() if quantity in part.traits.required)
    return next(own, None) or next(others, None)


def check_questions(questions: Any, source: Source, *, installed: bool = True) -> None:
    """Refuse unknown assessments below `assess:`, and unknown options of those that packages add.

    With `installed=False`, assessments of packages that are not installed pass: a run can be read anywhere.
    """
    mistakes = Mistakes()
    for name, options in questions.items() if isinstance(questions, Mapping) else ():
        with mistakes.collect():
            _check_question(name, options, source, installed=installed)
    mistakes.refuse()


def _check_question(name: Any, options: Any, source: Source, *, installed: bool) -> None:
    if name in assessments.built_in:
        return  # a field of `AssessSpec`
    if name not in assessments:
        if not installed:
            return
        names = [*assessments.built_in, *(part.name for part in assessments.from_packages())]
        raise source.error(("assess", str(name)), f"unknown key; {did_you_mean(name, names)}")
    if not isinstance(options, Mapping | None):
        raise source.error(("assess", name), f"must be a mapping, found {options!r}")
    validated(assessments.get(name).traits.spec, options or {}, source, within=("assess", name))
