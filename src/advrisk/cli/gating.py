"""`advrisk gate` and `advrisk compare`: verdicts for pipelines."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from advrisk.cli import DONE, FAILED, UNDECIDED
from advrisk.cli.completion import run_folders
from advrisk.cli.options import AsJson, Details, OfCost, OfEps, OfEvasion, OfNorm, RunFolder, sizes_of
from advrisk.core.errors import StudyError
from advrisk.core.files import write_whole
from advrisk.core.numbers import parse_number

if TYPE_CHECKING:
    from advrisk.assess.gate.cases import Verdicts
    from advrisk.core.sections import Section

CODES = {"pass": DONE, "fail": FAILED, "undecided": UNDECIDED}

OfJunit = Annotated[
    str | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, which build servers show as tests.")
]
OfMarkdown = Annotated[
    str | None,
    typer.Option("--markdown", metavar="FILE", help="Write a short summary for a pull request; - prints it."),
]
OfLevel = Annotated[float | None, typer.Option("--level", help="How sure intervals are (default: the study's, 0.95).")]


def gate(
    folder: RunFolder,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="TEXT", help="A requirement beside those of the study; repeat for more."),
    ] = None,
    level: OfLevel = None,
    evasion: OfEvasion = None,
    cost: OfCost = None,
    strict_flags: Annotated[
        bool, typer.Option("--strict-flags", help="Nothing passes that rests on flagged cells.")
    ] = False,
    details: Details = False,
    as_json: AsJson = False,
    junit: OfJunit = None,
    markdown: OfMarkdown = None,
) -> None:
    """Check a run against requirements.

    Exit code 0: all pass; 1: one fails; 4: undecided.

    Example: advrisk gate runs/signs --require "broken.hardened at 8/255 <= 20 %"
    """
    from advrisk.api import Run
    from advrisk.assess.gate.question import refuse_lost_study
    from advrisk.assess.gate.sections import gate_verdicts, sections

    given: dict[str, Any] = {"level": level, "evasion": evasion, "cost": cost, "strict_flags": strict_flags}
    run = Run.open(folder)
    refuse_lost_study(run.context)
    found = run.gate(require, **given)
    files = {"junit": junit, "markdown": markdown}
    _show(sections(found), gate_verdicts(found), found.as_dict(), details=details, as_json=as_json, **files)
    raise typer.Exit(CODES[found.verdict])


def compare(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The folder of the old run.", autocompletion=run_folders)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The folder of the new run.", autocompletion=run_folders)],
    margin: Annotated[
        str | None, typer.Option("--margin", help="How much worse the new one may be, as 0.01 or 1 % (default: 2 %).")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="OLD=NEW", help="Models that belong together; repeat for more."),
    ] = None,
    eps: OfEps = None,
    norm: OfNorm = None,
    arm: Annotated[
        list[str] | None,
        typer.Option("--arm", help="Compare by this attack (default: all of the old run); * is allowed; repeatable."),
    ] = None,
    evasion: OfEvasion = None,
    level: OfLevel = None,
    details: Details = False,
    as_json: AsJson = False,
    junit: OfJunit = None,
    markdown: OfMarkdown = None,
) -> None:
    """Compare a new run with an old one: has it become worse?

    Exit code 0: it has not; 1: it has; 4: undecided.

    Both are compared on the samples and under the arms that both hold. The same model passes as identical.

    Example: advrisk compare runs/old runs/new --margin 1%
    """
    from advrisk.api import Run
    from advrisk.assess.compare.sections import comparison_verdicts, sections

    found = Run.open(old).compare(
        Run.open(new),
        margin=None if margin is None else _margin(margin),
        models=_pairs(model),
        sizes=sizes_of(eps),
        norm=norm,
        arms=arm,
        evasion=evasion,
        level=level,
    )
    files = {"junit": junit, "markdown": markdown}
    _show(sections(found), comparison_verdicts(found), found.as_dict(), details=details, as_json=as_json, **files)
    raise typer.Exit(CODES[found.verdict])


def _margin(text: str) -> float:
    share = text.strip().endswith("%")
    try:
        return parse_number(text.strip().rstrip("%").strip()) / (100 if share else 1)
    except ValueError as error:
        raise StudyError(f"--margin: {error}") from None


def _pairs(written: list[str] | None) -> dict[str, str] | None:
    """`old=new` as a mapping."""
    found: dict[str, str] = {}
    for text in written or ():
        old, sign, new = text.partition("=")
        if not sign or not old or not new:
            raise StudyError(f"--model is OLD=NEW, as in plain=hardened; found {text!r}")
        if old in found:
            raise StudyError(
                f"--model names the old model {old} twice: found {found[old]} and {new}; compare one by one"
            )
        found[old] = new
    return found or None


def _show(
    sections: Iterable["Section"],
    verdicts: "Verdicts",
    facts: Mapping[str, Any],
    *,
    details: bool,
    as_json: bool,
    junit: str | None,
    markdown: str | None,
) -> None:
    """Print verdicts as text, JSON or Markdown, and write the files that were asked for."""
    from advrisk.render.terminal import print_sections
    from advrisk.report.verdicts import junit_xml, verdicts_markdown

    printed = markdown == "-"
    if printed and as_json:
        raise StudyError("--json and --markdown - both print; write one of them to a file")
    if junit is not None:
        _write(junit, junit_xml(verdicts))
    if markdown is not None and not printed:
        _write(markdown, verdicts_markdown(verdicts))
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    elif printed:
        print(verdicts_markdown(verdicts), end="")
    else:
        print_sections(sections, details=details)


def _write(place: str, text: str) -> None:
    from advrisk.ledger.sync.files import output_file

    with output_file(place) as path:
        write_whole(path, text)
