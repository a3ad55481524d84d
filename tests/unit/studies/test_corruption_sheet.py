"""`python -m studies.corruption_sheet` shows what is registered, and the page says what it prints."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from advrisk.parts.corruptions import corruptions
from studies.corruption_sheet import corrupted, level_tables, main, on_images, scene
from studies.page import filled, places

PAGE = Path(__file__).parents[3] / "docs" / "corruptions.md"


def test_every_corruption_of_images_is_on_it() -> None:
    shown = [part.name for part in on_images()]
    assert sorted(shown) == [part.name for part in corruptions if part.traits.inputs != "tables"]
    assert on_images()[0].traits.cause == "sensor"


def test_the_scene_is_a_picture_with_light_and_dark() -> None:
    x = scene(32)
    assert x.shape == (1, 3, 32, 32)
    assert 0 <= x.min() < 0.2
    assert 0.9 < x.max() <= 1
    assert torch.equal(x, scene(32))


def test_what_is_shown_stays_within_the_bounds() -> None:
    for part in on_images():
        shown = corrupted(part, scene(32), 5)
        assert shown.min() >= 0
        assert shown.max() <= 1


def test_the_page_says_what_is_registered() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = {place: lines for place, lines in level_tables().items() if place in places(text)}
    assert {"levels-sensor", "levels-noise"} <= set(tables)
    for place, lines in tables.items():
        assert filled(text, place, lines) == text, "run `python -m studies.corruption_sheet --page docs/corruptions.md`"
    for part in corruptions:
        assert f"`{part.name}`" in text


def test_it_draws_and_fills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- levels-noise -->\n<!-- /levels-noise -->\nafter\n")
    assert main(["--out", str(tmp_path / "sheet.png"), "--page", str(page)]) == 0
    assert "| `gaussian-noise` | `sigma` | 0.04 | 0.08 | 0.12 | 0.18 | 0.26 | yes |" in page.read_text()
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.format == "PNG"
    assert "levels-sensor" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--out", "nowhere/sheet.png"], ["--page", "nowhere/page.md"]])
def test_a_place_that_there_is_not_is_refused(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert f"error: {words[1]}: cannot be" in capsys.readouterr().err
