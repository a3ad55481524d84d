"""Sections of a run's status: its progress, the outcomes of its rows, and its flags."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advrisk.core.flags import FLAGS, SHARES, flagged_text
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.core.sections import Column, Headline, Section, Table, Text

if TYPE_CHECKING:
    from advrisk.assess.status import Status

_MOST_FLAGGED = 8  # arms listed for each flag
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


def status_sections(
    state: "Status", flagged: Sequence[Mapping[str, Any]] = (), folder: str = "RUN"
) -> Iterator[Section]:
    """The status of a run; `flagged` are the rows of `Run.flags()`, `folder` is the run's folder in commands."""
    yield Headline(_headline(state))
    yield Text(tuple(_progress(state)))
    yield Table("Outcomes", (Column("outcome"), Column("rows", "count")), tuple(state.outcomes.items()))
    columns = (Column("model"), Column("correct", "share"), Column("refused", "share"))
    clean = ((model, state.clean_accuracy[model], share) for model, share in state.clean_rejection.items())
    yield Table("Clean inputs, correct or refused", columns, tuple(clean))
    yield from _flags(state, flagged, folder)
    if state.messages:
        lines = (f"{count} × {message}" for message, count in state.messages.items())
        again = f"Try again with: advrisk run … --out {folder} --retry-errors"
        yield Text((*lines, again), "Errors and timeouts")


def _headline(state: "Status") -> str:
    parts = [state.rested + "; " if state.rests else "", counted(state.n_models, "model")]
    parts += [f", {counted(state.n_surrogates, 'surrogate')}" if state.n_surrogates else ""]
    parts += [f", {counted(state.n_arms, 'arm')}"]
    parts += ["" if state.rests else f", {counted(state.n_samples, 'sample')}"]
    return f"{state.study}: {''.join(parts)}"


def _progress(state: "Status") -> Iterator[str]:
    if state.n_cells_expected:
        resume = ": run the same command again to resume"
        yield f"{state.so_far} done{': complete' if state.complete else ' on these samples' if state.done else resume}"
    if state.stopped:
        yield state.stopped
    if state.n_imported:
        yield f"{state.n_imported:,} rows imported"
    yield f"{state.n_passes:,} passes"
    if state.elsewhere:
        rows = ", ".join(f"{name} {count}" for name, count in state.elsewhere.items())
        yield f"on the tuning and calibration splits, which no other assessment counts: {rows}"


def _flags(state: "Status", flagged: Sequence[Mapping[str, Any]], folder: str) -> Iterator[Section]:
    """The flags and their meaning, then the arms of `flagged`."""
    by_flag = {flag: [row for row in flagged if row["flag"] == flag] for flag in state.flags}
    columns = (Column("flag"), Column("raised"), Column("meaning"))
    rows = (
        (flag, flagged_text(own) if own else counted(state.flags[flag], "flagged cell"), FLAGS.get(flag, ""))
        for flag, own in by_flag.items()
    )
    yield Table("Flags", columns, tuple(rows))
    for flag, own in by_flag.items():
        if own:
            yield Text(tuple(_where(flag, own, folder)), flag)


def _where(flag: str, rows: Sequence[Mapping[str, Any]], folder: str) -> Iterator[str]:
    """The arms with a flag, the worst first."""
    worst = sorted(rows, key=lambda row: (row["n_flagged"] / row["n_cells"], row["share"] or 0.0), reverse=True)
    for row in worst[:_MOST_FLAGGED]:
        share = "" if row["share"] is None else f", in which {percent_text(row['share'])} {SHARES[flag]}"
        yield f"{row['model']}, {row['arm']}: {row['n_flagged']} of {row['n_cells']} cells{share}"
    if (n_more := len(rows) - _MOST_FLAGGED) > 0:
        yield f"and {counted(n_more, 'more arm')}: advrisk status {folder} --json lists all"


def arm_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Each arm against each model: the share of samples left incorrect, and passes per sample."""
    return _table("Each arm against each model", _ARMS, rows)


def model_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The models of a run, without columns that are empty for all."""
    present = [column for column in _MODELS if any(row[column.name] is not None for row in rows)]
    return _table("Models", present, rows)


def _table(title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table with the column names of the ledger."""
    return Table(title, tuple(columns), tuple(tuple(_plain(row[one.name]) for one in columns) for row in rows))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, list) else value
