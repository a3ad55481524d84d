"""Reading and appending: one row per (model, arm, sample, repeat), and every mistake a LedgerError."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk.core.errors import LedgerError
from advrisk.ledger import TABLES, Ledger, Storage, compact, table_from
from advrisk.ledger.ledger import quiet_connection
from advrisk.ledger.tables import SCHEMA_VERSION
from tests.stamps import as_of_an_earlier_version, restamp

Tables = dict[str, Any]
CURRENT = ("plain", "push", "r1")


def rows(ledger: Ledger, table: str = "outcomes") -> list[dict[str, Any]]:
    """The rows of a table, read anew."""
    return Ledger.open(ledger.path).query(f"SELECT * FROM {table} ORDER BY ALL").to_pylist()


def seen(ledger: Ledger) -> list[tuple[Any, ...]]:
    return [(row["cell"], row["sample"], row["d_linf"]) for row in rows(ledger)]


# Opening


def test_a_ledger_is_opened_by_its_run_or_by_itself(tmp_path: Path) -> None:
    made = Ledger.open(tmp_path / "run", create=True)
    assert made.path == tmp_path / "run" / "ledger"
    for path in (tmp_path / "run", str(tmp_path / "run"), tmp_path / "run" / "ledger"):
        assert Ledger.open(path) == made
        assert Ledger.open(path, create=True) == made


def test_a_study_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine")
    with pytest.raises(LedgerError, match="is a file; give the folder of a run, such as runs/mine"):
        Ledger.open(tmp_path / "mine.yaml")


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_where_there_is_no_ledger_it_says_how_to_make_one(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "run")
    with pytest.raises(LedgerError) as caught:
        Ledger.open(tmp_path / "run")
    assert str(caught.value).startswith(f"{tmp_path / 'run'}: holds no ledger; `advrisk run ")
    assert not (tmp_path / "run" / "ledger").exists(), "looking makes nothing"


def test_where_no_ledger_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    with pytest.raises(LedgerError, match="cannot be made: Not a directory"):
        Ledger.open(tmp_path / "run", create=True)


@pytest.mark.parametrize("name", ["it's", 'quo"te', "a[1]*?", "semi;colon", "back\\slash", "ä ö", "{x}", "%20", "--"])
def test_a_folder_may_have_any_name(tmp_path: Path, cell: Callable[..., Tables], name: str) -> None:
    Ledger.open(tmp_path / name, create=True).append(cell("c1"))
    Ledger.open(tmp_path / name).append(cell("c2"))
    assert Ledger.open(tmp_path / name).finished_cells() == {"c1", "c2"}


# An empty ledger


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_table_of_an_empty_ledger_can_be_asked(ledger: Ledger, table: str) -> None:
    answer = ledger.query(f"SELECT * FROM {table}")
    assert answer.column_names == TABLES[table].names
    assert answer.num_rows == 0


def test_an_empty_ledger_can_be_compared_with_text(ledger: Ledger) -> None:
    assert ledger.outcomes(where="outcome = 'success' AND model <> 'plain'").num_rows == 0
    assert ledger.finished_cells() == set()
    assert ledger.finished_cells(without_errors=True) == set()


def test_a_ledger_that_was_never_written_reads_as_empty(tmp_path: Path) -> None:
    assert Ledger(Storage(tmp_path, "nowhere")).finished_cells() == set()
    assert not (tmp_path / "nowhere").exists()


# Appending and reading


def test_what_is_appended_is_read_back(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("c1") | arms(CURRENT))
    assert seen(ledger) == [("c1", "s1", 0.1), ("c1", "s2", 0.1)]
    assert [row["logits"] for row in rows(ledger, "outputs")] == [[1.0, 2.0], [1.0, 2.0]]
    assert [(row["cell"], row["n_samples"], row["flags"]) for row in rows(ledger, "cells")] == [("c1", 2, [])]


@pytest.mark.parametrize("table", sorted(TABLES))
def test_columns_and_their_order_are_those_of_the_schema(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables], table: str
) -> None:
    ledger.append(cell("c1") | arms(CURRENT))
    ledger.append({"scores": table_from("scores", {"cell": ["c1"], "sample": ["s1"], "score": [0.5]})})
    ledger.append({"measures": table_from("measures", {"cell": ["c1"], "sample": ["s1"], "value": [0.5]})})
    ledger.append({"models": table_from("models", {"model": ["plain"]})})
    ledger.append({"samples": table_from("samples", {"sample": ["s1"]})})
    ledger.append({"questions": table_from("questions", {"question": ["q1"]})})
    answer = Ledger.open(ledger.path).query(f"SELECT * FROM {table}")
    assert answer.column_names == TABLES[table].names
    assert answer.num_rows > 0


def test_an_open_ledger_is_a_snapshot(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    assert ledger.finished_cells() == set()
    Ledger.open(ledger.path).append(cell("c1"))
    assert ledger.finished_cells() == set()
    assert Ledger.open(ledger.path).finished_cells() == {"c1"}


def test_outcomes_come_in_order_with_the_asked_columns_and_rows(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    ledger.append(cell("c4", ["s2", "s1"], model="z", outcome="resisted"))
    ledger.append(cell("c3", ["s1"], model="a", repeat=1))
    ledger.append(cell("c2", ["s1"], model="a", repeat=0))
    ledger.append(cell("c1", ["s1"], model="a", arm="noise"))
    arms = {"model": ["z", "a", "a"], "arm": ["push", "push", "noise"], "recipe": ["r1"] * 3}
    ledger.append({"arms": table_from("arms", arms)})
    found = Ledger.open(ledger.path).outcomes(["cell", "sample"])
    assert found.to_pylist() == [
        {"cell": "c1", "sample": "s1"},
        {"cell": "c2", "sample": "s1"},
        {"cell": "c3", "sample": "s1"},
        {"cell": "c4", "sample": "s1"},
        {"cell": "c4", "sample": "s2"},
    ]
    assert Ledger.open(ledger.path).outcomes(["cell"], where="outcome = 'resisted'").num_rows == 2


@pytest.mark.parametrize("raised", [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error")])
def test_ctrl_c_in_a_query_ends_it_as_it_ends_anything_else(
    ledger: Ledger, raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What DuckDB raises where a signal comes while it works."""

    def interrupted(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setitem(vars(ledger), "_connection", SimpleNamespace(sql=interrupted))
    with pytest.raises(KeyboardInterrupt):
        ledger.query("SELECT 1")


def test_an_answer_is_taken_piece_by_piece_and_from_the_start_if_segments_are_merged_meanwhile(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advrisk.ledger.ledger._PIECE_ROWS", 2)
    for number in range(3):
        ledger.append(cell(f"c{number}", ["s1", "s2", "s3"]) | arms(CURRENT))
    read = Ledger.open(ledger.path)
    tries: list[list[int]] = []

    def sizes(pieces: Iterator[pa.RecordBatch]) -> list[int]:
        tries.append([])
        for piece in pieces:
            if len(tries) == 1:
                compact(ledger.path)
                raise LedgerError("a segment is gone")
            tries[-1].append(len(piece))
        return tries[-1]

    found = read.reduce("SELECT cell FROM outcomes WHERE sample <> $sample", sizes, sample="none")
    assert len(tries) == 2
    assert sum(found) == 9
    assert len(found) > 1


def test_ctrl_c_while_an_answer_is_taken_ends_it(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    def interrupted(pieces: Iterator[pa.RecordBatch]) -> None:
        raise RuntimeError("Query interrupted")

    with pytest.raises(KeyboardInterrupt):
        ledger.reduce("SELECT 1", interrupted)


def test_what_does_not_fit_into_memory_goes_to_a_folder_that_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with quiet_connection(40) as connection:
        connection.execute("SET threads = 1; CREATE TABLE t AS SELECT hash(range) AS h, range FROM range(6000000)")
        assert len(list(tmp_path.iterdir())) == 1
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (6_000_000,)
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_for_temporary_files_can_be_read_from(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", full)
    with quiet_connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_process_that_ends_with_its_database_open_leaves_nothing(tmp_path: Path) -> None:
    program = (
        "from advrisk.ledger.ledger import quiet_connection\n"
        "connection = quiet_connection(40)\n"
        "connection.execute('SET threads = 1; CREATE TABLE t AS SELECT hash(range) AS h, range FROM range(6000000)')\n"
        "import pathlib, tempfile\n"
        "print(len(list(pathlib.Path(tempfile.gettempdir()).iterdir())))\n"
        "keep = [connection]; keep.append(keep)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    assert said.stdout == "1\n"
    assert not list(tmp_path.iterdir())


def test_a_query_takes_named_parameters(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    ledger.append(cell("c1", ["s1", "o'clock"]))
    ledger.append({"arms": table_from("arms", {"model": ["plain"], "arm": ["push"], "recipe": ["r1"]})})
    query = "SELECT cell FROM outcomes WHERE sample = $sample AND list_contains($models, model)"
    read = Ledger.open(ledger.path)
    assert read.query(query, {"sample": "o'clock", "models": ["plain"]}).num_rows == 1
    assert read.query(query, {"sample": "'; DROP VIEW outcomes; --", "models": ["plain"]}).num_rows == 0
    assert read.outcomes().num_rows == 2


# The latest counts


def test_a_cell_that_was_run_again_replaces_its_rows(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("c1", outcome="error", d_linf=None) | arms(CURRENT))
    ledger.append(cell("c2", ["s3"]))
    ledger.append(cell("c1", d_linf=0.2))
    assert seen(ledger) == [("c1", "s1", 0.2), ("c1", "s2", 0.2), ("c2", "s3", 0.1)]
    assert [(row["cell"], row["n_errors"]) for row in rows(ledger, "cells")] == [("c1", 0), ("c2", 0)]
    assert len(rows(ledger, "outputs")) == 3


def test_a_changed_recipe_hides_the_old_cells_also_before_the_new_ones_are_there(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("old", recipe="r1") | arms(CURRENT, ("plain", "noise", "n1")))
    ledger.append(cell("other", arm="noise", recipe="n1"))
    ledger.append(arms(("plain", "push", "r2")))
    assert [row["cell"] for row in rows(ledger, "cells")] == ["other"]
    assert {row["cell"] for row in rows(ledger)} == {"other"}
    assert {row["cell"] for row in rows(ledger, "outputs")} == {"other"}
    ledger.append(cell("new", recipe="r2", d_linf=0.3))
    assert {(row["cell"], row["d_linf"]) for row in rows(ledger)} == {("new", 0.3), ("other", 0.1)}


def test_going_back_to_a_recipe_brings_its_cells_back(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("old", recipe="r1") | arms(CURRENT))
    ledger.append(cell("new", recipe="r2") | arms(("plain", "push", "r2")))
    ledger.append(arms(CURRENT))
    assert {row["cell"] for row in rows(ledger)} == {"old"}
    assert Ledger.open(ledger.path).finished_cells() == {"old", "new"}, "neither need be run again"


def test_a_recipe_is_current_for_its_own_model_and_arm_only(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(arms(("plain", "push", "r2"), ("other", "push", "r1")))
    ledger.append(cell("c1", model="plain", recipe="r1"))
    ledger.append(cell("c2", model="other", recipe="r1"))
    assert {row["cell"] for row in rows(ledger)} == {"c2"}


@pytest.mark.parametrize(
    ("table", "key", "column"),
    [("models", "model", "digest"), ("samples", "sample", "hash"), ("arms", "arm", "recipe")],
)
def test_of_several_rows_for_the_same_thing_the_latest_counts(
    ledger: Ledger, table: str, key: str, column: str
) -> None:
    extra = {"model": "m"} if table == "arms" else {}

    def append(**names: str) -> None:
        columns: dict[str, list[str]] = {key: list(names), column: list(names.values())}
        columns |= {name: [value] * len(names) for name, value in extra.items()}
        ledger.append({table: table_from(table, columns)})

    append(a="1", b="1")
    append(b="2", c="2")
    append(a="3")
    assert {row[key]: row[column] for row in rows(ledger, table)} == {"a": "3", "b": "2", "c": "2"}


@pytest.mark.parametrize("n", [2, 5, 3000])
def test_the_latest_counts_also_within_one_segment(ledger: Ledger, n: int) -> None:
    digests = [f"{i}" for i in range(n)]
    ledger.append({"models": table_from("models", {"model": ["m"] * n, "digest": digests})})
    assert [row["digest"] for row in rows(ledger, "models")] == [str(n - 1)]


def test_finished_cells_are_told_apart_from_those_with_errors(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    ledger.append(cell("good"))
    ledger.append(cell("bad", outcome="error"))
    ledger.append(cell("late", outcome="timeout"))
    ledger.append(cell("mended", outcome="error"))
    ledger.append(cell("mended"))
    ledger.append(cell("spoilt"))
    ledger.append(cell("spoilt", outcome="error"))
    read = Ledger.open(ledger.path)
    assert read.finished_cells() == {"good", "bad", "late", "mended", "spoilt"}
    assert read.finished_cells(without_errors=True) == {"good", "mended"}


def test_a_cell_that_was_cut_short_is_not_without_errors(ledger: Ledger, cell: Callable[..., Tables]) -> None:
    """An arm that fails once all its samples are broken has no error row, but what it kept may not be its best."""
    for name, flags in (("short", ["still-gaining", "cut-short"]), ("gaining", ["still-gaining"]), ("old", None)):
        tables = cell(name)
        columns = tables["cells"].to_pydict() | {"flags": [flags]}
        ledger.append(tables | {"cells": table_from("cells", columns)})
    read = Ledger.open(ledger.path)
    assert read.finished_cells() == {"short", "gaining", "old"}
    assert read.finished_cells(without_errors=True) == {"gaining", "old"}


def test_scores_may_come_later_than_their_cell(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("c1") | arms(CURRENT))
    ledger.append({"scores": table_from("scores", {"cell": ["c1"], "sample": ["s1"], "score": [0.5]})})
    ledger.append(cell("c2", ["s3"]))
    ledger.append(cell("c2", ["s3"]))
    assert [(row["cell"], row["score"]) for row in rows(ledger, "scores")] == [("c1", 0.5)]


# Refusals


@pytest.mark.parametrize(
    ("name", "table", "complaint"),
    [
        ("outcome", table_from("outcomes", {"model": ["a"]}), "no table called 'outcome'; did you mean 'outcomes'?"),
        ("stale", pa.table({"cell": ["a"]}), "there is no table called 'stale'"),
        ("models", pa.table({"model": ["a"]}), "models: these columns are not those of schema version 7"),
        ("models", table_from("samples", {"sample": ["a"]}), "models: these columns are not those"),
        ("models", table_from("models", {"model": ["a"]}).drop_columns("tags"), "models: these columns are not"),
        ("models", table_from("models", {"model": ["a"]}).append_column("x", [[1]]), "models: these columns are not"),
        (
            "models",
            table_from("models", {"model": ["a"]}).select(list(reversed(TABLES["models"].names))),
            "models: these columns are not those",
        ),
        (
            "outcomes",
            table_from("outcomes", {"model": ["a"]}).cast(
                pa.schema(
                    [field.with_type(pa.string()) if field.name == "model" else field for field in TABLES["outcomes"]]
                )
            ),
            "outcomes: these columns are not those",
        ),
    ],
)
def test_tables_with_other_columns_are_not_appended(
    ledger: Ledger, cell: Callable[..., Tables], name: str, table: pa.Table, complaint: str
) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.append(cell("c1") | {name: table})
    assert complaint in str(caught.value)
    assert list((ledger.path / "segments").iterdir()) == [], "nothing is appended, also of what was right"


def test_metadata_of_a_table_is_no_reason_to_refuse_it(ledger: Ledger) -> None:
    ledger.append({"models": table_from("models", {"model": ["a"]}).replace_schema_metadata({"pandas": "…"})})
    assert [row["model"] for row in rows(ledger, "models")] == ["a"]


@pytest.mark.parametrize(
    ("sql", "parameters", "complaint"),
    [
        ("SELEC 1", None, "syntax error"),
        ("SELECT * FROM outcome", None, "outcomes"),
        ("SELECT modle FROM outcomes", None, "model"),
        ("SELECT 'a'::INTEGER", None, "'a'"),
        ("SELECT $name", None, "name"),
        ("SELECT $name", {"nmae": 1}, "name"),
        ("SELECT $name", {"name": object()}, ""),
        ("", None, "asks for nothing; write a SELECT"),
        ("-- nothing", None, "asks for nothing; write a SELECT"),
        (
            "SELECT * FROM sql",
            None,
            "there is no table called 'sql'; known: arms, cells, evaluated",
        ),  # the name of a variable of the program
        ("SELECT * FROM read_parquet('/none.parquet')", None, "/none.parquet"),
        ("SELECT sum(outcome) FROM outcomes", None, "sum("),
    ],
)
def test_a_mistake_in_sql_is_a_ledger_error(
    ledger: Ledger, sql: str, parameters: dict[str, Any] | None, complaint: str
) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.query(sql, parameters)
    assert str(caught.value).startswith(f"{ledger.path}: ")
    assert complaint in str(caught.value)
    assert ledger.outcomes().num_rows == 0, "the ledger can be asked again"


def test_unknown_columns_and_wrong_conditions_are_ledger_errors(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="d_linff"):
        ledger.outcomes(["d_linff"])
    with pytest.raises(LedgerError, match="outcom"):
        ledger.outcomes(where="outcom = 'success'")


def with_version(file: Path, version: bytes | None) -> None:
    table = pq.read_table(file)
    metadata = {key: value for key, value in (table.schema.metadata or {}).items() if key != b"advrisk.schema"}
    pq.write_table(table.replace_schema_metadata(metadata | ({b"advrisk.schema": version} if version else {})), file)
    restamp(file.parent)


@pytest.mark.parametrize("table", ["outcomes", "cells", "outputs", "arms"])
@pytest.mark.parametrize(
    ("version", "complaint"),
    [
        (b"%d" % (SCHEMA_VERSION + 1), f"schema version {SCHEMA_VERSION + 1} is newer than this program's"),
        (b"100", "schema version 100 is newer than this program's"),
        (b"one", "cannot be read as a table of a ledger"),
    ],
)
def test_a_newer_schema_is_refused(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables], table: str, version: bytes, complaint: str
) -> None:
    ledger.append(cell("c1") | arms(CURRENT))
    segment = ledger.append(cell("c2") | arms(CURRENT))
    with_version(segment / f"{table}.parquet", version)
    for ask in (lambda read: read.outcomes(), lambda read: read.finished_cells(), lambda read: read.query("SELECT 1")):
        with pytest.raises(LedgerError, match=complaint) as caught:
            ask(Ledger.open(ledger.path))
        assert str(segment / f"{table}.parquet") in str(caught.value)


@pytest.mark.parametrize("version", [None, b"0", b"1", b"2"])
def test_this_schema_and_older_ones_are_read(
    ledger: Ledger, cell: Callable[..., Tables], version: bytes | None
) -> None:
    segment = ledger.append(cell("c1"))
    for file in segment.glob("*.parquet"):
        with_version(file, version)
    assert Ledger.open(ledger.path).finished_cells() == {"c1"}


@pytest.mark.parametrize("table", ["outcomes", "cells", "arms"])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_a_ledger_error_that_names_it(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables], table: str, which: int, keep: float
) -> None:
    segments = [ledger.append(cell(f"c{i}") | arms(CURRENT)) for i in range(3)]
    file = segments[which] / f"{table}.parquet"
    content = file.read_bytes()
    file.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(LedgerError) as caught:
        Ledger.open(ledger.path).outcomes()
    assert str(file) in str(caught.value)
    file.write_bytes(content)
    assert Ledger.open(ledger.path).outcomes().num_rows == 6


@pytest.mark.parametrize("content", [b"PAR1", b"not a table at all, but long enough to be one\n" * 9, b"\0" * 4096])
def test_a_file_that_is_no_parquet_is_a_ledger_error(
    ledger: Ledger, cell: Callable[..., Tables], content: bytes
) -> None:
    (ledger.append(cell("c1")) / "cells.parquet").write_bytes(content)
    with pytest.raises(LedgerError, match=r"cells\.parquet"):
        Ledger.open(ledger.path).finished_cells()


def test_a_segment_that_vanishes_while_it_is_read_is_a_ledger_error(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    segment = ledger.append(cell("c1") | arms(CURRENT))
    read = Ledger.open(ledger.path)
    assert read.finished_cells() == {"c1"}
    shutil.rmtree(segment)
    with pytest.raises(LedgerError, match=segment.name):
        read.outcomes()


def test_a_cell_of_an_earlier_version_whose_outcomes_were_deleted_is_run_again(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "run", create=True)
    for cell in ("kept", "lost"):
        columns = {"cell": [cell], "model": ["m"], "arm": ["a"]}
        segment = ledger.append(
            {
                "cells": table_from("cells", columns | {"recipe": ["r"], "n_errors": [0]}),
                "outcomes": table_from("outcomes", columns | {"sample": ["1"], "outcome": ["success"]}),
            }
        )
    as_of_an_earlier_version(segment)
    (segment / "outcomes.parquet").unlink()
    assert Ledger.open(tmp_path / "run").finished_cells() == {"kept"}


# Scores


def scores(name: str, score: float = 0.5, detector: str = "eye@1") -> Tables:
    columns = {"cell": [name] * 2, "sample": ["s1", "s2"], "detector": [detector] * 2, "score": [score] * 2}
    return {"scores": table_from("scores", columns)}


def score_list(ledger: Ledger) -> list[tuple[str, float]]:
    return sorted({(row["cell"], row["score"]) for row in rows(ledger, "scores")})


def test_scores_are_appended_after_their_cell(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("c1") | arms(CURRENT))
    ledger.append(scores("c1", 0.5))
    assert score_list(ledger) == [("c1", 0.5)]


def test_scores_of_a_cell_that_was_run_again_are_void_until_it_is_scored_again(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("c1") | arms(CURRENT))
    ledger.append(cell("c2"))
    ledger.append(scores("c1", 0.1))
    ledger.append(scores("c2", 0.2))
    ledger.append(cell("c1"))
    assert score_list(ledger) == [("c2", 0.2)]
    ledger.append(scores("c1", 0.3))
    assert score_list(ledger) == [("c1", 0.3), ("c2", 0.2)]


def test_scores_of_an_arm_with_another_recipe_are_not_shown(
    ledger: Ledger, cell: Callable[..., Tables], arms: Callable[..., Tables]
) -> None:
    ledger.append(cell("c1") | arms(CURRENT))
    ledger.append(scores("c1"))
    ledger.append(scores("r1", 0.7))  # of samples to calibrate: they are in no cell
    assert score_list(ledger) == [("c1", 0.5), ("r1", 0.7)]
    ledger.append(cell("c9", recipe="r2") | arms(("plain", "push", "r2")))
    assert score_list(ledger) == []
    ledger.append(scores("r2", 0.9))
    assert score_list(ledger) == [("r2", 0.9)]
