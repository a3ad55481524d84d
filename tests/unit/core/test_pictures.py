"""Inputs as images: bounds are black and white, and images stand side by side."""

import io

import numpy as np
from PIL import Image

from advrisk.core.pictures import beside, drawn, png


def levels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)))


def test_bounds_are_black_and_white() -> None:
    x = np.array([[[-1.0, 0.0], [1.0, 3.0]]])
    assert levels(png(drawn(x, (np.array(-1.0), np.array(1.0))))).tolist() == [[0, 128], [255, 255]]
    coloured = np.stack([np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), 0.5)])
    assert levels(png(drawn(coloured)))[0, 0].tolist() == [0, 255, 128]


def test_a_feature_that_cannot_vary_is_drawn() -> None:
    assert levels(png(drawn(np.full((1, 1, 1), 5.0), (np.full((1, 1, 1), 5.0), np.full((1, 1, 1), 5.0))))).tolist() == [
        [0]
    ]


def test_images_stand_side_by_side_with_nothing_between() -> None:
    white, black = drawn(np.ones((1, 4, 28))), drawn(np.zeros((1, 4, 28)))
    found = levels(png(beside([white, black])))
    assert found.shape == (4, 28 + 2 + 28, 4)
    assert found[0, 0].tolist() == [255, 255, 255, 255]
    assert found[0, 28, 3] == found[0, 29, 3] == 0, "transparent"
    assert found[0, 30].tolist() == [0, 0, 0, 255]
