"""The same sections through every renderer: no number is lost, and no name from outside is taken for markup."""

import csv
import io

import pytest
from rich.console import Console

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.sections import (
    Alternatives,
    Badge,
    Cell,
    Column,
    Figure,
    Front,
    Group,
    Headline,
    Picture,
    Pictures,
    Table,
    Text,
    Tile,
    Unanswered,
    headline_of,
    slug,
    without_twins,
)
from advrisk.render.markdown import MOST_ROWS, markdown_lines
from advrisk.render.notebook import sections_html
from advrisk.render.page import page_figures, page_finding, page_tile
from advrisk.render.records import arrow_tables, table_rows, tables_record
from advrisk.render.terminal import print_rows, print_sections
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


def test_prose_is_broken_by_words_before_a_table_becomes_blocks():
    verdict = "more damage than plain, noisy and trades"
    table = Table("T", (Column("model"), Column("verdict"), Column("risk", "share")), (("pgd trained", verdict, RISK),))

    def lines(width):
        console = Console(file=io.StringIO(), width=width)
        print_sections([table], console)
        return console.file.getvalue().splitlines()

    assert any(verdict in line for line in lines(90))
    narrow = lines(60)
    assert max(map(len, narrow)) <= 60
    assert not any("verdict: " in line for line in narrow), "still a table"
    assert not any(verdict in line for line in narrow)
    assert any("pgd trained" in line for line in narrow), "names are not broken"
    begun = [line[len(" pgd trained   ") :] for line in narrow[4:-1]]
    assert [line.startswith(" ") for line in begun] == [False] * len(begun), "no line of a text is indented"
    assert any("verdict: " in line for line in lines(40))


def test_a_group_of_which_a_terminal_shows_nothing_has_no_title_there():
    figure = Figure("Risks", {"data": [], "layout": {}}, "The risk of each model.")
    console = Console(file=io.StringIO(), width=80)
    group = Group("Curves", (Text(("Read it so.",), how=True), figure, Group("Inner", (figure,))))
    print_sections([group], console, details=True)
    assert console.file.getvalue() == ""
    print_sections([Group("Curves", (figure, Text(("Said.",))))], console)
    assert "Curves" in console.file.getvalue()


def test_markdown_escapes_names_and_cuts_long_tables():
    text = "\n".join(markdown_lines("A <title>", SECTIONS))
    assert "25.0 % \\[12.5, 50.0\\]" in text
    assert "<b>" not in text
    long = Table("Many", (Column("model"),), tuple((f"m{n}",) for n in range(MOST_ROWS + 3)))
    assert "And 3 more rows." in markdown_lines("x", [long])
    assert markdown_lines("x", []) == []


def test_a_long_name_does_not_take_the_markdown():
    name = "n" * 10_000
    table = Table(name, (Column(name),), ((name,),), (name,))
    text = "\n".join(markdown_lines(name, [Headline(name), Text((name,), name), Group(name, (table,))]))
    assert len(text) < 1000
    assert text.count("n…n") == 6, "in titles, the headline, the heading, the cell and the note"


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
    content = page_finding("leak", "Leaks", SECTIONS, question="What leaks?")
    assert (content["title"], content["question"]) == ("Leaks", "What leaks?")
    assert page_finding("leak", "Leaks", SECTIONS)["question"] == "Leaks"
    assert [content["answer"]] == [one.text for one in SECTIONS if isinstance(one, Headline)]
    assert [part["is_a"] for part in content["parts"]] == ["Table", "Text", "Figure", "Pictures"]
    assert content["parts"][0]["rows"][0]["cells"][1]["lines"] == ("25.0 %", "[12.5, 50.0]")
    assert content["parts"][2]["name"] in page_figures("leak", SECTIONS)
    assert content["parts"][3]["pictures"][0]["source"].startswith("data:image/png;base64,")


def test_a_tile_shows_a_number_with_its_interval_and_a_bar_where_it_is_a_share():
    share, count = Column("risk", "risk"), Column("passes", "count")
    tile = page_tile(Tile("a", (Badge("least", "best"),), ((share, RISK), (count, 12), (share, None))))
    risk, passes, unknown = tile["facts"]
    assert risk == {
        "name": "risk",
        "lines": ("25.0 %", "[12.5, 50.0]"),
        "bar": {"value": 25.0, "low": 12.5, "high": 50.0},
    }
    assert (passes["lines"], passes["bar"]) == (("12",), {})
    assert (unknown["lines"], unknown["bar"]) == (("–",), {})


def test_what_a_question_adds_to_the_first_screen_stands_nowhere_else():
    figure = Figure("First", {"data": [], "layout": {}}, "x")
    held = [Headline("It leaks."), Front((Tile("a"),), (figure,))]
    assert page_finding("leak", "Leaks", held)["parts"] == []
    assert list(page_figures("leak", held)) == ["leak first"]
    assert without_twins([*held, figure])[2].key == "first_2"
    console = Console(file=io.StringIO(), width=80)
    print_sections(held[1:], console, details=True)
    assert console.file.getvalue() == ""
    assert markdown_lines("x", held[1:]) == markdown_lines("x", [])


def test_a_question_without_an_answer_says_why_and_what_would_give_one():
    why = Unanswered("no arm is an attack", "name one")
    content = page_finding("leak", "Leaks", why)
    assert (content["answer"], content["parts"]) == ("No answer: no arm is an attack; name one.", [])
    assert str(Unanswered("no arm is an attack")) == "no arm is an attack"


def test_a_table_refuses_rows_that_do_not_fit_and_columns_of_one_name():
    with pytest.raises(RiskError, match="a row of 1 values for 2 columns"):
        Table("x", (Column("a"), Column("b")), (("only",),))
    with pytest.raises(RiskError, match="two columns are called the same"):
        Table("x", (Column("a b"), Column("a-b")), ())


def test_what_is_folded_is_shown_to_those_who_look_closer():
    wide = Table("Wide", (Column("model"), Column("seed", "count", detail=True)), (("a", 17),))
    inner = Group("Closer", (wide, Text(("Read it so.",), how=True)), folded=True)
    console = Console(file=io.StringIO(), width=80)
    print_sections([Group("All", (wide, inner))], console)
    assert "17" not in console.file.getvalue()
    print_sections([inner], console, details=True)
    for text in ("Closer", "17", "Read it so."):
        assert text in console.file.getvalue()
    assert "**Wide**" in markdown_lines("x", [Group("All", (wide,)), inner])
    assert "**Wide**" not in markdown_lines("x", [inner])
    assert "17" not in sections_html([wide, inner])
    assert tables_record([inner]) == {"wide": [{"model": "a", "seed": 17}]}


def test_a_terminal_says_nothing_of_a_group_of_figures():
    figures = Group("", (Figure("Risks", {"data": [], "layout": {}}, "x"),), beside=True)
    console = Console(file=io.StringIO(), width=80)
    print_sections([Group("Pictured", (Text(("A bar is a risk.",), how=True), figures))], console, details=True)
    assert console.file.getvalue() == ""
    print_sections([Group("", (Text(("Said.",)),))], console)
    assert console.file.getvalue() == "· Said.\n"


def test_a_block_leaves_out_what_is_empty_and_breaks_no_bound():
    table = Table(
        "T", (Column("model"), Column("from"), Column("broke", "count")), (("m", "", Cell(3, ("[≤ 7.5 %]",))),)
    )
    for width in range(8, 20):
        console = Console(file=io.StringIO(), width=width)
        print_sections([table], console)
        shown = console.file.getvalue()
        assert "from" not in shown
        assert "[≤ 7.5 %]" in shown


def test_a_cell_shows_more_than_its_value_to_people_and_its_value_to_machines():
    table = Table(
        "T", (Column("branch"), Column("risk", "risk")), ((Cell("rain", depth=1), Cell(RISK, ("worst",), "worst")),)
    )
    cells = page_finding("x", "X", [table])["parts"][0]["rows"][0]["cells"]
    assert cells[0] == {"lines": ("rain",), "mark": "", "depth": 1}
    assert cells[1] == {"lines": ("25.0 %", "[12.5, 50.0]", "worst"), "mark": "worst", "depth": 0}
    assert table_rows(table) == [{"branch": "rain", "risk": 0.25, "risk_low": 0.125, "risk_high": 0.5}]


def test_figures_to_choose_from_are_all_on_the_page():
    figures = tuple(Figure(name, {"data": [], "layout": {}}, "x") for name in ("One", "Other"))
    assert list(page_figures("leak", [Alternatives("By", figures)])) == ["leak one", "leak other"]
    (part,) = page_finding("leak", "L", [Alternatives("By", figures)])["parts"]
    assert [one["name"] for one in part["figures"]] == ["leak one", "leak other"]


def test_names_for_machines():
    assert slug("robust accuracy at 8/255") == "robust_accuracy_at_8_255"
    assert headline_of(SECTIONS) == "plain is the least bad."
    assert headline_of([TABLE]) == ""


def test_rows_of_a_query_are_a_table_or_blocks_without_folded_words():
    row = {"model": "noisy", "digest": "cb242282197ca0c368f6b79a71aa8fef", "capability": "gradients", "cost": None}
    row |= {"input_shape": [1, 28, 28], "train_s": 30.0771, "tags": '{"sigma": 0.5}', "a_low": 1, "a": EVIL}

    def shown(width: int) -> list[str]:
        console = Console(file=io.StringIO(), width=width)
        print_rows([row, row], console)
        return console.file.getvalue().splitlines()

    narrow = shown(79)
    assert narrow[: len(narrow) // 2] == narrow[len(narrow) // 2 :]
    assert narrow[0] == "  noisy"
    assert max(map(len, narrow)) <= 79
    assert any("───" in line for line in shown(80)), "a table from 80 columns"
    text = " ".join(" ".join(narrow).split())
    assert "digest: cb242282197ca0c368f6b79a71aa8fef; capability: gradients; input_shape: [1, 28, 28]; train_s" in text
    assert f"a: {EVIL}" in text
    assert [line.split()[:2] for line in shown(200) if "noisy" in line] == [["noisy", row["digest"]]] * 2


def printed(*sections, width, details=False):
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections, console, details=details)
    return console.file.getvalue()


def test_text_is_wrapped_by_words_before_a_table_becomes_blocks():
    verdict = "undecided against plain, which has about 48 % more"
    table = Table("T", (Column("model"), Column("verdict"), Column("risk", "share")), (("net", verdict, RISK),))
    lines = printed(table, width=50).splitlines()
    assert max(map(len, lines)) <= 50
    assert any(line.split()[:1] == ["model"] for line in lines), "a table"
    assert any("48 %" in line for line in lines), "a number and its unit stay together"
    assert all(word in " ".join(lines) for word in verdict.split())
    assert "verdict: undecided" in printed(table, width=30)


def test_words_go_below_their_rows_before_a_table_becomes_blocks():
    rows = (("noisy", "undecided against the plain one", RISK, RISK), ("plain", "", RISK, None))
    table = Table("T", (Column("model"), Column("verdict"), Column("risk", "share"), Column("loss", "share")), rows)
    assert "verdict" in printed(table, width=60).splitlines()[2], "a column of its own"
    assert printed(table, width=42).splitlines()[2:] == [
        " model   risk           loss",
        " " + "─" * 35,
        " noisy   25.0 %         25.0 %",
        "         [12.5, 50.0]   [12.5, 50.0]",
        "   verdict: undecided against the plain",
        "     one",
        " plain   25.0 %         –",
        "         [12.5, 50.0]",
        "",
    ]
    assert "  noisy" in printed(table, width=36).splitlines(), "a block"


def test_branches_are_indented_in_blocks_too():
    rows = ((Cell("town"), RISK), (Cell("rain", ("worst",), depth=2), RISK))
    shown = printed(Table("T", (Column("branch"), Column("a long name", "share")), rows), width=20)
    assert "\n      rain, worst\n" in shown


def test_a_terminal_leaves_out_groups_of_figures():
    how = Text(("A bar is a risk.",), how=True)
    figures = Group("Bars", (how, Figure("Risks", {"data": [], "layout": {}}, "x")))
    assert printed(figures, width=80, details=True) == ""
    untitled = Group("", (Text(("One thing.",)),))
    assert printed(untitled, width=80) == "· One thing.\n"
    assert markdown_lines("x", [untitled])[2:] == ["One thing.", ""], "where there is neither headline nor table"


def test_a_figure_is_chosen_by_its_label_and_keeps_its_name():
    figures = tuple(Figure(name, {"data": [], "layout": {}}, "x", label=f"{name}!") for name in ("One", "Other"))
    (part,) = page_finding("leak", "L", [Alternatives("By", figures)])["parts"]
    assert part["figures"][0] == {"name": "leak one", "title": "One!"}


def test_a_picture_may_stand_beside_what_it_was_made_from():
    pair, alone = Picture(b"after", "rain", before=b"before"), Picture(b"after", "rain")
    (part,) = page_finding("leak", "L", [Pictures("", (pair, alone))])["parts"]
    assert [bool(one["before"]) for one in part["pictures"]] == [True, False]
    assert part["pictures"][0]["before"] != part["pictures"][0]["source"]


def test_groups_within_groups_have_anchors_of_their_own():
    held = [Group(name, (Group("Pairs", (TABLE,), folded=True),)) for name in ("One", "Other")]
    parts = page_finding("leak", "L", held)["parts"]
    assert [one["parts"][0]["anchor"] for one in parts] == ["leak-one-pairs", "leak-other-pairs"]
