"""`advrisk ledger check`, `compact`, `diff` and `merge`: looking after ledgers."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from advrisk.cli import DONE, FAILED
from advrisk.cli.completion import run_folders
from advrisk.cli.options import AsJson, RunFolder
from advrisk.core.names import counted, visible_line
from advrisk.core.plain import json_text

if TYPE_CHECKING:
    from advrisk.ledger.maintenance.checking import Inspection
    from advrisk.ledger.maintenance.diffing import LedgerDiff

_MOST_SHOWN = 20


def check(
    folder: RunFolder,
    repair: Annotated[
        bool, typer.Option("--repair", help="Move what is damaged aside, so that the next run does it again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for truncated, altered, doubled or lost data.

    Exit code 1 if there are any.

    Example: advrisk ledger check runs/signs --repair
    """
    from advrisk.ledger import check as checked
    from advrisk.ledger import repair as repaired

    found = repaired(folder) if repair else checked(folder)
    print(json.dumps(_facts(found, repair), indent=2)) if as_json else _print_check(found, folder, repair)
    raise typer.Exit(FAILED if found.damaged and not repair else DONE)


def _facts(found: "Inspection", repaired: bool) -> dict[str, object]:
    counts = {name: getattr(found, name) for name in ("n_cells", "n_rows", "n_inputs", "n_without_digest")}
    return {
        "damaged": found.damaged,
        "repaired": found.damaged and repaired and not found.lacks_question,
        "n_segments": len(found.segments),
        "n_segments_not_counted": found.n_uncounted,
        **counts,
        "writer": found.writer,
        "n_cells_to_redo": len(found.cells),
        "findings": [vars(finding) for finding in found.findings],
    }


def _print_check(found: "Inspection", folder: str, repaired: bool) -> None:

    from advrisk.render.terminal import Terminal, indented

    console = Terminal()
    for line in _check_lines(found, folder, repaired):
        indented(console, line, by=0)


def _check_lines(found: "Inspection", folder: str, repaired: bool) -> Iterator[str]:
    yield _counts(found)
    if found.n_without_digest:
        older = counted(found.n_without_digest, "segment")
        gets = "those that `advrisk ledger compact` merges get one"
        yield f"{older} of an earlier version: no digest, structure only ({gets})"
    if found.writer:
        yield f"{found.writer} is writing to this run: what it is just making again may look damaged"
    for finding in found.findings[:_MOST_SHOWN]:
        mark = "damaged" if finding.damage else "note"
        remedy = "" if repaired and finding.damage and finding.kind != "question" else f"; {finding.remedy}"
        yield f"{mark}: {finding.place}: {finding.what}{remedy}"
    if (n_more := len(found.findings) - _MOST_SHOWN) > 0:
        yield f"and {n_more} more: --json lists all"
    if not found.damaged:
        yield "nothing is damaged"
    elif repaired and any(finding.damage and finding.kind != "question" for finding in found.findings):
        aside = found.ledger / "aside"
        done = f"moved to {aside}" if aside.is_dir() else "removed from the history"
        study = "STUDY.yaml, without `assess: certificate`," if found.lacks_question else "STUDY.yaml"
        yield f"{done}. Next: advrisk run {study} --out {folder}, which does it again"


def _counts(found: "Inspection") -> str:
    rows = f"{counted(found.n_cells, 'cell')}, {counted(found.n_rows, 'row')}"
    inputs = f"{counted(found.n_inputs, 'file')} of inputs"
    if not found.n_uncounted:
        return f"{counted(len(found.segments), 'segment')}, {rows}, {inputs}"
    whole = f"{len(found.segments) - found.n_uncounted} of {counted(len(found.segments), 'segment')}"
    return f"{whole} could be counted: {rows} in them, and none of the damaged ones; {inputs}"


def compact(
    folder: RunFolder,
    largest_mb: Annotated[
        float, typer.Option(min=0.001, help="Merge neighbours until they are about so many megabytes together.")
    ] = 256.0,
) -> None:
    """Merge small segments into few; readers are not disturbed.

    Example: advrisk ledger compact runs/signs
    """
    from advrisk.ledger import compact as compacted

    done = compacted(folder, largest_mb=largest_mb)
    void = f"; {counted(done.n_void, 'row')} of cells that had been run again are gone" if done.n_void else ""
    print(f"{counted(done.n_before, 'segment')} before, {done.n_after} now{void}")


def diff(
    one: Annotated[str, typer.Argument(help="The folder of a run.", autocompletion=run_folders)],
    other: Annotated[str, typer.Argument(help="The folder of another run.", autocompletion=run_folders)],
    times: Annotated[bool, typer.Option("--times", help="Compare times and run ids, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how two ledgers differ: cells, rows, models, samples.

    Exit code 1 if they do.

    Example: advrisk ledger diff runs/signs runs/signs-again
    """
    from advrisk.ledger import diff_ledgers

    found = diff_ledgers(one, other, times=times)
    print(json_text(found)) if as_json else _print_diff(found, one, other)
    raise typer.Exit(DONE if found.equal else FAILED)


def _print_diff(found: "LedgerDiff", one: str, other: str) -> None:
    for part in found.tables:
        for folder, only in ((one, part.only_one), (other, part.only_other)):
            if only.n:
                print(f"{part.table}: {only.n} only in {folder}, as {visible_line(only.shown)}")
        for folder, more in ((one, part.more_one), (other, part.more_other)):
            if more.n:
                print(f"{part.table}: {more.n} more often in {folder}, as {visible_line(more.shown)}")
        if part.differ.n:
            columns = ", ".join(f"{name} ({n})" for name, n in part.columns.items())
            print(f"{part.table}: {part.differ.n} differ, as {visible_line(part.differ.shown)}; in {columns}")
    print("equal" if found.equal else "different")


def merge(
    one: Annotated[
        str,
        typer.Argument(
            help="The folder of a run, into which the other goes unless --out is given.", autocompletion=run_folders
        ),
    ],
    other: Annotated[str, typer.Argument(help="The folder of a run of the same study.", autocompletion=run_folders)],
    out: Annotated[str | None, typer.Option(help="A new folder for both; the first stays as it is.")] = None,
) -> None:
    """Merge two ledgers of one study, as from two machines.

    What both hold must be the same, but for times; else nothing is merged.

    Example: advrisk ledger merge runs/here runs/there --out runs/both
    """
    from advrisk.ledger import merge_ledgers

    done = merge_ledgers(one, other, out=out)
    print(
        f"{counted(done.n_cells, 'cell')} of {other} added to {out or one}, {done.n_shared} were in both, "
        f"{counted(done.n_inputs, 'file')} of inputs copied"
    )
    for sentence in done.notes:
        print(visible_line(sentence))
