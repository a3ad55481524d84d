"""Numbers are written into their places of a page, and nothing else changes."""

from pathlib import Path

import pytest

import studies
from advrisk.core.errors import RunError
from studies.detection import PLACES
from studies.page import fenced, fill, filled, places
from studies.two_gaussians import PLACE

PAGE = "# Title\n\n<!-- one -->\nold\nolder\n<!-- /one -->\n\nBetween.\n\n<!-- two -->\n<!-- /two -->\nEnd.\n"


def test_places_are_filled_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    fill(page, {"one": fenced(["new"]), "two": ["a", "b"]})
    assert page.read_text() == (
        "# Title\n\n<!-- one -->\n```text\nnew\n```\n<!-- /one -->\n\nBetween.\n\n"
        "<!-- two -->\na\nb\n<!-- /two -->\nEnd.\n"
    )
    fill(page, {"one": ["old", "older"], "two": []})
    assert page.read_text() == PAGE
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


def test_places_are_found() -> None:
    assert places(PAGE) == ("one", "two")


@pytest.mark.parametrize(
    "text", [PAGE, PAGE + "<!-- tow -->\n", "<!-- /tow -->\n<!-- tow -->\n", PAGE + PAGE.replace("one", "tow") * 2, ""]
)
def test_a_place_that_is_not_there_once_is_refused_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(RunError, match="needs one place between <!-- tow --> and <!-- /tow -->"):
        fill(page, {"tow": ["new"]})
    assert page.read_text() == text


def test_a_page_that_cannot_be_read_or_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be read"):
        fill(tmp_path / "nowhere.md", {})
    assert filled(PAGE, "two", ["x"]).count("x") == 1


def test_the_case_study_has_the_places_that_programs_fill() -> None:
    page = Path(studies.__file__).parent.parent / "docs" / "case-study-detection.md"
    assert sorted(places(page.read_text())) == sorted((PLACE, *PLACES))
    for name in places(page.read_text()):
        filled(page.read_text(), name, [])
