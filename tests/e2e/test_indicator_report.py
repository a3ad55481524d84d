"""Indicators and failure modes of a real study: on the report's page in a browser, and in the terminal."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from advrisk import Run, Study
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.words import loss_text
from advrisk.core.errors import RiskError
from advrisk.core.sections import Unanswered
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_inputs
from advrisk.report import write_report
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import compare_models
from advrisk.risk.indicators.tree import arm_risks
from tests.findings import findings_of

from .conftest import Command, study_of
from .visits import CHROMIUM, Visit

in_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the browser tests did not run"),
]
MISSING = -9.0  # what stands for a value that is missing
NASTY = "<script>alert(1)</script>"
NIGHT = {
    NASTY: {
        "weight": 0.4,
        "of": {
            "faint": {"weight": 0.5, "arms": ["gaussian-noise,sigma=0.1"]},
            "strong": {"weight": 0.5, "arms": ["gaussian-noise,sigma=0.5"]},
        },
    },
    "evil": {"weight": 0.05, "arms": ["fgsm*", "pgd*"]},
}


def asked(nets: Path, **changes: Any) -> dict[str, Any]:
    return study_of(nets) | {
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": 0.1},
            {"attack": "pgd", "norm": "linf", "eps": 0.1, "steps": 5},
            {"corruption": "gaussian-noise", "sigma": [0.1, 0.5], "repeats": 2},
        ],
        "losses": ["misclassified", {"name": "class-cost", "costs": {7: 10}, "as": "sevens"}],
        "scenarios": {"night": NIGHT},
        **changes,
    }


@pytest.fixture(scope="module")
def run(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with one scenario and two losses."""
    return Study.from_dict(asked(nets)).run(tmp_path_factory.mktemp("night") / "run", workers=1)


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    return run.report()


def unfold(visit: Visit) -> None:
    visit.page.evaluate("for (const folded of document.querySelectorAll('#indicators details')) folded.open = true")
    visit.until("[...document.querySelectorAll('#indicators .figure')].every(one => one.querySelector('.chart'))")


class TestInBrowser:
    """The page itself."""

    pytestmark = in_browser

    @pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
    def test_everything_draws_and_nothing_is_complained_of(
        self, browser: Any, report: Path, width: int, scheme: str
    ) -> None:
        visit = Visit(browser, report, width=width, scheme=scheme)
        section = visit.page.locator("#indicators")
        unfold(visit)
        figures = section.locator(".figure")
        assert figures.count() == 2 * (3 + 2) + 2  # bars, a branch, a level and two sunbursts for each loss; heat maps
        for place in range(figures.count()):
            assert figures.nth(place).locator(".trace path, .cell, .slice").count() > 0, "an empty plot"
        for link in visit.page.locator("nav a[href='#indicators'], nav a[href='#failures']").all():
            link.click()
            assert visit.page.locator(link.get_attribute("href")).is_visible()
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        assert visit.complaints == []
        assert visit.left_the_machine() == []

    def test_the_page_shows_what_the_api_says(self, browser: Any, report: Path, run: Run) -> None:
        text = Visit(browser, report).page.text_content("#indicators")
        for result in run.indicators().results:
            assert f"Scenario night, loss {result.loss}" in text
            for one in result.models:
                assert loss_text(one.risk.value, result.bounds) in text
                assert loss_text(one.tree.at("evil").contribution.value, result.bounds) in text

    def test_another_branch_can_be_chosen(self, browser: Any, report: Path, run: Run) -> None:
        page = Visit(browser, report).page
        page.locator("#indicators summary", has_text="One branch over the models").first.click()
        choice = page.locator("#indicators .choose", has_text="Branch:").first.locator("select")
        labels = choice.locator("option").all_inner_texts()
        place = next(n for n, label in enumerate(labels) if label.startswith("evil"))
        choice.select_option(index=place)
        expected = run.indicators().of("night").branches["evil"].estimates["plain"]
        shown = page.locator(f"#{choice.get_attribute('data-shows')} text").all_text_contents()
        assert loss_text(expected.value, (0.0, 1.0)) in [text.strip().partition(",")[0] for text in shown]

    def test_slices_that_do_not_sum_would_be_left_out(self, browser: Any, report: Path, run: Run) -> None:
        visit = Visit(browser, report)
        unfold(visit)
        first = run.indicators().results[0]
        best, loss = first.models[0], first.loss
        slices = [one for one in best.tree.walk() if one.contribution.value > 0]
        ring = f"indicators contributions_to_the_risk_of_{best.model}_night_{loss}"
        assert visit.page.locator(f"[data-figure='{ring}'] .slice").count() == len(slices)

    def test_failures_show_pictures_with_captions(self, browser: Any, report: Path, run: Run) -> None:
        page = Visit(browser, report).page
        section = page.locator("#failures")
        assert section.locator(".sheet img").count() > 8
        assert page.evaluate("[...document.querySelectorAll('#failures img')].every(image => image.naturalWidth === 8)")
        worst = run.failures(samples=6).modes[0].failures[0]
        assert f"{worst.label} read as {worst.prediction}" in section.inner_text()

    def test_names_from_outside_are_text(self, browser: Any, run: Run, tmp_path: Path) -> None:
        names = [NASTY, "\"'><img src=x onerror=alert(2)>", "n" * 300]
        rng = np.random.default_rng(0)
        arms, kind = ["clean", *names], ["clean", *["corruption"] * 3]
        tensors = {
            name: RiskTensor.from_arrays(
                rng.integers(0, 2, size=(40, 4)), arms=arms, kind=kind, label=np.arange(40) % 2, model=name,
                strata={NASTY: [NASTY, "day"] * 20}, ranges={"loss": (0, 1)},
            )
            for name in names
        }  # fmt: skip
        tree = {name: {"weight": 0.2, "arms": [name]} for name in names}
        found = compare_models(tensors, Scenario.from_mapping(NASTY, tree))
        arms_found = {"loss": {name: arm_risks(tensor) for name, tensor in tensors.items()}}
        assessed = IndicatorAssessment((found,), arms_found, (), {}, 0.95, (NASTY,))
        page = write_report(
            run.folder,
            run.ledger,
            None,
            tmp_path / "page.html",
            findings_of(damage=Unanswered("none"), indicators=assessed),
        )
        visit = Visit(browser, page, width=390)
        unfold(visit)
        cells = visit.page.locator("#indicators tbody th").all_text_contents()
        assert set(names) <= set(cells)
        assert visit.complaints == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_report_is_made_without_torch(run: Run, tmp_path: Path, advrisk: Command) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from advrisk.api.run import Run; Run.open(sys.argv[1]).report(sys.argv[2]); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run.folder), str(tmp_path / "page.html")], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_without_a_scenario_all_corruptions_count_alike(nets: Path, tmp_path: Path) -> None:
    content = asked(nets, keep_inputs="none", data={"source": "digits", "evaluate": 16})
    del content["scenarios"]
    page = Study.from_dict(content).run(tmp_path / "run", workers=1).report().read_text()
    assert "Scenario uniform, loss misclassified" in page
    assert "This describes no deployment." in page
    assert "Pictures are missing where the perturbed input was not kept" in page
    assert 'alt="perturbed input' not in page


def test_of_rows_of_tables_the_page_lists_what_changed(run: Run, tmp_path: Path) -> None:
    found = run.failures(model="plain", samples=1)
    worst = found.modes[0].failures[0]
    before = np.array([5.0, 0.0, 1.0], dtype=np.float32)
    after = np.array([5.0, MISSING, 1.5], dtype=np.float32)
    shutil.copytree(run.ledger.path, tmp_path / "ledger")
    write_inputs(shard_inputs(tmp_path, worst.shard), [worst.sample], before[None])
    write_inputs(cell_inputs(tmp_path, worst.cell), [worst.sample], after[None])
    page = write_report(
        tmp_path,
        Ledger.open(tmp_path).named(),
        None,
        tmp_path / "page.html",
        findings_of(damage=Unanswered("none"), failures=(found,)),
    ).read_text()
    assert f"no. 1: 0 → {MISSING:g}; no. 2: 1 → 1.5" in page
    assert worst.sample in page


def test_where_there_is_no_corruption_and_no_scenario_nothing_is_said(nets: Path, tmp_path: Path) -> None:
    content = asked(nets, data={"source": "digits", "evaluate": 16})
    del content["scenarios"]
    content["arms"] = content["arms"][:1]
    page = Study.from_dict(content).run(tmp_path / "run", workers=1).report().read_text()
    assert 'id="indicators"' not in page
    assert 'id="failures"' not in page


def test_what_cannot_be_assessed_is_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RiskError("no sample has a verdict from every arm")

    monkeypatch.setattr("advrisk.assess.indicators.question.assess_indicators", refuse)
    page = Run.open(run.folder).report(tmp_path / "page.html").read_text()
    assert "No answer: no sample has a verdict from every arm." in page
    assert 'id="failures"' not in page


def test_the_terminal_and_python_say_the_same(run: Run, advrisk: Command, tmp_path: Path) -> None:
    done = advrisk("show", "failures", run.folder, "--model", "plain", "--samples", "4", "--out", "s.png", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(json.dumps(run.failures(model="plain", samples=4).as_dict()))
    assert "inputs drawn in s.png" in done.stderr
    with Image.open(tmp_path / "s.png") as sheet:
        assert sheet.height > 100
    shown = advrisk("show", "failures", run.folder, "--loss", "sevens", "--scenario", "night")
    assert shown.returncode == 0, shown.stderr
    assert "Scenario night, loss sevens" in shown.stdout
    assert " read as " in shown.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--norm", "l2"], "No such option: --norm"),
        (["--model", "a", "--model", "b"], "of one at a time"),
        (["--model", "plane"], "did you mean 'plain'"),
        (["--scenario", "day"], "no scenario is called 'day'"),
        (["--out", "sheet.jpg"], "must end in .png"),
    ],
)
def test_mistakes_are_told(run: Run, advrisk: Command, words: list[str], complaint: str) -> None:
    done = advrisk("show", "failures", run.folder, *words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_other_words_have_no_use_for_a_sheet(run: Run, advrisk: Command) -> None:
    done = advrisk("show", "indicators", run.folder, "--out", "sheet.png")
    assert done.returncode == 2
    assert "No such option: --out" in done.stderr
