"""Reading and appending a run's tables.

A `Ledger` is a folder of segments queried with DuckDB. Readers see what the present study asks for, one row
per (model, arm, sample, repeat): the rows of cells whose recipe is the current one, from the latest segment that
holds them. Arms, repeats and samples that the study no longer asks for are kept, but not shown. Rows are stored by the
ids of arms and detectors; `Ledger.named` shows what the study calls them.
"""

import atexit
import re
import resource
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.core.flags import CUT_SHORT
from advrisk.core.names import did_you_mean
from advrisk.core.shortage import refuse_little_memory, refuse_shortage, shortage_named
from advrisk.ledger.manifest import ADVICE, read_replaces
from advrisk.ledger.naming import Names, detector_names, scores_by_name, show_names
from advrisk.ledger.segments import FOLDER, publish, segment_folders
from advrisk.ledger.storage import Storage
from advrisk.ledger.sync.copies import Place, readable_storage
from advrisk.ledger.sync.remote import url_of
from advrisk.ledger.tables import KEYS, SCHEMA_VERSION, TABLES, VERSION_KEY
from advrisk.ledger.validity import refuse_invalid
from advrisk.ledger.verified import refuse_altered, whole_segments

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

T = TypeVar("T")

# Of `cells`: those on samples to evaluate, and not to tune or calibrate; imported ones have no shard.
EVALUATED_CELL = "(shard IS NULL OR shard IN (SELECT shard FROM samples WHERE split = 'evaluate'))"
# Of `all_cells`: one that need not be run again even if errors are. One that was cut short may not have kept its best.
SOUND_CELL = f"(coalesce(n_errors, 0) = 0 AND coalesce(NOT list_contains(flags, '{CUT_SHORT}'), true))"

# Outcomes that assessments count: of samples to evaluate, and of the study's arms, or of imported ones without a study.
_EVALUATED = """
    SELECT o.* FROM outcomes o
    JOIN samples s ON o.sample = s.sample AND s.split = 'evaluate'
    JOIN arms a ON o.model = a.model AND o.arm = a.arm
    WHERE a.origin = (SELECT CASE WHEN count(*) FILTER (origin = 'study') > 0 THEN 'study' ELSE 'import' END FROM arms)
"""
_FILES_AT_ONCE = 2  # of a segment, in one query
_OTHER_FILES = 40  # of the process
_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_LAZY = "outputs"  # the largest table, which few questions need: it is verified for those alone
_PER_CELL = ("outcomes", "outputs", "scores", "measures")
_PUBLISHED_LATER = ("scores", "measures")
_PLACE = (pa.field("filename", pa.string()), pa.field("file_row_number", pa.int64()))
_MEMORY_MB = 2000  # of a database: a question of ten million rows takes less; larger ones use the disk
_PIECE_ROWS = 2**18  # of an answer that is not taken as a whole
_LATEST_FIRST = "filename DESC, file_row_number DESC"


@dataclass(frozen=True)
class Ledger:
    """The append-only tables of a run. A snapshot: open it again to see what was appended since.

    Segments that are merged meanwhile are read where their rows are then.
    """

    storage: Storage  # where its segments are published, and kept inputs come from
    shards: frozenset[str] | None = None  # readers see no other samples to evaluate; None: all
    models: frozenset[str] | None = None  # nor other models, but for surrogates
    samples: frozenset[str] | None = None  # nor other samples to evaluate
    by_name: bool = False  # arms and detectors are shown as the study calls them, see `ledger.naming`
    names: Names | None = None  # other names than its own

    @classmethod
    def open(cls, place: Place, *, create: bool = False) -> "Ledger":
        """The ledger in a run's folder (or the ledger's own folder); of a URL, a copy of what is there now."""
        storage = readable_storage(place, inputs=())
        home = storage.folder
        if (home / FOLDER).is_dir() and not storage.ledger.is_dir():
            storage = Storage(home.parent, home.name)
        if not (storage.ledger / FOLDER).is_dir():
            if not create:
                shown = home if isinstance(place, Storage) else url_of(place) or place
                if home.is_file():
                    raise LedgerError(f"{shown}: is a file; give the folder of a run, such as runs/{home.stem}")
                raise LedgerError(f"{shown}: holds no ledger; `advrisk run study.yaml --out {shown}` makes one")
            try:
                (storage.ledger / FOLDER).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise LedgerError(f"{storage.ledger}: cannot be made: {error.strerror}") from None
        return cls(storage)

    @property
    def path(self) -> Path:
        """The folder with the segments."""
        return self.storage.ledger

    def reopened(self) -> "Ledger":
        """The same with what was appended since."""
        return replace(self)

    def of_shards(self, shards: Iterable[str]) -> "Ledger":
        """The same, as if no other samples than those of these shards were to be evaluated."""
        return replace(self, shards=frozenset(shards))

    def restricted(self, *, models: Iterable[str] | None = None, samples: Iterable[str] | None = None) -> "Ledger":
        """The same, as if no other models had been asked, and no other samples were to be evaluated."""
        return replace(
            self,
            models=self.models if models is None else frozenset(models),
            samples=self.samples if samples is None else frozenset(samples),
        )

    def named(self, like: "Ledger | None" = None) -> "Ledger":
        """The same with arms and detectors as the study calls them; those that another run has, as that calls them."""
        if like is None:
            return replace(self, by_name=True, names=None)
        rows = like.query("SELECT arm AS name FROM arms UNION SELECT detector FROM all_scores").to_pylist()
        there = {like.ids.get(row["name"], row["name"]) for row in rows}
        own = {name: held for name, held in self.named().ids.items() if held not in there}
        return replace(self, by_name=True, names=tuple((own | like.ids).items()))

    def by_id(self) -> "Ledger":
        """The same with the ids that name rows whatever the study calls them."""
        return replace(self, by_name=False)

    @cached_property
    def ids(self) -> dict[str, str]:
        """What the study calls an arm or detector -> its id; empty where this ledger shows ids."""
        if not self.by_name:
            return {}
        return {row["shown"]: row["id"] for row in self.query("FROM shown_names ORDER BY id").to_pylist()}

    def append(self, tables: Mapping[str, pa.Table]) -> Path:
        """Publish tables as one segment. A writer that shares the folder must hold its lock."""
        for name, table in tables.items():
            if name not in TABLES:
                raise LedgerError(f"there is no table called {name!r}; {did_you_mean(name, TABLES)}")
            if table.schema.remove_metadata() != TABLES[name]:
                raise LedgerError(f"{name}: these columns are not those of schema version {SCHEMA_VERSION}")
        return publish(self.storage, tables)

    @shortage_named()
    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """The answer to a SQL query over outcomes, outputs, scores, measures, cells, arms, models and samples.

        `evaluated` holds the outcomes that assessments count, without those of searches and certificates.
        """
        return self._answer(sql, parameters, lambda relation: relation.to_arrow_table())

    def reduce(self, sql: str, take: Callable[[Iterator[pa.RecordBatch]], T], **parameters: Any) -> T:
        """What `take` makes of the rows of an answer, piece by piece, where all together would take much memory.

        It is called again from the start if segments are merged meanwhile.
        """
        return self._answer(sql, parameters, lambda relation: take(iter(relation.to_arrow_reader(_PIECE_ROWS))))

    def _answer(self, sql: str, parameters: Mapping[str, Any] | None, take: Callable[["DuckDBPyRelation"], T]) -> T:
        while True:
            try:
                return self._answer_once(sql, parameters, take)
            except LedgerError:
                if not self._caught_up():
                    raise

    def _answer_once(
        self, sql: str, parameters: Mapping[str, Any] | None, take: Callable[["DuckDBPyRelation"], T]
    ) -> T:
        import duckdb

        if _LAZY in sql.lower():  # as DuckDB reads names
            refuse_altered(self._segments, [_LAZY])
        try:
            with interrupts_kept():
                relation = self._connection.sql(sql, params=dict(parameters or {}))
                if relation is None:
                    raise LedgerError(f"{self.path}: {sql!r} asks for nothing; write a SELECT")
                return take(relation)
        except duckdb.CatalogException as error:
            raise LedgerError(f"{self.path}: {_unknown_table(str(error)) or error}") from None
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # the latter two while pieces are read
            refuse_shortage(error)
            raise LedgerError(f"{self.path}: {error}") from None

    def outcomes(self, columns: Sequence[str] = ("*",), *, where: str = "true") -> pa.Table:
        """Outcome rows, ordered by model, arm, sample and repeat."""
        return self.query(
            f"SELECT {', '.join(columns)} FROM outcomes WHERE {where} ORDER BY model, arm, sample, repeat"
        )

    def finished_cells(self, *, without_errors: bool = False) -> set[str]:
        """The cells that need not be run again, whatever their recipe."""
        return set(self.finished_names(without_errors=without_errors).to_pylist())

    def finished_names(self, *, without_errors: bool = False) -> pa.ChunkedArray:
        """The same as a column: of millions, a set takes much memory.

        A cell is published together with its outcomes; one whose outcomes somebody deleted is run again. One that was
        cut short is not without errors, even if all its samples were broken by then: what it kept may not be its best.
        """
        listed = self._segments
        whole = [folder.name for folder in listed if (folder / "outcomes.parquet").is_file()]
        latest = (
            f"SELECT cell, arg_max({SOUND_CELL}, (filename, file_row_number)) AS sound FROM all_cells "
            "WHERE list_contains($whole, parse_path(filename)[-2]) GROUP BY cell"
        )
        condition = "sound" if without_errors else "true"
        found = self.query(f"SELECT cell FROM ({latest}) WHERE {condition}", {"whole": whole})
        if self._segments is not listed:  # they were merged meanwhile, and bear other names
            return self.finished_names(without_errors=without_errors)
        return found["cell"]

    @cached_property
    def _segments(self) -> list[Path]:
        return whole_segments(self.path)

    def _caught_up(self) -> bool:
        """Whether segments were merged since they were listed; then the merged ones stand in for them from now on."""
        gone = {segment.name for segment in self._segments if not segment.is_dir()}
        if not gone:
            return False
        listed, now = {segment.name for segment in self._segments}, []
        for segment in segment_folders(self.path):
            try:
                held = {segment.name, *read_replaces(segment).segments}
            except FileNotFoundError:
                return True  # merged again since it was listed: the next try finds its rows
            if held & listed:
                now.append(segment)
                gone -= held
        if gone:
            raise LedgerError(f"{self.path}: {min(gone)} was taken away while it was read; open the ledger again")
        self.__dict__.pop("_connection", None)
        self.__dict__["_segments"] = now
        return True

    @cached_property
    def _connection(self) -> "DuckDBPyConnection":
        import duckdb

        refuse_altered(self._segments, [name for name in TABLES if name != _LAZY])
        connection = quiet_connection(n_segments=len(self._segments))
        try:
            detectors = detector_names(self.path.parent, self.names) if self.by_name else {}
            part: dict[str, Any] = {"shards": self.shards, "models": self.models, "samples": self.samples}
            create_views(connection, self._segments, detectors=detectors, **part)
            refuse_invalid(connection, self._segments)
            if self.by_name:
                show_names(connection, detectors, self.names)
        except duckdb.Error as error:
            refuse_shortage(error)
            raise LedgerError(f"{self.path}: a segment cannot be read: {error}; {ADVICE}") from None
        if not all(segment.is_dir() for segment in self._segments):  # merged meanwhile, and left out without a word
            raise LedgerError(f"{self.path}: a segment is gone")
        return connection


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Let Ctrl-C while DuckDB works be what it is anywhere else; DuckDB makes an error of it."""
    import duckdb

    try:
        yield
    except (RuntimeError, duckdb.InterruptException) as error:
        if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def quiet_connection(memory_mb: int = _MEMORY_MB, *, n_segments: int = 0) -> "DuckDBPyConnection":
    """A database in memory that draws no progress into what is printed, and works on the disk past so much memory.

    Several threads open all files of a table at once, one thread opens them one by one: it reads many segments where
    few files may be open.
    """
    import duckdb

    refuse_little_memory()
    few = _FILES_AT_ONCE * n_segments + _OTHER_FILES > resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # From the beginning: threads that are taken away later may still be opening files. Since 2.0 others read ahead.
    config: dict[str, str | bool | int | float | list[str]] = {"threads": 1} if few else {}
    if few and int(duckdb.__version__.split(".")[0]) >= 2:
        config["async_threads"] = 0
    connection = duckdb.connect(config=config)
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET python_enable_replacements = false")  # a name in SQL means a table, never a variable
    connection.execute(f"SET memory_limit = '{memory_mb}MB'")
    connection.execute("SET temp_directory = $folder", {"folder": _spill_folder()})
    return connection


def _spill_folder() -> str:
    """A folder for what does not fit into memory: DuckDB makes it once it is needed, and deletes it when it closes.

    Empty, so that everything stays in memory, where no folder for temporary files can be written to: a full disk.
    """
    try:
        return str(Path(tempfile.gettempdir(), f"{_spill_prefix()}{uuid.uuid4().hex}"))
    except FileNotFoundError:
        return ""


@cache
def _spill_prefix() -> str:
    """How such folders of this process begin."""
    prefix = f"advrisk-{uuid.uuid4().hex}-"
    atexit.register(_remove_spilled, prefix)
    return prefix


def _remove_spilled(prefix: str) -> None:
    """Delete what databases that are open when the process ends would leave behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        shutil.rmtree(folder, ignore_errors=True)


def create_views(
    connection: "DuckDBPyConnection",
    segments: Sequence[Path],
    *,
    shards: frozenset[str] | None = None,
    models: frozenset[str] | None = None,
    samples: frozenset[str] | None = None,
    detectors: Mapping[str, str] | None = None,
) -> None:
    """All rows of these segments (`all_outcomes`, …), and those that readers see (`outcomes`, …): of these models and
    surrogates, and of samples to evaluate those of these shards that are among these samples; detectors by these
    names."""
    for name, schema in TABLES.items():
        files = [segment / f"{name}.parquet" for segment in segments if (segment / f"{name}.parquet").is_file()]
        empty = pa.schema([*schema, *_PLACE]).empty_table()
        if files:
            names = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
            source = f"SELECT * FROM read_parquet([{names}], filename = true, file_row_number = true"
            held = set(_columns(files[0])) & set(_columns(files[-1]))
            if not held.issuperset(schema.names):  # columns are missing
                connection.register(f"empty_{name}", empty)
                source += f", union_by_name = true) UNION ALL BY NAME FROM empty_{name}"
            else:
                source += ")"
            if name == "scores" and detectors:
                source = scores_by_name(connection, source, detectors)
            connection.execute(f"CREATE VIEW all_{name} AS {source}")
        else:
            connection.register(f"all_{name}", empty)
    for name, keys in KEYS.items():
        connection.execute(
            f"CREATE TABLE {name} AS SELECT * EXCLUDE (filename, file_row_number) FROM all_{name} "
            f"QUALIFY row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {_LATEST_FIRST}) = 1"
        )
    _restrict(connection, shards=shards, models=models, samples=samples)
    connection.execute(
        "CREATE TABLE cells AS SELECT c.* EXCLUDE (file_row_number) FROM all_cells c "
        "JOIN arms a ON c.model = a.model AND c.arm = a.arm AND c.recipe = a.recipe "
        "AND a.origin IS DISTINCT FROM 'dropped' AND coalesce(c.repeat, 0) < coalesce(a.repeats, 2147483647) "
        f"QUALIFY row_number() OVER (PARTITION BY cell ORDER BY {_LATEST_FIRST}) = 1"
    )
    connection.execute(
        "CREATE TABLE current AS SELECT cell, parse_path(filename)[-2] AS segment FROM cells; "
        "CREATE TABLE stale AS SELECT cell, parse_path(filename)[-2] AS segment FROM all_cells EXCEPT FROM current"
    )
    connection.execute("ALTER TABLE cells DROP COLUMN filename")
    for name in _PER_CELL:
        _create_cell_view(connection, name)
    connection.execute(f"CREATE VIEW evaluated AS {_EVALUATED}")
    connection.execute("CREATE VIEW questions AS SELECT * EXCLUDE (filename, file_row_number) FROM all_questions")


def _restrict(
    connection: "DuckDBPyConnection",
    *,
    shards: frozenset[str] | None,
    models: frozenset[str] | None,
    samples: frozenset[str] | None,
) -> None:
    """Drop the samples to evaluate and the models that readers are not to see."""
    for column, kept in (("shard", shards), ("sample", samples)):
        if kept is not None:
            others = f"split = 'evaluate' AND {column} NOT IN (SELECT unnest($kept))"
            connection.execute(f"UPDATE samples SET split = 'dropped' WHERE {others}", {"kept": sorted(kept)})
    if models is not None:
        connection.execute(
            "UPDATE arms SET origin = 'dropped' WHERE origin <> 'surrogate' AND model NOT IN (SELECT unnest($models))",
            {"models": sorted(models)},
        )
        connection.execute(
            "DELETE FROM models WHERE model NOT IN (SELECT model FROM arms WHERE origin IS DISTINCT FROM 'dropped')"
        )


def _create_cell_view(connection: "DuckDBPyConnection", name: str) -> None:
    """Rows of current cells and samples; conditions that the usual ledger does not need are left out, as they cost."""
    conditions = []
    if _any(connection, "stale") and name in _PUBLISHED_LATER:
        # These are published after the cell they belong to; once it was run again, the earlier ones are void.
        of_row = "c.cell = r.cell AND c.segment <= parse_path(r.filename)[-2]"
        of_recipe = "r.cell IN (SELECT recipe FROM arms WHERE origin IS DISTINCT FROM 'dropped')"
        conditions.append(f"(EXISTS (SELECT 1 FROM current c WHERE {of_row}) OR {of_recipe})")
    elif _any(connection, "stale"):
        of_row = "s.cell = r.cell AND s.segment = parse_path(r.filename)[-2]"
        conditions.append(f"NOT EXISTS (SELECT 1 FROM stale s WHERE {of_row})")
    if _any(connection, "samples WHERE starts_with(split, 'dropped')"):
        conditions.append("r.sample NOT IN (SELECT sample FROM samples WHERE starts_with(split, 'dropped'))")
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    connection.execute(
        f"CREATE VIEW {name} AS SELECT r.* EXCLUDE (filename, file_row_number) FROM all_{name} r {where}"
    )


def _any(connection: "DuckDBPyConnection", source: str) -> bool:
    return connection.execute(f"SELECT 1 FROM {source} LIMIT 1").fetchone() is not None


def _columns(file: Path) -> list[str]:
    """The columns of a file, of which an older one has fewer; one of a newer schema version than ours is refused."""
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(file)
        version = int((schema.metadata or {}).get(VERSION_KEY, b"0"))
    except (pa.ArrowException, OSError, ValueError) as error:
        refuse_shortage(error)
        raise LedgerError(f"{file}: cannot be read as a table of a ledger: {error}; {ADVICE}") from None
    if version > SCHEMA_VERSION:
        raise LedgerError(f"{file}: schema version {version} is newer than this program's {SCHEMA_VERSION}")
    return list(schema.names)


def _unknown_table(complaint: str) -> str:
    """DuckDB's complaint about a name, with the ledger's own tables in place of DuckDB's."""
    match = _NO_TABLE.search(complaint)
    return f"there is no table called {match[1]!r}; {did_you_mean(match[1], [*TABLES, 'evaluated'])}" if match else ""
