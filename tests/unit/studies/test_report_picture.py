"""`python -m studies.report_picture` runs the demo and photographs its report; that report is of a size to be sent."""

from pathlib import Path

import pytest
from PIL import Image

from advrisk import Study
from advrisk.report.pdf import find_chromium
from bench.cells import here
from studies import report_picture


@pytest.mark.browser
def test_a_picture_is_taken_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two models of the demo, eight digits and one attack: no workers are started for models of this process."""
    names = ("plain", "trades")
    models, modules = here({name: {"source": "demo", "name": name} for name in names})
    arms = [{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.3]}]
    content = {"name": "tiny", "data": {"source": "mnist-5k", "evaluate": 8}, "models": models, "arms": arms}
    run = Study.from_dict(content).run(tmp_path / "run", modules=modules)
    path = tmp_path / "report.png"
    assert report_picture.main([str(run.folder), "--out", str(path)]) == 0
    assert f"{path} written" in capsys.readouterr().out
    with Image.open(path) as picture:
        assert picture.width == report_picture.WIDTH
        assert picture.height > 500


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_picture.main([str(tmp_path / "nowhere"), "--out", str(tmp_path / "report.png")]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert not (tmp_path / "report.png").exists()


def unfolded_words(report: Path) -> int:
    """Words that a reader sees who unfolds nothing."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(report.as_uri())
        words = len(page.locator("body").inner_text().split())
        browser.close()
    return words


@pytest.mark.slow
@pytest.mark.browser
def test_the_picture_is_the_top_of_the_real_report(tmp_path: Path) -> None:
    find_chromium()
    run = report_picture.run_demo(tmp_path / "demo")
    report = run.report()
    assert report.stat().st_size < 2_000_000
    assert 100 < unfolded_words(report) <= 1500
    path = report_picture.photograph(report, tmp_path / "report.png")
    assert path.stat().st_size < report_picture.LARGEST
    with Image.open(path) as picture:
        assert picture.width == report_picture.WIDTH
        assert 700 < picture.height <= 1000, "the first screen is one screen"
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 20


def test_the_readme_shows_a_picture_that_is_there_and_small() -> None:
    root = report_picture.PICTURE.parents[2]
    assert "](docs/images/report.png)" in (root / "README.md").read_text(encoding="utf-8")
    assert report_picture.PICTURE.stat().st_size < report_picture.LARGEST
