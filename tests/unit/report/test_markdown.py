"""Markdown for pull requests: names are text, tables keep their columns, nothing links or mentions."""

import re

import pytest

from advrisk.report.markdown import escaped

NASTY = [
    "a|b",
    "`code`",
    "<script>alert(1)</script>",
    "</details>",
    "[text](https://evil.example)",
    "![x](https://evil.example/x.png)",
    "@everybody",
    "see #12",
    "https://evil.example",
    "www.evil.example",
    "two\nlines\r\nmore",
    "**bold** _it_ ~~gone~~",
    "\\| trick",
    "$x^2$",
    "&lt;b&gt;",
    "n" * 10_000,
]


@pytest.mark.parametrize("name", NASTY)
def test_names_stay_text(name: str) -> None:
    shown = escaped(name)
    assert "\n" not in shown
    assert "\r" not in shown
    assert "<" not in shown
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_\[\]~$]", shown), "a sign that means something is not escaped"
    assert not re.search(r"https?://|www\.|@\w|#\w", shown), "it links or mentions"
    undone = re.sub(r"\\(.)", r"\1", shown).replace("\u200b", "").replace("&lt;", "<").replace("&amp;", "&")
    assert undone == re.sub(r"[\r\n]", " ", name), "something got lost"


@pytest.mark.parametrize("name", ["# title", "- item", "+ item", "> quote", "1. first", "2) second", "=== rule"])
def test_the_beginning_of_a_line_means_nothing(name: str) -> None:
    assert escaped(name)[0] == "\u200b"
    assert escaped(f"a {name}").startswith("a ")


def test_words_that_mean_nothing_stay_as_they_are() -> None:
    plain = "gaussian-noise,sigma=0.3 (58 %); 0.151 + more!"
    assert escaped(plain) == plain
