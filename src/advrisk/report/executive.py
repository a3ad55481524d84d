"""The executive summary: which model, how sure, what drives the risk, what is open, what was not tested."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.certificate.statements import would_take
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.gate.records import GateResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.names import counted, cut_words, few, one_line
from advrisk.core.numbers import level_text, percent_text, size_text
from advrisk.core.sections import Part, Unanswered, summary_of
from advrisk.core.values import estimate_text
from advrisk.ledger import Ledger
from advrisk.report.answer import leading
from advrisk.report.certificates import certificate_headlines
from advrisk.report.findings import Findings
from advrisk.report.indicator_figures import loss_interval
from advrisk.report.indicators import drivers, on_pair, stated_results, worst_off
from advrisk.report.stopping import level_words, rest_words
from advrisk.report.survival import survival_headline
from advrisk.report.untested import not_tested
from advrisk.report.verdicts import gate_counts
from advrisk.risk.indicators.comparison import ScenarioResult
from advrisk.risk.indicators.tree import UNIFORM
from advrisk.study import StudySpec

T = TypeVar("T")

LABELS = {
    "ship": "Which model",
    "sure": "How sure that is",
    "drivers": "What drives the risk",
    "undecided": "What is undecided",
    "untested": "What was not tested",
    "further": "What else was asked",
}
_WORD = 60  # characters of a word; names may be longer
_SENTENCE = 600


@dataclass(frozen=True)
class ExecutiveSummary:
    """Short parts, each a list of sentences; the first sentence of all is the answer."""

    ship: tuple[str, ...]
    sure: tuple[str, ...]
    drivers: tuple[str, ...]
    undecided: tuple[str, ...]
    untested: tuple[str, ...]
    further: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The least bad model and how bad it is, in one sentence."""
        return self.ship[0]

    def parts(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each part with its heading; empty ones are left out."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        return [(LABELS[name], sentences) for name, sentences in held.items() if sentences]

    def as_dict(self) -> dict[str, list[str]]:
        """For JSON."""
        return {field.name: list(getattr(self, field.name)) for field in fields(self)}


def executive_summary(ledger: Ledger, study: StudySpec | None, found: Findings) -> ExecutiveSummary:
    """What a reader should know who reads nothing else."""
    return ExecutiveSummary(
        ship=_brief(_to_ship(found)),
        sure=_brief(_how_sure(found, study)),
        drivers=_brief(_what_drives(found)),
        undecided=_brief(_undecided(found) or ["Nothing: every comparison that was asked for is decided."]),
        untested=_brief(not_tested(ledger, study, found)),
        further=_brief(_further(found)),
    )


# Which model


def _to_ship(found: Findings) -> list[str]:
    damage, indicators = _of(found.damage, DamageAssessment), _of(found.indicators, IndicatorAssessment)
    gate = _of(found.gate, GateResult)
    lead = leading(found)
    told = list(lead.sentences)
    if found.stopping is not None and found.stopping.rests:  # right after the answer, which rests on that
        told.insert(1, f"This run stopped early, {rest_words(found.stopping)}")
    if gate is not None:
        state = "passes" if gate.passed else "fails" if gate.failed else "is undecided"
        told.append(f"The study's gate {state} ({gate_counts(gate)}).")
    elif damage and not found.gate and not found.view:
        told.append("The study states no requirement (gate), so nothing here says whether that is good enough.")
    named = sorted({one for one in (lead.least_bad, damage.least_bad if damage else None) if one})
    told += _on_equal_corruptions(damage, indicators)
    if len(named) > 1:
        told.append(
            f"These answers name different models ({', '.join(named)}), because the questions differ; the "
            "first answers the study's scenario."
        )
    if certificates := _of(found.certificates, CertificateAssessment):
        told += few(certificate_headlines(certificates), "more models: see the section on certificates.")
    return [*told, *found.view.sentences()]


def _on_equal_corruptions(damage: DamageAssessment | None, found: IndicatorAssessment | None) -> list[str]:
    """Another model suffers least from corruptions, and no scenario says how much these matter."""
    for one in found.results[:1] if found else ():
        best = one.least_bad, damage.least_bad if damage else None
        if one.scenario.name == UNIFORM and best[0] and best[1] and best[0] != best[1]:
            risks = {row.model: loss_interval(row.risk, one.bounds) for row in one.models}
            return [
                f"That is under attack. With all corruptions equally weighted, {best[0]} has the least risk "
                f"({risks[best[0]]}, {best[1]} {risks[best[1]]}): state a scenario to say which matters."
            ]
    return []


def _further(found: Findings) -> list[str]:
    """The headline of every registered assessment, or why it has no answer."""
    return [
        f"{name}: no answer, as {str(one).rstrip('.')}."
        if isinstance(one, Unanswered)
        else one.headline or f"{one.title}: see below."
        for name, one in found.further.items()
    ]


# How sure


def _how_sure(found: Findings, study: StudySpec | None) -> list[str]:
    told = [*(level_words(found.stopping, study) if found.stopping else []), *_said(found, "sure")]
    if indicators := _of(found.indicators, IndicatorAssessment):
        told += [_on_least_risk(one) for one in stated_results(indicators)]
    if survival := _of(found.survival, SurvivalAssessment):
        told.append(survival_headline(survival))
    if detection := _of(found.detection, DetectionAssessment):
        told += few(list(_on_detectors(detection)), "more detectors: see the section on them.")
    if certificates := _of(found.certificates, CertificateAssessment):
        told.append(
            f"Certificates rest on {certificates.calibration.n:,} samples that were kept apart; all claims together "
            f"are wrong at most {100 * certificates.zeta:.4g} % of the time."
        )
    return told or ["There is no number to be sure of."]


def _on_least_risk(one: ScenarioResult) -> str:
    best = one.models[0]
    often = best.probability_best
    beside = "" if often is None else f", least in {percent_text(often, 1)} of draws from its uncertainty"
    risk = f"{loss_interval(best.risk, one.bounds)} ({level_text(one.level)} interval)"
    return f"In the scenario {one.scenario.name}, {best.model}: risk {risk}{beside}."


def _on_detectors(found: DetectionAssessment) -> Iterable[str]:
    """The best detector in front of each model, beside chance."""
    for model in found.models:
        one = next(table for table in found.tables if table.model == model)
        if one.overall.auroc is not None:
            yield (
                f"Detector {one.name} in front of {model}: AUROC {one.overall.auroc} against the arms of each size "
                f"together, averaged over sizes and norms; arms that know it are left out "
                f"(chance: {one.overall.chance_auroc:.3f})."
            )


# What drives the risk


def _what_drives(found: Findings) -> list[str]:
    told = _said(found, "drivers")
    if damage := _of(found.damage, DamageAssessment):
        told += _on_families(damage, found.attacks) if found.attacks else []
    if indicators := _of(found.indicators, IndicatorAssessment):
        for one in stated_results(indicators) or list(indicators.results[:1]):
            told += _on_scenario(one, damage.least_bad if damage and one.scenario.name == UNIFORM else None)
    if detection := _of(found.detection, DetectionAssessment):
        told += few(list(_on_defeats(detection)), "more: see the section on detectors.")
    return told or [f"Not known: {found.damage}." if isinstance(found.damage, str) else "No sample was broken."]


def _on_families(damage: DamageAssessment, attacks: ArmComparison) -> list[str]:
    """The attacks that found the smallest changes."""
    broken = sum(int(((found > 0) & np.isfinite(found)).sum()) for found in damage.distances.by_model.values())
    ranked = sorted((row for row in attacks.families if row.nearest), key=lambda row: -row.nearest)
    if not broken or not ranked:
        return ["No sample was broken by an attack."]
    told = ", ".join(f"{row.name} {percent_text(row.nearest / broken)}" for row in ranked[:3])
    return [
        f"Share of broken samples on which an attack found the smallest change of all (of equals, each counts): {told}."
    ]


def _on_scenario(one: ScenarioResult, model: str | None) -> list[str]:
    """Of the model with the least risk, or of that one."""
    best = next((row for row in one.models if row.model == model), one.models[0])
    if best.risk.value <= 0:
        return []
    where = (
        "With all corruptions equally weighted"
        if one.scenario.name == UNIFORM
        else f"In the scenario {one.scenario.name}"
    )
    worst = worst_off(one) if best is one.models[0] else ""
    beside = f" Worst off: {worst}." if worst else ""
    return [f"{where}, the risk of {best.model} comes from: {drivers(best)}.{beside}"]


def _on_defeats(found: DetectionAssessment) -> Iterable[str]:
    for one in found.tables:
        if (arm := one.defeat.most_often) is not None:
            where = f"{one.name} in front of {one.model}"
            yield f"{arm.arm} gets past {where} most often: {estimate_text(arm.unseen, 'share')} of attackable samples."


# What is undecided


def _undecided(found: Findings) -> list[str]:
    told = [f"Damage: {found.damage}."] if isinstance(found.damage, str) and found.damage else []
    told += _said(found, "undecided")
    if indicators := _of(found.indicators, IndicatorAssessment):
        told += _on_scenario_pairs(indicators, found.samples_left)
    if certificates := _of(found.certificates, CertificateAssessment):
        told += few(list(_on_uncertified(certificates)), "more lists of attacks are not certified.")
    if gate := _of(found.gate, GateResult):
        told += few(list(_on_open_requirements(gate)), "more requirements are undecided.")
    asked: dict[str, object] = {"detectors": found.detection, "scenarios": found.indicators}
    asked |= {"survival": found.survival, "certificates": found.certificates, "the gate": found.gate}
    told += [f"Nothing can be said of {what}: {why}." for what, why in asked.items() if isinstance(why, str) and why]
    return told


def _on_scenario_pairs(found: IndicatorAssessment, left: int | None) -> list[str]:
    told = []
    for one in stated_results(found):
        open_pairs = [pair for pair in one.pairs if pair.undecided and one.models[0].model in (pair.lower, pair.higher)]
        told += [f"{one.scenario.name}: {pair.lower} and {pair.higher}, {on_pair(pair, left)}." for pair in open_pairs]
    first = found.results[0]
    if first.scenario.name == UNIFORM and (n := sum(pair.undecided for pair in first.pairs)):
        of = f"{n} of {counted(len(first.pairs), 'pair')} of models"
        told.append(f"With all corruptions equally weighted, {of}.")
    return told


def _on_open_requirements(gate: GateResult) -> Iterable[str]:
    for one in gate.results:
        if one.verdict == "undecided":
            yield f"Required, {one.requirement}: {one.reason}{f'; {one.settle}' if one.settle else ''}."


def _on_uncertified(found: CertificateAssessment) -> Iterable[str]:
    for one in found.lists:
        if needed := would_take(found, one):
            yield f"{one.model} within {one.norm} {size_text(one.eps)} is not certified. {needed}"


# Words


def _said(found: Findings, part: Part) -> list[str]:
    """What findings add to a part themselves."""
    told = [summary_of(one.sections, part) for one in found.built_in.values() if isinstance(one, Finding)]
    return [sentence for sentences in told for sentence in sentences]


def _of(found: object, kind: type[T]) -> T | None:
    """An assessment, or None where text says why there is none."""
    return found if isinstance(found, kind) else None


def _brief(sentences: Iterable[str]) -> tuple[str, ...]:
    """Names from outside may be of any length and hold anything; a summary is short, and every line is one line."""
    return tuple(brief(sentence) for sentence in dict.fromkeys(sentences))


def brief(sentence: str) -> str:
    """A sentence without what cannot be shown, with long words cut in the middle, and not too long."""
    words = cut_words(one_line(sentence), _WORD)
    return words if len(words) <= _SENTENCE else f"{words[: _SENTENCE - 1]}…"
