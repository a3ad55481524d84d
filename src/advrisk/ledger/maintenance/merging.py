"""Two ledgers of one study, run on two machines, put together. What both hold must agree; else nothing is changed."""

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.core.files import NOT_AS_WRITTEN, read_json, unfinished_folder, whole_file
from advrisk.core.names import counted
from advrisk.ledger.history import take_over_repairs
from advrisk.ledger.inputs import inputs_folder
from advrisk.ledger.known_detectors import FILE as DETECTORS_FILE
from advrisk.ledger.layout import EVASION_FILE, STUDY_FILE
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.lock import locked
from advrisk.ledger.maintenance.reconciling import (
    added_question,
    join_studies,
    joined_looks,
    refuse_unlike,
    refuse_unlike_looks,
    shared_cells,
    unjoined,
)
from advrisk.ledger.rewriting import AFTER_CELL, OF_CELL, Tables, cells_in, read_tables, refuse_damaged
from advrisk.ledger.segments import publish, segment_folders, tidy
from advrisk.ledger.stopping import FILE as LOOKS_FILE
from advrisk.ledger.stopping import write_stopping
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync.copies import Place, writable_storage
from advrisk.ledger.sync.remote import local_path, url_of
from advrisk.ledger.tables import TABLES
from advrisk.ledger.verified import whole_segments

_NOT_COPIED = shutil.ignore_patterns("lock", "report.html", "aside", ".*", "certificates")
_ONE_RUN = "what was searched for and certified belongs to one of them; merge before certifying, or keep them apart"
_KEYS = {"scores": ("cell", "sample", "detector"), "measures": ("cell", "sample", "measure")}
_LATEST = "SELECT cell, max(parse_path(filename)[-2]) AS segment FROM all_cells GROUP BY cell"


@dataclass(frozen=True)
class Merged:
    """Where both are now, and what came from the second: cells added, cells that both had, files of inputs copied."""

    folder: Path
    n_cells: int
    n_shared: int
    n_inputs: int
    notes: tuple[str, ...] = ()


def merge_ledgers(one: Place, other: Place, *, out: str | Path | None = None) -> Merged:
    """Add what only `other` holds to `one`, or, with `out`, put both into a new folder.

    Of a cell that both hold, the rows must be equal but for times; where one ended in errors, the other one counts.
    Both are locked meanwhile: nobody writes to them, or merges their segments.
    """
    target = None if out is None else _new_folder(out)
    with writable_storage(one) if target is None else nullcontext(one) as place:
        first, second = Ledger.open(place).storage, Ledger.open(other).storage
        if first.folder.resolve() == second.folder.resolve():
            raise LedgerError(f"{one} and {other} are the same folder; there is nothing to merge")
        with locked(first.folder) if target is None else _quiet(first.folder), _quiet(second.folder):
            return _merged(first, second, target)


def _new_folder(out: str | Path) -> Path:
    if url := url_of(out):
        raise LedgerError(
            f"{url}: is no folder of this machine; merge into a new folder, or into the first ledger there"
        )
    if local_path(out).exists():
        raise LedgerError(f"{local_path(out)}: is there already; choose a new folder for the merged ledger")
    return local_path(out)


def _quiet(folder: Path) -> AbstractContextManager[None]:
    """Hold a ledger that is only read: no writer begins. One that cannot be written to has none."""
    return locked(folder) if os.access(folder, os.W_OK) else nullcontext()


def _merged(first: Storage, second: Storage, target: Path | None) -> Merged:
    one, other = first.folder, second.folder
    for home in (one, other):
        refuse_damaged(whole_segments(home / "ledger"))
    refuse_unlike(one, other)
    _refuse_unlike_files(one, other)
    _questions(Ledger.open(first), Ledger.open(second))
    refuse_unlike_looks(one, other)
    notes = tuple(_notes(one, target or one, other))
    if target is None:
        return replace(_added(first, second), notes=notes)
    first.fetch(inputs_folder(one))
    try:
        with unfinished_folder(target) as unfinished:
            shutil.copytree(one, unfinished, ignore=_NOT_COPIED, dirs_exist_ok=True)
            if _segment_names(unfinished) != _segment_names(one):  # a copy of one elsewhere has no lock
                raise LedgerError(f"{one}: segments were merged while it was copied; merge again")
            done = _added(Storage(unfinished), second)
            unfinished.rename(target)
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {_first(error)}") from None
    return replace(done, folder=target, notes=notes)


def _segment_names(folder: Path) -> list[str]:
    return [segment.name for segment in segment_folders(folder / "ledger")]


def _first(error: OSError) -> str:
    """The first thing that went wrong: for a whole folder, shutil tells of each of its files."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list) and error.args[0]:
        return str(error.args[0][0][-1])
    return str(error.strerror or error)


def _added(into: Storage, added: Storage) -> Merged:
    """Append what only the source holds: inputs first, as segments tell of them, and the question before the cells."""
    target, source = into.folder, added.folder
    ledger, other = Ledger.open(into), Ledger.open(added)
    tidy(ledger.storage)
    take_over_repairs(ledger.path, other.path)
    shared, better = shared_cells(ledger, other)
    there = _rows_of_cells(other)
    taken = (there.keys() - _rows_of_cells(ledger).keys()) | better
    added.fetch(inputs_folder(source))
    n_inputs = _copy_inputs(source, target, better)
    _copy_files(source, target)
    if question := added_question(ledger, other):
        ledger.append(question)
    if (questions := _questions(ledger, other)).num_rows:
        ledger.append({"questions": questions.cast(TABLES["questions"])})
    _append_cells(ledger, other, taken)
    here = _rows_of_cells(ledger.reopened())
    if lost := sorted(cell for cell in taken if here.get(cell) != there[cell]):
        raise LedgerError(
            f"{counted(len(lost), 'cell')} of {source}, {lost[0]} among them, did not arrive in {target} as they are "
            "there: somebody changed it meanwhile. Merge again"
        )
    return Merged(target, len(taken), len(shared - better), n_inputs)


def _rows_of_cells(ledger: Ledger) -> dict[str, int]:
    """Cell -> samples with an outcome."""
    rows = ledger.query(
        "SELECT cell, count(DISTINCT sample) AS n FROM (SELECT DISTINCT cell FROM all_cells) "
        "LEFT JOIN all_outcomes USING (cell) GROUP BY cell"
    ).to_pylist()
    return {row["cell"]: row["n"] for row in rows}


def _append_cells(ledger: Ledger, other: Ledger, taken: set[str]) -> None:
    """The rows of these cells, segment by segment, and scores and measures that the ledger does not hold yet."""
    latest = {row["cell"]: row["segment"] for row in other.query(_LATEST).to_pylist()}
    held = {name: _held(ledger, name) for name in AFTER_CELL}
    for segment in segment_folders(other.path):
        tables = read_tables(segment, (*OF_CELL, *AFTER_CELL))
        own = {cell for cell in cells_in(tables) & taken if latest[cell] == segment.name}
        void = {cell for cell, at in latest.items() if at > segment.name}
        new: Tables = {name: _of_cells(tables[name], own) for name in OF_CELL if name in tables}
        for name in AFTER_CELL:
            if name in tables:
                new[name] = _unheld(tables[name], _KEYS[name], held[name], taken, void)
        new = {name: table for name, table in new.items() if table.num_rows}
        if new:
            publish(ledger.storage, new)


def _of_cells(table: pa.Table, cells: set[str]) -> pa.Table:
    return table.filter(pa.array([cell in cells for cell in table["cell"].to_pylist()], pa.bool_()))


def _held(ledger: Ledger, name: str) -> set[tuple[str, ...]]:
    rows = ledger.query(f"SELECT DISTINCT {', '.join(_KEYS[name])} FROM {name}").to_pylist()
    return {tuple(row.values()) for row in rows}


def _unheld(
    table: pa.Table, key: tuple[str, ...], held: set[tuple[str, ...]], taken: set[str], void: set[str]
) -> pa.Table:
    places = zip(*(table[name].to_pylist() for name in key), strict=True)
    return table.filter(
        pa.array([place[0] not in void and (place[0] in taken or place not in held) for place in places], pa.bool_())
    )


def _copy_inputs(source: Path, target: Path, better: set[str]) -> int:
    """Copy files that the target lacks, or that belong to cells that are better there; returns how many."""
    n_copied = 0
    for path in sorted(inputs_folder(source).rglob("*.np[yz]")):
        place = target / path.relative_to(source)
        if not place.exists() or path.stem in better:
            _copy(path, place)
            n_copied += 1
    return n_copied


def _copy_files(source: Path, target: Path) -> None:
    """What lies beside the ledger: lists of detectors and searches are put together, the rest is copied if missing."""
    _join_lists(source, target, DETECTORS_FILE)
    _join_lists(source, target, "search/current.json")
    join_studies(source, target)
    if (looks := joined_looks(target, source)) is not None:
        write_stopping(target, looks)
    for path in _files_beside(source):
        if not (target / path.relative_to(source)).exists():
            _copy(path, target / path.relative_to(source))


def _files_beside(folder: Path) -> Iterable[Path]:
    named = [folder / name for name in (STUDY_FILE, EVASION_FILE, LOOKS_FILE)]
    found = [
        *named,
        *sorted((folder / "search").glob("*.json")),
        *sorted((folder / "detectors").rglob("*.safetensors")),
    ]
    return [path for path in found if path.is_file()]


def _copy(source: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as path:
            shutil.copyfile(source, path)
    except OSError as error:
        raise LedgerError(f"{target}: cannot be written: {error.strerror}") from None


def _join_lists(source: Path, target: Path, name: str) -> None:
    """A file with a list, or with several by name: those of the target, and what only the source has."""
    if not (source / name).is_file() or not (target / name).is_file():
        if (source / name).is_file():
            _copy(source / name, target / name)
        return
    try:
        ours, theirs = (read_json(folder / name) for folder in (target, source))
        joined: Any = (
            {key: list(dict.fromkeys([*ours[key], *theirs[key]])) for key in ours}
            if isinstance(ours, dict)
            else list(dict.fromkeys([*ours, *theirs]))
        )
        with whole_file(target / name) as file:
            file.write_text(json.dumps(joined, indent=2) + "\n", encoding="utf-8")
    except NOT_AS_WRITTEN as error:
        raise LedgerError(f"{source / name}: cannot be merged ({error}); run its study again") from None


def _refuse_unlike_files(one: Path, other: Path) -> None:
    """What was searched for on both, and came out differently, cannot be one run's."""
    searches = [path.relative_to(other) for path in sorted((other / "search").glob("*.json"))]
    for name in (name for name in searches if name.name != "current.json"):
        if (one / name).is_file() and (one / name).read_bytes() != (other / name).read_bytes():
            raise LedgerError(f"{name} of {one} and {other} differ: {_ONE_RUN}")


def _questions(ledger: Ledger, other: Ledger) -> pa.Table:
    """What was frozen for certificates, to be appended; refused where both froze something else."""
    ours, theirs = (one.query("SELECT DISTINCT * FROM questions ORDER BY question") for one in (ledger, other))
    if ours.num_rows and theirs.num_rows and ours != theirs:
        raise LedgerError(f"what {ledger.path.parent} and {other.path.parent} are to certify differs: {_ONE_RUN}")
    return theirs.slice(0, 0) if ours.num_rows else theirs


def _notes(one: Path, target: Path, source: Path) -> Iterable[str]:
    if models := unjoined(one, source):
        yield (
            f"the study kept in {target} is the first one's, and reports show it: the two differ in more than models. "
            f"`advrisk run STUDY.yaml --out {target}` with a study of {', '.join(models)} does what is left, and keeps "
            "that one"
        )
    if joined_looks(one, source) is not None:
        yield (
            "looks that were taken at one of them decide nothing of both; they are remembered as earlier ones: "
            f"`advrisk run STUDY.yaml --out {target} --target …` with the whole study looks at both"
        )
    if answers := sorted(path.name for path in source.glob("*.sqlite*")):
        yield f"{counted(len(answers), 'database')} of answers in {source} not merged: {', '.join(answers)}"
