"""Where the numbers come from: study, versions, seeds, digests, samples, work; and the commands that make them."""

import platform
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.findings import Findings
from advrisk.core.clock import time_of_making
from advrisk.core.digest import digest
from advrisk.core.version import VERSION
from advrisk.ledger import Ledger
from advrisk.ledger.layout import STUDY_FILE
from advrisk.study import StudySpec

_WORK = """
    SELECT count(*)::BIGINT AS n_cells, sum(wall_s ORDER BY wall_s) AS wall_s,
           sum(process_s ORDER BY process_s) AS process_s, -- in one order: the same to the last digit
           list(DISTINCT version ORDER BY version) FILTER (version IS NOT NULL) AS versions,
           list(DISTINCT torch ORDER BY torch) FILTER (torch IS NOT NULL) AS torch
    FROM cells
"""
_PASSES = """
    SELECT count(*)::BIGINT AS n_rows, sum(n_forward)::BIGINT AS n_forward, sum(n_backward)::BIGINT AS n_backward,
           sum(n_judge)::BIGINT AS n_judge
    FROM outcomes
"""
_SAMPLES = "SELECT split, sample, hash FROM samples WHERE NOT starts_with(split, 'dropped') ORDER BY split, sample"


@dataclass(frozen=True)
class Split:
    """The samples of one split, and a digest of their ids and contents."""

    name: str
    n: int
    digest: str


@dataclass(frozen=True)
class Provenance:
    """Everything that decides the numbers of a run, and what they took."""

    name: str
    seed: int | None  # None without a study
    made: str  # when this was put together
    advrisk: str  # that put this together; the next two ran the cells
    versions: tuple[str, ...]
    torch: tuple[str, ...]
    python: str
    models: tuple[dict[str, Any], ...]
    source: str | None  # of the samples
    splits: tuple[Split, ...]
    n_cells: int
    n_rows: int
    n_forward: int | None
    n_backward: int | None
    n_judge: int | None
    wall_s: float | None  # summed over cells: workers work side by side
    process_s: float | None
    commands: tuple[tuple[str, str], ...]  # what it does, and how


def provenance(folder: Path, ledger: Ledger, study: StudySpec | None, found: Findings) -> Provenance:
    """What made a run."""
    work = ledger.query(_WORK).to_pylist()[0]
    passes = ledger.query(_PASSES).to_pylist()[0]
    return Provenance(
        name=study.name if study else folder.name,
        seed=study.seed if study else None,
        made=_day(time_of_making()),
        advrisk=VERSION,
        versions=tuple(work.pop("versions") or ()),
        torch=tuple(work.pop("torch") or ()),
        python=platform.python_version(),
        models=tuple(ledger.query("FROM models ORDER BY model").to_pylist()),
        source=study.data.source if study else None,
        splits=_splits(ledger),
        commands=commands(found, with_study=(folder / STUDY_FILE).is_file()),
        **work,
        **passes,
    )


def _splits(ledger: Ledger) -> tuple[Split, ...]:
    members: dict[str, list[tuple[str, str | None]]] = {}
    for row in ledger.query(_SAMPLES).to_pylist():
        members.setdefault(row["split"], []).append((row["sample"], row["hash"]))
    return tuple(Split(name, len(pairs), digest(pairs)) for name, pairs in members.items())


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def commands(found: Findings, *, with_study: bool = True) -> tuple[tuple[str, str], ...]:
    """What makes the run, its numbers and this report again; only those that apply."""
    told: list[tuple[str, str]] = []
    if with_study:
        told.append(("Run it again, into another folder", "advrisk run study.yaml --out again"))
    if found.result(DamageAssessment):
        told.append(("The decision table", "advrisk select RUN"))
    shown = (one for one in found.answered if one.name not in ("damage", "gate"))
    told += [(one.title, f"advrisk show {one.name} RUN") for one in shown]
    if found.result(CertificateAssessment):
        told.append(("Certificates as documents", "advrisk certify RUN"))
        told.append(("Check one of them against the run", "advrisk verify RUN/certificates/MODEL.json --run RUN"))
    told.append(("This report", "advrisk report RUN"))
    return tuple(told)
