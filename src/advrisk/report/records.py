"""Everything a run answers, for machines: one JSON record, and tables. Terminal, report and Python tell the same."""

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.core.clock import time_of_making
from advrisk.core.digest import digest
from advrisk.core.errors import RunError
from advrisk.core.files import whole_file
from advrisk.core.plain import json_text, plain
from advrisk.core.tables import Columns, Row, Tabular, arrow_table
from advrisk.core.version import VERSION
from advrisk.ledger import Ledger
from advrisk.ledger.searches import SearchRecord
from advrisk.report.certificates import certificate_headlines
from advrisk.report.executive import executive_summary
from advrisk.report.findings import Findings
from advrisk.report.html import arm_shares
from advrisk.report.indicators import scenario_headlines
from advrisk.report.summary import findings, headline
from advrisk.report.survival import survival_headline
from advrisk.report.verdicts import gate_verdicts
from advrisk.risk.assessment import DamageAssessment
from advrisk.risk.indicators.failures import FailureModes
from advrisk.study import StudySpec

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "advrisk.report/1"  # rises when a field changes its meaning or goes
FLAGS: Columns = {
    **dict.fromkeys(("flag", "model", "arm"), "text"),
    **dict.fromkeys(("n_flagged", "n_cells"), "count"),
    "share": "number",
}
# What is asked of a run, and what of `Findings` answers it.
QUESTIONS = {
    "damage": "damage",
    "convergence": "settled",
    "attacks": "attacks",
    "detection": "detection",
    "indicators": "indicators",
    "survival": "survival",
    "certificate": "certificates",
    "gate": "gate",
}


def damage_record(found: DamageAssessment) -> dict[str, Any]:
    """Every number of damage, and the words that go with them."""
    return found.as_dict() | {"headline": headline(found), "findings": findings(found)}


def findings_record(run_name: str, ledger: Ledger, study: StudySpec | None, found: Findings) -> dict[str, Any]:
    """Everything a report says, as plain values; None where there is no answer, and then `unanswered` may say why."""
    answers = {name: getattr(found, attribute) for name, attribute in QUESTIONS.items()}
    record = {
        "schema": SCHEMA,
        "run": run_name,
        "made_at": time_of_making().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "headlines": headlines(found),
        "executive": executive_summary(ledger, study, found).as_dict(),
        "provenance": provenance(ledger, study),
        "numbers": found.rows(),
        **{name: _told(answer) for name, answer in answers.items()},
        "failures": [one.as_dict() for one in found.failures],
        "searches": [one.as_dict() for one in found.searches],
        "arms": arm_shares(ledger),
        "flags": list(found.flags),
        "unanswered": {name: why for name, why in answers.items() if isinstance(why, str) and why},
    }
    return dict(plain(record))


def headlines(found: Findings) -> list[str]:
    """What a run says, for those who read no further: a sentence or more for each kind of question."""
    told = [] if isinstance(found.damage, str) else [headline(found.damage)]
    told += [] if isinstance(found.indicators, str) else scenario_headlines(found.indicators)
    told += [] if isinstance(found.survival, str) else [survival_headline(found.survival)]
    told += [] if isinstance(found.gate, str) else [gate_verdicts(found.gate).heading]
    return told + ([] if isinstance(found.certificates, str) else certificate_headlines(found.certificates))


def provenance(ledger: Ledger, study: StudySpec | None) -> dict[str, Any]:
    """What the numbers were made from, and by what: enough to make them again."""
    samples = ledger.query("SELECT split, sample, hash FROM samples ORDER BY split, sample").to_pylist()
    splits = {str(row["split"]): [] for row in samples}  # type: dict[str, list[list[str]]]
    for row in samples:
        splits[str(row["split"])].append([row["sample"], row["hash"]])
    return {
        "study": None if study is None else study.model_dump(mode="json", exclude_unset=True),
        "seed": None if study is None else study.seed,
        "versions": {
            "advrisk": VERSION,  # what made this record; the next two, what made the rows
            "cells": _versions(ledger, "version"),
            "torch": _versions(ledger, "torch"),
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "duckdb", "pyarrow")},
        },
        "models": [
            row | {"tags": json.loads(row["tags"] or "{}")}
            for row in ledger.query("FROM models ORDER BY model").to_pylist()
        ],
        "samples": {split: {"n": len(held), "digest": digest(held)} for split, held in splits.items()},
    }


def findings_tables(found: Findings) -> "dict[str, pa.Table]":
    """Each answer as a table, and the numbers that lead, all in one."""
    tables = {"numbers": found.to_arrow()}
    for name, attribute in QUESTIONS.items():
        if isinstance(answer := getattr(found, attribute), Tabular):
            tables[name] = answer.to_arrow()
    several: dict[str, tuple[Sequence[Tabular], Columns]] = {
        "failures": (found.failures, FailureModes.columns),
        "search": (found.searches, SearchRecord.columns),
    }
    for name, (answers, columns) in several.items():
        if answers:
            tables[name] = arrow_table([row for one in answers for row in one.rows()], columns)
    return tables | {"flags": arrow_table(list[Row](found.flags), FLAGS)}


def write_json(target: Path, record: dict[str, Any]) -> Path:
    """Write a record as strict JSON, whole or not at all."""
    if target.exists() and not target.is_file():
        raise RunError(f"{target}: the report cannot be written: it is no file")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target.resolve()) as path:
            path.write_text(json_text(record) + "\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"{target}: the report cannot be written: {error.strerror}") from None
    return target


def _told(answer: Any) -> dict[str, Any] | None:
    if answer is None or isinstance(answer, str):
        return None
    return damage_record(answer) if isinstance(answer, DamageAssessment) else dict(answer.as_dict())


def _versions(ledger: Ledger, of: str) -> list[str]:
    rows = ledger.query(f"SELECT DISTINCT {of}::VARCHAR AS found FROM cells WHERE {of} IS NOT NULL ORDER BY 1")
    return [str(found) for found in rows["found"].to_pylist()]
