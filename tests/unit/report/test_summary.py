"""The two pages for readers without a background: words for numbers, next steps, and never more than two pages."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from advrisk.assess.selection.answer import RunAnswer
from advrisk.report.executive import DECIDED, ExecutiveSummary
from advrisk.report.summary import MODELS, SENTENCES, next_steps, of_hundred, plain_answer, summary_page
from tests.damages import BETTER, assessed
from tests.findings import findings_of
from tests.unit.report.test_executive import ledger

EXECUTIVE = ExecutiveSummary(("adv.",), ("Sure.",), ("Noise drives it.",), (DECIDED,), ("Rain.",))


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (95.4, 93.2, 97.1, "about 95 of 100 images (93 to 98)"),
        (0.0, 0.0, 0.7, "none of the images tested (in general at most 1 of 100)"),
        (100.0, 99.3, 100.0, "all of the images tested (in general at least 99 of 100)"),
        (0.4, 0.1, 1.4, "fewer than 1 of 100 images (0 to 2)"),
        (99.6, 98.6, 99.9, "more than 99 of 100 images (98 to 100)"),
    ],
)
def test_a_share_in_words_never_promises_more_than_its_interval(
    value: float, low: float, high: float, words: str
) -> None:
    assert of_hundred({"value": value, "low": low, "high": high}, "images") == words


def test_the_answer_names_the_best_model_only_where_the_evidence_does() -> None:
    best = RunAnswer(("…",), "adv", "not met", 3)
    assert plain_answer(best) == "adv did best among the 3 models in this test and fails a requirement of the study."
    assert plain_answer(replace(best, requirements=None)) == "adv did best among the 3 models in this test."
    assert plain_answer(replace(best, requirements="met"), "5 of 9 cells") == (
        "adv did best among the 3 models in this test and meets every requirement of the study. The test is not "
        "finished."
    )
    assert plain_answer(replace(best, least_bad=None)) == "This test does not show which of 3 models is best."
    alone = replace(best, least_bad=None, n_models=1)
    assert plain_answer(alone) == "This test is about one model and compares it with no other."


def test_the_next_steps_follow_what_is_open() -> None:
    answer = RunAnswer(("…",), "adv", None, 2)
    steps = dict(next_steps(answer, EXECUTIVE, "No cell was flagged."))
    assert steps["You, who decide on its use"].startswith("State what is good enough")
    assert steps["The developers of the model"] == "Look at what drives the risk: noise drives it."
    assert steps["An auditor"].endswith("No cell was flagged.")
    undecided = replace(EXECUTIVE, undecided=("a or b.",))
    steps = dict(next_steps(replace(answer, requirements="not met"), undecided, ""))
    assert "fails a requirement" in steps["You, who decide on its use"]
    assert steps["The developers of the model"] == "Settle what is undecided: a or b."


@pytest.fixture
def pictureless(monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings are made up, so no ledger holds their pictures."""
    monkeypatch.setattr("advrisk.report.summary.with_pictures", lambda folder, ledger, found: found)


@pytest.mark.usefixtures("pictureless")
def test_the_page_holds_the_first_screen_in_words(tmp_path: Path) -> None:
    found = findings_of(damage=assessed(**BETTER), models=("adv", "std"))
    page = summary_page(tmp_path, ledger(tmp_path), None, found)
    assert page.count('class="sheet"') == 2
    assert page.count('class="model"') == 2
    assert "of 100 images (" in page
    assert "1 model answered 40 test images, and their correct answers are known." in page
    assert "<dt>robust accuracy</dt>" in page, "the terms of the tiles are explained"
    assert page.count("<li><div>") == SENTENCES
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")


@pytest.mark.usefixtures("pictureless")
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed: the pages were not measured")
def test_many_models_with_long_names_fit_two_pages(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    models = [f"{n:02}{'W' * 80}" for n in range(MODELS + 3)]
    found = findings_of(damage=assessed(dict.fromkeys(models, 30), dict.fromkeys(models, 8)), models=models)
    page = summary_page(tmp_path, ledger(tmp_path), None, found)
    assert page.count('class="model"') == MODELS
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        shown = browser.new_page()
        shown.set_content(page)
        gaps = shown.evaluate(
            "[...document.querySelectorAll('.sheet')].map("
            "one => one.querySelector('footer').getBoundingClientRect().top"
            " - Math.max(...[...one.children].filter(child => child.tagName != 'FOOTER')"
            ".map(child => child.getBoundingClientRect().bottom)))"
        )
        browser.close()
    assert min(gaps) >= 0
