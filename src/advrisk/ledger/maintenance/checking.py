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
from advrisk.ledger.inputs import deleted_inputs, unreadable_inputs
from advrisk.ledger.ledger import Ledger, create_views, interrupts_kept, quiet_connection
from advrisk.ledger.lock import holder
from advrisk.ledger.manifest import REPLACES_FILE, Manifest, Stamp, inputs_of, read_manifest, read_replaces, stamp_file
from advrisk.ledger.rewriting import faults_of
from advrisk.ledger.segments import FOLDER, all_segments
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync.copies import Place, readable_storage

_TRIES = 20
_AGAIN = "`--repair` moves it aside, and `advrisk run` then does its cells again and nothing else"

# Cells whose rows are not those that were planned: in one segment, as a cell is published as a whole.
_CELLS = """
    WITH found AS (
        SELECT cell, parse_path(filename)[-2] AS segment, count(*) AS n, count(DISTINCT sample) AS n_samples
        FROM all_outcomes GROUP BY ALL
    ), told AS (
        SELECT cell, parse_path(filename)[-2] AS segment, any_value(model) AS model, any_value(arm) AS arm,
               any_value(shard) AS shard, max(n_samples) AS n FROM all_cells GROUP BY ALL
    ), planned AS (SELECT shard, count(*) AS n FROM samples WHERE shard IS NOT NULL GROUP BY ALL)
    SELECT coalesce(told.cell, found.cell)::VARCHAR AS cell, coalesce(told.segment, found.segment) AS segment,
           told.cell IS NOT NULL AS finished, told.model, told.arm, coalesce(found.n, 0) AS n_rows,
           coalesce(found.n_samples, 0) AS n_samples, coalesce(told.n, found.n) AS n_told,
           coalesce(planned.n, n_told) AS n_planned
    FROM told FULL JOIN found USING (cell, segment) LEFT JOIN planned ON planned.shard = told.shard
    WHERE NOT finished OR n_rows <> n_told OR n_rows <> n_samples OR n_told <> n_planned ORDER BY segment, cell
"""
# Two cells of one model, arm and repeat never share a sample; to count is much quicker than to look at every row.
_SHARED = "SELECT model, arm, repeat FROM outcomes GROUP BY ALL HAVING count(*) <> count(DISTINCT sample)"
_TWICE = {
    "outcomes": "SELECT DISTINCT unnest(cells) AS cell FROM (SELECT list(DISTINCT cell) AS cells FROM outcomes "
    f"SEMI JOIN ({_SHARED}) USING (model, arm, repeat) GROUP BY model, arm, sample, repeat HAVING count(*) > 1)",
    "outputs": "SELECT cell FROM outputs GROUP BY cell HAVING count(*) <> count(DISTINCT sample)",
    "scores": "SELECT DISTINCT cell FROM scores GROUP BY cell, detector HAVING count(*) <> count(DISTINCT sample)",
}
_UNKNOWN = """
    SELECT DISTINCT cell::VARCHAR AS cell FROM (SELECT cell FROM all_scores UNION ALL SELECT cell FROM all_measures)
    WHERE cell NOT IN (SELECT cell FROM all_cells) AND cell NOT IN (SELECT recipe FROM all_arms) ORDER BY cell
"""
_REDO_SHARD = """
    SELECT arg_min(c.cell, (o.kind IS DISTINCT FROM 'clean', c.cell)) AS cell FROM all_cells c
    JOIN (SELECT DISTINCT cell, kind FROM all_outcomes) o USING (cell) WHERE c.shard = $shard
"""


@dataclass(frozen=True)
class Finding:
    """Something that is not as it should be. Of `damage`, numbers are wrong or missing; the rest is only untidy."""

    kind: str  # truncated | altered | missing | unreadable | duplicate | rows | inputs | orphan | unfinished
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
    findings: list[Finding] = field(default_factory=list)
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

    def add(self, kind: str, place: object, what: str, remedy: str, *, damage: bool = True) -> None:
        self.findings.append(Finding(kind, str(place), what, remedy, damage))


def check(place: Place) -> Inspection:
    """Look at every segment and every kept input of a run; somebody may be writing to it, or merging segments."""
    storage = Ledger.open(readable_storage(place, verify=False)).storage
    ledger, writer = storage.ledger, holder(storage.folder)
    for _ in range(_TRIES):
        everything = all_segments(ledger)
        try:
            found = _inspected(storage, everything, writer or holder(storage.folder))
        except (LedgerError, FileNotFoundError):
            if all(segment.is_dir() for segment in everything):
                raise
        else:
            if all(segment.is_dir() for segment in everything):
                return found
    raise LedgerError(f"{ledger}: segments were merged {_TRIES} times while they were looked at; check again later")


def inspect(storage: Storage) -> Inspection:
    """The same for the holder of the lock: nobody else writes."""
    return _inspected(storage, all_segments(storage.ledger), None)


def _inspected(storage: Storage, everything: Sequence[Path], writer: str | None) -> Inspection:
    replaced = {name for segment in everything for name in _replaced_by(segment)}
    found = Inspection(storage, [segment for segment in everything if segment.name not in replaced], writer)
    _look_at_segments(found)
    _look_for_copies(found)
    sound = [one for one in found.segments if not found.faults[one.name] and one.name not in found.copies]
    cells, redo = _look_at_rows(found, sound)
    _look_at_inputs(found, cells, redo)
    _look_for_leftovers(found, [segment for segment in everything if segment.name in replaced])
    return found


def _replaced_by(segment: Path) -> tuple[str, ...]:
    """What a segment takes the place of, if it was written so."""
    try:
        told, found = read_manifest(segment), read_replaces(segment).segments
        whole = not found or told is None or told.files.get(REPLACES_FILE) == stamp_file(segment / REPLACES_FILE)
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


def _look_at_rows(found: Inspection, sound: Sequence[Path]) -> tuple[set[str], dict[str, str]]:
    """Cells with other rows than were planned; returns all cells, and which one to do again for a shard's inputs."""
    import duckdb

    connection = quiet_connection()
    try:
        with interrupts_kept():
            create_views(connection, sound)

        def rows(sql: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
            with interrupts_kept():
                told: list[dict[str, Any]] = connection.sql(sql, params=parameters or {}).to_arrow_table().to_pylist()
            return told

        found.n_rows = rows("SELECT count(*) AS n FROM all_outcomes")[0]["n"]
        cells = {row["cell"] for row in rows("SELECT DISTINCT cell FROM all_cells")}
        found.n_cells = len(cells)
        for row in rows(_CELLS):
            found.cells.add(row["cell"])
            found.add("rows", found.ledger / FOLDER / row["segment"], _cell_fault(row), _AGAIN.replace("it", "them", 1))
        for table, sql in _TWICE.items():
            twice = {row["cell"] for row in rows(sql)} - found.cells
            found.cells |= twice
            if twice:
                what = f"{counted(len(twice), 'cell')} with rows that stand there twice, {min(twice)} among them"
                found.add("duplicate", found.ledger, f"{table}: {what}", _AGAIN.replace("it", "them", 1))
        unknown = {row["cell"] for row in rows(_UNKNOWN)}
        if unknown and not found.has_faults:
            what = (
                f"scores or measures of {counted(len(unknown), 'cell')} that are not there, {min(unknown)} among them"
            )
            found.cells |= unknown
            found.add("rows", found.ledger, what, "`--repair` moves them aside, and `advrisk run` makes them again")
        shards = {path.stem for path in (found.ledger.parent / "inputs" / "shards").glob("*.npz")}
        shards |= {Path(name).stem for name in inputs_of(found.manifests, {}) if "/shards/" in name}
        redo = {shard: row["cell"] for shard in shards for row in rows(_REDO_SHARD, {"shard": shard}) if row["cell"]}
    except duckdb.Error as error:
        raise LedgerError(f"{found.ledger}: rows cannot be compared: {error}") from None
    finally:
        connection.close()
    return cells, redo


def _cell_fault(row: dict[str, Any]) -> str:
    if not row["finished"]:
        return f"{counted(row['n_rows'], 'row')} of cell {row['cell']}, which is not there"
    name = f"cell {row['cell']} ({row['arm']} against {row['model']})"
    if row["n_rows"] != row["n_samples"]:
        return f"{name} has rows twice: {row['n_rows']} of {counted(row['n_samples'], 'sample')}"
    return f"{name} has {counted(row['n_rows'], 'row')}, and {max(row['n_told'], row['n_planned'])} were planned"


def _look_at_inputs(found: Inspection, cells: set[str], redo: dict[str, str]) -> None:
    """Inputs that were lost or changed since; those of earlier versions are looked at without a digest."""
    home = found.ledger.parent
    found.storage.fetch(home / "inputs")
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
