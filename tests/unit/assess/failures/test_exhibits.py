"""Failures with what is left to show of them, and the contact sheet."""

import base64
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from advrisk.report.contact_sheet import write_contact_sheet
from advrisk.report.failures import caption, contact_sheets, explanation, failure_content, heading, losses_text
from numpy.typing import NDArray
from PIL import Image

from advrisk.assess.failures.modes import Failure, FailureMode, FailureModes
from advrisk.core.errors import LedgerError, RunError
from advrisk.core.estimate import Estimate
from advrisk.ledger import Storage
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_bounds, write_inputs

SEVEN = Failure(
    sample="s/7", label=7, arm="rain,level=3", repeat=0, loss=1.0, branch_loss=0.75, clean_loss=0.0, prediction=1,
    confidence=0.981, clean_prediction=7, outcome="success", cell="abcd", shard="ef",
)  # fmt: skip
CLEAN = replace(SEVEN, sample="s/3", label=3, arm="clean", clean_loss=1.0, branch_loss=1.0, cell="0123")
RISK = Estimate(0.25, 0.2, 0.3, 0.95, 40, "")


def modes(*failures: Failure, path: str = "wet.rain", share: float | None = 0.4) -> FailureModes:
    mode = FailureMode("net", path, 0.3, RISK, RISK, share, "mean", 40, 12, 9, failures)
    return FailureModes("town", "misclassified", (0.0, 1.0), ("net",), (mode,))


def keep(folder: Path, clean: NDArray[Any], perturbed: NDArray[Any]) -> None:
    write_inputs(shard_inputs(folder, "ef"), ["s/7", "s/3"], np.stack([clean, clean]))
    write_inputs(cell_inputs(folder, "abcd"), ["s/7"], perturbed[None])


def image(level: float, *, channels: int = 1) -> NDArray[Any]:
    return np.full((channels, 8, 6), level, dtype=np.float32)


def test_captions_say_what_was_read() -> None:
    assert caption(SEVEN) == "7 read as 1, 98 %"
    assert caption(replace(SEVEN, confidence=0.9999)) == "7 read as 1, > 99 %"
    assert caption(replace(SEVEN, confidence=1.0)) == "7 read as 1, 100 %"
    assert caption(replace(SEVEN, confidence=None)) == "7 read as 1"
    assert caption(replace(SEVEN, label=None)) == "read as 1, 98 %"
    assert caption(replace(SEVEN, prediction=7)) == "7 read rightly, 98 %"
    assert caption(replace(SEVEN, prediction=None, confidence=None)) == "7 read as something else"


def test_headings_say_how_much_it_matters() -> None:
    found = modes(SEVEN)
    assert heading(found.modes[0], found) == "wet.rain: 40 % of the risk, mean loss 25.0 % [20.0, 30.0]"
    alone = modes(SEVEN, path="clean", share=None)
    assert heading(alone.modes[0], alone) == "clean inputs: mean loss 25.0 % [20.0, 30.0]"
    assert explanation(found.modes[0]).startswith("12 of 40 samples have a loss here, 9 of them a larger one")
    assert explanation(alone.modes[0]).endswith("though nothing was done to them.")
    assert losses_text(SEVEN) == "1 (0.75 in the branch)"
    assert losses_text(CLEAN) == "1"


def test_kept_inputs_are_shown_beside_each_other(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    (sheet,) = contact_sheets(Storage(tmp_path), modes(SEVEN, CLEAN))
    assert sheet.of_images
    assert [len(one.pictures) for one in sheet.exhibits] == [2, 1]  # nothing was done to the second
    assert sheet.n_without_picture == 0
    assert failure_content(Storage(tmp_path), [modes(SEVEN, CLEAN)])["not_kept"] == ""


def test_what_was_not_kept_is_said(tmp_path: Path) -> None:
    content = failure_content(Storage(tmp_path), [modes(SEVEN)])
    assert "keep_inputs" in content["not_kept"]
    ((_, of_model),) = content["failures"]
    (sheet,) = of_model["net"]
    assert not sheet.of_images
    assert sheet.exhibits[0].pictures == ()


def test_of_rows_of_tables_the_changed_features_are_shown(tmp_path: Path) -> None:
    before = np.array([1.0, 200.0, 0.0, 5.0], dtype=np.float32)
    after = np.array([1.0, 210.0, 0.5, 4.0], dtype=np.float32)
    keep(tmp_path, before, after)
    (sheet,) = contact_sheets(Storage(tmp_path), modes(SEVEN))
    (one,) = sheet.exhibits
    assert not sheet.of_images
    assert one.n_changed == 3
    assert [(c.feature, c.before, c.after) for c in one.changes] == [(2, 0, 0.5), (3, 5, 4), (1, 200, 210)]


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
    ((one,),) = (sheet.exhibits for sheet in contact_sheets(Storage(tmp_path), modes(SEVEN)))
    for address, level in zip(one.pictures, (51, 204), strict=True):
        with Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))) as shown:
            assert shown.getextrema() == ((level, level),) * 3


def test_bounds_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    (tmp_path / "inputs" / "bounds.npy").write_text("what")
    with pytest.raises(LedgerError, match=r"bounds\.npy: cannot be read"):
        contact_sheets(Storage(tmp_path), modes(SEVEN))


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
