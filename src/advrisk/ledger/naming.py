"""What the study calls arms and detectors, in place of their ids: the one place where a shown name comes from.

Rows are stored by ids, which follow from what an arm or detector does; a name decides nothing, so that to rename runs
nothing again. The latest row of `arms` holds the name of an arm, `detectors.json` those of detectors. A detector's
full name, `lid,neighbours=10@1a2b3c4d`, becomes `its-name@1a2b3c4d`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from advrisk.ledger.known_detectors import read_known_detectors

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Names = tuple[tuple[str, str], ...]  # what is shown, and the id

_OWN = """
    INSERT INTO shown_names SELECT any_value(name), arm FROM arms
    WHERE name IS NOT NULL AND origin IS DISTINCT FROM 'dropped' GROUP BY arm
"""


def full_name(detector: str, name: str) -> str:
    """A detector's full name with another readable part."""
    return f"{name}@{detector.rpartition('@')[2]}"


def detector_names(folder: Path, names: Names | None) -> dict[str, str]:
    """Detector -> its full name as it is shown, of those that are called otherwise than by their settings."""
    if names is not None:
        return {held: shown for shown, held in names if "@" in held}
    known = read_known_detectors(folder)
    return {} if known is None else {full: full_name(full, name) for full, name in known.names.items()}


def scores_by_name(connection: "DuckDBPyConnection", source: str, detectors: Mapping[str, str]) -> str:
    """The query of all scores, with these names in it."""
    connection.execute("CREATE TABLE shown_detectors (id VARCHAR, shown VARCHAR)")
    connection.executemany("INSERT INTO shown_detectors VALUES (?, ?)", [list(pair) for pair in detectors.items()])
    return (
        f"SELECT s.* REPLACE (coalesce(d.shown, s.detector) AS detector) FROM ({source}) s "
        "LEFT JOIN shown_detectors d ON s.detector = d.id"
    )


def show_names(connection: "DuckDBPyConnection", detectors: Mapping[str, str], names: Names | None) -> None:
    """Put names in place of ids in what readers see: arms, cells and outcomes."""
    connection.execute("CREATE TABLE shown_names (shown VARCHAR, id VARCHAR)")
    if names is None:
        connection.execute(_OWN)
    _insert(connection, names if names is not None else ((shown, full) for full, shown in detectors.items()))
    for full, shown in detectors.items():  # of arms that know a detector
        connection.execute(
            "UPDATE arms SET params = replace(params, $full, $shown) WHERE contains(params, $full)",
            {"full": full, "shown": shown},
        )
    if connection.execute("SELECT 1 FROM shown_names LIMIT 1").fetchone() is None:
        return
    for table in ("arms", "cells"):
        connection.execute(f"UPDATE {table} SET arm = n.shown FROM shown_names n WHERE {table}.arm = n.id")
    connection.execute(
        "ALTER VIEW outcomes RENAME TO outcomes_by_id; "
        "CREATE VIEW outcomes AS SELECT o.* REPLACE (coalesce(n.shown, o.arm) AS arm) FROM outcomes_by_id o "
        "LEFT JOIN shown_names n ON o.arm = n.id"
    )


def _insert(connection: "DuckDBPyConnection", names: Iterable[tuple[str, str]]) -> None:
    if rows := [list(pair) for pair in names]:
        connection.executemany("INSERT INTO shown_names VALUES (?, ?)", rows)
