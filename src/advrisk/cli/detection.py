"""Detectors as text for a terminal: a line for each, and on demand the table of groups and the arms that get past."""

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from advrisk.cli.progress import short
from advrisk.cli.tables import indented, new_table, plain
from advrisk.core.errors import RunError
from advrisk.core.estimate import Estimate
from advrisk.core.files import whole_file
from advrisk.report.detection import ON_AUROC, fpr_name, on_fpr, on_pair, on_table
from advrisk.risk.detection.groups import MULTI_ARMED

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.risk.detection.arms import ArmDefeat
    from advrisk.risk.detection.assessment import DetectionAssessment, DetectorTable
    from advrisk.risk.detection.entries import Entry
    from advrisk.risk.detection.table import Row

_ARMS = 10  # listed of each detector
_NARROW = 120
_WIDE = 150  # columns from which on every entry shows its interval
_MARKS = (
    "* marks the least AUROC of a line, ° the least of one objective alone, ← the worst group. Chance is that of the "
    "multi-armed column; with fewer arms it is higher (--json has all)."
)


def show_detection(
    run: "Run",
    detectors: list[str] | None,
    models: list[str] | None,
    arms: list[str] | None,
    threshold: float | dict[str, float] | None,
    tpr: float | None,
    *,
    groups: bool,
    out_csv: Path | None,
    as_json: bool,
) -> None:
    """`advrisk show RUN detection`: a summary, or everything where detectors are named."""
    names = detectors or None
    found = run.detection(detectors=names, models=models, arms=arms, tpr=tpr, threshold=threshold)
    if out_csv is not None:
        n_lines = write_detection(found, out_csv)
        print(f"{n_lines} lines written to {out_csv}", file=sys.stderr)
    print(detection_json(found)) if as_json else print_detection(found, groups=groups or names is not None)


def detection_json(found: "DetectionAssessment") -> str:
    """Every number."""
    return json.dumps(found.as_dict(), indent=2, ensure_ascii=False)


def write_detection(found: "DetectionAssessment", target: Path) -> int:
    """Every entry of every table as a line of CSV; returns their number."""
    lines = list(found.flat())
    if target.exists() and not target.is_file():
        raise RunError(f"{target}: cannot be written: it is no file")
    target = target.resolve()  # of a link, what it leads to
    try:
        with whole_file(target) as path, path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)
    except OSError as error:
        raise RunError(f"{target}: cannot be written: {error.strerror}") from None
    return len(lines)


def print_detection(found: "DetectionAssessment", *, groups: bool) -> None:
    """Each model's detectors, the best first; with `groups` everything behind the averages."""
    console = Console()
    for model in found.models:
        tables = [one for one in found.tables if one.model == model]
        head = f"{model}: {tables[0].n} samples, {tables[0].table.n_arms} arms"
        console.print(head, style="bold", markup=False)
        _print_summary(console, found, tables)
        for one in tables:
            indented(console, f"{one.name}:", by=0)
            for sentence in on_table(one):
                indented(console, f"· {sentence}", by=2)
        for pair in found.pairs[model]:
            indented(console, on_pair(pair), by=0)
        console.print()
        for one in tables if groups else ():
            _print_groups(console, one, found.tpr)
    for sentence in (ON_AUROC, on_fpr(found.tpr), *([_MARKS] if groups else []), *found.notes):
        indented(console, f"· {sentence}", by=0)
    if not groups:
        indented(console, "· Averages are over the sizes of each norm, then over norms: --groups shows them all.", by=0)


def _print_summary(console: Console, found: "DetectionAssessment", tables: list["DetectorTable"]) -> None:
    rows = new_table("detector", "AUROC", "chance", fpr_name(found.tpr), "chance")
    for one in tables:
        entry = one.overall
        rows.add_row(
            *plain(
                [
                    one.name,
                    _stacked(entry.auroc),
                    _number(entry.chance_auroc),
                    _stacked(entry.fpr_at_tpr),
                    _number(entry.chance_fpr),
                ]
            )
        )
    console.print(rows)


def _print_groups(console: Console, one: "DetectorTable", tpr: float) -> None:
    """AUROC, false-positive rate and successful arms per sample of every group and column."""
    wide = console.width >= _WIDE
    for heading, attribute, chance in (
        ("AUROC", "auroc", "chance_auroc"),
        (fpr_name(tpr), "fpr_at_tpr", "chance_fpr"),
    ):
        console.print(f"{one.model}, {one.name}: {heading}", markup=False, highlight=False)
        rows = new_table("", *one.table.columns, "chance")
        for row in one.table.rows:
            shown = [_shown(row, name, attribute, wide=wide) for name in one.table.columns]
            label = f"{row.label} ←" if row.label == one.table.worst_group else row.label
            rows.add_row(*plain([label, *shown, _number(getattr(row.entries[MULTI_ARMED], chance))]))
        console.print(rows)
    console.print(f"{one.model}, {one.name}: successful arms per sample", markup=False, highlight=False)
    rows = new_table("", *one.table.columns, "broken")
    for row in one.table.rows:
        counts = [_successes(row.entries[name]) for name in one.table.columns]
        rows.add_row(*plain([row.label, *counts, row.entries[MULTI_ARMED].n_broken]))
    console.print(rows)
    _print_adaptive(console, one)
    _print_arms(console, one)


def _print_adaptive(console: Console, one: "DetectorTable") -> None:
    if not one.table.adaptive:
        return
    console.print(f"{one.model}, {one.name}: AUROC against arms that know it", markup=False, highlight=False)
    rows = new_table("", "without them", "chance", "together", "chance", "broken", "alone", "chance", "broken")
    for survival in one.table.adaptive:
        entries = (survival.without, survival.together, survival.alone)
        without, together, alone = ([_stacked(each.auroc), _number(each.chance_auroc)] for each in entries)
        broken = [survival.together.n_broken, survival.alone.n_broken]
        rows.add_row(*plain([survival.label, *without, *together, broken[0], *alone, broken[1]]))
    console.print(rows)


def _print_arms(console: Console, one: "DetectorTable") -> None:
    console.print(f"{one.model}, {one.name}: arms that get past it", markup=False, highlight=False)
    if console.width < _NARROW:
        for arm in one.defeat.arms[:_ARMS]:
            indented(console, arm.arm, by=2)
            indented(console, _in_words(arm), by=4)
    else:
        console.print(_arm_table(one.defeat.arms[:_ARMS]))
    if (n_more := len(one.defeat.arms) - _ARMS) > 0:
        indented(console, f"and {n_more} more: --json lists all", by=2)


def _in_words(arm: "ArmDefeat") -> str:
    said = f"unseen {arm.n_unseen} of {arm.n_broken} broken, {arm.unseen.value:.1%} of the samples; "
    said += f"least score {arm.n_least}"
    if arm.passes is not None:
        said += f"; passes {short(arm.passes)} per sample"
    return said if arm.passes_per_unseen is None else f"{said}, {short(arm.passes_per_unseen)} per unseen success"


def _arm_table(arms: Sequence["ArmDefeat"]) -> Table:
    rows = new_table("arm", "broken", "unseen", "share", "least score", "passes per sample", "per unseen")
    for arm in arms:
        spent = ["–" if count is None else short(count) for count in (arm.passes, arm.passes_per_unseen)]
        rows.add_row(*plain([arm.arm, arm.n_broken, arm.n_unseen, f"{arm.unseen.value:.1%}", arm.n_least, *spent]))
    return rows


def _shown(row: "Row", name: str, attribute: str, *, wide: bool) -> str:
    estimate: Estimate | None = getattr(row.entries[name], attribute)
    if estimate is None:
        return "–"
    mark = "*" * (row.worst == name) + "°" * (row.worst_single == name) if attribute == "auroc" else ""
    interval = f"\n[{estimate.low:.3f}, {estimate.high:.3f}]" if wide or name == MULTI_ARMED else ""
    return f"{estimate.value:.3f}{mark}{interval}"


def _successes(entry: "Entry") -> str:
    return f"{entry.successes:.2f}" if entry.n_arms else "–"


def _stacked(estimate: Estimate | None) -> str:
    return "–" if estimate is None else str(estimate).replace(" [", "\n[")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
