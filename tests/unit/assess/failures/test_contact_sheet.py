"""Failures as one picture."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from advrisk.assess.failures.contact_sheet import write_contact_sheet
from advrisk.core.errors import RunError
from advrisk.ledger import Storage
from advrisk.ledger.inputs import write_bounds

from .kept import CLEAN, SEVEN, image, keep, modes


@pytest.mark.parametrize("channels", [1, 3])
def test_a_contact_sheet_holds_all_pictures(tmp_path: Path, channels: int) -> None:
    keep(tmp_path, image(0.2, channels=channels), image(0.9, channels=channels))
    assert write_contact_sheet(Storage(tmp_path), modes(SEVEN, CLEAN), tmp_path / "sheet.png") == 2
    with Image.open(tmp_path / "sheet.png") as sheet:
        levels = {colour[0] for _, colour in sheet.convert("RGB").getcolors(1 << 20)}
    assert {51, 230} <= levels  # 0.2 and 0.9 in 8 bits


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 255.0), (-1.0, 1.0), ([[[-2.0]], [[-1.0]], [[0.0]]], [[[2.0]], [[3.0]], [[9.0]]])]
)
def test_pictures_go_from_the_low_bound_to_the_high_one(tmp_path: Path, low: Any, high: Any) -> None:
    low, high = np.array(low), np.array(high)
    write_bounds(tmp_path, low, high)
    keep(tmp_path, *((low + share * (high - low) + image(0.0, channels=3)).astype(np.float32) for share in (0.2, 0.8)))
    write_contact_sheet(Storage(tmp_path), modes(SEVEN), tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        colours = {colour for _, colour in sheet.convert("RGB").getcolors(1 << 20)}
    assert {(51, 51, 51), (204, 204, 204)} <= colours  # 0.2 and 0.8 of the way in 8 bits


def test_names_of_any_length_fit_on_a_sheet(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    long = modes(replace(SEVEN, arm="x" * 5000), path="p" * 5000)
    write_contact_sheet(Storage(tmp_path), long, tmp_path / "sheet.png")
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width < 1200


def test_without_pictures_there_is_no_sheet(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no picture to show"):
        write_contact_sheet(Storage(tmp_path), modes(SEVEN), tmp_path / "sheet.png")


def test_a_sheet_is_a_png_that_can_be_written(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    with pytest.raises(RunError, match=r"must end in \.png"):
        write_contact_sheet(Storage(tmp_path), modes(SEVEN), tmp_path / "sheet.jpg")
    with pytest.raises(RunError, match="cannot be written"):
        write_contact_sheet(Storage(tmp_path), modes(SEVEN), tmp_path / "missing" / "sheet.png")
