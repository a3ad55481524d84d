"""What a run says of its data set."""

from pathlib import Path

import pytest

from advrisk.core.extent import Extent
from advrisk.core.labels import Labels
from advrisk.ledger.layout import DATA_FILE, data_text, read_extent, read_labels, read_samples_left


def test_what_is_kept_of_the_data_is_read_again(tmp_path: Path) -> None:
    extent = Extent(-1.0, 1.0, {"linf": 2.0, "l2": 16.0}, images=False, unit_scale=False)
    (tmp_path / DATA_FILE).write_text(data_text(12, extent))
    assert (read_samples_left(tmp_path), read_extent(tmp_path)) == (12, extent)
    assert read_labels(tmp_path) == Labels()
    labels = Labels(("cat", "dog"), ("age",))
    (tmp_path / DATA_FILE).write_text(data_text(12, extent, labels))
    assert read_labels(tmp_path) == labels


def test_a_norm_without_an_end_refuses_nothing(tmp_path: Path) -> None:
    (tmp_path / DATA_FILE).write_text(data_text(0, Extent(0.0, 1.0, {"linf": float("inf")})))
    found = read_extent(tmp_path)
    assert found is not None
    assert found.complaint(1e300, "linf") == ""


@pytest.mark.parametrize("text", [None, "{", "[]", "null", '{"samples_left": 3}', '{"extent": 3}', '{"extent": {}}'])
def test_a_run_that_does_not_say_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / DATA_FILE).write_text(text)
    assert read_extent(tmp_path) is None
