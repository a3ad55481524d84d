"""Scores of a detector that ran elsewhere, from a CSV or Parquet file: put beside the outcomes they belong to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.core.names import counted, did_you_mean
from advrisk.ledger.exchange.source import read_columns, read_table
from advrisk.ledger.known_detectors import add_imported_detectors, nameable, read_known_detectors
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.storage import Storage
from advrisk.ledger.tables import table_from

_TEXT = ("detector", "model", "arm", "sample")
_KEY = ("model", "arm", "sample", "repeat")

# What may be scored, and the cell that its score stands under; samples to calibrate are in no cell.
# `needed`: without its score nothing is told of the detector; `aside`: its threshold is set on it.
_PLACES = """
    SELECT o.model::VARCHAR AS model, o.arm::VARCHAR AS arm, o.sample::VARCHAR AS sample, o.repeat::BIGINT AS repeat,
           o.cell::VARCHAR AS cell, o.kind = 'clean' OR o.outcome = 'success' AS wanted,
           wanted AND o.outcome NOT IN ('error', 'timeout') AND o.kind IS DISTINCT FROM 'corruption'
           AND coalesce(a.origin IN ('study', 'import') AND s.split = 'evaluate', false) AS needed,
           false AS aside
    FROM outcomes o
    LEFT JOIN arms a ON a.model = o.model AND a.arm = o.arm
    LEFT JOIN samples s ON s.sample = o.sample
    WHERE coalesce(s.split NOT IN ('tune', 'calibrate'), true)
    UNION ALL
    SELECT a.model, a.arm, s.sample, 0, a.recipe, true, false, true
    FROM arms a, samples s
    WHERE a.kind = 'clean' AND a.origin = 'study' AND s.split = 'calibrate'
"""


@dataclass(frozen=True)
class ImportedScores:
    """What a file brought: the full names of its detectors, and how many rows were taken and left out."""

    detectors: tuple[str, ...]
    n_scores: int
    n_left_out: int  # of inputs that did not succeed
    missing: Mapping[str, int] = field(default_factory=dict)  # detector -> clean inputs and successes without a score
    uncalibrated: Mapping[str, int] = field(default_factory=dict)  # detector -> inputs to calibrate without one


def holds_scores(source: Path) -> bool:
    """Whether a file is one of scores, to judge by its columns."""
    return bool({"score", "detector"} & set(read_columns(source)))


def import_scores(source: Path, place: Path | Storage) -> ImportedScores:
    """Append the scores of a file to the run at `place`.

    Needed: `detector`, `model`, `arm` (`clean` for clean inputs), `sample`, `score`; `repeat` where arms have several.
    A detector is known by its name and a digest of its rows. Rows of inputs that did not succeed are left out.
    """
    table = _checked(read_table(source, text=_TEXT), source)
    folder = Storage.of(place).folder
    with locked(folder):
        ledger = Ledger.open(place).named()
        places = ledger.query(_PLACES)
        found = _placed(table, places, ledger, source)
        names = {name: f"{name}@{_digest_of(found, name)}" for name in pc.unique(found["detector"]).to_pylist()}
        _refuse_taken(names, folder)
        held = set(ledger.query("SELECT DISTINCT detector FROM scores")["detector"].to_pylist())
        for full in names.values():
            if full in held:
                raise LedgerError(f"{folder}: already holds these scores of {full}")
        wanted = found.filter(found["wanted"])
        if not wanted.num_rows:
            raise LedgerError(f"{source}: none of these inputs is clean or a success; there is nothing to import")
        detector = [names[name] for name in wanted["detector"].to_pylist()]
        columns = {name: wanted[name].to_pylist() for name in ("cell", "sample", "score")}
        ledger.append({"scores": table_from("scores", columns | {"detector": detector})})
        add_imported_detectors(folder, list(names.values()))
    lacking = {kind: _lacking(found, places, names, kind) for kind in ("needed", "aside")}
    n_left_out = found.num_rows - wanted.num_rows
    return ImportedScores(tuple(names.values()), wanted.num_rows, n_left_out, lacking["needed"], lacking["aside"])


def incomplete(found: ImportedScores, folder: str | Path) -> list[str]:
    """What cannot be told of the imported detectors for want of scores."""
    how = f"`advrisk export {folder} to-score.npz --to-score` writes all inputs, whose scores belong into one file"
    unshown = [
        f"{name} has not scored {counted(n, 'input')} of this run (clean ones or successes), so nothing is told of it "
        f"where they count: {how}"
        for name, n in found.missing.items()
    ]
    return unshown + [
        f"{name} has not scored {counted(n, 'input')} set aside to calibrate, so its threshold for a rate of false "
        f"alarms is taken from the evaluated ones: {how}"
        for name, n in found.uncalibrated.items()
        if name not in found.missing
    ]


def _lacking(found: pa.Table, places: pa.Table, names: Mapping[str, str], kind: str) -> dict[str, int]:
    """Full name of a detector -> how many places of a kind its rows leave out, where there are such."""
    n_places = pc.sum(places[kind]).as_py() or 0
    n_lacking = {}
    for name, full in names.items():
        own = found.filter(pc.equal(found["detector"], name))
        n_lacking[full] = int(n_places - (pc.sum(own[kind]).as_py() or 0))
    return {full: n for full, n in n_lacking.items() if n}


def _refuse_taken(names: Iterable[str], folder: Path) -> None:
    """A name of a detector of the study would then mean another one."""
    known = read_known_detectors(folder)
    taken = {full.rpartition("@")[0] for full in known.study} | set(known.names.values()) if known else set()
    for name in names:
        if name in taken:
            raise LedgerError(f"{folder}: the study has a detector called {name!r}; give the imported one another name")


def _checked(table: pa.Table, source: Path) -> pa.Table:
    """Every column there, named and filled as it should be."""
    known = (*_TEXT, "repeat", "score")
    missing = [f"the column {name!r} is missing" for name in (*_TEXT, "score") if name not in table.column_names]
    for name in table.column_names:
        if name not in known:
            raise LedgerError("; ".join([f"{source}: unknown column {name!r}", *missing, did_you_mean(name, known)]))
    if missing:
        raise LedgerError(f"{source}: {missing[0]}")
    if not table.num_rows:
        raise LedgerError(f"{source}: holds no row")
    if "repeat" not in table.column_names:
        table = table.append_column("repeat", pa.array(np.zeros(table.num_rows, np.int64)))
    for name in table.column_names:
        empty = pc.is_null(table[name])
        if name in _TEXT:
            empty = pc.or_(empty, pc.equal(pc.fill_null(table[name].cast(pa.string()), ""), ""))
        if (place := _first(empty)) is not None:
            raise LedgerError(f"{source}, row {place + 1}: {name} is empty")
    columns = {name: table[name].cast(pa.string()) for name in _TEXT}
    for name, kind, what in (("repeat", pa.int64(), "a whole number"), ("score", pa.float64(), "a number")):
        try:
            columns[name] = table[name].cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            place, value = _first_unlike(table[name], kind)
            raise LedgerError(f"{source}, row {place + 1}: {name} must be {what}, found {value!r}") from None
    table = pa.table(columns)
    if (place := _first(pc.invert(pc.is_finite(table["score"])))) is not None:
        raise LedgerError(f"{source}, row {place + 1}: a score must be finite, found {table['score'][place]}")
    for name in pc.unique(table["detector"]).to_pylist():
        if not nameable(name):
            raise LedgerError(f"{source}: a detector needs a name without '@', ',' and slashes, found {name!r}")
    _refuse_twice(table, source)
    return table


def _refuse_twice(table: pa.Table, source: Path) -> None:
    keys = table.group_by(["detector", *_KEY]).aggregate([([], "count_all")])
    twice = keys.filter(pc.greater(keys["count_all"], 1))
    if twice.num_rows:
        row = twice.slice(0, 1).to_pylist()[0]
        raise LedgerError(f"{source}: {_what(row)} is scored twice by {row['detector']}; keep one of the rows")


def _placed(table: pa.Table, places: pa.Table, ledger: Ledger, source: Path) -> pa.Table:
    """The rows with the cell they belong to; one that belongs to none is refused."""
    numbered = table.append_column("number", pa.array(np.arange(table.num_rows)))
    found = numbered.join(places, list(_KEY), join_type="left outer").sort_by("number")
    if (place := _first(pc.is_null(found["cell"]))) is None:
        return found
    row = table.slice(place, 1).to_pylist()[0]
    known = ledger.query("SELECT DISTINCT model::VARCHAR AS model, arm::VARCHAR AS arm FROM arms").to_pylist()
    hint = "it tried no such sample"
    for name in ("model", "arm"):
        names = {other[name] for other in known}
        if row[name] not in names:
            hint = f"no {name} is called {row[name]!r}; {did_you_mean(row[name], names)}"
            break
    n_lost = pc.sum(pc.is_null(found["cell"])).as_py()
    raise LedgerError(
        f"{source}, row {place + 1}: the run holds nothing of {_what(row)}: {hint} ({counted(n_lost, 'such row')})"
    )


def _what(row: dict[str, Any]) -> str:
    repeat = f", repeat {row['repeat']}" if row["repeat"] else ""
    return f"model {row['model']}, arm {row['arm']}, sample {row['sample']}{repeat}"


def _first(flags: pa.ChunkedArray) -> int | None:
    """The place of the first true one."""
    place = pc.index(flags, True).as_py()
    return None if place < 0 else int(place)


def _first_unlike(column: pa.ChunkedArray, kind: pa.DataType) -> tuple[int, Any]:
    """The first value that is no number of that kind, and its place."""
    for place, value in enumerate(column):
        try:
            value.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return place, value.as_py()
    return 0, column[0].as_py()


def _digest_of(table: pa.Table, detector: str) -> str:
    rows = table.filter(pc.equal(table["detector"], detector)).select([*_KEY, "score"])
    rows = rows.sort_by([(name, "ascending") for name in _KEY])  # the order of a file says nothing
    return digest([list(row.values()) for row in rows.to_pylist()])[:8]
