"""Groups of numbers: what each is about, where it stands in the report, and why a run holds none of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.core.sections import Unanswered
from advrisk.ledger import Ledger
from advrisk.report.evidence.numbers import (
    PLAIN,
    SHARE,
    Number,
    Source,
    accuracy_numbers,
    certificates_numbers,
    comparison_numbers,
    compute_numbers,
    corruptions_numbers,
    damage_numbers,
    detection_numbers,
    gate_numbers,
    groups_numbers,
    measures_numbers,
    people_numbers,
    provenance_numbers,
    scenarios_numbers,
    study_numbers,
    success_numbers,
    survival_numbers,
    trust_numbers,
)
from advrisk.report.findings import Findings
from advrisk.study import StudySpec, assessments
from advrisk.study.registered import title_of

_CAUSES = "SELECT DISTINCT cause FROM arms WHERE kind = 'corruption' AND origin <> 'dropped' ORDER BY cause"
_CAUSE_WORDS = {"sensor": "sensors", "noise": "noise", "weather": "weather", "table": "data entry"}


@dataclass(frozen=True)
class Topic:
    """A group of numbers: where they stand in the report, how to read them, or why there are none."""

    id: str
    title: str
    section: str  # of the report
    how: str
    numbers: tuple[Number, ...]
    why_none: str

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "numbers": [one.as_dict() for one in self.numbers]}


def evidence_topics(ledger: Ledger, study: StudySpec | None, found: Findings) -> tuple[Topic, ...]:
    """Every topic, also those of which the run holds nothing."""
    source = Source(ledger, study, found)
    topics = []
    for name, (title, section, how, gathered, why_none) in TOPICS.items():
        numbers = tuple(gathered(source))
        topics.append(Topic(name, title, section, how, numbers, "" if numbers else why_none(source)))
    return (*topics, *_further(found))


def _further(found: Findings) -> Iterator[Topic]:
    """What registered assessments found; no clause is known to ask for it."""
    for name, one in found.brought.items():
        title, how = title_of(name), "No clause listed here asks for these numbers."
        if isinstance(one, Unanswered):
            yield Topic(name, title, name, how, (), str(one))
            continue
        kinds = assessments.get(name).traits.quantities
        numbers = tuple(
            Number(kind.meaning, number.model, number.estimate, unit=SHARE if kind.kind == "share" else PLAIN)
            for number in one.quantities
            for kind in [kinds[number.quantity]]
        )
        yield Topic(name, title, name, how, numbers, "" if numbers else "the answer holds no number")


def causes(ledger: Ledger) -> str:
    """What the corruptions of a run stand for, in words: `noise`, `sensors and weather`."""
    found = [row["cause"] for row in ledger.query(_CAUSES).to_pylist()]
    told = list(dict.fromkeys(_CAUSE_WORDS.get(cause, cause) if cause else "of an unknown cause" for cause in found))
    return " and ".join([", ".join(told[:-1]), told[-1]] if told[1:] else told)


def _why_attacked(source: Source) -> str:
    return _because("no attack was carried out", source.found.why_not("damage"))


def _why_damage(source: Source) -> str:
    return _because(
        "what goes undetected is not known; it takes an evasion curve or a detector", source.found.why_not("damage")
    )


def _why_indicators(source: Source) -> str:
    return _because(
        "no corruption is an arm of the study, and no scenario is stated", source.found.why_not("indicators")
    )


def _why_scenarios(source: Source) -> str:
    return source.found.why_not("indicators") or "no scenario describes the deployment; add `scenarios` to the study"


def _why_groups(source: Source) -> str:
    if source.found.result(IndicatorAssessment) is None:
        return _why_indicators(source)
    return "the samples carry no strata; name some in `data: {strata: …}`"


def _why_comparison(source: Source) -> str:
    return _because("there is one model, and nothing to compare it with", source.found.why_not("damage"))


def _because(usual: str, why: str) -> str:
    return why or usual


_Row = tuple[str, str, str, Callable[[Source], Iterator[Number]], Callable[[Source], str]]
TOPICS: Mapping[str, _Row] = {
    "accuracy": (
        "Accuracy",
        "damage",
        "The share of clean inputs that a model answers rightly.",
        accuracy_numbers,
        lambda _: "the ledger holds no clean rows of samples with a label",
    ),
    "success": (
        "How much it takes",
        "damage",
        "The share of samples that stay correct under every attack within a size, and the size that it took.",
        success_numbers,
        _why_attacked,
    ),
    "damage": (
        "Damage",
        "damage",
        "How probable it is that an attacked input does damage, unnoticed.",
        damage_numbers,
        _why_damage,
    ),
    "comparison": (
        "Models compared",
        "damage",
        "All on the same samples. If the interval of a difference holds zero, the two are undecided.",
        comparison_numbers,
        _why_comparison,
    ),
    "corruptions": (
        "Corruptions",
        "indicators",
        "What each corruption by itself costs on average.",
        corruptions_numbers,
        _why_indicators,
    ),
    "scenarios": (
        "Risk in the described deployments",
        "indicators",
        "The mean loss over everything that the scenario says may happen, as often as it says.",
        scenarios_numbers,
        _why_scenarios,
    ),
    "groups": (
        "Risk by groups",
        "indicators",
        "The same for the samples of one stratum.",
        groups_numbers,
        _why_groups,
    ),
    "detection": (
        "Detectors",
        "detection",
        "A sample counts as detected only if every attack that broke it is detected.",
        detection_numbers,
        lambda source: _because(
            "no detector scored this run; add `detectors` to the study", source.found.why_not("detection")
        ),
    ),
    "survival": (
        "How long it survives",
        "survival",
        "Work until the first success, up to a limit.",
        survival_numbers,
        lambda source: _because(
            "the study does not ask for it; add `survival: {}` to `assess`", source.found.why_not("survival")
        ),
    ),
    "certificates": (
        "Certificates",
        "certificate",
        "Upper bounds hold for the frozen attacks on samples that nothing else looked at.",
        certificates_numbers,
        lambda source: _because(
            "nothing is certified; add `assess: {certificate: …}` to the study", source.found.why_not("certificate")
        ),
    ),
    "gate": (
        "Requirements",
        "gate",
        "What the study requires, and whether the whole interval, or none of it, meets that.",
        gate_numbers,
        lambda source: _because("the study requires nothing; add `gate` to it", source.found.why_not("gate")),
    ),
    "people": (
        "What people noticed",
        "damage",
        "The share of attacked inputs that people took for unchanged.",
        people_numbers,
        lambda _: "nobody was asked; `advrisk label RUN` does",
    ),
    "measures": (
        "Measures",
        "indicators",
        "Numbers about a model at clean inputs.",
        measures_numbers,
        lambda _: "no measure was taken; add `measures` to the study",
    ),
    "trust": (
        "Can it be trusted",
        "health",
        "Counted over the whole run. An attack of optimality 1 found every smallest distance by itself.",
        trust_numbers,
        lambda _: "nothing was counted",
    ),
    "study": (
        "The question",
        "provenance",
        "Everything that decides the rows: data, models, attacks with their settings, seed.",
        study_numbers,
        lambda _: "the rows were imported, and no study says how they were made",
    ),
    "provenance": (
        "Where it comes from",
        "provenance",
        "Counted or recorded, not estimated.",
        provenance_numbers,
        lambda _: "the ledger holds no rows",
    ),
    "compute": (
        "Computation",
        "provenance",
        "As the machines that trained and attacked measured it.",
        compute_numbers,
        lambda _: "neither training times nor passes were recorded",
    ),
}
