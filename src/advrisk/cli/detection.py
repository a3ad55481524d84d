"""Detectors as text for a terminal: a line for each, and on demand the table of groups and the arms that get past."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from advrisk.assess.detection.curves import RATES, group_curves
from advrisk.cli.lines import show_result, show_rows
from advrisk.cli.progress import short
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.render.terminal import indented, new_table, plain_cells, print_fitting
from advrisk.report.detection import (
    ON_AUROC,
    PAPER,
    SURVIVES,
    USUAL,
    fpr_name,
    on_arms,
    on_pair,
    on_samples,
    on_table,
    row_label,
    survived,
    words,
)
from advrisk.risk.detection.groups import MULTI_ARMED

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.assess.detection.assessment import DetectionAssessment, DetectorTable
    from advrisk.assess.detection.curves import GroupCurves
    from advrisk.risk.detection.arms import ArmDefeat
    from advrisk.risk.detection.entries import Entry
    from advrisk.risk.detection.table import Row

_ARMS = 10  # listed of each detector
_NARROW = 120
_WIDE = 150  # columns from which on every entry shows its interval
_MARKS = (
    "* marks the least AUROC of a line, ° the least of one objective alone, ← the worst group: least above its chance. "
    "Chance and arms are those of the multi-armed column; with fewer arms chance is higher (--json has all)."
)
_ON_CURVE = (
    "Detected: broken samples, each against all arms of the group, at no more false alarms than the heading says. "
    "--json holds every point of the curves; the report draws them."
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
    group: str | None,
    out_csv: str | None,
    as_json: bool,
) -> None:
    """`advrisk show detection RUN`: a summary, or everything where detectors are named; or one group."""
    names = detectors or None
    found = run.detection(detectors=names, models=models, arms=arms, tpr=tpr, threshold=threshold)
    if group is not None:
        _show_group(found, group, out_csv=out_csv, as_json=as_json)
        return
    details = groups or names is not None
    show_result(found, found.as_dict, lambda: print_detection(found, groups=details), out_csv=out_csv, as_json=as_json)


def _show_group(found: "DetectionAssessment", group: str, *, out_csv: str | None, as_json: bool) -> None:
    curves = group_curves(found, group)
    labels = {one.row.label for one in curves}
    told = {"tpr": found.tpr, "level": found.level, "tables": [one.as_dict() for one in curves]}
    show_rows(
        lambda: [row for row in found.rows() if row["row"] in labels],
        found.columns,
        lambda: told,
        lambda: print_group(found, curves),
        out_csv=out_csv,
        as_json=as_json,
    )


def print_group(found: "DetectionAssessment", curves: "Sequence[GroupCurves]") -> None:
    """One group: AUROC of each detector beside chance, and how many broken samples it detects at some thresholds."""
    console = Console()
    for model in dict.fromkeys(one.table.model for one in curves):
        own = [one for one in curves if one.table.model == model]
        entry = own[0].row.entries[MULTI_ARMED]
        head = f"{model}, {own[0].row.label}: {counted(entry.n_arms, 'arm')} broke {entry.n_broken} of "
        head += counted(entry.n_attackable, "attackable sample")
        console.print(head, style="bold", markup=False)
        print_fitting(console, ["detector", "AUROC", "chance", fpr_name(found.tpr), "chance"], _measured(own))
        console.print("Detected at false alarms of at most", markup=False, highlight=False)
        rows = [[one.table.name, *(_share(one.detected(rate)) for rate in RATES)] for one in own]
        guessed = ["(chance)", *(_share(own[0].chance_detected(rate)) for rate in RATES)]
        print_fitting(console, ["detector", *map(percent_text, RATES)], [*rows, guessed])
        console.print()
    for sentence in (ON_AUROC, _ON_CURVE, *found.notes):
        indented(console, f"· {sentence}", by=0)


def _measured(curves: "Sequence[GroupCurves]") -> list[list[str]]:
    rows = []
    for one in curves:
        entry = one.row.entries[MULTI_ARMED]
        auroc = [_stacked(entry.auroc), _number(entry.chance_auroc)]
        rows.append([one.table.name, *auroc, _stacked(entry.fpr_at_tpr), _number(entry.chance_fpr)])
    return rows


def _share(value: float | None) -> str:
    return "–" if value is None else percent_text(value, 1)


def print_detection(found: "DetectionAssessment", *, groups: bool) -> None:
    """Each model's detectors, the best first; with `groups` everything behind the averages."""
    console = Console()
    for model in found.models:
        tables = [one for one in found.tables if one.model == model]
        head = f"{model}: {on_samples(tables[0])}; {on_arms(tables)}"
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
    for sentence in (*words(found), *([_MARKS] if groups else [])):
        indented(console, f"· {sentence}", by=0)
    if not groups:
        indented(console, "· Averages are over the sizes of each norm, then over norms: --groups shows them all.", by=0)


def _print_summary(console: Console, found: "DetectionAssessment", tables: list["DetectorTable"]) -> None:
    known = any(one.table.adaptive for one in tables)
    columns = ["detector", "arms", USUAL, "chance", *([SURVIVES] if known else []), fpr_name(found.tpr), "chance"]
    rows = []
    for one in tables:
        entry = one.overall
        auroc, alarms = (
            [_stacked(entry.auroc), _number(entry.chance_auroc)],
            [_stacked(entry.fpr_at_tpr), _number(entry.chance_fpr)],
        )
        rows.append([one.name, str(one.table.n_arms), *auroc, *([_survived(one)] if known else []), *alarms])
    print_fitting(console, columns, rows)


def _survived(one: "DetectorTable") -> str:
    return "\n".join(line for lines in survived(one) for line in lines) or "no arm knows it"


def _print_groups(console: Console, one: "DetectorTable", tpr: float) -> None:
    """AUROC, false-positive rate and successful arms per sample of every group and column."""
    wide = console.width >= _WIDE
    for heading, attribute, chance in (
        ("AUROC", "auroc", "chance_auroc"),
        (fpr_name(tpr), "fpr_at_tpr", "chance_fpr"),
    ):
        console.print(f"{one.model}, {one.name}: {heading}", markup=False, highlight=False)
        rows = []
        for row in one.table.rows:
            shown = [_shown(row, name, attribute, wide=wide) for name in one.table.columns]
            label = f"{row_label(row)} ←" if row.label == one.table.worst_group else row_label(row)
            entry = row.entries[MULTI_ARMED]
            rows.append([label, *shown, _number(getattr(entry, chance)), str(entry.n_arms)])
        print_fitting(console, ["", *one.table.columns, "chance", "arms"], rows)
    _print_successes(console, one)
    _print_adaptive(console, one)
    _print_arms(console, one)


def _print_successes(console: Console, one: "DetectorTable") -> None:
    n = counted(one.table.n_attackable, "attackable sample")
    console.print(f"{one.model}, {one.name}: successful arms per sample, of {n}", markup=False, highlight=False)
    rows = []
    for row in one.table.rows:
        entry = row.entries[MULTI_ARMED]
        counts = [f"{entry.successes_paper:.2f}", str(entry.n_arms), str(entry.n_broken)]
        rows.append([row_label(row), *(_successes(row.entries[name]) for name in one.table.columns), *counts])
    print_fitting(console, ["", *one.table.columns, PAPER, "arms", "broken"], rows)


def _print_adaptive(console: Console, one: "DetectorTable") -> None:
    if not one.table.adaptive:
        return
    console.print(f"{one.model}, {one.name}: AUROC against arms that know it", markup=False, highlight=False)
    rows = []
    for survival in one.table.adaptive:
        entries = (survival.without, survival.together, survival.alone)
        shown = [[_stacked(each.auroc), _number(each.chance_auroc), _arms_and_broken(each)] for each in entries]
        rows.append([survival.label, *shown[0], *shown[1], *shown[2]])
    names = [name for each in ("without them", "together", "alone") for name in (each, "chance", "arms, broken")]
    print_fitting(console, ["", *names], rows)


def _arms_and_broken(entry: "Entry") -> str:
    return f"{entry.n_arms}, {entry.n_broken}"


def _print_arms(console: Console, one: "DetectorTable") -> None:
    n = counted(len(one.defeat.arms), "arm")
    console.print(f"{one.model}, {one.name}: which of {n} gets past it", markup=False, highlight=False)
    if console.width < _NARROW:
        for arm in one.defeat.arms[:_ARMS]:
            indented(console, arm.arm, by=2)
            indented(console, _in_words(arm), by=4)
    else:
        console.print(_arm_table(one.defeat.arms[:_ARMS]))
    if (n_more := len(one.defeat.arms) - _ARMS) > 0:
        indented(console, f"and {n_more} more: --json lists all", by=2)


def _in_words(arm: "ArmDefeat") -> str:
    said = f"unseen {arm.n_unseen} of {arm.n_broken} broken, {percent_text(arm.unseen.value, 1)} of {arm.n_attacked} "
    said += f"attackable samples ({PAPER}: {percent_text(arm.unseen_paper.value, 1)}); least score {arm.n_least}"
    if arm.passes is not None:
        said += f"; passes {short(arm.passes)} per sample"
    return said if arm.passes_per_unseen is None else f"{said}, {short(arm.passes_per_unseen)} per unseen success"


def _arm_table(arms: Sequence["ArmDefeat"]) -> Table:
    columns = ("arm", "attackable", "broken", "unseen", "share", "paper's count", "least score")
    rows = new_table(*columns, "passes per sample", "per unseen")
    for arm in arms:
        spent = ["–" if count is None else short(count) for count in (arm.passes, arm.passes_per_unseen)]
        shares = [percent_text(share.value, 1) for share in (arm.unseen, arm.unseen_paper)]
        rows.add_row(*plain_cells([arm.arm, arm.n_attacked, arm.n_broken, arm.n_unseen, *shares, arm.n_least, *spent]))
    return rows


def _shown(row: "Row", name: str, attribute: str, *, wide: bool) -> str:
    estimate: Estimate | None = getattr(row.entries[name], attribute)
    if estimate is None:
        return "–"
    mark = "*" * (name in row.worst) + "°" * (name in row.worst_single) if attribute == "auroc" else ""
    interval = f"\n[{estimate.low:.3f}, {estimate.high:.3f}]" if wide or name == MULTI_ARMED else ""
    return f"{estimate.value:.3f}{mark}{interval}"


def _successes(entry: "Entry") -> str:
    return f"{entry.successes:.2f}" if entry.n_arms else "–"


def _stacked(estimate: Estimate | None) -> str:
    return "–" if estimate is None else str(estimate).replace(" [", "\n[")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
