"""`advrisk run` and `advrisk demo`: run a study, print its answer, write the report."""

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.cli import DONE, ERROR_ROWS, UNDECIDED, complain
from advrisk.cli.ended import Ending, print_json, remaining
from advrisk.cli.progress import RunProgress, interrupts_end_the_run
from advrisk.cli.verbosity import is_quiet, note
from advrisk.core.errors import RiskError
from advrisk.core.names import counted, visible_line
from advrisk.core.plain import plain_fields

if TYPE_CHECKING:
    from advrisk.api import Run
    from advrisk.assess.status import Status
    from advrisk.run.progress import Progress
    from advrisk.study import StudySpec


def run_and_show(spec: "StudySpec", study_file: Path, folder: str, *, as_json: bool = False, **options: Any) -> int:
    """Run, write the report, print the answer; returns the exit code."""
    ending = Ending(study_file, folder, options)
    progress = RunProgress(silent=as_json)
    try:
        # What a user's factory prints is no part of our output.
        with interrupts_end_the_run(folder), redirect_stdout(sys.stderr), progress:  # shown before anything heavy
            done, state = _run(spec, folder, progress, options)
            page = done.report() if state.done else None
            progress.finished("wrote the report")
    except KeyboardInterrupt:
        if as_json:
            ending.print_interrupted()
        raise
    left = remaining(state, progress.last)
    if page is None or left:
        ending.print_unfinished(state, left)
    facts = ending.facts(done, state, left)
    if page is None:
        if as_json:
            print_json(facts)
        return UNDECIDED
    _print_answer(done, state, facts, as_json=as_json)
    if not as_json and not is_quiet():
        _print_next(done, spec, folder, page)
    code = _print_troubles(state, progress.last, folder)
    return UNDECIDED if left else code or _decided(options.get("target"), state)


def _run(spec: "StudySpec", folder: str, progress: RunProgress, options: dict[str, Any]) -> "tuple[Run, Status]":
    from advrisk.api import Study

    study = Study(spec)
    for doubt in () if is_quiet() else study.doubts():
        complain(doubt)
    done = study.run(folder, on_progress=progress.update, progress=False, **options)
    progress.finished("ran the study", then="writing the report")
    return done, done.status()


def _print_answer(done: "Run", state: "Status", facts: dict[str, Any], *, as_json: bool) -> None:
    """The headlines and the decision table, or the same as JSON."""
    from advrisk.assess.selection.answer import leading
    from advrisk.cli.certificates import print_certified
    from advrisk.cli.damage import print_damage
    from advrisk.cli.targets import tell_stopped
    from advrisk.report.records import damage_record

    if as_json:
        tell_stopped(state.stopped)
    lead = leading(done.findings())
    try:
        damage = done.damage()
        if as_json:
            print_json(damage_record(damage) | plain_fields(lead) | facts)
        else:
            print_damage(damage, lead.sentences)
    except RiskError as error:  # the run is done all the same: corruptions alone, say
        note(f"no damage is reported: {error}")
        if as_json:
            print_json(plain_fields(lead) | facts | {"unanswered": str(error)})
        else:
            tell_stopped(state.stopped)
            print("\n".join(map(visible_line, lead.sentences)))
    if done.study and done.study.assess.certificate and not as_json:
        print_certified(done)


def _print_next(done: "Run", spec: "StudySpec", folder: str, page: Path) -> None:
    """Where the report is, and the commands that show what else the study asks."""
    from advrisk.ledger.sync.remote import url_below

    print(f"\nreport: {url_below(done.url, page.name) if done.url else page}")
    for name, command in _commands(spec, folder):
        print(f"{name}: {command}")


def _commands(spec: "StudySpec", folder: str) -> Iterator[tuple[str, str]]:
    if spec.detectors:
        yield "detectors", f"advrisk show detection {folder}"
    if spec.scenarios:
        yield "scenarios", f"advrisk show indicators {folder}"
    if "survival" in spec.assess.model_fields_set:
        yield "survival", f"advrisk show survival {folder}"
    if spec.search:
        yield "searches", f"advrisk show search {folder}"
    if spec.assess.certificate:
        yield "certificates", f"advrisk show certificate {folder}; as documents: advrisk certify {folder}"
    for name in spec.assess.brought:
        yield name, f"advrisk show {name} {folder}"
    if spec.gate:
        yield "requirements", f"advrisk gate {folder}"


def _print_troubles(state: "Status", last: "Progress | None", folder: str) -> int:
    """Flagged cells, error rows and measures without a number; the exit code that these ask for."""
    for flag, n_cells in state.flags.items():
        note(f"{flag}, {counted(n_cells, 'flagged cell')}: see `advrisk status {folder}`")
    tallies = (state.outcomes, state.elsewhere)
    n_failed = sum(tally.get(name, 0) for tally in tallies for name in ("error", "timeout"))
    if n_failed:
        print(f"{n_failed} rows ended in an error or timeout: advrisk status {folder}", file=sys.stderr)
    n_unmeasured = 0 if last is None else last.n_unmeasured
    if n_unmeasured:
        why = last.trouble if last and last.trouble else "`--retry-errors` tries again, and says why"
        print(f"{counted(n_unmeasured, 'measure')} gave no number: {why}", file=sys.stderr)
    return ERROR_ROWS if n_failed or n_unmeasured else DONE


def _decided(targets: Any, state: "Status") -> int:
    from advrisk.cli.targets import targets_met

    return DONE if targets_met(targets, state.looks) else UNDECIDED
