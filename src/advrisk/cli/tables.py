"""Results as text for a terminal, wide or narrow."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from advrisk.cli.progress import duration, short
from advrisk.core.flags import FLAGS, SHARES, flagged_text
from advrisk.core.names import counted
from advrisk.core.numbers import level_text, percent_text
from advrisk.render.terminal import indented, new_table, plain_cells

if TYPE_CHECKING:
    from advrisk.api import Status
    from advrisk.run.dry import DryRun

_NARROW = 100
_ENDLESS = 100_000  # columns, to measure a table that nothing folds
_GO_ON = ": run the same command again to go on"
_MOST_FLAGGED = 8  # arms listed for each flag
_KEPT = "\u00a0"  # a blank at which no line ends


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Any rows as a table; where its words do not fit beside each other, one block for each row."""
    if not rows:
        print("no rows")
        return
    console = Console()
    texts = [{name: _cell(value) for name, value in row.items()} for row in rows]
    table = new_table(*rows[0])
    for row in texts:
        table.add_row(*plain_cells(list(row.values())))
    if console.measure(table, options=console.options.update_width(_ENDLESS)).minimum <= console.width:
        console.print(table)
        return
    for row in texts:
        first, *others = row.items()
        indented(console, first[1] or first[0], by=0)
        indented(console, "; ".join(f"{name}{_KEPT}{text}" for name, text in others if text), by=2)


def print_parts(described: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Registered parts with what they need and take."""
    console = Console()
    for kind, parts in described.items():
        console.print(kind, style="bold")
        if not parts:
            indented(console, f"none yet; a package brings its own by the entry point advrisk.{kind}", by=2)
        for part in parts:
            console.print(f"  {part['name']}", style="bold cyan", markup=False, highlight=False)
            use_when = f"use it when: {part['use_when']}" if part["use_when"] else ""
            facts = [part["summary"], use_when, *part["facts"]]
            facts += [f"{parameter['shown']}" for parameter in part["parameters"]]
            for fact in filter(None, facts):  # a part may have no docstring
                indented(console, fact, by=4)


def print_dry_run(plan: "DryRun") -> None:
    """What a run would do and cost."""
    console = Console()
    console.print(
        f"{counted(plan.n_cells, 'cell')} to run ({plan.n_skipped} done already), {counted(plan.n_rows, 'row')}, "
        f"at most {short(plan.n_forward)} forward and {short(plan.n_backward)} backward passes.",
        highlight=False,
    )
    console.print(
        f"About {duration(plan.seconds)} with {counted(plan.workers, 'worker')} if nothing else needs the cores, from "
        "cells tried out just now; samples that fall early make it shorter.",
        highlight=False,
    )
    if plan.look_levels:
        _print_looks(console, plan)
    if plan.n_beside:
        console.print(
            f"Of the cells, {plan.n_beside} are on samples to tune or to calibrate; a search that drops settings early "
            "runs fewer.",
            highlight=False,
        )
    for search in plan.searches:
        indented(console, f"search: {search} at most", by=2)
    if plan.n_scores:
        console.print(f"Detectors score {counted(plan.n_scores, 'input')} at most.", highlight=False)
    if plan.n_crafted_again:
        console.print(
            f"Inputs that are not kept are crafted again for each detector, {counted(plan.n_crafted_again, 'cell')} in "
            "all: these numbers hold that, too. With `keep_inputs: successful` new cells would need none of it.",
            highlight=False,
        )
    for name, (forward, backward) in plan.by_measure.items():
        console.print(
            f"Beside that, {name} takes {short(forward)} forward and {short(backward)} backward passes, on one core.",
            markup=False,
            highlight=False,
        )
    if plan.lessons:
        console.print(
            f"Before that, detectors must learn, which is not in these numbers: {', '.join(plan.lessons)}.",
            markup=False,
            highlight=False,
        )
    table = new_table("arm", "passes at most")
    for arm, passes in plan.by_arm.items():
        table.add_row(*plain_cells([arm, short(passes)]))
    for arm in plan.uncounted:
        table.add_row(*plain_cells([arm, "not known"]))
    console.print(table)
    if plan.uncounted:
        console.print(
            f"The passes of {counted(len(plan.uncounted), 'arm')} are not known before they run; "
            "the numbers above leave them out. `max_cell_s` limits their time.",
            highlight=False,
        )


def print_status(state: "Status", flagged: Sequence[Mapping[str, Any]], folder: str) -> None:
    """How far a run is, and what in it is not to be trusted."""
    console = Console()
    console.print(
        f"{state.study}: {f'{state.rested}; ' if state.rests else ''}{counted(state.n_models, 'model')}, "
        + (f"{counted(state.n_surrogates, 'surrogate')}, " if state.n_surrogates else "")
        + counted(state.n_arms, "arm")
        + ("" if state.rests else f", {counted(state.n_samples, 'sample')}"),
        markup=False,
    )
    if state.n_cells_expected:
        left = ": complete" if state.complete else " on these samples" if state.done else _GO_ON
        console.print(f"{state.so_far} done{left}", highlight=False)
    if state.stopped:
        indented(console, state.stopped, by=0)
    if state.n_imported:
        console.print(f"{state.n_imported} rows imported", highlight=False)
    console.print(f"{short(state.n_passes)} passes", highlight=False)
    for name, count in state.outcomes.items():
        console.print(f"  {name}: {count}", markup=False, highlight=False)
    for name, share in state.clean_rejection.items():
        right = f"{percent_text(state.clean_accuracy[name], 1)} of clean inputs answered rightly"
        console.print(f"  {name}: {right}, {percent_text(share, 1)} refused", markup=False, highlight=False)
    if state.elsewhere:
        rows = ", ".join(f"{name} {count}" for name, count in state.elsewhere.items())
        indented(console, f"on samples to tune and to calibrate, which no other assessment counts: {rows}", by=2)
    for name in state.flags:
        own = [row for row in flagged if row["flag"] == name]
        indented(console, f"{name}, {flagged_text(own)}: {FLAGS.get(name, '')}", by=0)
        _print_flagged(console, name, own, folder)
    if state.messages:
        console.print("errors and timeouts:")
        for message, count in state.messages.items():
            console.print(f"  {count} × {message}", markup=False, highlight=False)
        console.print(f"try again with: advrisk run … --out {folder} --retry-errors", markup=False, highlight=False)


def _print_looks(console: Console, plan: "DryRun") -> None:
    """Where a run with targets looks, and how sure each look must be."""
    levels = ", ".join(f"`{target}` at {level_text(level)}" for target, level in plan.look_levels.items())
    places = ", ".join(f"{n:,}" for n in plan.looks)
    indented(
        console,
        f"It stops once {levels} {'is' if len(plan.look_levels) == 1 else 'are'} known: it looks after {places} "
        f"samples. Up to the first look it takes at most {short(plan.n_passes_to_look)} passes; all else here is of "
        "the full grid.",
        by=0,
    )


def _print_flagged(console: Console, flag: str, rows: Sequence[Mapping[str, Any]], folder: str) -> None:
    """Where a flag was raised, the worst first."""
    worst = sorted(rows, key=lambda row: (row["n_flagged"] / row["n_cells"], row["share"] or 0.0), reverse=True)
    for row in worst[:_MOST_FLAGGED]:
        share = "" if row["share"] is None else f", in which {percent_text(row['share'])} {SHARES[flag]}"
        where = f"{row['model']}, {row['arm']}: {row['n_flagged']} of {row['n_cells']} cells{share}"
        indented(console, where, by=2)
    if (n_more := len(rows) - _MOST_FLAGGED) > 0:
        more = f"and {n_more} more {'arm' if n_more == 1 else 'arms'}: advrisk status {folder} --json lists all"
        indented(console, more, by=2)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
