"""Tables in terminals of 80 columns and more: never blocks, never a broken word."""

import io

import pytest

from advrisk.core.sections import Column, Headline, Table, Text
from advrisk.render.terminal import Terminal, print_sections, printed


def shown(table: Table, width: int) -> list[str]:
    console = Terminal(file=io.StringIO())
    console.width = width
    print_sections([table], console)
    file = console.file
    assert isinstance(file, io.StringIO)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return lines


def table(heads: list[str], columns: list[str], cell: str, *, words: str = "") -> Table:
    kinds = [Column("arm"), *(Column(name, "precise") for name in columns), *([Column("verdict")] if words else [])]
    rows = [(head, *(cell for _ in columns), *([words] if words else [])) for head in heads]
    return Table("Every arm", tuple(kinds), tuple(rows))


LONG = "pgd-linf-0.00392156862745098-fisher-rao,steps=1000,keep=last"
NAMES = ["minimal adversarial distance", "probability of being best", "attackable samples", "passes per sample"]


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("heads", [["plain", "trades"], [LONG, "plain"]])
@pytest.mark.parametrize("n", [3, 8, 16])
def test_from_80_columns_a_table_is_a_table(width: int, heads: list[str], n: int) -> None:
    columns = [f"{NAMES[place % 4]} {place}" for place in range(n)]
    lines = shown(table(heads, columns, "0.123456", words="more damage than all the others"), width)
    text = "\n".join(lines)
    assert "──────" in text
    assert "; " not in text, "no block of `name: value; name: value`"
    for word in {word for name in columns for word in name.split()}:
        assert word in text.split(), "headings are broken by words"
    assert LONG not in heads or sum(LONG in line for line in lines) >= 1, "a name can be copied"
    assert text.count("verdict: more damage than all the others") + text.count("more damage") >= len(heads)


def test_columns_that_do_not_fit_follow_in_a_second_table_with_the_names_of_the_rows() -> None:
    lines = shown(table(["plain", "trades"], [f"quantity-number-{n}" for n in range(6)], "0.5"), 80)
    heads = [line for line in lines if line.startswith(" arm")]
    assert len(heads) == 2
    assert sum(line.startswith(" plain") for line in lines) == 2
    assert [word for line in heads for word in line.split()[1:]] == [f"quantity-number-{n}" for n in range(6)]


def test_a_narrow_terminal_has_blocks() -> None:
    assert any("; " in line for line in shown(table(["plain"], [f"quantity-number-{n}" for n in range(6)], "0.5"), 50))


def test_a_heading_has_no_empty_line() -> None:
    columns = (Column("model"), Column("of it clean error", "precise"), *(Column(f"q{n}", "precise") for n in range(9)))
    lines = shown(Table("Damage", columns, (("plain", *([0.25] * 10)),)), 80)
    head = lines[2 : next(i for i, line in enumerate(lines) if "──" in line)]
    assert all(line.strip() for line in head)


def test_printed_sections_have_no_colours_even_where_they_are_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert printed([Headline("a is least bad"), Text(("Because.",))]) == "a is least bad\n· Because."


def test_without_notes_only_headlines_and_tables_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Terminal, "notes", False)
    noted = Table("Models", (Column("model"),), (("plain",),), ("A note.",))
    text = printed([Headline("a is least bad"), Text(("Because.",)), noted])
    assert "a is least bad" in text
    assert "plain" in text
    assert "Because" not in text
    assert "note" not in text
