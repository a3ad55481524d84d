"""Tables as files: whole folders, and nothing of anybody else's is touched."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest

from advrisk.core.errors import RunError
from advrisk.report import csv_files
from advrisk.report.csv_files import INDEX, write_folder, write_rows

TABLES = {
    "numbers": pa.table({"name": ['a,"b"\nc', None], "value": [0.1, None]}),
    "empty": pa.table({"name": pa.array([], pa.string())}),
}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_folder_holds_every_table_and_an_index(tmp_path: Path) -> None:
    made = write_folder(TABLES, tmp_path / "new" / "tables")
    assert {path.name for path in made.iterdir()} == {"numbers.csv", "empty.csv", INDEX}
    assert read(made / "numbers.csv") == [{"name": 'a,"b"\nc', "value": "0.1"}, {"name": "", "value": ""}]
    assert (made / "empty.csv").read_text() == "name\n"
    index = json.loads((made / INDEX).read_text())["tables"]
    assert index["numbers.csv"] == {"rows": 2, "columns": {"name": "string", "value": "double"}}


def test_our_own_folder_is_replaced_whole(tmp_path: Path) -> None:
    target = write_folder(TABLES, tmp_path / "tables")
    write_folder({"other": TABLES["empty"]}, target)
    assert {path.name for path in target.iterdir()} == {"other.csv", INDEX}
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]
    (tmp_path / "blank").mkdir()
    assert write_folder(TABLES, tmp_path / "blank").is_dir()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="it is no folder"):
        write_folder(TABLES, tmp_path / "file")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mother.txt").write_text("dear")
    with pytest.raises(RunError, match="holds other files, and is not replaced; name a new folder"):
        write_folder(TABLES, tmp_path / "letters")
    ours = write_folder(TABLES, tmp_path / "tables")
    (ours / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"holds notes\.txt, which is none of these tables"):
        write_folder(TABLES, ours)
    assert (ours / "numbers.csv").is_file()
    (ours / INDEX).write_text("[]")
    with pytest.raises(RunError, match="holds other files"):
        write_folder(TABLES, ours)


def test_what_fails_leaves_the_former_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = write_folder(TABLES, tmp_path / "tables")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(csv_files, "_write", full)
    with pytest.raises(RunError, match="tables: cannot be written: No space left on device"):
        write_folder(TABLES, target)
    assert len(read(target / "numbers.csv")) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_one_file(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": None}, {"a": float("inf"), "b": "x"}]
    assert write_rows(rows, ["a", "b"], tmp_path / "all.csv") == 2
    assert read(tmp_path / "all.csv") == [{"a": "1", "b": ""}, {"a": "inf", "b": "x"}]
    assert write_rows([], ["a"], tmp_path / "none.csv") == 0
    assert (tmp_path / "none.csv").read_text() == "a\n"
    with pytest.raises(RunError, match="it is no file"):
        write_rows(rows, ["a", "b"], tmp_path)
    with pytest.raises(RunError, match="cannot be written: No such file"):
        write_rows(rows, ["a", "b"], tmp_path / "gone" / "all.csv")
