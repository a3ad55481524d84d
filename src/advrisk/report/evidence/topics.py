"""Groups of numbers: what each is about, where it stands in the report, and why a run holds none of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from advrisk.assess.findings import Findings
from advrisk.core.sections import Unanswered
from advrisk.ledger import Ledger
from advrisk.report.evidence.numbers import (
    Basis,
    Number,
    certified_sizes,
    compute_facts,
    gate_verdicts,
    origin_facts,
    study_facts,
    trust_counts,
)
from advrisk.study import StudySpec, assessments
from advrisk.study.registered import title_of

_CAUSES = "SELECT DISTINCT cause FROM arms WHERE kind = 'corruption' AND origin <> 'dropped' ORDER BY cause"
_CAUSE_WORDS = {"sensor": "sensors", "noise": "noise", "weather": "weather", "table": "data entry"}
# Of a deployment that the study describes; that all corruptions are equally likely describes none.
_OF_DEPLOYMENT = ("risk", "branch_risk", "risk_difference")


@dataclass(frozen=True)
class Topic:
    """A group of numbers: facts, then quantities in this order; how to read them, or why there are none."""

    id: str
    title: str
    section: str  # of the report; its question says why it has no answer
    how: str
    why_none: str  # where that question has one; empty where there are numbers
    quantities: tuple[str, ...] = ()
    facts: Callable[[Basis], Iterator[Number]] | None = None
    numbers: tuple[Number, ...] = ()  # of a run


def evidence_topics(ledger: Ledger, study: StudySpec | None, found: Findings) -> tuple[Topic, ...]:
    """Every topic, also those of which the run holds nothing; then those of other questions."""
    basis = Basis(ledger, study, found)
    return tuple(_filled(topic, basis) for topic in (*TOPICS, *_others(found)))


def _filled(topic: Topic, basis: Basis) -> Topic:
    stated = basis.study is not None and basis.study.scenarios
    numbers = [] if topic.facts is None else [*topic.facts(basis)]
    for quantity in topic.quantities:
        if stated or quantity not in _OF_DEPLOYMENT:
            numbers += basis.estimated.get(quantity, ())
    why = "" if numbers else basis.found.why_not(topic.section) or topic.why_none
    return replace(topic, numbers=tuple(numbers), why_none=why)


def _others(found: Findings) -> Iterator[Topic]:
    """A topic for each question that has none above, of a package, say; no clause is known to ask for it."""
    how, why = "No clause listed here asks for these numbers.", "the answer holds no number"
    placed = {topic.section for topic in TOPICS}
    for name, one in found.answers.items():
        own = assessments.built_in.get(name)
        if own is None or (own.quantities and name not in placed):
            quantities = () if isinstance(one, Unanswered) else tuple(assessments.get(name).traits.quantities)
            yield Topic(name, title_of(name), name, how, why, quantities)


def causes(ledger: Ledger) -> str:
    """What the corruptions of a run stand for, in words: `noise`, `sensors and weather`."""
    found = [row["cause"] for row in ledger.query(_CAUSES).to_pylist()]
    told = list(dict.fromkeys(_CAUSE_WORDS.get(cause, cause) if cause else "of an unknown cause" for cause in found))
    return " and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told)


_NO_SCENARIO = "no corruption is an arm of the study, and no scenario is stated"
TOPICS = (
    Topic(
        "accuracy",
        "Accuracy",
        "damage",
        "The share of clean inputs that a model answers rightly.",
        "the ledger holds no clean rows of samples with a label",
        ("clean_accuracy", "clean_rejection", "clean_loss"),
    ),
    Topic(
        "success",
        "How much it takes",
        "damage",
        "The share of samples that stay correct under every attack within a size, and the size that it took.",
        "no attack was carried out",
        ("robust_accuracy", "broken", "mean_distance"),
    ),
    Topic(
        "damage",
        "Damage",
        "damage",
        "How probable it is that an attacked input does damage, unnoticed.",
        "what goes undetected is not known; it takes an evasion curve or a detector",
        (
            *("damage", "cost", "detector_any_arm", "detector_monte_carlo", "detector_by_curve"),
            "detector_false_alarms",
        ),
    ),
    Topic(
        "comparison",
        "Models compared",
        "damage",
        "All on the same samples. If the interval of a difference holds zero, the two are undecided.",
        "there is one model, and nothing to compare it with",
        ("relative_damage", "damage_difference", "risk_difference"),
    ),
    Topic(
        "corruptions",
        "Corruptions",
        "indicators",
        "What each corruption by itself costs on average.",
        _NO_SCENARIO,
        ("corruption_risk",),
    ),
    Topic(
        "scenarios",
        "Risk in the described deployments",
        "indicators",
        "The mean loss over everything that the scenario says may happen, as often as it says; and given each part.",
        "no scenario describes the deployment; add `scenarios` to the study",
        ("risk", "branch_risk"),
    ),
    Topic(
        "groups",
        "Risk by groups",
        "indicators",
        "The same for the samples of one stratum.",
        "there is no corruption and no scenario, or the samples carry no strata; name some in `data: {strata: …}`",
        ("stratum_risk",),
    ),
    Topic(
        "detection",
        "Detectors",
        "detection",
        "A sample counts as detected only if every attack that broke it is detected.",
        "no detector scored this run; add `detectors` to the study",
        ("auroc", "fpr"),
    ),
    Topic(
        "survival",
        "How long it survives",
        "survival",
        "Work until the first success, up to a limit.",
        "the study does not ask for it; add `survival: {}` to `assess`",
        ("survival", "survival_median", "failure_rate_attacked", "failure_rate_clean", "training_cost_ratio"),
    ),
    Topic(
        "certificates",
        "Certificates",
        "certificate",
        "Upper bounds hold for the frozen attacks on samples that nothing else looked at.",
        "nothing is certified; add `assess: {certificate: …}` to the study",
        (
            *("calibration_error", "calibration_wrong", "calibration_broken_by_worst", "calibration_broken"),
            *("certified_wrong", "certified_broken"),
        ),
        certified_sizes,
    ),
    Topic(
        "gate",
        "Requirements",
        "gate",
        "What the study requires, and whether the whole interval, or none of it, meets that.",
        "the study requires nothing; add `gate` to it",
        facts=gate_verdicts,
    ),
    Topic(
        "people",
        "What people noticed",
        "damage",
        "The share of attacked inputs that people took for unchanged.",
        "nobody was asked; `advrisk label RUN` does",
        ("unnoticed_by_people",),
    ),
    Topic(
        "measures",
        "Measures",
        "indicators",
        "Numbers about a model at clean inputs.",
        "no measure was taken; add `measures` to the study",
        ("measure",),
    ),
    Topic(
        "trust",
        "Can it be trusted",
        "health",
        "Counted over the whole run. An attack of optimality 1 found every smallest distance by itself.",
        "nothing was counted",
        facts=trust_counts,
    ),
    Topic(
        "study",
        "The question",
        "provenance",
        "Everything that decides the rows: data, models, attacks with their settings, seed.",
        "the rows were imported, and no study says how they were made",
        facts=study_facts,
    ),
    Topic(
        "provenance",
        "Where it comes from",
        "provenance",
        "Counted or recorded, not estimated.",
        "the ledger holds no rows",
        facts=origin_facts,
    ),
    Topic(
        "compute",
        "Computation",
        "provenance",
        "As the machines that trained and attacked measured it.",
        "neither training times nor passes were recorded",
        facts=compute_facts,
    ),
)
