"""The same sections through every renderer: no number is lost, and no name from outside is taken for markup."""

import csv
import io

import pytest
from rich.console import Console

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.sections import (
    Column,
    Figure,
    Headline,
    Picture,
    Pictures,
    Table,
    Text,
    Unanswered,
    headline_of,
    slug,
)
from advrisk.render.markdown import MOST_ROWS, markdown_lines
from advrisk.render.notebook import sections_html
from advrisk.render.page import page_figures, page_finding
from advrisk.render.records import arrow_tables, table_rows, tables_record
from advrisk.render.terminal import print_sections
from advrisk.report.csv_files import write_folder

EVIL = "<b>|`x`</b> [red]"
RISK = Estimate(0.25, 0.125, 0.5, 0.95, 40, "bootstrap")
TABLE = Table(
    "Risk of every model",
    (Column("model"), Column("risk", "share"), Column("samples", "count"), Column("time", "seconds", "s")),
    ((EVIL, RISK, 40, 0.5), ("plain", None, 41, None)),
    notes=("All on the same samples.",),
)
SECTIONS = (
    Headline("plain is the least bad."),
    TABLE,
    Text(("One thing.", "Another."), "What to know"),
    Figure("Risks", {"data": [], "layout": {}}, "The risk of each model."),
    Pictures("Failures", (Picture(b"\x89PNG", "a three", "read as 8"),)),
)


def terminal(width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(SECTIONS, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [20, 80, 200])
def test_a_terminal_shows_everything_at_any_width(width):
    shown = " ".join(terminal(width).split())
    for text in ("plain is the least bad.", "25.0 %", "[12.5, 50.0]", "40", "All on the same samples.", "Another."):
        assert text in shown
    assert EVIL in shown


def test_names_steer_neither_rich_nor_the_terminal(capsys):
    hostile = "m[/x] :x: \x1b[31m"
    table = Table("T", (Column("model"), Column(hostile)), ((hostile, hostile),))
    for width in (20, 120):
        console = Console(file=io.StringIO(), width=width)
        print_sections([Headline(hostile), table], console)
        shown = console.file.getvalue()
        assert "m[/x]" in shown
        assert ":x:" in shown
        assert "\x1b" not in shown


def test_what_does_not_fit_becomes_blocks():
    assert "risk: 25.0 % [12.5, 50.0]" in " ".join(terminal(30).split())
    assert max(map(len, terminal(80).splitlines())) <= 80


def test_markdown_escapes_names_and_cuts_long_tables():
    text = "\n".join(markdown_lines("A <title>", SECTIONS))
    assert "25.0 % \\[12.5, 50.0\\]" in text
    assert "<b>" not in text
    long = Table("Many", (Column("model"),), tuple((f"m{n}",) for n in range(MOST_ROWS + 3)))
    assert "And 3 more rows." in markdown_lines("x", [long])
    assert markdown_lines("x", []) == []


def test_a_notebook_shows_headline_tables_and_notes():
    html = sections_html(SECTIONS)
    assert "plain is the least bad." in html
    assert "25.0 % [12.5, 50.0]" in html
    assert "<b>" not in html
    assert "All on the same samples." in html


def test_machines_get_plain_numbers_with_the_ends_of_intervals():
    assert table_rows(TABLE) == [
        {"model": EVIL, "risk": 0.25, "risk_low": 0.125, "risk_high": 0.5, "samples": 40, "time": 0.5},
        {"model": "plain", "risk": None, "risk_low": None, "risk_high": None, "samples": 41, "time": None},
    ]
    assert tables_record(SECTIONS) == {"risk_of_every_model": table_rows(TABLE)}


def test_the_first_table_has_the_name_of_the_question(tmp_path):
    other = Table("Others", (Column("model"),), (("a",),))
    tables = arrow_tables("leak", [*SECTIONS, other])
    assert list(tables) == ["leak", "leak_others"]
    write_folder(tables, tmp_path / "out")
    with (tmp_path / "out" / "leak.csv").open() as file:
        assert [row["risk_high"] for row in csv.DictReader(file)] == ["0.5", ""]


def test_the_page_is_given_parts_in_order_and_figures_by_name():
    content = page_finding("leak", "Leaks", SECTIONS)
    assert [part["is_a"] for part in content["parts"]] == ["Headline", "Table", "Text", "Figure", "Pictures"]
    assert content["parts"][1]["rows"][0][1] == ("25.0 %", "[12.5, 50.0]")
    assert content["parts"][3]["name"] in page_figures("leak", SECTIONS)
    assert content["parts"][4]["pictures"][0]["source"].startswith("data:image/png;base64,")


def test_a_question_without_an_answer_says_why_and_what_would_give_one():
    why = Unanswered("no arm is an attack", "name one")
    assert page_finding("leak", "Leaks", why)["parts"] == [
        {"is_a": "Unanswered", "text": "no arm is an attack; name one."}
    ]
    assert str(Unanswered("no arm is an attack")) == "no arm is an attack"


def test_a_table_refuses_rows_that_do_not_fit_and_columns_of_one_name():
    with pytest.raises(RiskError, match="a row of 1 values for 2 columns"):
        Table("x", (Column("a"), Column("b")), (("only",),))
    with pytest.raises(RiskError, match="two columns are called the same"):
        Table("x", (Column("a b"), Column("a-b")), ())


def test_names_for_machines():
    assert slug("robust accuracy at 8/255") == "robust_accuracy_at_8_255"
    assert headline_of(SECTIONS) == "plain is the least bad."
    assert headline_of([TABLE]) == ""
