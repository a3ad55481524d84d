"""SHA-256 of a run: of its files as they lie there, and of its rows, however they are cut into segments.

The digest of a table is made column by column, of rows in one fixed order, from this encoding of a column:

    marks     one byte for each row: 1, or 0 for null
    values    whole numbers as 64 bits, others as 64-bit floats, both little-endian; truth values as one byte; of texts
              and lists the length, as 64 bits; nulls are left out
    inside    the bytes of all texts in UTF-8; the items of all lists, encoded as a column by itself

A column is named by SHA-256(kind, SHA-256(marks), SHA-256(values), inside), where `inside` is a SHA-256, too.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from advrisk.core.errors import LedgerError
from advrisk.core.files import regular
from advrisk.core.names import did_you_mean
from advrisk.core.plain import plain
from advrisk.ledger.inputs import inputs_folder
from advrisk.ledger.layout import ANSWERS_FILE, EVASION_FILE, STUDY_FILE
from advrisk.ledger.ledger import Ledger
from advrisk.ledger.stopping import FILE as LOOKS_FILE
from advrisk.ledger.storage import Storage
from advrisk.ledger.tables import TABLES

_FILES = (STUDY_FILE, EVASION_FILE, ANSWERS_FILE, LOOKS_FILE)
_FOLDERS = ("ledger", "inputs", "detectors")
_DIGITS = "0123456789abcdef"  # of a cell's name: of a large table, a sixteenth is held at a time
LARGE = 500_000  # rows


@dataclass(frozen=True)
class FileDigest:
    """A file by its path from the run's folder."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class TableDigest:
    """The rows of a table as readers see them, in these columns."""

    rows: int
    columns: tuple[str, ...]
    sha256: str


@dataclass(frozen=True)
class LedgerDigest:
    """What names a run: its rows, and its files."""

    tables: Mapping[str, TableDigest]
    files: tuple[FileDigest, ...]

    @property
    def rows(self) -> str:
        """One digest of all rows; a ledger whose segments were put together keeps it."""
        return rows_digest({name: table.sha256 for name, table in self.tables.items()})

    @property
    def of_files(self) -> str:
        """One digest of all files."""
        return files_digest({one.path: one.sha256 for one in self.files})

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": {"sha256": self.rows, "tables": plain(self.tables)},
            "files": {"sha256": self.of_files, "entries": plain(self.files)},
        }


def ledger_digest(ledger: Ledger) -> LedgerDigest:
    """Of every table and every file that belongs to the run."""
    tables = {name: table_digest(ledger, name) for name in TABLES}
    return LedgerDigest(tables, tuple(run_files(ledger.storage)))


def rows_digest(tables: Mapping[str, str]) -> str:
    """SHA-256 of a line `digest  name` for each table, in the order of their names."""
    return _of_lines(tables)


def files_digest(files: Mapping[str, str]) -> str:
    """SHA-256 of what `sha256sum` prints of the files, in the order of their paths."""
    return _of_lines(files)


def _of_lines(named: Mapping[str, str]) -> str:
    lines = "".join(f"{named[name]}  {name}\n" for name in sorted(named))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def run_files(storage: Storage) -> Iterator[FileDigest]:
    """The study, the ledger and what was kept beside it; not what was written from these, such as reports."""
    folder = storage.folder
    paths = [folder / name for name in _FILES]
    storage.fetch(inputs_folder(folder))
    for name in _FOLDERS:
        paths += sorted((folder / name).rglob("*"))
    for path in sorted(path for path in paths if path.is_file()):
        place = path.relative_to(folder)
        if not any(part.startswith(".") for part in place.parts):  # a writer is at it
            yield file_digest(path, place.as_posix())


def file_digest(path: Path, name: str) -> FileDigest:
    """One file, read piece by piece."""
    try:
        with regular(path).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            return FileDigest(name, file.tell(), found)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None


def table_digest(ledger: Ledger, name: str, columns: Sequence[str] | None = None) -> TableDigest:
    """The rows that readers see; `columns` are those of an earlier digest, which a later version may have added to."""
    if name not in TABLES:
        raise LedgerError(f"there is no table called {name!r}; {did_you_mean(name, TABLES)}")
    named = list(TABLES[name].names if columns is None else columns)
    for column in named:
        if column not in TABLES[name].names:
            raise LedgerError(f"{name} has no column {column!r}; {did_you_mean(column, TABLES[name].names)}")
    ledger = ledger.by_id()
    hashers = {column: _Column() for column in named}
    n_rows = 0
    for part in _sorted_parts(ledger, name, named):
        n_rows += len(part)
        for column, hasher in hashers.items():
            hasher.add(part[column])
    whole = hashlib.sha256()
    for column, hasher in hashers.items():
        whole.update(f"{column}\n".encode() + hasher.digest())
    return TableDigest(n_rows, tuple(named), whole.hexdigest())


def _sorted_parts(ledger: Ledger, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The table in the order of its cells, then of all columns; a large one in several parts."""
    listed = ", ".join(f'"{column}"' for column in columns)
    of_cells = "cell" in TABLES[name].names
    order = ", ".join(f'"{column}" NULLS LAST' for column in dict.fromkeys([*(["cell"] if of_cells else []), *columns]))
    large = of_cells and ledger.query(f"SELECT count(*) AS n FROM {name}")["n"][0].as_py() > LARGE
    for condition in _cell_ranges() if large else ["true"]:
        yield ledger.query(f"SELECT {listed} FROM {name} WHERE {condition} ORDER BY {order}")


def _cell_ranges() -> Iterator[str]:
    """Every name of a cell is in one of these ranges, which ascend."""
    edges = _DIGITS[1:]
    yield f"cell < '{edges[0]}'"
    for low, high in pairwise(edges):
        yield f"cell >= '{low}' AND cell < '{high}'"
    yield f"cell >= '{edges[-1]}'"
    yield "cell IS NULL"


@dataclass
class _Column:
    """Takes the rows of a column in any number of parts."""

    kind: str = "empty"
    marks: Any = field(default_factory=hashlib.sha256)
    values: Any = field(default_factory=hashlib.sha256)
    texts: Any = field(default_factory=hashlib.sha256)
    items: "_Column | None" = None

    def add(self, column: pa.ChunkedArray | pa.Array) -> None:
        for chunk in _chunks(column):
            self.marks.update(_bytes(pc.is_valid(chunk), np.uint8))
            self._add_values(chunk.drop_null())

    def _add_values(self, values: pa.Array) -> None:
        of_type = values.type
        if not len(values):
            return
        if pa.types.is_boolean(of_type):
            self._take("truth", _bytes(values, np.uint8))
        elif pa.types.is_integer(of_type):
            self._take("whole", _bytes(values, "<i8"))
        elif pa.types.is_floating(of_type):
            self._take("float", _plain_floats(values))
        elif pa.types.is_list(of_type) or pa.types.is_large_list(of_type):
            self._take("list", _bytes(pc.list_value_length(values), "<i8"))
            self.items = self.items or _Column()
            self.items.add(pc.list_flatten(values))
        else:
            text = values.cast(pa.large_string()).cast(pa.large_binary())
            self._take("text", _bytes(pc.binary_length(text), "<i8"))
            self.texts.update(_all_bytes(text))

    def _take(self, kind: str, values: bytes) -> None:
        self.kind = kind
        self.values.update(values)

    def digest(self) -> bytes:
        inside = self.texts.digest() if self.items is None else self.items.digest()
        parts = (self.kind.encode(), self.marks.digest(), self.values.digest(), inside)
        return hashlib.sha256(b"".join(parts)).digest()


def _chunks(column: pa.ChunkedArray | pa.Array) -> Iterable[pa.Array]:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        yield chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk


def _bytes(values: pa.Array, kind: Any) -> bytes:
    return bytes(values.to_numpy(zero_copy_only=False).astype(kind).tobytes())


def _plain_floats(values: pa.Array) -> bytes:
    """One way to write zero, and one to write what is no number."""
    found = values.to_numpy(zero_copy_only=False).astype("<f8") + 0.0
    found[np.isnan(found)] = np.nan
    return bytes(found.tobytes())


def _all_bytes(texts: pa.Array) -> memoryview:
    """The bytes of all texts, one after the other."""
    _, offsets, content = texts.buffers()
    places = np.frombuffer(offsets, "<i8")[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(b"" if content is None else content)[places[0] : places[-1]]
