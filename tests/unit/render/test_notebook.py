"""HTML for notebooks: well-formed, and nothing in it but our own tags."""

from typing import ClassVar
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from advrisk.core.estimate import Estimate
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.render.notebook import MOST, html_block, html_table

HOSTILE = ['<script>alert("1")</script>', "</td></table>", "a & b", "' onmouseover='x", "\u202egnp", "x" * 10_000]
TEXT = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc", "Cn"]))  # what XML can hold


def tags(html: str) -> set[str]:
    return {element.tag for element in ElementTree.fromstring(html).iter()}


@given(st.lists(st.lists(TEXT, min_size=2, max_size=2), min_size=1, max_size=3), TEXT)
def test_names_are_text(rows: list[list[str]], name: str) -> None:
    html = html_block(name, html_table([name, "other"], rows, caption=name or "c"), notes=[name])
    found = ElementTree.fromstring(html)
    assert tags(html) <= {"div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert [[cell.text or "" for cell in row] for row in found.iter("tr")][1:] == rows
    assert found.findtext("p/strong") == name


def test_hostile_names_stay_names() -> None:
    html = html_block(HOSTILE[0], html_table(HOSTILE, [HOSTILE], caption=HOSTILE[1]), notes=HOSTILE)
    assert "<script" not in html
    assert [cell.text for cell in ElementTree.fromstring(html).iter("td")] == HOSTILE


class Rows(Tabular):
    columns: ClassVar[Columns] = {"a": "text", "b": "flag", "c": "number", "d": "count"}

    def rows(self) -> list[Row]:
        return [{"a": None, "b": True, "c": 0.123456, "d": 3}] * (MOST + 2)


def test_cells_and_many_rows() -> None:
    html = Rows()._repr_html_()
    cells = [cell.text for cell in ElementTree.fromstring(html).iter("td")]
    assert cells[:4] == ["–", "yes", "0.1235", "3"]
    assert cells[-1] == "… and 2 more"
    assert html_table(["a"], []) == ""


def test_an_estimate_shows_its_interval() -> None:
    html = Estimate(0.5, 0.25, 0.75, 0.95, 7, "a < b")._repr_html_()
    assert [cell.text for cell in ElementTree.fromstring(html).iter("td")] == [
        "0.500 [0.250, 0.750] at 95 %",
        "7",
        "a < b",
    ]
