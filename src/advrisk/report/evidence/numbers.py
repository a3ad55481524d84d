"""The numbers of a run: every quantity of every question with an answer, and what was counted or recorded exactly."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.certificate.sections import terms_note
from advrisk.assess.damage.clean import clean_shares
from advrisk.assess.findings import Findings
from advrisk.assess.gate.records import GateResult
from advrisk.core.estimate import Estimate, NamedEstimate
from advrisk.core.numbers import size_text
from advrisk.ledger import EVALUATED_CELL, Ledger
from advrisk.report.provenance import Provenance, provenance
from advrisk.study import StudySpec, assessments
from advrisk.study.questions import Quantity

SHARE, PLAIN, SIZE = "share", "number", "size"
_COUNTS = f"""
    SELECT (SELECT count(DISTINCT model) FROM arms WHERE origin NOT IN ('dropped', 'surrogate')) AS models,
           (SELECT count(DISTINCT arm) FROM arms WHERE kind = 'attack' AND origin <> 'dropped') AS attacks,
           (SELECT count(DISTINCT arm) FROM arms WHERE kind = 'corruption' AND origin <> 'dropped') AS corruptions,
           (SELECT count(*) FROM cells WHERE {EVALUATED_CELL}) AS cells, (SELECT count(*) FROM outcomes) AS rows
"""
_FAILED = """
    SELECT outcome::VARCHAR AS outcome, count(*) AS n FROM outcomes WHERE outcome IN ('error', 'timeout')
    GROUP BY ALL ORDER BY ALL
"""
_SECONDS = "SELECT process_s FROM cells WHERE process_s IS NOT NULL"
_OF_TRAINING = {
    "train_s": "seconds of training",
    "train_process_s": "processor seconds of training",
    "train_cost": "cost of training, as stated",
}
_ON_BOUND = "a better attack could make it worse"


@dataclass(frozen=True)
class Number:
    """An estimate, or something that was counted or recorded exactly."""

    what: str
    model: str = ""
    estimate: Estimate | None = None
    exact: float | int | str | None = None
    unit: str = PLAIN
    note: str = ""
    quantity: str = ""  # as in `NamedEstimate`, as are the next two
    loss: str = ""
    than: str = ""

    def as_dict(self) -> dict[str, Any]:
        said = None if self.estimate is None else self.estimate.as_dict()
        return {**vars(self), "estimate": said}


@dataclass(frozen=True)
class Basis:
    """What numbers are taken from."""

    ledger: Ledger
    study: StudySpec | None
    found: Findings

    @cached_property
    def origin(self) -> Provenance:
        return provenance(self.ledger.path.parent, self.ledger, self.study, self.found)

    @cached_property
    def estimated(self) -> dict[str, list[Number]]:
        """Quantity -> its numbers, of every question that has an answer."""
        told: dict[str, list[Number]] = {}
        for finding in self.found.answered:
            known = assessments.get(finding.name).traits.quantities
            for one in finding.quantities:
                told.setdefault(one.quantity, []).append(self._number(one, known[one.quantity]))
        return told | self._clean()

    def _clean(self) -> dict[str, list[Number]]:
        """Shares of clean inputs, of every model, also where no attack was carried out and damage has no answer."""
        whats = {"clean_accuracy": "clean inputs answered rightly", "clean_rejection": "clean inputs refused"}
        return {
            name: [Number(what, model, share, unit=SHARE, quantity=name) for model, share in shares.items()]
            for (name, what), shares in zip(whats.items(), clean_shares(self.ledger), strict=True)
        }

    def _number(self, one: NamedEstimate, known: Quantity) -> Number:
        """With what its traits say, where it does not say so itself."""
        what = one.text or known.label or known.meaning
        if one.eps is not None:
            what += f" at {one.of} {size_text(one.eps, self.study.written if self.study else {})}"
        notes = (one.note, known.meaning if known.label and not one.note else "", _ON_BOUND if known.bound else "")
        unit = one.unit or (SHARE if known.kind == "share" else PLAIN)
        note = "; ".join(note for note in notes if note)
        return Number(
            what, one.model, one.estimate, unit=unit, note=note, quantity=one.quantity, loss=one.loss, than=one.than
        )


def certified_sizes(basis: Basis) -> Iterator[Number]:
    found = basis.found.result(CertificateAssessment)
    if found is None:
        return
    for model in found.models:
        for norm, sizes in model.sizes.items():
            largest = "none" if sizes.largest is None else sizes.largest
            note = terms_note(found, model)
            yield Number(f"largest certified eps, {norm}", model.model, exact=largest, unit=SIZE, note=note)


def gate_verdicts(basis: Basis) -> Iterator[Number]:
    found = basis.found.result(GateResult)
    for one in found.results if found else ():
        yield Number(one.requirement, exact=one.verdict, note=one.reason)


def trust_counts(basis: Basis) -> Iterator[Number]:
    flags: dict[str, int] = {}
    for row in basis.found.flags:
        flags[row["flag"]] = flags.get(row["flag"], 0) + row["n_flagged"]
    yield Number("cells with a reason not to trust them", exact=sum(flags.values()), note=", ".join(sorted(flags)))
    for row in basis.ledger.query(_FAILED).to_pylist():
        yield Number(f"rows that ended in {row['outcome']}", exact=row["n"])
    attacks = basis.found.result(ArmComparison)
    for arm in attacks.overall if attacks else ():
        if arm.optimality is not None:
            yield Number(f"optimality of {arm.name}", exact=arm.optimality)


def study_facts(basis: Basis) -> Iterator[Number]:
    if basis.study is not None:
        yield Number("study", exact=basis.study.name, note="study.yaml in this pack")
        yield Number("seed", exact=basis.study.seed)


def origin_facts(basis: Basis) -> Iterator[Number]:
    counts = basis.ledger.query(_COUNTS).to_pylist()[0]
    if not counts["rows"]:
        return
    for name, n in counts.items():
        yield Number(name, exact=n)
    for split in basis.origin.splits:
        yield Number(f"samples to {split.name}", exact=split.n)
    for word, versions in (("advrisk", basis.origin.versions), ("torch", basis.origin.torch)):
        if versions:
            yield Number(f"version of {word} that ran the cells", exact=", ".join(versions))
    for row in basis.origin.models:
        yield Number("digest of the model", row["model"], exact=row["digest"] or "not known")


def compute_facts(basis: Basis) -> Iterator[Number]:
    origin = basis.origin
    for row in origin.models:
        for column, what in _OF_TRAINING.items():
            if row[column] is not None:
                yield Number(what, row["model"], exact=row[column])
    if passes := sum(n or 0 for n in (origin.n_forward, origin.n_backward, origin.n_judge)):
        yield Number("forward and backward passes of this run", exact=passes)
    if seconds := basis.ledger.query(_SECONDS)["process_s"].to_pylist():
        yield Number("processor seconds of this run", exact=math.fsum(seconds))  # the same in any order
