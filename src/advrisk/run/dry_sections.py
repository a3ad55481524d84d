"""Sections of a dry run: the work and the costs of a run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from advrisk.core.durations import rounded_text
from advrisk.core.names import counted
from advrisk.core.numbers import level_text, short_text
from advrisk.core.sections import Column, Headline, Section, Table, Text

if TYPE_CHECKING:
    from advrisk.run.dry import DryRun


def dry_run_sections(plan: "DryRun") -> Iterator[Section]:
    """The work and the costs of a run."""
    yield Headline(
        f"{counted(plan.n_cells, 'cell')} to run ({plan.n_skipped} done already), {counted(plan.n_rows, 'row')}, "
        f"at most {short_text(plan.n_forward)} forward and {short_text(plan.n_backward)} backward passes."
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
    """Sentences on the costs besides the number of passes."""
    yield (
        f"About {rounded_text(plan.seconds)} with {counted(plan.workers, 'worker')} if nothing else needs the cores, "
        "from cells tried out just now; samples that fall early make it shorter."
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
        passes = f"{short_text(forward)} forward and {short_text(backward)} backward passes"
        yield f"Beside that, {name} takes {passes}, on one core."
    if plan.lessons:
        yield f"Before that, detectors must learn, which is not in these numbers: {', '.join(plan.lessons)}."


def _on_looks(plan: "DryRun") -> str:
    """Where a run with targets looks, and how sure each look must be."""
    levels = ", ".join(f"`{target}` at {level_text(level)}" for target, level in plan.look_levels.items())
    places = ", ".join(f"{n:,}" for n in plan.looks)
    return (
        f"It stops once {levels} {'is' if len(plan.look_levels) == 1 else 'are'} known: it looks after {places} "
        f"samples. Up to the first look it takes at most {short_text(plan.n_passes_to_look)} passes; all else here is "
        "of the full grid."
    )
