"""Adversarial examples beside their originals, from the inputs that a run kept."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from advrisk.assess.changes import Change
from advrisk.assess.damage.distances import smallest_distances
from advrisk.assess.damage.examples import Example, nearest_examples
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_inputs

FAR = float("inf")
FOUND = {"hard": {"pgd": [0.4, FAR, 0.0]}, "soft": {"pgd": [0.2, 0.3, 0.1]}}


@pytest.fixture
def kept(found_by: Callable[..., Ledger]) -> Ledger:
    """Gray images of 28 x 28, of which attacks brightened the first column."""
    ledger = found_by(FOUND)
    samples = ["0", "1", "2"]
    x = np.zeros((3, 1, 28, 28), np.float32)
    write_inputs(shard_inputs(ledger.storage.folder, "None"), samples, x)
    for model, of_arm in FOUND.items():
        moved = x.copy()
        moved[..., 0] = np.array(of_arm["pgd"]).clip(0, 1).reshape(3, 1, 1)
        write_inputs(cell_inputs(ledger.storage.folder, f"{model}/pgd"), samples, moved)
    return ledger


def examples(ledger: Ledger, **more: Any) -> dict[str, Example]:
    found = nearest_examples(ledger.storage.folder, ledger, smallest_distances(ledger, norm="linf"), **more)
    return {one.sample: one for one in found}


def levels(data: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(data)))


def test_the_samples_that_most_models_lost_are_shown_with_the_change_beside_each(kept: Ledger) -> None:
    (example,) = examples(kept).values()
    assert example.sample == "0", "broken by attack in both"
    assert (levels(example.png) == 0).all()
    assert {one.model: one.distance for one in example.attacked} == {"hard": 0.4, "soft": 0.2}
    for one in example.attacked:
        assert (levels(one.png)[:, 0] == round(255 * one.distance)).all()
        shown = levels(one.with_change)
        assert shown.shape == (28, 28 + 2 + 28)
        assert (shown[:, 0] == round(255 * one.distance)).all()
        assert (shown[:, 28:30] == 255).all(), "nothing between them"
        assert (shown[:, 30] == 255).all(), "the largest change fills the range"
        assert (shown[:, 31:] == 128).all(), "unchanged is gray"


def test_of_a_model_without_an_example_it_is_said_why(kept: Ledger) -> None:
    only = smallest_distances(kept, norm="linf")
    by_model = {"hard": only.by_model["hard"], "soft": np.where(np.arange(3) == 0, FAR, only.by_model["soft"])}
    held = type(only)(**{**vars(only), "by_model": by_model})
    found = {one.sample: one for one in nearest_examples(kept.storage.folder, kept, held)}
    assert found["1"].others == {"hard": "not broken"}
    assert found["2"].others == {"hard": "incorrect unperturbed"}


def test_where_inputs_were_deleted_there_is_no_example(kept: Ledger) -> None:
    cell_inputs(kept.storage.folder, "soft/pgd").unlink()
    assert examples(kept) == {}


def test_of_rows_of_a_table_the_features_that_changed_are_listed(found_by: Callable[..., Ledger]) -> None:
    ledger = found_by(FOUND)
    before = np.arange(4, dtype=np.float32)
    write_inputs(shard_inputs(ledger.storage.folder, "None"), ["0"], before[None])
    for model, moved in (("hard", [0, 1, 2, 9]), ("soft", [5, 1, 3, 3])):
        write_inputs(cell_inputs(ledger.storage.folder, f"{model}/pgd"), ["0"], np.array([moved], np.float32))
    example = examples(ledger)["0"]
    hard, soft = example.attacked
    assert (example.png, hard.png, hard.n_changed, soft.n_changed) == (b"", b"", 1, 2)
    assert hard.changes == (Change(3, 3.0, 9.0),)
    assert soft.changes == (Change(0, 0.0, 5.0), Change(2, 2.0, 3.0))


def test_what_is_neither_an_image_nor_a_row_of_a_table_is_left_out(found_by: Callable[..., Ledger]) -> None:
    ledger = found_by(FOUND)
    write_inputs(shard_inputs(ledger.storage.folder, "None"), ["0"], np.zeros((1, 4, 4), np.float32))
    assert examples(ledger) == {}


def test_where_nothing_was_broken_there_is_nothing_to_show(found_by: Callable[..., Ledger]) -> None:
    assert examples(found_by({"m": {"pgd": [FAR, 0.0]}})) == {}
