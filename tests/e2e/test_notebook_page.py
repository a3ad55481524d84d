"""The cells of the page on notebooks run, one after another, and print what stands below them."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"
NUMBER = re.compile(r"\s*\b\d[\d.]*")  # a rounding of another machine may move one sample
CELL = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::sqlalchemy.exc.SADeprecationWarning")
def test_the_cells_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("alembic")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = CELL.findall(PAGE.read_text(encoding="utf-8"))
    assert len(cells) == 7
    for code, printed in cells:
        said = StringIO()
        with redirect_stdout(said):
            exec(code, names)
        assert NUMBER.sub(" #", said.getvalue()) == NUMBER.sub(" #", printed)
    assert (tmp_path / "mlflow.db").is_file()
