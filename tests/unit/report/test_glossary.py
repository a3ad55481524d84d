"""The glossary: only terms that the page uses, and what a size looks like."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from advrisk.core.sections import Pictures
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import shard_inputs, write_bounds, write_inputs
from advrisk.ledger.tables import table_from
from advrisk.report.glossary import TERMS, size_pictures, terms_in


def names(text: str) -> list[str]:
    return [term.name for term in terms_in(text)]


def test_a_term_is_listed_where_the_page_uses_it() -> None:
    assert names("Robust things.") == []
    assert names("trades: robust accuracy 95 % at 0.1 in linf, 12 forward passes") == [
        "linf",
        "pass",
        "robust accuracy",
    ]
    assert names("The gate passes if every requirement does.") == [], "another meaning of the word"
    assert names("alarms and harm") == []
    assert all(term.meaning.endswith(".") for term in TERMS)


def ledger(folder: Path, shape: Sequence[int]) -> Ledger:
    sample = {"sample": "s", "hash": "h", "label": 0, "split": "evaluate", "weight": 1.0, "strata": "{}", "shard": "f"}
    tables: dict[str, dict[str, Any]] = {"samples": sample, "models": {"model": "m", "input_shape": list(shape)}}
    Ledger.open(folder, create=True).append(
        {name: table_from(name, {key: [value] for key, value in row.items()}) for name, row in tables.items()}
    )
    return Ledger.open(folder)


def levels(found: Pictures | None) -> list[Any]:
    assert found is not None
    return [np.asarray(Image.open(io.BytesIO(one.png))).astype(int) for one in found.pictures]


@pytest.mark.parametrize("kept", [True, False])
def test_linf_moves_every_pixel_by_the_size_on_a_sample_of_the_run_or_a_gradient(tmp_path: Path, kept: bool) -> None:
    held = ledger(tmp_path, (1, 8, 8))
    if kept:
        write_bounds(held.storage.folder, np.array(0.0), np.array(1.0))
        write_inputs(shard_inputs(held.storage.folder, "f"), ["s"], np.full((1, 1, 8, 8), 0.5, np.float32))
    before, after = levels(size_pictures(held.storage.folder, held, "linf", 0.1))
    assert before.shape == ((8, 8) if kept else (28, 28))
    assert set(np.abs(after - before).ravel()) <= {25, 26}
    assert set(np.sign(after - before).ravel()) == {-1, 1}


def test_l2_moves_along_one_direction_and_other_norms_have_no_picture(tmp_path: Path) -> None:
    held = ledger(tmp_path, (1, 8, 8))
    before, after = levels(size_pictures(held.storage.folder, held, "l2", 2.0))
    assert np.linalg.norm((after - before) / 255) == pytest.approx(2.0, rel=0.05)
    assert size_pictures(held.storage.folder, held, "l0", 3.0) is None


def test_of_a_table_there_is_no_picture(tmp_path: Path) -> None:
    held = ledger(tmp_path, (4,))
    assert size_pictures(held.storage.folder, held, "linf", 0.1) is None
