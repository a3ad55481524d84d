"""What is left to show of failures."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from advrisk.assess.failures.exhibits import with_exhibits
from advrisk.assess.failures.modes import Exhibit, Failure
from advrisk.core.errors import LedgerError
from advrisk.ledger import Storage
from advrisk.ledger.inputs import write_bounds

from .kept import CLEAN, SEVEN, image, keep, modes


def exhibits(folder: Path, *failures: Failure) -> list[Exhibit]:
    found = with_exhibits(Storage(folder), modes(*failures)).exhibits
    assert found is not None
    return [found[one] for one in failures]


def test_kept_inputs_are_pictures(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    rainy, clean = exhibits(tmp_path, SEVEN, CLEAN)
    assert rainy.clean.startswith(b"\x89PNG")
    assert rainy.perturbed.startswith(b"\x89PNG")
    assert rainy.kept
    assert clean.clean.startswith(b"\x89PNG")
    assert (clean.perturbed, clean.kept) == (b"", False), "nothing was done to it"


def test_what_was_not_kept_is_not_there(tmp_path: Path) -> None:
    assert exhibits(tmp_path, SEVEN) == [Exhibit()]


def test_pictures_go_from_the_low_bound_to_the_high_one(tmp_path: Path) -> None:
    low, high = np.array(-1.0), np.array(3.0)
    write_bounds(tmp_path, low, high)
    keep(tmp_path, image(-0.2, channels=3), image(2.2, channels=3))
    (one,) = exhibits(tmp_path, SEVEN)
    for held, level in ((one.clean, 51), (one.perturbed, 204)):  # 0.2 and 0.8 of the way in 8 bits
        with Image.open(io.BytesIO(held)) as shown:
            assert shown.getextrema() == ((level, level),) * 3


def test_of_rows_of_tables_the_changed_features_are_listed(tmp_path: Path) -> None:
    before = np.array([1.0, 200.0, 0.0, 5.0], dtype=np.float32)
    after = np.array([1.0, 210.0, 0.5, 4.0], dtype=np.float32)
    keep(tmp_path, before, after)
    (one,) = exhibits(tmp_path, SEVEN)
    assert (one.clean, one.perturbed, one.kept, one.n_changed) == (b"", b"", True, 3)
    assert [(c.feature, c.before, c.after) for c in one.changes] == [(2, 0, 0.5), (3, 5, 4), (1, 200, 210)]


def test_records_and_rows_are_the_same_with_pictures(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    plain, shown = modes(SEVEN), with_exhibits(Storage(tmp_path), modes(SEVEN))
    assert (plain.as_dict(), plain.rows()) == (shown.as_dict(), shown.rows())


def test_bounds_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    (tmp_path / "inputs" / "bounds.npy").write_text("what")
    with pytest.raises(LedgerError, match=r"bounds\.npy: cannot be read"):
        exhibits(tmp_path, SEVEN)
