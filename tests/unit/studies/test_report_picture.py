"""`python -m studies.report_picture` runs the demo and photographs its report; that report is of a size to be sent."""

from pathlib import Path

import pytest
from PIL import Image

from advrisk.report.pdf import find_chromium
from studies import report_picture


@pytest.mark.slow
@pytest.mark.browser
def test_the_picture_is_the_top_of_the_real_report(tmp_path: Path) -> None:
    find_chromium()
    run = report_picture.run_demo(tmp_path / "demo")
    report = run.report()
    assert report.stat().st_size < 8_000_000
    path = report_picture.photograph(report, tmp_path / "report.png")
    assert path.stat().st_size < report_picture.LARGEST
    with Image.open(path) as picture:
        assert picture.width == report_picture.WIDTH
        assert picture.height > 1500
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 20


def test_the_readme_shows_a_picture_that_is_there_and_small() -> None:
    root = report_picture.PICTURE.parents[2]
    assert "](docs/images/report.png)" in (root / "README.md").read_text(encoding="utf-8")
    assert report_picture.PICTURE.stat().st_size < report_picture.LARGEST
