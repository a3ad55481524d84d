"""Everything a run answers, for machines: one JSON record, and tables. Terminal, report and Python tell the same."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.headline import headline
from advrisk.assess.damage.words import findings
from advrisk.assess.findings import Findings
from advrisk.assess.protocol import Finding
from advrisk.assess.selection.answer import leading
from advrisk.core.clock import time_of_making
from advrisk.core.errors import RunError
from advrisk.core.files import write_whole
from advrisk.core.plain import json_text, plain, plain_fields
from advrisk.core.sections import Unanswered, summary_of
from advrisk.core.tables import Columns, Row, Tabular, arrow_table
from advrisk.ledger import Ledger
from advrisk.render.records import arrow_tables, tables_record
from advrisk.report.executive import executive_summary
from advrisk.report.html import arm_shares
from advrisk.report.provenance import provenance
from advrisk.study import StudySpec, assessments

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "advrisk.report/2"  # rises when a field changes its meaning or goes
FLAGS: Columns = {
    **dict.fromkeys(("flag", "model", "arm"), "text"),
    **dict.fromkeys(("n_flagged", "n_cells"), "count"),
    "share": "number",
}
LISTS = {"failures": "failures", "search": "searches"}  # questions with several results -> what they are in a record
SINGLE = [name for name in assessments.built_in if name not in LISTS]


def damage_record(found: DamageAssessment) -> dict[str, Any]:
    """Every number of damage, and the words that go with them."""
    return found.as_dict() | {"headline": headline(found), "findings": findings(found)}


def findings_record(run_name: str, ledger: Ledger, study: StudySpec | None, found: Findings) -> dict[str, Any]:
    """Everything a report says, as plain values; None where there is no answer, and then `unanswered` may say why."""
    told = {one.name: _told(one.result) for one in found.answered if one.name not in found.brought}
    record = {
        "schema": SCHEMA,
        "run": run_name,
        "made_at": time_of_making().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "filter": found.view.as_dict(),
        "asked": found.asked,
        **plain_fields(leading(found)),
        "headlines": headlines(found),
        "executive": executive_summary(ledger, study, found),
        "provenance": _origin(ledger, study, found),
        "numbers": found.rows(),
        **{name: told.get(name) for name in SINGLE},
        **{field: told.get(name, []) for name, field in LISTS.items()},
        "further": {name: finding_record(one) for name, one in found.brought.items() if isinstance(one, Finding)},
        "arms": arm_shares(ledger, found.arms),
        "flags": found.flags,
        "unanswered": {name: str(why) for name, why in found.answers.items() if isinstance(why, Unanswered)},
    }
    return dict(plain(record))


def finding_record(found: Finding) -> dict[str, Any]:
    """What a registered assessment says, for machines: its headline, its quantities and its tables."""
    return {
        "title": found.title,
        "headline": found.headline,
        "quantities": {one.name: one.estimate.as_dict() for one in found.quantities},
        "tables": tables_record(found.sections),
    }


def lasting(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what differs between two times and machines: the same numbers, the same content."""
    origin = {name: value for name, value in record["provenance"].items() if name != "versions"}
    return {**record, "provenance": origin, "made_at": ""}


def headlines(found: Findings) -> list[str]:
    """What a run says, for those who read no further: a sentence or more for each kind of question."""
    told = list(leading(found).sentences)
    told += [line for one in found.answered for line in summary_of(one.sections, "headlines")]
    return told + [one.headline for one in found.brought.values() if isinstance(one, Finding) and one.headline]


def _origin(ledger: Ledger, study: StudySpec | None, found: Findings) -> dict[str, Any]:
    """What the numbers were made from, and by what: enough to make them again."""
    made = provenance(ledger.path.parent, ledger, study, found)
    packages = {name: version(name) for name in ("numpy", "scipy", "duckdb", "pyarrow")}
    passes = ("n_cells", "n_rows", "n_forward", "n_backward", "n_judge", "wall_s", "process_s")
    return {
        "study": None if study is None else study.model_dump(mode="json", exclude_unset=True),
        "seed": made.seed,
        # `advrisk` made this record; `cells` and `torch` made the rows.
        "versions": {"advrisk": made.advrisk, "cells": made.versions, "torch": made.torch, "python": made.python}
        | packages,
        "models": [row | {"tags": json.loads(row["tags"] or "{}")} for row in made.models],
        "samples": {split.name: {"n": split.n, "digest": split.digest} for split in made.splits},
        "work": {name: getattr(made, name) for name in passes},
        "commands": dict(made.commands),
    }


def findings_tables(found: Findings) -> "dict[str, pa.Table]":
    """Each answer as a table, and the numbers that lead, all in one."""
    tables = {"numbers": found.to_arrow()}
    for one in found.answered:
        if one.name in found.brought:
            tables |= arrow_tables(one.name, one.sections)
            continue
        results: Sequence[Tabular] = one.result if isinstance(one.result, tuple) else (one.result,)
        tables[one.name] = arrow_table([row for held in results for row in held.rows()], results[0].columns)
    return tables | {"flags": arrow_table(list[Row](found.flags), FLAGS)}


def write_json(target: Path, record: dict[str, Any]) -> Path:
    """Write a record as strict JSON, whole or not at all."""
    if target.exists() and not target.is_file():
        raise RunError(f"{target}: the report cannot be written: it is no file")
    write_whole(target.resolve(), json_text(record) + "\n", "the report")  # of a link, what it leads to
    return target


def _told(result: Any) -> Any:
    """The result of a built-in question as plain values; a list of several."""
    return damage_record(result) if isinstance(result, DamageAssessment) else plain(result)
