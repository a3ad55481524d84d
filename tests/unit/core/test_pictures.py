"""Inputs as images: what is black, what is white, and what is no image."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from advrisk.core.pictures import is_image, png


def levels(data: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(data))).tolist()


def test_bounds_are_black_and_white_and_nothing_goes_beyond() -> None:
    x = np.array([[[-1.0, 0.0], [1.0, 3.0]]])
    assert levels(png(x, (np.array(-1.0), np.array(1.0)))) == [[0, 128], [255, 255]]
    coloured = np.stack([np.zeros((2, 2)), np.ones((2, 2)), np.full((2, 2), 0.5)])
    assert levels(png(coloured))[0][0] == [0, 255, 128]


def test_a_feature_that_cannot_vary_is_drawn() -> None:
    five = np.full((1, 2, 2), 5.0)
    assert levels(png(five, (five, five))) == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("shape", "image"), [((1, 8, 8), True), ((3, 8, 8), True), ((2, 8, 8), False), ((8,), False), ((1, 1, 9), False)]
)
def test_only_gray_and_coloured_inputs_are_images(shape: tuple[int, ...], image: bool) -> None:
    assert is_image(np.zeros(shape)) is image
