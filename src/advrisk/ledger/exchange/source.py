"""CSV and Parquet files of other tools, whole or piece by piece. Knows nothing of what their columns mean."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from advrisk.core.digest import digest
from advrisk.core.errors import LedgerError
from advrisk.ledger.manifest import stamp_file

NAMES = pa.dictionary(pa.int32(), pa.string())
_PIECE_ROWS = 2**18  # of a Parquet file
_PIECE_BYTES = 2**23  # of a CSV file
# An empty field says nothing; "nan" is a number gone wrong, and is refused.
_EMPTY = [""]


@dataclass(frozen=True)
class Pieces:
    """The rows of a file in their order, of which one piece is in memory at a time."""

    columns: tuple[str, ...]
    batches: Iterator[pa.RecordBatch]


def read_table(source: Path, *, text: Iterable[str]) -> pa.Table:
    """The table of a CSV or Parquet file; the columns that `text` names stay as they are written."""
    with _faults_named(source):
        _refuse_no_file(source)
        if source.suffix == ".parquet":
            table = pq.read_table(source)
        else:
            options = pacsv.ConvertOptions(column_types=dict.fromkeys(text, pa.string()), null_values=_EMPTY)
            table = pacsv.read_csv(source, convert_options=options)
        table.validate(full=True)  # lengths and offsets of a Parquet file, and that text is UTF-8
        _refuse_columns(table.column_names, source)
        return table


def read_columns(source: Path) -> tuple[str, ...]:
    """The names of the columns of a CSV or Parquet file."""
    with open_pieces(source, names=(), text=()) as pieces:
        return pieces.columns


def file_digest(source: Path, norm: str | None) -> str:
    """A digest of a file's bytes, and of what is said about it."""
    with _faults_named(source):
        return digest([stamp_file(source).digest, norm])


@contextmanager
def open_pieces(source: Path, *, names: Iterable[str], text: Iterable[str]) -> Iterator[Pieces]:
    """The rows of a file, piece by piece; those of a CSV file are text, and `names` are encoded as dictionaries."""
    with _faults_named(source):
        _refuse_no_file(source)
        if source.suffix == ".parquet":
            # Without buffers a row group is decoded page by page, however many rows it has.
            file = pq.ParquetFile(source, pre_buffer=False, buffer_size=2**20)
            columns, batches = file.schema_arrow.names, file.iter_batches(batch_size=_PIECE_ROWS)
        else:
            file = batches = _open_csv(source, dict.fromkeys(text, pa.string()) | dict.fromkeys(names, NAMES))
            columns = file.schema.names
        names_there = _refuse_columns(columns, source)
    with file:
        yield Pieces(names_there, _checked(batches, source))


def _open_csv(source: Path, kinds: Mapping[str, pa.DataType]) -> pacsv.CSVStreamingReader:
    return pacsv.open_csv(
        source,
        read_options=pacsv.ReadOptions(block_size=_PIECE_BYTES),
        parse_options=pacsv.ParseOptions(newlines_in_values=True),
        convert_options=pacsv.ConvertOptions(column_types=kinds, null_values=_EMPTY, strings_can_be_null=True),
    )


def _checked(batches: Iterable[pa.RecordBatch], source: Path) -> Iterator[pa.RecordBatch]:
    with _faults_named(source):
        for batch in batches:
            batch.validate(full=True)  # lengths and offsets of a Parquet file, and that text is UTF-8
            yield batch


@contextmanager
def _faults_named(source: Path) -> Iterator[None]:
    """Name the file in every complaint about it."""
    try:
        yield
    except FileNotFoundError:
        raise LedgerError(f"{source}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise LedgerError(f"{source}: holds text that is not UTF-8 ({error.reason}); save it as UTF-8") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LedgerError(f"{source}: cannot be read as {source.suffix or 'CSV'}: {error}") from None


def _refuse_no_file(source: Path) -> None:
    """A file is read twice, and to its end: neither can be done with a pipe or a device."""
    if source.exists() and not source.is_file():
        what = "a folder" if source.is_dir() else "a pipe or a device"
        raise LedgerError(f"{source}: is {what}; give one file, .csv or .parquet")


def _refuse_columns(columns: Sequence[str], source: Path) -> tuple[str, ...]:
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise LedgerError(f"{source}: the column {twice[0]!r} stands here twice; keep one of them")
    if len(columns) == 1 and ";" in columns[0]:
        raise LedgerError(f"{source}: columns are separated by semicolons; separate them by commas")
    return tuple(columns)
