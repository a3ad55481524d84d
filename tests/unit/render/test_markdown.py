"""Names in Markdown: they are text, keep to their cell, and link or mention nothing; also as renderers see them."""

import html
import re

import pytest

from advrisk.render.markdown import code, escaped
from advrisk.report.evidence.page import index_markdown

NASTY = [
    "a|b",
    "`code`",
    "<script>alert(1)</script>",
    "</details>",
    "[text](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "@everybody",
    "@me",
    "see #12, GH-12",
    "somebody@evil.example",
    "https://evil.example",
    "HTTP://evil.example and ftp://evil.example",
    "www.evil.example",
    "mailto:a@evil.example",
    "two\nlines\r\nmore\x00\x1b[31m\u2028end",
    "**bold** _it_ ~~gone~~",
    "\\| trick",
    "$x^2$ and $$y$$",
    "&lt;b&gt; &#64;me &copy;",
    "{: .class onclick=x}",
    "    four spaces",
    "ends in #",
    "n" * 10_000,
]
BEGINNINGS = ["# title", "- item", "+ item", "> quote", "1. first", "2) second", "=== rule", "---", "* item", ": term"]


def flat(name: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in name).split())


def undone(shown: str) -> str:
    return html.unescape(re.sub(r"\\(.)", r"\1", shown)).replace("\u200b", "")


@pytest.mark.parametrize("name", [*NASTY, *BEGINNINGS])
def test_names_stay_text(name: str) -> None:
    shown = escaped(name)
    assert "\n" not in shown
    assert not re.search("[<>]", shown)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_\[\]{}~$#]", shown), "a sign that means something is not escaped"
    assert not re.search(r"(?i)https?:|ftp:|mailto:|www\.|@\w|#\w|GH-\d", shown), "it links or mentions"
    assert not re.search(r"&(?!(?:amp|lt|gt);)", shown)
    assert undone(shown) == flat(name), "something got lost"


@pytest.mark.parametrize("name", [*NASTY, *BEGINNINGS])
def test_renderers_show_the_name_and_nothing_else(name: str) -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("gfm-like", {"linkify": False, "html": True})
    for text in (escaped(name), f"- {escaped(name)}", f"### {escaped(name)}"):
        page = parser.render(f"{text}\n")
        tags = set(re.findall(r"</?(\w+)", page))
        assert tags <= {"p", "ul", "li", "h3"}
        shown = html.unescape(re.sub(r"<[^>]*>", "", page)).replace("\u200b", "").strip()
        assert " ".join(shown.split()) == flat(name)


@pytest.mark.parametrize("name", [*NASTY, *BEGINNINGS])
def test_a_table_keeps_its_columns(name: str) -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    page = parser.render(f"| a | b |\n|---|---|\n| {escaped(name)} | {code(name, cell=True)} |\n")
    cells = re.findall(r"<td>(.*?)</td>", page)
    assert len(cells) == 2
    assert html.unescape(cells[0]).replace("\u200b", "") == flat(name)
    assert html.unescape(re.sub("</?code>", "", cells[1])) == flat(name)


def test_python_markdown_makes_no_tag_of_a_name_either() -> None:
    markdown = pytest.importorskip("markdown")
    for name in [*NASTY, *BEGINNINGS]:
        page = markdown.markdown(f"x {escaped(name)}", extensions=["attr_list", "tables"])
        assert set(re.findall(r"</?(\w+)", page)) == {"p"}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_the_beginning_of_a_line_means_nothing(name: str) -> None:
    assert escaped(name)[0] in "\u200b\\"
    assert escaped(f"a {name}").startswith("a ")


def test_words_that_mean_nothing_stay_as_they_are() -> None:
    plain = "gaussian-noise,sigma=0.3 (58 %); 0.151 + more!"
    assert escaped(plain) == plain


def test_the_evidence_index_uses_the_same_rules() -> None:
    index = {
        "run": "@me www.evil.example",
        "summary": {"text": "$x$"},
        "cautions": [],
        "notice": "n",
        "degrees": {},
        "owners": {},
    }
    index |= {"texts": [], "numbers": [], "files": [], "ledger": "l", "program": "p", "made": "m"}
    text = index_markdown(index)
    assert "# Evidence: @\u200bme www\u200b.evil.example" in text
    assert "**\\$x\\$**" in text
