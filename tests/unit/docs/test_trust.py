"""The page of threats names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
LINE = re.compile(r"`([\w/]+\.py)::(\w+)`")


def test_every_named_test_exists() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    named = LINE.findall(page)
    assert len(named) > 15
    for path, name in named:
        assert f"def {name}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), f"{path}::{name}"


def test_every_line_names_a_test() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if re.match(r"\| .*\| (prevented|detected|\*\*not detected)", line)]
    assert len(lines) > 15
    assert [line for line in lines if not LINE.search(line)] == []
