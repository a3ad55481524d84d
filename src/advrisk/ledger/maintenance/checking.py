"""Is everything there that was written, and nothing else? Looks at every byte, and changes none.

What was written is known from the digests in the segments (`ledger.manifest`). Of segments of earlier versions, which
have none, only the structure is checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advrisk.core.errors import LedgerError
from advrisk.core.names import counted
from advrisk.core.shortage import ShortageError, refuse_shortage, shortage_named
from advrisk.ledger import history
from advrisk.ledger.frozen import NO_QUESTION, LostQuestionError, linked
from advrisk.ledger.history import History, later_history, read_history
from advrisk.ledger.inputs import deleted_inputs, unreadable_inputs
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.lock import holder
from advrisk.ledger.maintenance.counting import Counts, counted_rows
from advrisk.ledger.manifest import (
    FILE,
    REPLACES_FILE,
    Manifest,
    Stamp,
    inputs_of,
    read_manifest,
    read_replaces,
    stamp_file,
)
from advrisk.ledger.rewriting import faults_of, read_tables
from advrisk.ledger.segments import FOLDER, all_segments
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync.copies import Place, readable_storage
from advrisk.ledger.verified import LOST_ADVICE

_TRIES = 20
QUESTION = "question"
_AGAIN = "`--repair` moves it aside, and `advrisk run` then does its cells again and nothing else"


@dataclass(frozen=True)
class Defect:
    """Something that is not as it should be. Of `damage`, numbers are wrong or missing; the rest is only untidy."""

    kind: str  # truncated | altered | missing | unreadable | duplicate | rows | question | inputs | orphan | unfinished
    place: str
    what: str
    remedy: str
    damage: bool = True


@dataclass
class Inspection:
    """What was looked at and found; and what a repair would take out of the ledger."""

    storage: Storage
    segments: list[Path]
    writer: str | None = None  # who was writing meanwhile
    n_cells: int = 0
    n_rows: int = 0
    n_inputs: int = 0
    n_without_digest: int = 0
    findings: list[Defect] = field(default_factory=list)
    faults: dict[str, dict[str, str]] = field(default_factory=dict)  # segment -> file -> what is wrong with it
    manifests: dict[str, Manifest | None] = field(default_factory=dict)
    copies: set[str] = field(default_factory=set)  # segments that are there twice
    cells: set[str] = field(default_factory=set)  # to be done again
    inputs: list[Path] = field(default_factory=list)  # to be moved aside

    @property
    def ledger(self) -> Path:
        """The folder with the segments."""
        return self.storage.ledger

    @property
    def has_faults(self) -> bool:
        """Whether segments are damaged: then nobody knows of which cells."""
        return any(self.faults.values())

    @property
    def n_uncounted(self) -> int:
        """Segments whose cells and rows are not counted, being damaged or there twice."""
        return sum(bool(self.faults[one.name]) or one.name in self.copies for one in self.segments)

    @property
    def lost_inputs(self) -> list[Path]:
        """Files of inputs that are missing or not as they were written."""
        return [Path(finding.place) for finding in self.findings if finding.kind == "inputs"]

    @property
    def damaged(self) -> bool:
        return any(finding.damage for finding in self.findings)

    @property
    def lacks_question(self) -> bool:
        """Whether it is not known any more what was to be certified; no repair changes that."""
        return any(finding.kind == QUESTION for finding in self.findings)

    def add(self, kind: str, place: object, what: str, remedy: str, *, damage: bool = True) -> None:
        self.findings.append(Defect(kind, str(place), what, remedy, damage))


@shortage_named()
def check(place: Place) -> Inspection:
    """Look at every segment and every kept input of a run; somebody may be writing to it, or merging segments."""
    storage = Ledger.open(readable_storage(place, verify=False)).storage
    ledger, writer = storage.ledger, holder(storage.folder)
    for _ in range(_TRIES):
        published = _history(ledger)  # before segments are listed: what it names is there, or was replaced
        everything = all_segments(ledger)
        try:
            found = _inspected(storage, published, everything, writer or holder(storage.folder))
        except ShortageError:
            raise
        except (LedgerError, FileNotFoundError):
            if all(segment.is_dir() for segment in everything):
                raise
        else:
            if all(segment.is_dir() for segment in everything):
                return found
    raise LedgerError(f"{ledger}: segments were merged {_TRIES} times while they were looked at; check again later")


@shortage_named()
def inspect(storage: Storage) -> Inspection:
    """The same for the holder of the lock: nobody else writes."""
    return _inspected(storage, _history(storage.ledger), all_segments(storage.ledger), None)


def _history(ledger: Path) -> History | LedgerError:
    """The history, or why it cannot be read."""
    try:
        return read_history(ledger)
    except ShortageError:
        raise
    except LedgerError as error:
        return error


def _inspected(
    storage: Storage, published: History | LedgerError, everything: Sequence[Path], writer: str | None
) -> Inspection:
    replaced = {name for segment in everything for name in _replaced_by(segment)}
    found = Inspection(storage, [segment for segment in everything if segment.name not in replaced], writer)
    _look_at_segments(found)
    _look_at_history(found, published, replaced)
    _look_for_copies(found)
    sound = [one for one in found.segments if not found.faults[one.name] and one.name not in found.copies]
    counts = counted_rows(found.ledger, sound, _cells_of_inputs(found))
    _look_at_rows(found, counts)
    _look_at_questions(found, calibrated=counts.calibrated)
    _look_at_inputs(found, counts.named, counts.redo)
    _look_for_leftovers(found, [segment for segment in everything if segment.name in replaced])
    return found


def _replaced_by(segment: Path) -> tuple[str, ...]:
    """What a segment takes the place of, if it was written so."""
    try:
        told, found = read_manifest(segment), read_replaces(segment).segments
        whole = not found or told is None or told.files.get(REPLACES_FILE) == stamp_file(segment / REPLACES_FILE)
    except ShortageError:
        raise
    except (LedgerError, FileNotFoundError):  # it is told with the other files of the segment
        return ()
    return found if whole else ()


def _look_at_segments(found: Inspection) -> None:
    for segment in found.segments:
        faults, manifest = faults_of(segment)
        found.faults[segment.name], found.manifests[segment.name] = faults, manifest
        found.n_without_digest += manifest is None and not faults
        for name, fault in faults.items():
            kind = next((one for one in ("truncated", "altered", "missing", "belong") if one in fault), "unreadable")
            kind = "orphan" if kind == "belong" else kind
            found.add(kind, segment / name, fault, _AGAIN, damage=kind != "orphan")
        if set(faults.values()) == {"does not belong to the segment"}:
            found.faults[segment.name] = {}


def _look_at_history(found: Inspection, published: History | LedgerError, replaced: set[str]) -> None:
    """Segments that were published and are gone, or are not what was published."""
    path = found.ledger / history.FILE
    manifests = found.manifests.values()
    later = published if isinstance(published, LedgerError) else later_history(found.ledger, published, manifests)
    lacking = isinstance(later, History) and any(map(later.lacks_lines, manifests))
    if isinstance(published, LedgerError) or lacking:
        what = "was altered, or lines are missing" if lacking else "cannot be read"
        remedy = "`--repair` writes it anew, of the segments that are there"
        found.add("altered" if lacking else "unreadable", path, what, remedy)
    if isinstance(published, LedgerError):
        return
    unclear = any(REPLACES_FILE in faults for faults in found.faults.values())  # what these replaced may be gone
    for name in [] if unclear else published.lost({segment.name for segment in found.segments} | replaced):
        found.add("missing", found.ledger / FOLDER / name, "is lost: it was published", LOST_ADVICE)
    for name, manifest in found.manifests.items():
        if not lacking and not found.faults[name] and published.unlike(name, manifest):
            found.faults[name] = {FILE: "is not the one that was published"}
            found.add("altered", found.ledger / FOLDER / name / FILE, found.faults[name][FILE], _AGAIN)


def _cells_of_inputs(found: Inspection) -> list[str]:
    """What may be cells among the names of the inputs that are there, or should be."""
    found.storage.fetch(found.ledger.parent / "inputs")
    there = {path.stem for path in (found.ledger.parent / "inputs").rglob("*.npz")}
    return sorted(there | {Path(name).stem for name in inputs_of(found.manifests, {})})


def _look_for_copies(found: Inspection) -> None:
    """Segments with the same contents: cells and their times are written once."""
    first: dict[str, Path] = {}
    for segment in found.segments:
        if found.faults[segment.name] or not (segment / "cells.parquet").is_file():
            continue
        manifest = found.manifests[segment.name] or Manifest(
            {file.name: stamp_file(file) for file in segment.glob("*.parquet")}
        )
        other = first.setdefault(manifest.content, segment)
        if other != segment:
            found.copies.add(segment.name)
            found.add("duplicate", segment, f"is a copy of {other.name}", "`--repair` moves the copy aside")


def _look_at_rows(found: Inspection, counts: Counts) -> None:
    """Cells with other rows than were planned, and rows that are there twice."""
    found.n_rows, found.n_cells = counts.n_rows, counts.n_cells
    for row in counts.unlike:
        found.cells.add(row["cell"])
        found.add("rows", found.ledger / FOLDER / row["segment"], _cell_fault(row), _AGAIN.replace("it", "them", 1))
    for table, cells in counts.twice.items():
        if twice := cells - found.cells:
            found.cells |= twice
            what = f"{counted(len(twice), 'cell')} with rows that stand there twice, {min(twice)} among them"
            found.add("duplicate", found.ledger, f"{table}: {what}", _AGAIN.replace("it", "them", 1))
    if counts.unknown and not found.has_faults:
        found.cells |= set(counts.unknown)
        n = counted(len(counts.unknown), "cell")
        what = f"scores or measures of {n} that are not there, {counts.unknown[0]} among them"
        found.add("rows", found.ledger, what, "`--repair` moves them aside, and `advrisk run` makes them again")


def _look_at_questions(found: Inspection, *, calibrated: bool) -> None:
    """Frozen questions that do not follow each other, or cells on samples to calibrate that no question asked for."""
    rows = dict.fromkeys(
        tuple(row.items())
        for segment in found.segments
        if not found.faults[segment.name].keys() & {FILE, "questions.parquet"} and segment.name not in found.copies
        for table in read_tables(segment, ["questions"]).values()
        for row in table.to_pylist()
    )
    try:
        if not linked([dict(row) for row in rows], found.ledger) and calibrated:
            raise LostQuestionError(found.ledger, NO_QUESTION)
    except LostQuestionError as error:
        found.add(QUESTION, found.ledger, error.reason, error.remedy)


def _cell_fault(row: dict[str, Any]) -> str:
    if not row["finished"]:
        return f"{counted(row['n_rows'], 'row')} of cell {row['cell']}, which is not there"
    name = f"cell {row['cell']} ({row['arm']} against {row['model']})"
    if row["n_rows"] != row["n_samples"]:
        return f"{name} has rows twice: {row['n_rows']} of {counted(row['n_samples'], 'sample')}"
    planned = row["n_planned"] if row["n_told"] == row["n_rows"] else row["n_told"]
    return f"{name} has {counted(row['n_rows'], 'row')}, and {planned} were planned"


def _look_at_inputs(found: Inspection, cells: set[str], redo: dict[str, str]) -> None:
    """Inputs that were lost or changed since; those of earlier versions are looked at without a digest."""
    home = found.ledger.parent
    stamps = inputs_of(found.manifests, deleted_inputs(home))
    present = {path.relative_to(home).as_posix(): path for path in sorted((home / "inputs").rglob("*.npz"))}
    found.n_inputs = len(present)
    for name in sorted(stamps.keys() | present.keys()):
        path = home / name
        if name not in present:
            fault = "is missing"
        elif name in stamps:
            fault = _changed(path, stamps[name])
        else:
            fault = unreadable_inputs(path)
        if fault:
            _tell_of_inputs(found, path, fault, cells, redo)
    kept = [path for name, path in present.items() if path.parts[-3] in ("cells", "crafted")]
    orphans = [path for path in kept if path.stem not in cells and path.stem not in found.cells]
    if orphans and not found.has_faults:
        what = f"{counted(len(orphans), 'file')} of cells that are not in the ledger, {orphans[0].name} among them"
        advice = "run the study again: cells that were stopped are finished, and use them; or delete them"
        found.add("orphan", home / "inputs", what, advice, damage=False)


def _changed(path: Path, told: Stamp) -> str:
    try:
        return "" if stamp_file(path) == told else "was altered or truncated since it was written"
    except OSError as error:
        refuse_shortage(error)
        return f"cannot be read ({error.strerror})"


def _tell_of_inputs(found: Inspection, path: Path, fault: str, cells: set[str], redo: dict[str, str]) -> None:
    again = redo.get(path.stem) if path.parent.name == "shards" else path.stem if path.stem in cells else None
    if again is not None:
        found.cells.add(again)
    if path.is_file():
        found.inputs.append(path)
    remedy = "`--repair` moves what is left of it aside, and `advrisk run` makes it again"
    if found.writer:
        remedy = f"{found.writer} is writing to this run and may be making it again: check when it has ended"
    found.add("inputs", path, fault, remedy)


def _look_for_leftovers(found: Inspection, replaced: Sequence[Path]) -> None:
    """What nobody reads, and what is no part of a ledger."""
    for segment in replaced:
        what = "was merged into another segment, and is not read"
        found.add("unfinished", segment, what, "the next `advrisk run` or `ledger compact` deletes it", damage=False)
    for entry in _strangers(found.ledger):
        if entry.name.startswith((".unfinished-", ".retired-")):
            what, remedy = "a writer was stopped here", "the next `advrisk run` deletes it"
            found.add("unfinished", entry, what, remedy, damage=False)
        else:
            found.add("orphan", entry, "is no segment", "move it elsewhere; it is not read", damage=False)


def _strangers(ledger: Path) -> Iterator[Path]:
    known = set(all_segments(ledger))
    yield from sorted(entry for entry in (ledger / FOLDER).iterdir() if entry not in known)
