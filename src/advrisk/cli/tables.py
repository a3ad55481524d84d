"""What the ledger, a plan and the registries hold, for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advrisk.cli.progress import duration, short
from advrisk.core.names import counted
from advrisk.core.numbers import level_text
from advrisk.core.sections import Column, Headline, Section, Table, Text
from advrisk.render.terminal import Terminal, indented

if TYPE_CHECKING:
    from advrisk.run.dry import DryRun

_ARMS = (
    Column("arm"),
    Column("model"),
    Column("share", "share"),
    Column("kind"),
    Column("origin"),
    Column("n", "count"),
    Column("errors", "count"),
    Column("passes", "magnitude"),
)
_MODELS = (
    Column("model"),
    Column("capability"),
    Column("n_classes", "count"),
    Column("input_shape"),
    Column("random", "flag"),
    Column("train_s", "seconds"),
    Column("train_process_s", "seconds"),
    Column("train_samples", "count"),
    Column("train_cost", "amount"),
    Column("tags"),
    Column("digest"),
)


def arm_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What each arm did to each model: the share of samples it left wrong, and passes per sample."""
    return _table("Each arm against each model", _ARMS, rows)


def model_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The models of a run; what is known of none is left out."""
    known = [column for column in _MODELS if any(row[column.name] is not None for row in rows)]
    return _table("Models", known, rows)


def _table(title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Columns are called as in the ledger."""
    return Table(title, tuple(columns), tuple(tuple(_plain(row[one.name]) for one in columns) for row in rows))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, list) else value


def print_parts(described: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Registered parts with what they need and take."""
    console = Terminal()
    for kind, parts in described.items():
        console.print(kind, style="bold")
        if not parts:
            indented(console, f"none yet; a package brings its own by the entry point advrisk.{kind}", by=2)
        for part in parts:
            console.print(f"  {part['name']}", style="bold cyan")
            use_when = f"use it when: {part['use_when']}" if part["use_when"] else ""
            facts = [part["summary"], use_when, *part["facts"]]
            facts += [f"{parameter['shown']}" for parameter in part["parameters"]]
            for fact in filter(None, facts):  # a part may have no docstring
                indented(console, fact, by=4)


def dry_run_sections(plan: "DryRun") -> Iterator[Section]:
    """What a run would do and cost."""
    yield Headline(
        f"{counted(plan.n_cells, 'cell')} to run ({plan.n_skipped} done already), {counted(plan.n_rows, 'row')}, "
        f"at most {short(plan.n_forward)} forward and {short(plan.n_backward)} backward passes."
    )
    yield Text(tuple(_costs(plan)))
    notes = [
        f"The passes of {counted(len(plan.uncounted), 'arm')} are not known before they run; the numbers above leave "
        "them out. `max_cell_s` limits their time."
    ]
    yield Table(
        "Passes of each arm, at most",
        (Column("arm"), Column("passes", "count")),
        (*plan.by_arm.items(), *((arm, "not known") for arm in plan.uncounted)),
        tuple(notes if plan.uncounted else []),
    )


def _costs(plan: "DryRun") -> Iterator[str]:
    """What to know beside the number of passes, in sentences."""
    yield (
        f"About {duration(plan.seconds)} with {counted(plan.workers, 'worker')} if nothing else needs the cores, from "
        "cells tried out just now; samples that fall early make it shorter."
    )
    if plan.look_levels:
        yield _on_looks(plan)
    if plan.n_beside:
        yield (
            f"Of the cells, {plan.n_beside} are on samples to tune or to calibrate; a search that drops settings early "
            "runs fewer."
        )
    yield from (f"search: {search} at most" for search in plan.searches)
    if plan.n_scores:
        yield f"Detectors score {counted(plan.n_scores, 'input')} at most."
    if plan.n_crafted_again:
        yield (
            f"Inputs that are not kept are crafted again for each detector, {counted(plan.n_crafted_again, 'cell')} in "
            "all: these numbers hold that, too. With `keep_inputs: successful` new cells would need none of it."
        )
    for name, (forward, backward) in plan.by_measure.items():
        yield f"Beside that, {name} takes {short(forward)} forward and {short(backward)} backward passes, on one core."
    if plan.lessons:
        yield f"Before that, detectors must learn, which is not in these numbers: {', '.join(plan.lessons)}."


def _on_looks(plan: "DryRun") -> str:
    """Where a run with targets looks, and how sure each look must be."""
    levels = ", ".join(f"`{target}` at {level_text(level)}" for target, level in plan.look_levels.items())
    places = ", ".join(f"{n:,}" for n in plan.looks)
    return (
        f"It stops once {levels} {'is' if len(plan.look_levels) == 1 else 'are'} known: it looks after {places} "
        f"samples. Up to the first look it takes at most {short(plan.n_passes_to_look)} passes; all else here is of "
        "the full grid."
    )
