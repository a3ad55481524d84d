"""Digests of a run, against SHA-256 made row by row in plain Python, and against `sha256sum`'s own format."""

import hashlib
import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import TABLES, Ledger, Storage, table_from
from advrisk.ledger.digests import files_digest, ledger_digest, run_files, table_digest

Tables = dict[str, pa.Table]


def by_hand(values: list[Any]) -> bytes:
    """The digest of a column as the module's docstring has it, value by value."""
    marks = b"".join(bytes([value is not None]) for value in values)
    held = [value for value in values if value is not None]
    kind, encoded, inside = "empty", b"", hashlib.sha256(b"").digest()
    for value in held:
        if isinstance(value, bool):
            kind, encoded = "truth", encoded + bytes([value])
        elif isinstance(value, int):
            kind, encoded = "whole", encoded + struct.pack("<q", value)
        elif isinstance(value, float):
            kind, encoded = "float", encoded + struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
        else:
            kind, encoded = "list" if isinstance(value, list) else "text", encoded
            encoded += struct.pack("<q", len(value.encode()) if isinstance(value, str) else len(value))
    if kind == "text":
        inside = hashlib.sha256("".join(held).encode()).digest()
    elif kind == "list":
        inside = by_hand([item for value in held for item in value])
    parts = (kind.encode(), hashlib.sha256(marks).digest(), hashlib.sha256(encoded).digest(), inside)
    return hashlib.sha256(b"".join(parts)).digest()


def table_by_hand(rows: list[dict[str, Any]], columns: list[str]) -> str:
    whole = hashlib.sha256()
    for column in columns:
        whole.update(f"{column}\n".encode() + by_hand([row[column] for row in rows]))
    return whole.hexdigest()


@pytest.mark.parametrize("in_parts", [False, True])
def test_the_digest_of_a_table_is_that_made_by_hand(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, in_parts: bool
) -> None:
    if in_parts:
        monkeypatch.setattr("advrisk.ledger.digests.LARGE", 0)
    monkeypatch.setattr("advrisk.ledger.ledger.refuse_invalid", lambda *_: None)  # of any value, also of such
    columns = ["cell", "sample", "eps", "repeat", "survives_8bit", "confidence", "message"]
    rows = [
        ["0a", "s1", 0.1, 0, True, 0.5, None],
        ["0a", "s2", -0.0, 1, False, None, "größer"],
        ["9f", "s1", math.nan, None, None, 0.1, ""],
        ["fe", "s3", math.inf, -7, True, 1.0, "x\ny"],
        ["zz", "s4", None, 2, True, 0.25, "a name of no cell"],
    ]
    listed = {"cell": [row[0] for row in rows], "sample": [row[1] for row in rows]}
    lists = [[1.0, 2.5], [], None, [-0.0], [3.0]]
    ledger.append(
        {
            "outcomes": table_from("outcomes", {name: [row[n] for row in rows] for n, name in enumerate(columns)}),
            "outputs": table_from("outputs", {**listed, "logits": lists}),
        }
    )
    opened = Ledger.open(ledger.path)
    expected = [dict(zip(columns, row, strict=True)) for row in rows]
    for row in expected:
        row["confidence"] = (
            None if row["confidence"] is None else struct.unpack("f", struct.pack("f", row["confidence"]))[0]
        )
    found = table_digest(opened, "outcomes", columns)
    assert (found.rows, found.sha256) == (5, table_by_hand(expected, columns))
    outputs = [{"cell": row[0], "sample": row[1], "logits": each} for row, each in zip(rows, lists, strict=True)]
    assert table_digest(opened, "outputs", ["cell", "sample", "logits"]).sha256 == table_by_hand(
        outputs, ["cell", "sample", "logits"]
    )
    assert table_digest(opened, "scores").sha256 == table_by_hand([], TABLES["scores"].names)


def test_rows_that_are_cut_into_other_segments_keep_their_digest(
    tmp_path: Path, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    cells = [cell(name, [f"{name}-{n}" for n in range(5)]) for name in ("b1", "a1", "07", "ff")]
    standing = arms(("plain", "push", "r1"))
    one_by_one, at_once = (Ledger.open(tmp_path / name, create=True) for name in ("many", "one"))
    for tables in (cells[0] | standing, *cells[1:]):
        one_by_one.append(tables)
    joined = {name: pa.concat_tables([each[name] for each in reversed(cells)]) for name in cells[0]}
    at_once.append({name: table.take(list(range(len(table)))[::-1]) for name, table in joined.items()} | standing)
    many, one = (ledger_digest(Ledger.open(each.path)) for each in (one_by_one, at_once))
    assert many.rows == one.rows
    assert many.tables == one.tables
    assert many.tables["outcomes"].rows == 20
    assert many.of_files != one.of_files


def test_a_cell_that_was_run_again_counts_once(
    tmp_path: Path, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    again, once = (Ledger.open(tmp_path / name, create=True) for name in ("again", "once"))
    again.append(cell("c1", outcome="error") | arms(("plain", "push", "r1")))
    again.append(cell("c1"))
    once.append(cell("c1") | arms(("plain", "push", "r1")))
    assert ledger_digest(Ledger.open(again.path)).rows == ledger_digest(Ledger.open(once.path)).rows


@pytest.mark.parametrize("column", ["cell", "sample", "outcome", "d_linf", "repeat"])
def test_any_other_value_is_another_digest(tmp_path: Path, cell: Callable[..., Tables], column: str) -> None:
    table = cell("c1")["outcomes"]
    other = {"d_linf": 0.1 + 1e-16, "repeat": 1, "outcome": "rejected"}.get(column, "other")
    changed = [*table.column(column).to_pylist()[:1], other]
    values = table_from("outcomes", {**{name: table[name] for name in table.schema.names}, column: changed})
    digests = []
    for name, each in (("then", table), ("now", values)):
        ledger = Ledger.open(tmp_path / name, create=True)
        ledger.append({"outcomes": each})
        digests.append(table_digest(Ledger.open(ledger.path), "outcomes").sha256)
    assert digests[0] != digests[1]


def test_files_are_those_of_the_run(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    ledger.append(cell("c1"))
    run = ledger.path.parent
    for name in ("study.yaml", "inputs/shards/a.npz", "detectors/lid@1/plain.safetensors", "evasion.json"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(name)
    for name in ("report.html", "lock", "certificates/plain.json", "evidence/index.json", "inputs/.half"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("made from the run, or not finished")
    found = list(run_files(Storage(run)))
    named = {one.path: hashlib.sha256((run / one.path).read_bytes()).hexdigest() for one in found}
    segment = [path.relative_to(run).as_posix() for path in run.glob("ledger/segments/*/*")]
    assert len(segment) == 4  # three tables, and their manifest
    others = [
        "study.yaml",
        "ledger/history.jsonl",
        "inputs/shards/a.npz",
        "detectors/lid@1/plain.safetensors",
        "evasion.json",
    ]
    assert sorted(named) == sorted([*segment, *others])
    assert {one.path: one.sha256 for one in found} == named
    assert all(one.bytes == (run / one.path).stat().st_size for one in found)
    printed = "".join(f"{named[name]}  {name}\n" for name in sorted(named))
    assert files_digest(named) == hashlib.sha256(printed.encode()).hexdigest()
    shutil.rmtree(run / "inputs")
    assert "inputs/shards/a.npz" not in {one.path for one in run_files(Storage(run))}


def test_unknown_tables_and_columns_are_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no table called 'outcome'; did you mean"):
        table_digest(ledger, "outcome")
    with pytest.raises(LedgerError, match="outcomes has no column 'modl'"):
        table_digest(ledger, "outcomes", ["modl"])
