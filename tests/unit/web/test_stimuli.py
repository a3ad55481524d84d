"""What is shown has the size that is written down, and a run that cannot be shown is refused."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from advrisk.answers.records import Shown
from advrisk.core.errors import AdvriskError, RunError
from advrisk.ledger.inputs import read_inputs, shard_inputs, write_inputs
from advrisk.web.labelling import Labelling
from advrisk.web.pictures import levels, moved, png, size_between

MakeRun = Callable[..., Path]
OpenRun = Callable[..., Labelling]


def test_sizes_are_those_of_the_pictures_as_shown() -> None:
    a = np.array([[[0, 10], [20, 255]]], np.uint8)
    b = np.array([[[3, 10], [16, 255]]], np.uint8)
    assert size_between(b, a, "linf") == pytest.approx(4 / 255)
    assert size_between(b, a, "l2") == pytest.approx(5 / 255)
    assert size_between(b, a, "l1") == pytest.approx(7 / 255)
    assert size_between(b, a, "l0") == 2


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_holds_every_level(channels: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (channels, 5, 7)).astype(np.uint8)
    read = np.asarray(Image.open(BytesIO(png(picture))))
    assert (read == (picture[0] if channels == 1 else picture.transpose(1, 2, 0))).all()


def test_a_perturbation_is_scaled_and_kept_in_the_box() -> None:
    original, point = np.full((1, 1, 2), 0.5), np.array([[[0.7, 0.3]]])
    assert moved(original, point, 1.0).tolist() == levels(point).tolist()
    assert moved(original, point, 0.0).tolist() == levels(original).tolist()
    assert moved(original, point, 9.0).tolist() == [[[255, 0]]]


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_a_scaled_example_is_shown_at_about_the_wanted_size(make_run: MakeRun, open_run: OpenRun, norm: str) -> None:
    pool = open_run(make_run(norm=norm), norm=norm).pool
    for size in np.geomspace(pool.plausible[0], pool.plausible[1] / 2, 12):
        shown = pool.scaled(pool.examples[10], float(size))
        original, picture = pool.pictures(shown)
        assert shown.size == size_between(picture, original, norm)
        step = 1 / 255 if norm == "linf" else 0.0  # nothing lies between two levels
        assert abs(shown.size - size) <= 0.15 * size + step


def test_in_l0_nothing_is_scaled(make_run: MakeRun, open_run: OpenRun) -> None:
    pool = open_run(make_run(norm="l0"), norm="l0").pool
    assert pool.scaled(pool.examples[0], 5.0).factor == 1.0


def test_the_kept_examples_are_the_successes(labelling: Labelling) -> None:
    pool = labelling.pool
    assert len(pool.examples) == 2 * 38
    assert {example.sample for example in pool.examples}.isdisjoint({"s00", "s01"})
    shown = pool.as_it_is(pool.examples[-1])
    assert shown.size == pytest.approx(pool.examples[-1].distance, abs=1 / 255)
    same, original = pool.pictures(Shown("s00", 0.0))
    assert (same == original).all()
    assert (np.diff(pool.sizes) > 0).all()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"keep": False}, "were not kept.*keep_inputs: successful"),
        ({"shape": (12,)}, "shape .12,., and only images"),
        ({"shape": (2, 8, 8)}, "only images"),
        ({"top": 1.5}, r"lie in \[0.2.*a picture is made of values in"),
        ({"succeed": False}, "no attack succeeded"),
    ],
)
def test_a_run_that_cannot_be_shown_is_refused_and_nothing_written(
    make_run: MakeRun, open_run: OpenRun, options: dict[str, object], complaint: str
) -> None:
    folder = make_run(**options)
    with pytest.raises(RunError, match=complaint):
        open_run(folder)
    assert not (folder / "answers.sqlite").exists()


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan")])
@pytest.mark.parametrize("place", [0, 7, 39])
def test_every_original_is_looked_at(make_run: MakeRun, open_run: OpenRun, place: int, value: float) -> None:
    folder = make_run()
    path = shard_inputs(folder, "shard")
    inputs = read_inputs(path)
    inputs[f"s{place:02d}"][0, 3, 3] = value
    write_inputs(path, list(inputs), np.stack(list(inputs.values())))
    with pytest.raises(RunError, match=f"s{place:02d}: its inputs lie in"):
        open_run(folder)


def test_an_unknown_run_is_refused(open_run: OpenRun, tmp_path: Path) -> None:
    with pytest.raises(AdvriskError, match="holds no ledger"):
        open_run(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_run_in_other_units_is_refused(make_run: MakeRun, open_run: OpenRun) -> None:
    from advrisk.ledger import Ledger, table_from

    folder = make_run(models=("plain",))
    ledger = Ledger.open(folder)
    rows = ledger.query("SELECT * REPLACE (d_linf * 2 AS d_linf) FROM outcomes")
    cells = ledger.query("FROM cells")
    ledger.append(
        {
            "outcomes": table_from("outcomes", {name: rows[name].combine_chunks() for name in rows.column_names}),
            "cells": table_from("cells", {name: cells[name].combine_chunks() for name in cells.column_names}),
        }
    )
    with pytest.raises(RunError, match="scale of their own"):
        open_run(folder)
