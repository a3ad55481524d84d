"""The numbers of a run, gathered by what they speak to."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.clean import clean_shares
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.gate.records import GateResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import percent_text, size_text
from advrisk.ledger import EVALUATED_CELL, Ledger
from advrisk.report.findings import Findings
from advrisk.study import StudySpec

SHARE, PLAIN, SIZE = "share", "number", "size"
_COUNTS = f"""
    SELECT (SELECT count(DISTINCT model) FROM arms WHERE origin NOT IN ('dropped', 'surrogate')) AS models,
           (SELECT count(DISTINCT arm) FROM arms WHERE kind = 'attack' AND origin <> 'dropped') AS attacks,
           (SELECT count(DISTINCT arm) FROM arms WHERE kind = 'corruption' AND origin <> 'dropped') AS corruptions,
           (SELECT count(*) FROM cells WHERE {EVALUATED_CELL}) AS cells, (SELECT count(*) FROM outcomes) AS rows
"""
_SPLITS = """
    SELECT split, count(*) AS n FROM samples WHERE NOT starts_with(split, 'dropped') GROUP BY split ORDER BY split
"""
_FAILED = "SELECT outcome::VARCHAR AS outcome, count(*) AS n FROM outcomes WHERE outcome IN ('error', 'timeout') "
_PASSES = "SELECT coalesce(sum(n_forward + n_backward + n_judge), 0)::BIGINT AS passes FROM outcomes"
_ON_HELD = "correct without an attack, and not broken by any attack of the study"
_ON_TARGET = "driven to the target class by some attack of the study"
_ON_BROKEN = "wrong without any attack, or broken by some attack of the study"
_ON_LEAST = "a lower bound: a better attack finds smaller changes"
_ON_RELATIVE = "compares these models with each other; no probability"


@dataclass(frozen=True)
class Number:
    """An estimate, or something that was counted or recorded exactly."""

    what: str
    model: str = ""
    estimate: Estimate | None = None
    exact: float | int | str | None = None
    unit: str = PLAIN
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        said = None if self.estimate is None else self.estimate.as_dict()
        return {**vars(self), "estimate": said}


@dataclass(frozen=True)
class Source:
    """What numbers are taken from."""

    ledger: Ledger
    study: StudySpec | None
    found: Findings


def accuracy_numbers(source: Source) -> Iterator[Number]:
    shares = clean_shares(source.ledger)
    for model, share in shares.accuracy.items():
        yield Number("clean inputs answered rightly", model, share, unit=SHARE)
    for model, share in shares.rejection.items():
        yield Number("clean inputs refused", model, share, unit=SHARE)


def success_numbers(source: Source) -> Iterator[Number]:
    damage = source.found.result(DamageAssessment)
    if damage is None:
        return
    norm = damage.distances.norm
    for row in damage.models:
        for eps, share in row.robust_accuracy.items():
            yield Number(
                f"robust accuracy at {norm} {damage.size_text(eps)}", row.model, share, unit=SHARE, note=_ON_HELD
            )
        for eps, share in row.success_ratio.items():
            what = f"attack success rate at {norm} {damage.size_text(eps)}"
            yield Number(what, row.model, share, unit=SHARE, note=_ON_TARGET if damage.targeted else _ON_BROKEN)
        if row.mean_size is not None:
            yield Number(f"mean adversarial distance, {norm}", row.model, row.mean_size.estimate)


def damage_numbers(source: Source) -> Iterator[Number]:
    damage = source.found.result(DamageAssessment)
    if damage is None:
        return
    for row in damage.models:
        if row.damage is not None:
            yield Number(
                "probability of damage by an attacked input", row.model, row.damage, unit=SHARE, note=_ON_LEAST
            )
        if row.operational_risk is not None:
            yield Number("cost of an attacked input", row.model, row.operational_risk, note=_ON_LEAST)


def comparison_numbers(source: Source) -> Iterator[Number]:
    found = source.found
    if damage := found.result(DamageAssessment):
        for row in damage.models:
            if row.relative_damage is not None:
                yield Number("relative damage", row.model, row.relative_damage, note=_ON_RELATIVE)
        word = "relative damage" if damage.relative else "probability of damage"
        for pair in damage.pairs:
            yield Number(
                f"{word}: how much more than {pair.lower}", pair.higher, pair.difference, note=_decided(pair.undecided)
            )
    indicators = found.result(IndicatorAssessment) if stated(source) else None
    for result in indicators.results if indicators else ():
        for pair in result.pairs:
            what = f"{result.loss} in {result.scenario.name}: how much more than {pair.lower}"
            yield Number(what, pair.higher, pair.difference, note=_decided(pair.undecided))


def corruptions_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(IndicatorAssessment)
    if found is None:
        return
    rows = source.ledger.query("SELECT DISTINCT arm FROM arms WHERE kind = 'corruption' AND origin <> 'dropped'")
    named = set(rows["arm"].to_pylist())
    units = {result.loss: _unit(result.bounds) for result in found.results}
    for loss, by_model in found.arms.items():
        for model, by_arm in by_model.items():
            for arm, risk in by_arm.items():
                if arm in named:
                    yield Number(f"{loss} under {arm}", model, risk, unit=units.get(loss, PLAIN))


def scenarios_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(IndicatorAssessment)
    if found is None or not stated(source):
        return
    for result in found.results:
        for row in result.models:
            yield Number(f"{result.loss} in {result.scenario.name}", row.model, row.risk, unit=_unit(result.bounds))


def groups_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(IndicatorAssessment)
    if found is None:
        return
    for result in found.results:
        for row in result.models:
            for stratum, by_value in row.by_stratum.items():
                for value, risk in by_value.items():
                    if risk is not None:
                        what = f"{result.loss} in {result.scenario.name} where {stratum} is {value}"
                        yield Number(what, row.model, risk, unit=_unit(result.bounds))


def detection_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(DetectionAssessment)
    if found is None:
        return
    for one in found.tables:
        entry = one.overall
        for what, value, chance in (
            ("AUROC", entry.auroc, entry.chance_auroc),
            (f"false alarms at {percent_text(found.tpr)} detected", entry.fpr_at_tpr, entry.chance_fpr),
        ):
            if value is not None:
                note = "" if chance is None else f"chance gives {chance:.3f}"
                yield Number(f"{what} of {one.name} against all attacks", one.model, value, note=note)


def survival_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(SurvivalAssessment)
    if found is None:
        return
    for row in found.models:
        if row.mean is not None:
            yield Number(f"mean {found.unit} until a sample breaks, up to {found.until:g}", row.model, row.mean)
            if row.median is not None and row.reached:
                yield Number(f"median {found.unit} until a sample breaks", row.model, row.median)
        if row.adversarial is not None:
            yield Number(f"failures under attack per {row.adversarial.unit}", row.model, row.adversarial.estimate)
        if row.cost is not None and row.cost.adversarial is not None:
            yield Number("training time per sample over time to break one", row.model, row.cost.adversarial)


def certificates_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(CertificateAssessment)
    if found is None:
        return
    written = source.study.written if source.study else {}
    terms = f"alpha {found.alpha:g}, zeta {found.zeta:g}"
    for model in found.models:
        caveats = (f"caveat: {text}" for text in model.caveats)
        note = "; ".join((terms, *caveats, *(f"note: {text}" for text in found.notes)))
        yield Number("clean error on the samples to calibrate", model.model, model.clean_error, unit=SHARE)
        for norm, sizes in model.sizes.items():
            largest = "none" if sizes.largest is None else sizes.largest
            yield Number(f"largest certified eps, {norm}", model.model, exact=largest, unit=SIZE, note=note)
        for one in model.lists:
            if one.certificate is not None and one.certificate.wrong is not None:
                within = f"within {one.norm} {size_text(one.eps, written)}"
                for what, test in (
                    ("wrong in the end, clean or attacked,", one.certificate.wrong),
                    ("broken by the worst attack", one.certificate.worst),
                ):
                    said = f"{one.verdict}; {note}" if test is one.certificate.worst else note
                    yield Number(f"{what} {within}", model.model, test.risk, unit=SHARE, note=said)


def gate_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(GateResult)
    for one in found.results if found else ():
        yield Number(one.requirement, exact=one.verdict, note=one.reason)


def people_numbers(source: Source) -> Iterator[Number]:
    damage = source.found.result(DamageAssessment)
    for row in damage.models if damage else ():
        if row.by_people is not None:
            yield Number("attacked inputs that people did not notice", row.model, row.by_people, unit=SHARE)


def measures_numbers(source: Source) -> Iterator[Number]:
    found = source.found.result(IndicatorAssessment)
    for model, by_name in found.measures.items() if found else ():
        for name, mean in by_name.items():
            yield Number(f"{name}, mean over samples", model, mean)


def trust_numbers(source: Source) -> Iterator[Number]:
    found = source.found
    flags: dict[str, int] = {}
    for row in found.flags:
        flags[row["flag"]] = flags.get(row["flag"], 0) + row["n_flagged"]
    yield Number("cells with a reason not to trust them", exact=sum(flags.values()), note=", ".join(sorted(flags)))
    for row in source.ledger.query(f"{_FAILED} GROUP BY ALL ORDER BY ALL").to_pylist():
        yield Number(f"rows that ended in {row['outcome']}", exact=row["n"])
    if (attacks := found.result(ArmComparison)) is not None:
        for arm in attacks.overall:
            if arm.optimality is not None:
                yield Number(f"optimality of {arm.name}", exact=arm.optimality)


def study_numbers(source: Source) -> Iterator[Number]:
    if source.study is not None:
        yield Number("study", exact=source.study.name, note="study.yaml in this pack")
        yield Number("seed", exact=source.study.seed)


def provenance_numbers(source: Source) -> Iterator[Number]:
    counts = source.ledger.query(_COUNTS).to_pylist()[0]
    if not counts["rows"]:
        return
    names = {"models": "models", "attacks": "attacks", "corruptions": "corruptions", "cells": "cells", "rows": "rows"}
    for name, word in names.items():
        yield Number(word, exact=counts[name])
    for row in source.ledger.query(_SPLITS).to_pylist():
        yield Number(f"samples to {row['split']}", exact=row["n"])
    for word, column in (("advrisk", "version"), ("torch", "torch")):
        sql = f"SELECT DISTINCT {column}::VARCHAR AS said FROM cells WHERE {column} IS NOT NULL ORDER BY ALL"
        if said := source.ledger.query(sql)["said"].to_pylist():
            yield Number(f"version of {word} that ran the cells", exact=", ".join(said))
    for row in source.ledger.query("SELECT model, digest FROM models ORDER BY model").to_pylist():
        yield Number("digest of the model", row["model"], exact=row["digest"] or "not known")


def compute_numbers(source: Source) -> Iterator[Number]:
    names = {"train_s": "seconds of training", "train_process_s": "processor seconds of training"}
    names |= {"train_cost": "cost of training, as stated"}
    for row in source.ledger.query(f"SELECT model, {', '.join(names)} FROM models ORDER BY model").to_pylist():
        for column, what in names.items():
            if row[column] is not None:
                yield Number(what, row["model"], exact=row[column])
    if passes := source.ledger.query(_PASSES)["passes"][0].as_py():
        yield Number("forward and backward passes of this run", exact=passes)
    seconds = source.ledger.query("SELECT process_s FROM cells WHERE process_s IS NOT NULL")["process_s"].to_pylist()
    if seconds:
        yield Number("processor seconds of this run", exact=math.fsum(seconds))  # the same in any order


def stated(source: Source) -> bool:
    """Whether the study describes a deployment; corruptions that count alike describe none."""
    return bool(source.study and source.study.scenarios)


def _unit(bounds: tuple[float, float]) -> str:
    return SHARE if bounds == (0.0, 1.0) else PLAIN


def _decided(undecided: bool) -> str:
    return "undecided" if undecided else "decided"
