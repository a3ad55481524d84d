"""The whole report as a person meets it: every section, by keyboard, on a phone, on paper, with names from outside."""

import csv
import io
import json
import re
import shutil
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advrisk import Run, Study
from advrisk.core.digest import digest
from advrisk.core.errors import RunError, StudyError
from advrisk.core.palette import COLOURS
from advrisk.core.plain import json_text
from tests.stamps import restamp

from .conftest import Command, study_of
from .visits import CHROMIUM, Visit

in_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the browser tests did not run"),
]
SECTIONS = [
    *("summary", "reasons", "damage", "convergence", "detection", "indicators", "failures", "survival", "certificate"),
    *("attacks", "arms", "health", "provenance", "glossary"),
]
WORDS = 1500  # of a page on which nothing is unfolded
BYTES = 2_000_000
LONG = "n" * 10_000
MODELS = {
    "plain": f"=cmd|'/C calc'!A0 </script><script>alert(1)</script> {{{{7*7}}}} \u05d0\u05d1\u202e {LONG}",
    "noisy": "@\"'><img src=x onerror=alert(2)> <a href='https://evil.example'>x</a> %{x} \U0001f469\u200d\U0001f4bb",
}
ARM = "<b onmouseover=alert(3)>|`x`</b>"
STRATUM = {"<i>light</i>": '"night" & <script>alert(4)</script>'}


# Browsers let nobody save dozens of files in a row, so what would be saved is caught.
EVERY_BUTTON = """async () => {
  const caught = [];
  URL.createObjectURL = blob => { caught.push(blob.text()); return "blob:caught"; };
  HTMLAnchorElement.prototype.click = () => {};
  for (const button of document.querySelectorAll(".tools button")) button.click();
  return Promise.all(caught);
}"""


def everything(nets: Path) -> dict[str, Any]:
    """A small study that has an answer for every section."""
    base = study_of(nets)
    night = {"wet": {"weight": 0.3, "arms": ["gaussian*"]}, "evil": {"weight": 0.1, "arms": ["pgd*"]}}
    return base | {
        "data": {"source": "digits", "evaluate": 24, "calibrate": 40},
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": 0.1},
            {"attack": "pgd", "norm": "linf", "eps": [0.05, 0.1], "steps": 5},
            {"corruption": "gaussian-noise", "sigma": 0.3},
        ],
        "detectors": ["confidence"],
        "scenarios": {"night": night},
        "assess": base["assess"] | {"certificate": {"alpha": 0.2, "zeta": 0.05}, "survival": None},
    }


@pytest.fixture(scope="module")
def run(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Study.from_dict(everything(nets)).run(tmp_path_factory.mktemp("everything") / "run", workers=1)


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    return run.report()


@pytest.fixture(scope="module")
def hostile(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same run, with other names in its files, as if somebody had sent it."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    shutil.copytree(run.folder, folder)
    for path in folder.glob("ledger/segments/*/*.parquet"):
        pq.write_table(renamed(pq.read_table(path)), path)
        restamp(path.parent)
    return Run.open(folder)


def renamed(table: pa.Table) -> pa.Table:
    """The table with names that were made to do harm."""
    if "previous" in table.column_names:
        return renamed_question(table)
    changes = {"model": MODELS.get, "arm": lambda arm: arm and arm != "clean" and arm + ARM}
    values = iter([STRATUM, dict.fromkeys(STRATUM, "day")] * len(table))
    changes["strata"] = lambda _: json.dumps(next(values))
    for name, change in changes.items():
        if name in table.column_names:
            place, field = table.column_names.index(name), table.schema.field(name)
            changed = [change(value) or value for value in table[name].to_pylist()]
            table = table.set_column(place, field, pa.array(changed, pa.string()).cast(field.type))
    return table


def renamed_question(table: pa.Table) -> pa.Table:
    """The only frozen question, with the same names."""
    (row,) = table.to_pylist()
    held = json.loads(row["content"])
    for one in held["question"]["lists"]:
        one |= {"model": MODELS[one["model"]], "arms": [arm + ARM for arm in one["arms"]]}
    row["content"] = json.dumps(held)
    row["question"] = digest([row["previous"], row["content"]])
    return pa.Table.from_pylist([row], schema=table.schema)


def saved(visit: Visit, button: Any) -> list[list[str]]:
    """The lines of what a button hands out."""
    with visit.page.expect_download() as waiting:
        button.click()
    assert re.fullmatch(r"[\w.-]{1,80}\.csv", waiting.value.suggested_filename)
    return list(csv.reader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))


class TestInBrowser:
    """The page itself."""

    pytestmark = in_browser

    @pytest.mark.parametrize(("width", "scheme"), [pytest.param(1280, "light", marks=pytest.mark.slow), (390, "dark")])
    def test_every_section_and_every_folded_part(self, browser: Any, report: Path, width: int, scheme: str) -> None:
        visit = Visit(browser, report, width=width, scheme=scheme)
        links = visit.page.locator("nav a").all()
        assert [link.get_attribute("href") for link in links] == [f"#{name}" for name in SECTIONS]
        for link in links:
            link.click()
            section = visit.page.locator(link.get_attribute("href"))
            assert section.locator("h2").is_visible()
        visit.unfold()
        for summary in reversed(visit.page.locator("summary").all()):  # those within others first
            before = summary.evaluate("one => one.parentElement.open")
            summary.click()
            assert summary.evaluate("one => one.parentElement.open") is not before
        visit.unfold()
        figures = visit.page.locator(".figure")
        for place in range(figures.count()):
            assert figures.nth(place).locator(".trace path, .cell, .slice").count() > 0, "an empty plot"
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        assert visit.complaints == []
        assert visit.left_the_machine() == []

    def test_it_is_built_for_screen_readers(self, browser: Any, report: Path) -> None:
        page = Visit(browser, report).page
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(one => Number(one.tagName[1]))")
        assert levels.count(1) == 1
        assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
        faults = """[
          ...[...document.querySelectorAll('table')].filter(one => !one.caption?.textContent.trim()),
          ...[...document.querySelectorAll('thead th')].filter(one => one.scope !== 'col'),
          ...[...document.querySelectorAll('tbody th')].filter(one => one.scope !== 'row'),
          ...[...document.querySelectorAll('.figure')].filter(one => one.role !== 'img' || !one.ariaLabel),
          ...[...document.images].filter(one => !one.alt),
          ...[...document.querySelectorAll('select, button')].filter(one => !(one.labels?.length || one.ariaLabel)),
        ].map(one => one.outerHTML.slice(0, 120))"""
        assert page.evaluate(faults) == []
        assert (
            page.evaluate("['header', 'nav', 'main', 'footer'].map(one => document.querySelectorAll(one).length)")
            == [1] * 4
        )
        ids = page.evaluate(
            "[...document.querySelectorAll('[id]')].filter(one => !one.closest('svg')).map(one => one.id)"
        )
        assert len(ids) == len(set(ids))

    def test_the_first_screen_is_the_answer_and_the_rest_is_folded(self, browser: Any, report: Path, run: Run) -> None:
        page = Visit(browser, report, width=1280, folded=True).page
        tiles = page.locator("#summary .tile")
        damage = {row.model: row for row in run.damage().models}
        assert {tile.locator("h3").inner_text() for tile in tiles.all()} == set(damage)
        for tile in tiles.all():
            row, text = damage[tile.locator("h3").inner_text()], tile.inner_text().replace("\u00a0", " ")
            for share in (*row.robust_accuracy.values(), row.clean_accuracy):
                assert f"{100 * share.value:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]" in text
            assert "risk, night" in text
        assert page.locator("#summary .figure .trace").count() == 3 * len(damage)
        assert page.locator("#summary .row img").count() == 1 + len(damage)
        assert page.locator("#summary .points dd").count() == 3
        assert page.locator("details[open]").count() == 0
        words = len(page.locator("body").inner_text().split())
        assert 100 < words <= WORDS
        assert report.stat().st_size <= BYTES

    @pytest.mark.parametrize("width", [1280, 390])
    def test_contents_stay_in_view_say_what_is_read_and_unfold_it(self, browser: Any, report: Path, width: int) -> None:
        visit = Visit(browser, report, width=width, folded=True)
        page = visit.page
        page.locator("nav a[href='#survival']").click()
        assert page.locator("#survival details.question").get_attribute("open") is not None
        assert page.locator("#damage details.question").get_attribute("open") is None
        visit.until("document.querySelector('nav [aria-current]').hash === '#survival'")
        for _ in range(3):
            box = page.locator("nav").bounding_box()
            assert (box["x"], box["y"]) == (0, 0)
            page.mouse.wheel(0, 700)
            page.wait_for_timeout(50)
        heading = page.locator("#survival h2")
        page.locator("nav a[href='#survival']").click()
        page.wait_for_timeout(50)
        if width == 390:
            assert heading.bounding_box()["y"] >= page.locator("nav").bounding_box()["height"], "the bar covers it"
        page.locator("#unfold").click()
        assert page.locator("details.question:not([open])").count() == 0
        page.locator("#unfold").click()
        assert page.locator("details.question[open]").count() == 0

    def test_terms_explain_themselves_on_hover_and_by_keyboard(self, browser: Any, report: Path) -> None:
        page = Visit(browser, report, folded=True).page
        term = page.locator("#summary .term", has_text="robust accuracy").first
        for reach, leave in ((term.hover, lambda: page.mouse.move(0, 0)), (term.focus, term.blur)):
            reach()
            assert "no attack of this run broke" in page.locator("#meaning").inner_text()
            leave()
            assert not page.locator("#meaning").is_visible()
        term.click()
        meaning = page.locator("#term-robust_accuracy + dd")
        assert meaning.is_visible()
        assert page.locator("#glossary img").count() == 2, "what the first stated size looks like"
        assert page.locator("#term-survival").count() == 1
        hrefs = page.locator(".term").evaluate_all("all => all.map(one => decodeURIComponent(one.hash.slice(1)))")
        assert set(hrefs) <= set(page.locator(".glossary dt").evaluate_all("all => all.map(one => one.id)"))

    def test_points_of_a_figure_are_read_by_pointer_and_arrow_keys(self, browser: Any, report: Path, run: Run) -> None:
        page = Visit(browser, report).page
        place = page.locator("[data-figure='damage intervals']")
        tip = place.locator(".tip")
        place.scroll_into_view_if_needed()
        place.locator(".mark").first.hover()
        models = {row.model: row for row in run.damage().models}
        assert any(tip.inner_text().startswith(name) for name in models)
        page.mouse.move(0, 0)
        assert not tip.is_visible()
        place.focus()
        said = set()
        for _ in models:
            page.keyboard.press("ArrowDown")
            said.add(tip.inner_text().splitlines()[0])
        assert said == set(models)
        page.keyboard.press("Escape")
        assert not tip.is_visible()

    def test_a_legend_hides_and_shows_a_model_and_covers_nothing(self, browser: Any, report: Path) -> None:
        page = Visit(browser, report, folded=True).page
        figure = page.locator("#summary .figure")
        legend, chart = figure.locator(".legend").bounding_box(), figure.locator(".chart").bounding_box()
        assert legend["y"] + legend["height"] <= chart["y"] + 1
        button = figure.locator(".legend button").first
        button.click()
        assert figure.locator(".trace").count() == 3
        assert button.get_attribute("aria-pressed") == "false"
        assert page.evaluate("document.activeElement.closest('.legend') !== null"), "the focus is lost"
        button.click()
        assert figure.locator(".trace").count() == 6

    def test_it_can_be_used_by_keyboard_alone(self, browser: Any, report: Path) -> None:
        visit = Visit(browser, report, width=390)
        page = visit.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0, "it is not shown"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        reached, opened = set(), 0
        for _ in range(400):
            page.keyboard.press("Tab")
            kind = page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className")
            if kind == "BODY.":
                break
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"nobody sees that {kind} has the focus"
            reached.add(kind)
            if kind == "SUMMARY." and opened < 3:
                before = page.evaluate("document.activeElement.parentElement.open")
                page.keyboard.press("Enter")
                assert page.evaluate("document.activeElement.parentElement.open") is not before
                opened += 1
        assert {"SUMMARY.", "BUTTON.", "SELECT.", "DIV.scroll"} <= reached
        assert opened == 3
        page.locator(".hint + .scroll:visible").first.focus()
        page.keyboard.press("ArrowRight")
        visit.until("document.activeElement.scrollLeft > 0")
        assert "scroll it sideways" in page.locator(".hint:visible").first.inner_text()

    def test_a_phone_shows_what_is_asked_of_every_model(self, browser: Any, report: Path, run: Run) -> None:
        page = Visit(browser, report, width=390).page
        inside = "all => all.every(one => one.getBoundingClientRect().right <= innerWidth)"
        table = page.locator("#damage table").first
        shown = table.inner_text()
        for row in run.damage().models:
            assert all(f"{100 * ratio.value:.1f} %" in shown for ratio in row.success_ratio.values())
        assert table.locator("td, tbody th").evaluate_all(inside)
        labels = page.locator("#indicators .textpoint text, #arms .xtick text, #arms .ytick text")
        assert labels.count() > 6
        assert labels.evaluate_all(inside), "a label is cut"

    def test_nothing_runs_off_paper_and_no_list_is_printed(self, browser: Any, report: Path) -> None:
        page = Visit(browser, report, width=720).page
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        longest = "all => { for (const one of all) one.textContent = '[123,456.789, 987,654.321]'; }"
        page.locator("#survival td .interval").evaluate_all(longest)  # seconds are as long as the machine makes them
        widths = []
        while len(widths) < 100 and (not widths or widths[-1] > 720):  # figures are drawn anew meanwhile
            page.wait_for_timeout(50)
            widths.append(page.evaluate("document.documentElement.scrollWidth"))
        assert widths[-1] <= 720
        chosen = page.locator("#indicators .choose").first
        assert not chosen.locator("select").is_visible()
        assert chosen.locator(".chosen").inner_text() == chosen.locator("option").first.text_content()

    def test_figures_and_tables_hand_out_their_data(self, browser: Any, report: Path, run: Run) -> None:
        visit = Visit(browser, report)
        found = run.damage()
        head, *lines = saved(visit, visit.page.get_by_label("figure damage intervals"))
        assert head == ["series", "relative damage (less is better)", "up", "low", "high"]
        told = {line[0]: [float(line[place]) for place in (1, 3, 4)] for line in lines}
        for row in found.models:
            estimate = row.relative_damage
            assert told[row.model] == pytest.approx([estimate.value, estimate.low, estimate.high])
        head, *lines = saved(visit, visit.page.get_by_label("figure damage samples_broken_by_size"))
        steps = [(float(line[1]), float(line[2])) for line in lines if line[0] == "plain"]
        distances = found.distances.by_model["plain"]
        assert all(share == pytest.approx((distances <= size).mean()) for size, share in steps)
        head, *lines = saved(visit, visit.page.get_by_label("figure arms", exact=False).last)
        assert head == ["across", "up", "value"]
        shares = {(row["model"], row["arm"]): row["share"] for row in run.arms()}
        assert {(line[0], line[1]): float(line[2]) for line in lines} == pytest.approx(shares)
        head, *lines = saved(visit, visit.page.get_by_label("download Decision table, linf"))
        assert [line[0] for line in lines] == [row.model for row in found.models]
        assert head[:3] == ["model", "verdict", "robust accuracy at 0.1"]
        texts = visit.page.evaluate(EVERY_BUTTON)
        assert len(texts) == visit.page.locator(".figure, table").count()
        for text in texts:
            lines = list(csv.reader(io.StringIO(text)))
            assert len(lines) > 1
            assert {len(line) for line in lines} == {len(lines[0])}
        assert visit.complaints == []
        assert visit.left_the_machine() == []

    @pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.slow)])
    def test_names_from_outside_are_text_in_every_section(self, browser: Any, hostile: Run, width: int) -> None:
        visit = Visit(browser, hostile.report(), width=width)
        page = visit.page
        assert [link.get_attribute("href") for link in page.locator("nav a").all()] == [f"#{one}" for one in SECTIONS]
        visit.unfold()
        names = set(MODELS.values())
        assert names <= set(page.locator("#damage tbody th").all_text_contents())
        for section in ("damage", "convergence", "detection", "indicators", "survival", "certificate", "provenance"):
            text = page.locator(f"#{section}").text_content()
            assert all(name in text for name in names), section
        assert ARM in page.locator("#attacks tbody").first.text_content()
        assert all(value in page.locator("#indicators").text_content() for pair in STRATUM.items() for value in pair)
        assert "49" not in page.locator("h1").inner_text()
        assert page.evaluate("document.querySelectorAll('script').length") == 3
        assert (
            page.evaluate("document.querySelectorAll('main a[href^=http], .figure a[href], main b, main i').length")
            == 0
        )
        assert page.evaluate("[...document.images].every(one => one.src.startsWith('data:'))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        tall = "[...document.querySelectorAll('h1, h3, li, summary, tbody tr')].map(one => one.offsetHeight)"
        assert max(page.evaluate(tall)) < 1500, "a long name takes the page"
        assert visit.complaints == []
        assert visit.left_the_machine() == []

    @pytest.mark.slow
    def test_what_hovers_over_figures_is_text_too(self, browser: Any, hostile: Run) -> None:
        page = Visit(browser, hostile.report()).page
        for name in ("damage samples_broken_by_size", "damage intervals", "arms", "survival survival_curves"):
            place = page.locator(f"[data-figure='{name}']")
            place.scroll_into_view_if_needed()
            box = place.locator(".chart").bounding_box()
            for across in (0.2, 0.5, 0.8):
                for up in (0.15, 0.5, 0.85):
                    page.mouse.move(box["x"] + across * box["width"], box["y"] + up * box["height"])
                    page.wait_for_timeout(30)
                    assert page.locator(".tip a").count() == 0
                    assert "undefined" not in place.locator(".tip").text_content()
        legend = page.locator("[data-figure='damage samples_broken_by_size'] .legendtext").all_text_contents()
        assert any(text.startswith("=cmd|'/C calc'!A0 <") for text in legend)
        assert any("<img" in text for text in legend)

    @pytest.mark.slow
    def test_no_cell_of_a_download_is_a_formula(self, browser: Any, hostile: Run) -> None:
        visit = Visit(browser, hostile.report())
        cells = set()
        for label in (
            "figure damage intervals",
            "figure damage samples_broken_by_size",
            "download Decision table, linf",
            "Models, with digests",
        ):
            cells |= {cell for line in saved(visit, visit.page.get_by_label(label)) for cell in line}
        number = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
        assert [cell for cell in cells if cell[:1] in "=+-@" and cell and not number.fullmatch(cell)] == []
        assert {f"'{name}" for name in MODELS.values()} <= cells

    def test_paper_is_light_and_unfolded_and_the_screen_comes_back(self, browser: Any, report: Path) -> None:
        page = Visit(browser, report, scheme="dark").page
        closed = page.locator("details:not([open])").count()
        assert closed > 0
        page.emulate_media(media="print", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        widths = page.evaluate("[...document.querySelectorAll('.figure .chart')].map(one => one.clientWidth)")
        assert 0 < min(widths) <= max(widths) <= 680
        assert not page.locator(".tools button").first.is_visible()
        assert not page.locator("nav").is_visible()
        page.emulate_media(media="screen", color_scheme="dark")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details:not([open])").count() == closed
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 23, 30)"

    @pytest.mark.slow
    def test_the_pdf_has_figures_in_the_colours_of_the_models(self, run: Run, hostile: Run, tmp_path: Path) -> None:
        pages = {}
        for name, one in (("run", run), ("hostile", hostile)):
            path = one.report(tmp_path / f"{name}.pdf", form="pdf")
            content = path.read_bytes()
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
            pages[name] = len(re.findall(rb"/Type\s*/Page\b", content))
            strokes = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) RG", inflated(content))
            drawn = [tuple(round(255 * float(part)) for part in stroke) for stroke in strokes]
            for colour in COLOURS[:2]:
                wanted = tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))
                assert drawn.count(wanted) >= 5, f"{colour} is hardly drawn"
        assert 5 < pages["run"] <= pages["hostile"] < 60


def inflated(content: bytes) -> bytes:
    """All streams of a PDF that can be unpacked."""
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.S)
    found = []
    for stream in streams:
        try:
            found.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"\n".join(found)


def test_markdown_is_short_and_whole(run: Run, hostile: Run, tmp_path: Path) -> None:
    text = run.report(tmp_path / "report.md", form="markdown").read_text()
    assert text.startswith("## digits-study: ")
    for title in ("Damage", "Detectors", "Risk in your deployment", "How long it survives", "Certificates"):
        assert f"### {title}" in text
    for row in run.damage().models:
        assert f"| {row.model} |" in text
        assert str(row.relative_damage).replace("[", "\\[").replace("]", "\\]") in text
    assert len(text) < 12_000
    theirs = hostile.report(tmp_path / "theirs.md", form="markdown").read_text()
    assert len(theirs) < 25_000
    for table in (table for one in (text, theirs) for table in re.findall(r"(?:^\|.*\n)+", one, re.MULTILINE)):
        columns = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(columns) == 1, table
    assert "<script" not in theirs
    assert "https://" not in theirs


def test_the_command_writes_a_file_or_prints(run: Run, advrisk: Command, tmp_path: Path) -> None:
    written = advrisk("report", run.folder, "--markdown", "--out", "new/short.md")
    assert written.stdout == "new/short.md written\n"
    printed = advrisk("report", run.folder, "--markdown", "--out", "-")
    assert printed.returncode == 0
    assert printed.stdout == (tmp_path / "new" / "short.md").read_text()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--pdf", "--markdown"], "one form at a time, found --pdf and --markdown"),
        (["--out", "-"], "no text to be printed"),
        (["--pdf", "--out", "-"], "no text to be printed"),
        (["--summary", "--out", "-"], "no text to be printed"),
    ],
)
def test_mistakes_are_told(run: Run, advrisk: Command, words: list[str], complaint: str) -> None:
    done = advrisk("report", run.folder, *words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_browser_a_pdf_is_refused_at_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADVRISK_CHROMIUM", str(tmp_path / "none"))
    monkeypatch.setattr("advrisk.api.run.Run.findings", lambda _: pytest.fail("it was assessed first"))
    with pytest.raises(RunError, match="give the path of a Chromium"):
        run.report(tmp_path / "report.pdf", form="pdf")


def test_a_form_that_nobody_knows_is_refused(run: Run) -> None:
    with pytest.raises(StudyError, match="did you mean 'markdown'"):
        run.report(form="markdwn")  # type: ignore[arg-type]


def test_where_the_numbers_come_from(run: Run, report: Path) -> None:
    from advrisk.report.provenance import provenance

    found = provenance(run.folder, run.ledger, run.study, run.findings())
    outcomes = run.outcomes()
    assert found.n_rows == len(outcomes)
    assert found.n_forward == sum(outcomes["n_forward"].to_pylist())
    assert {split.name: split.n for split in found.splits} == {"evaluate": 24, "calibrate": 40}
    assert json.loads(json_text(found))["seed"] == 5
    page = report.read_text(encoding="utf-8")
    for model in run.models():
        assert model["digest"] in page
    for split in found.splits:
        assert split.digest in page
    for _, command in found.commands:
        assert command in page
    assert "advrisk certify RUN" in page
    assert f"torch {found.torch[0]}" in page
    assert report.stat().st_size < BYTES
