"""Tables as files of CSV, written whole or not at all: one, or a folder of them."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.core.errors import RunError
from advrisk.core.files import whole_file, whole_folder

if TYPE_CHECKING:
    import pyarrow as pa

INDEX = "tables.json"  # says of a folder that it is ours, and what it holds
_FORMAT = "advrisk.tables/1"


def write_rows(rows: Iterable[Mapping[str, Any]], columns: Iterable[str], target: Path) -> int:
    """Write a header and every row to a file; returns the number of rows. What is not known is left empty."""
    if target.exists() and not target.is_file():
        raise RunError(f"{target}: cannot be written: it is no file")
    target = target.resolve()  # of a link, what it leads to
    try:
        with whole_file(target) as path:
            return _write(rows, columns, path)
    except OSError as error:
        raise RunError(f"{target}: cannot be written: {error.strerror}") from None


def write_folder(tables: "Mapping[str, pa.Table]", target: Path, *, about: Mapping[str, Any] | None = None) -> Path:
    """Write a file for each table into a folder, and an index of them with what they are `about`; such a folder from
    before is replaced."""
    _refuse_foreign(target)
    target = target.resolve()
    try:
        with whole_folder(target) as folder:
            for name, table in tables.items():
                _write(table.to_pylist(), table.column_names, folder / f"{name}.csv")
            (folder / INDEX).write_text(json.dumps(_index(tables, about or {}), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise RunError(f"{target}: cannot be written: {error.strerror}") from None
    return target


def _write(rows: Iterable[Mapping[str, Any]], columns: Iterable[str], path: Path) -> int:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(columns))
        writer.writeheader()
        n = 0
        for n, row in enumerate(rows, 1):  # noqa: B007
            writer.writerow(row)
    return n


def _index(tables: "Mapping[str, pa.Table]", about: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        **about,
        "tables": {
            f"{name}.csv": {"rows": table.num_rows, "columns": {one.name: str(one.type) for one in table.schema}}
            for name, table in tables.items()
        },
    }


def _refuse_foreign(target: Path) -> None:
    """Refuse to replace what this did not write."""
    if not target.exists():
        return
    if not target.is_dir():
        raise RunError(f"{target}: cannot be written: it is no folder; CSV goes into one, a file for each table")
    held = {path.name for path in target.iterdir()}
    try:
        index = json.loads((target / INDEX).read_text(encoding="utf-8")) if held else {"tables": {}}
        own = {INDEX, *index["tables"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise RunError(f"{target}: holds other files, and is not replaced; name a new folder") from None
    if foreign := sorted(held - own):
        raise RunError(f"{target}: holds {foreign[0]}, which is none of these tables; move it, or name a new folder")
