"""Are there the rows that were planned, each once? Counted segment by segment: memory grows with cells, not rows.

The rows of a cell are counted, and the hashes of their samples combined (`mark`). Where both are those of the cell's
shard, no sample is missing or there twice. Only other cells, as imported ones, which have no shard, are counted sample
by sample; DuckDB does that on the disk where memory ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from advrisk.core.errors import LedgerError
from advrisk.core.shortage import refuse_shortage
from advrisk.ledger.ledger import create_views, interrupts_kept, quiet_connection
from advrisk.ledger.validity import refuse_invalid

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEMORY_MB = 1000  # of DuckDB; what is more goes to the disk
_DETAIL = {"outcomes": "any_value(kind)", "outputs": "NULL", "scores": "detector", "measures": "NULL"}
_PLANNED = """
    CREATE TABLE planned AS SELECT shard, count(*) AS n, bit_xor(hash(sample)) AS mark FROM samples
    WHERE shard IS NOT NULL GROUP BY shard;
    CREATE TABLE finished AS
    SELECT cell, parse_path(filename)[-2] AS segment, any_value(model) AS model, any_value(arm) AS arm,
           any_value(shard) AS shard, max(n_samples) AS n FROM all_cells GROUP BY ALL;
    CREATE TABLE unlike AS
    SELECT o.cell, o.segment FROM counted_outcomes o LEFT JOIN finished USING (cell, segment) LEFT JOIN planned
    USING (shard) WHERE o.n IS DISTINCT FROM planned.n OR o.mark IS DISTINCT FROM planned.mark;
    CREATE TABLE exact (cell VARCHAR, segment VARCHAR, n_samples BIGINT)
"""
# Cells whose rows are not those that were planned: in one segment, as a cell is published as a whole.
_CELLS = """
    WITH found AS (
        SELECT cell, segment, n, coalesce(n_samples, n) AS n_samples FROM counted_outcomes
        LEFT JOIN exact USING (cell, segment)
    )
    SELECT coalesce(f.cell, found.cell)::VARCHAR AS cell, coalesce(f.segment, found.segment) AS segment,
           f.cell IS NOT NULL AS finished, f.model, f.arm, coalesce(found.n, 0) AS n_rows,
           coalesce(found.n_samples, 0) AS n_samples, coalesce(f.n, found.n) AS n_told,
           coalesce(planned.n, n_told) AS n_planned
    FROM finished f FULL JOIN found USING (cell, segment) LEFT JOIN planned ON planned.shard = f.shard
    WHERE NOT finished OR n_rows <> n_told OR n_rows <> n_samples OR n_told <> n_planned ORDER BY segment, cell
"""
# What may stand there twice for readers. Two cells of one model, arm and repeat share a sample only if they share a
# shard, or if one of them holds other samples than its shard.
_SUSPECTS = {
    "outcomes": """
        SELECT DISTINCT model, arm FROM (
            SELECT model, arm FROM cells JOIN current USING (cell) LEFT JOIN unlike u USING (cell, segment)
            GROUP BY model, arm, repeat
            HAVING count(*) > 1 AND (count(DISTINCT shard) < count(*) OR count(u.cell) > 0)
        )
    """,
    "outputs": """
        SELECT DISTINCT u.cell FROM counted_outputs u LEFT JOIN counted_outcomes o USING (cell, segment)
        WHERE u.n IS DISTINCT FROM o.n OR u.mark IS DISTINCT FROM o.mark
    """,
    "scores": """
        SELECT s.cell, s.detail AS detector FROM counted_scores s LEFT JOIN counted_outcomes o USING (cell)
        GROUP BY ALL HAVING count(DISTINCT s.segment) > 1 OR NOT coalesce(bool_or(s.n = o.n AND s.mark = o.mark), false)
    """,
}
_SHARED = """
    SELECT model, arm, repeat FROM outcomes SEMI JOIN suspects USING (model, arm) GROUP BY ALL
    HAVING count(*) <> count(DISTINCT sample)
"""
_TWICE = {
    "outcomes": "SELECT DISTINCT unnest(cells) AS cell FROM (SELECT list(DISTINCT cell) AS cells FROM outcomes "
    f"SEMI JOIN ({_SHARED}) USING (model, arm, repeat) GROUP BY model, arm, sample, repeat HAVING count(*) > 1)",
    "outputs": "SELECT cell FROM outputs SEMI JOIN suspects USING (cell) "
    "GROUP BY cell HAVING count(*) <> count(DISTINCT sample)",
    "scores": "SELECT DISTINCT cell FROM scores SEMI JOIN suspects USING (cell, detector) "
    "GROUP BY cell, detector HAVING count(*) <> count(DISTINCT sample)",
}
_UNKNOWN = """
    SELECT DISTINCT cell FROM (SELECT cell FROM counted_scores UNION ALL SELECT cell FROM counted_measures)
    WHERE cell NOT IN (SELECT cell FROM finished) AND cell NOT IN (SELECT recipe FROM all_arms) ORDER BY cell
"""
_REDO = """
    SELECT shard, arg_min(cell, (o.detail IS DISTINCT FROM 'clean', cell)) AS cell
    FROM finished JOIN counted_outcomes o USING (cell) WHERE shard IS NOT NULL GROUP BY shard
"""
_CALIBRATED = """
    SELECT 1 FROM finished WHERE shard IN (SELECT shard FROM samples WHERE split IN ('calibrate', 'dropped-calibrate'))
    LIMIT 1
"""


@dataclass
class Counts:
    """How many rows and cells there are, and which of them are not as planned."""

    n_rows: int = 0
    n_cells: int = 0
    unlike: list[dict[str, Any]] = field(default_factory=list)  # cells with other rows than planned, one after another
    twice: dict[str, set[str]] = field(default_factory=dict)  # table -> cells with rows that readers see twice
    unknown: list[str] = field(default_factory=list)  # what scores and measures are about that is not there
    named: set[str] = field(default_factory=set)  # those of the names that were asked for that are cells
    redo: dict[str, str] = field(default_factory=dict)  # shard -> the cell that makes its inputs again
    calibrated: bool = False  # whether some cell met samples to calibrate


def counted_rows(ledger: Path, segments: Sequence[Path], names: Sequence[str]) -> Counts:
    """Count the rows of whole segments, which must mean something; `names` may be cells."""
    import duckdb

    try:
        with quiet_connection(_MEMORY_MB, n_segments=len(segments)) as connection, interrupts_kept():
            connection.execute("SET preserve_insertion_order = false")
            _count(connection, segments)
            return _compared(connection, names)
    except duckdb.Error as error:
        refuse_shortage(error)
        raise LedgerError(f"{ledger}: rows cannot be compared: {error}") from None


def _count(connection: "DuckDBPyConnection", segments: Sequence[Path]) -> None:
    """Fill the tables that everything else is compared in, reading one file at a time."""
    create_views(connection, segments)
    refuse_invalid(connection, segments)
    for name, detail in _DETAIL.items():
        connection.execute(
            f"CREATE TABLE counted_{name} (cell VARCHAR, segment VARCHAR, detail VARCHAR, n BIGINT, mark UBIGINT)"
        )
        keys = "cell, detector" if name == "scores" else "cell"
        for segment in segments:
            if (segment / f"{name}.parquet").is_file():
                connection.execute(
                    f"INSERT INTO counted_{name} SELECT cell, '{segment.name}', {detail}, count(*), "
                    f"bit_xor(hash(sample)) FROM {_source(segment, name)} GROUP BY {keys}"
                )
    connection.execute(_PLANNED)
    others = {row["segment"] for row in _rows(connection, "SELECT DISTINCT segment FROM unlike")}
    for segment in segments:
        if segment.name in others:
            connection.execute(
                f"INSERT INTO exact SELECT cell, '{segment.name}', count(DISTINCT sample) "
                f"FROM {_source(segment, 'outcomes')} SEMI JOIN (FROM unlike WHERE segment = '{segment.name}') "
                "USING (cell) GROUP BY cell"
            )


def _source(segment: Path, name: str) -> str:
    path = str(segment / f"{name}.parquet").replace("'", "''")
    return f"read_parquet('{path}')"


def _compared(connection: "DuckDBPyConnection", names: Sequence[str]) -> Counts:
    counts = Counts(unlike=_rows(connection, _CELLS))
    counts.n_rows = _rows(connection, "SELECT coalesce(sum(n), 0)::BIGINT AS n FROM counted_outcomes")[0]["n"]
    counts.n_cells = _rows(connection, "SELECT count(DISTINCT cell) AS n FROM finished")[0]["n"]
    for table, suspects in _SUSPECTS.items():
        connection.execute(f"CREATE OR REPLACE TABLE suspects AS {suspects}")
        if _rows(connection, "FROM suspects LIMIT 1"):
            counts.twice[table] = {row["cell"] for row in _rows(connection, _TWICE[table])}
    counts.unknown = [row["cell"] for row in _rows(connection, _UNKNOWN)]
    connection.register("names", pa.table({"cell": pa.array(names, pa.string())}))
    counts.named = {row["cell"] for row in _rows(connection, "FROM names SEMI JOIN finished USING (cell)")}
    counts.calibrated = bool(_rows(connection, _CALIBRATED))
    counts.redo = {row["shard"]: row["cell"] for row in _rows(connection, _REDO)}
    return counts


def _rows(connection: "DuckDBPyConnection", sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
    return rows
