"""The report in a real browser: it draws, stays offline, and shows strings from outside as text."""

from pathlib import Path
from typing import Any

import pytest

from advrisk import Run, Study
from advrisk.ledger.exchange.importing import import_outcomes

from .conftest import study_of
from .visits import CHROMIUM, Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the browser tests did not run"),
]


@pytest.fixture(scope="module")
def run(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Study.from_dict(study_of(nets)).run(tmp_path_factory.mktemp("reported") / "run")


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    return run.report()


@pytest.fixture(scope="module")
def watched(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with a detector."""
    arms = [{"attack": "pgd", "norm": "linf", "eps": [0.1, 0.2], "objective": ["ace", "gini"], "steps": 10}]
    study = study_of(nets) | {"arms": arms, "detectors": ["confidence"]}
    return Study.from_dict(study).run(tmp_path_factory.mktemp("watched") / "run")


def test_the_report_draws_and_stays_offline(browser: Any, report: Path) -> None:
    width = 1200  # phones and the dark are for test_report_page.py
    visit = Visit(browser, report, width=width)
    figures = visit.page.locator(".figure:visible")
    assert figures.count() == 12  # none of survival, which the study does not ask for
    for place in range(figures.count()):
        assert figures.nth(place).locator(".trace path, .cell, .slice").count() > 0, "an empty plot"
    for link in visit.page.locator("nav a").all():
        link.click()
        assert visit.page.locator(link.get_attribute("href")).is_visible()
    assert visit.page.locator("#damage .sheet img").count() >= 2
    # of 8 pixels, alone or beside the amplified change
    assert visit.page.evaluate("[...document.images].every(image => [8, 8 + 1 + 8].includes(image.naturalWidth))")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    assert visit.complaints == []
    assert visit.left_the_machine() == []


def test_the_table_shows_what_the_api_says(browser: Any, report: Path, run: Run) -> None:
    text = Visit(browser, report).page.inner_text("#damage")
    for row in run.damage().models:
        assert row.model in text
        assert f"{row.relative_damage.value:.3f}" in text
        assert f"[{row.relative_damage.low:.3f}, {row.relative_damage.high:.3f}]" in text


def test_the_section_on_attacks_shows_what_the_api_says(browser: Any, report: Path, run: Run) -> None:
    page = Visit(browser, report).page
    found = run.attacks()
    rows = page.locator("#attacks table").first.locator("tbody tr")
    assert rows.count() == len(found.overall) == 4
    for place, row in enumerate(found.overall):
        spare = ["could", "be", "dropped"] if row.name in found.spare else []
        numbers = [f"{row.optimality:.3f}", str(row.nearest), str(row.only)]
        words = [row.name, *spare, *", ".join(row.flags).split(), *numbers]
        assert rows.nth(place).inner_text().split()[: len(words)] == words
    assert rows.locator("xpath=self::*[@class='spare']").count() == len(found.spare)


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_section_on_detectors_draws_and_shows_what_the_api_says(
    browser: Any, watched: Run, tmp_path: Path, width: int, scheme: str
) -> None:
    visit = Visit(browser, watched.report(tmp_path / "report.html"), width=width, scheme=scheme)
    section = visit.page.locator("#detection")
    figures = section.locator(".figure")
    assert figures.count() == len(watched.detection().models) == 2
    for place in range(figures.count()):
        assert figures.nth(place).locator(".trace").count() == 3, "all arms, one objective, and the diagonal"
    for place, one in enumerate(watched.detection().tables):
        overview = section.locator("table").first.locator("tbody tr")
        assert f"{one.overall.auroc.value:.3f}" in overview.nth(place).inner_text()
        section.locator("details summary").nth(1 + place).click()  # the first is that of the question
        shown = section.locator("details details").nth(place).inner_text()
        for row in one.table.rows:
            assert row.label in shown
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    assert visit.complaints == []
    assert visit.left_the_machine() == []


NAMES = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "</script><b>",
    "مرحبا",
    "{{ 7 * 7 }}",
    "n" * 10_000,
]


def test_strings_from_outside_are_text(browser: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"model": model, "sample": str(n), "d_linf": n / 10} for model in (*NAMES, "other") for n in range(1, 9)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "theirs.parquet")
    import_outcomes(tmp_path / "theirs.parquet", tmp_path / "run", norm="linf")
    visit = Visit(browser, Run.open(tmp_path / "run").report())
    assert {*NAMES, "other"} <= {cell.text_content() for cell in visit.page.locator("#damage tbody th").all()}
    assert visit.complaints == []
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1200
