"""Random moves of images, against scipy and shifts by whole pixels."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from advrisk.parts.corruptions.rotation import turned
from advrisk.parts.training import augmented
from advrisk.parts.training.augment import moved

STILL = {"turn_rad": 0.0, "scale": 1.0, "across": 0.0, "down": 0.0}


def move(x, **changes):
    draws = {name: torch.full((len(x),), value, dtype=torch.float64) for name, value in (STILL | changes).items()}
    return moved(x, **draws)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=[(1, 8, 8), (3, 9, 14), (1, 28, 28)], ids=str)
def images(request):
    return torch.rand(4, *request.param, generator=seeded())


def test_no_move_changes_nothing(images):
    torch.testing.assert_close(move(images), images)
    torch.testing.assert_close(augmented(images, seeded()), images)


def test_a_quarter_turn_goes_against_the_clock():
    x = torch.rand(2, 3, 7, 7, generator=seeded())
    torch.testing.assert_close(move(x, turn_rad=math.pi / 2), torch.rot90(x, 1, (2, 3)))


@pytest.mark.parametrize("degrees", [-30.0, 12.0])
def test_it_turns_as_the_corruption_does(images, degrees):
    theirs = turned(images, torch.full((len(images), 1), degrees, dtype=torch.float64))
    torch.testing.assert_close(move(images, turn_rad=math.radians(degrees)), theirs, atol=2e-5, rtol=0)


@pytest.mark.parametrize(("right", "down"), [(2, 0), (0, 3), (-1, 2)])
def test_a_shift_by_whole_pixels_repeats_the_edge(images, right, down):
    height, width = images.shape[2:]
    rows = (torch.arange(height) - down).clamp(0, height - 1)
    columns = (torch.arange(width) - right).clamp(0, width - 1)
    found = move(images, across=right / width, down=down / height)
    torch.testing.assert_close(found, images[:, :, rows][:, :, :, columns], atol=1e-5, rtol=0)


def test_any_move_is_what_scipy_makes_of_it(images):
    """Turned about the middle and scaled, then shifted; bilinear, edges repeated; in pixels, so nothing is sheared."""
    turn, scale, across, down = 0.3, 1.2, 0.06, -0.1
    height, width = images.shape[2:]
    back = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]) / scale  # of (row, column)
    middle = np.array([height - 1, width - 1]) / 2
    offset = middle - back @ (middle + np.array([down * height, across * width]))
    found = move(images, turn_rad=turn, scale=scale, across=across, down=down)
    for image, result in zip(images.numpy(), found.numpy(), strict=True):
        for channel, moved_channel in zip(image, result, strict=True):
            expected = ndimage.affine_transform(channel, back, offset, order=1, mode="nearest")
            assert moved_channel == pytest.approx(expected, abs=2e-5)


def test_values_stay_between_those_that_were_there(images):
    found = augmented(images, seeded(), rotation_deg=180, shift_pct=50, scale_pct=90)
    assert images.min() <= found.min() < found.max() <= images.max()
    assert found.shape == images.shape
    assert found.dtype == images.dtype


def test_channels_move_together_and_images_by_themselves():
    one = torch.rand(1, 1, 12, 12, generator=seeded())
    found = augmented(one.repeat(5, 3, 1, 1), seeded(), rotation_deg=20, shift_pct=10, scale_pct=10)
    assert torch.equal(found[:, 0], found[:, 2])
    assert all(not torch.allclose(found[0], found[row]) for row in range(1, 5))


def test_the_generator_decides_the_moves(images):
    before = torch.random.get_rng_state()
    first, again, other = (augmented(images, seeded(seed), rotation_deg=20) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(("setting", "size"), [("rotation_deg", 20.0), ("shift_pct", 8.0), ("scale_pct", 10.0)])
def test_moves_are_uniform_within_their_limits(setting, size):
    """Read off pictures in which a pixel's value is its place: they tell where each pixel came from."""
    n, pixels = 4000, 41
    place = (torch.arange(pixels) + 0.5) / pixels - 0.5
    ramps = torch.stack([place.expand(pixels, -1), place[:, None].expand(-1, pixels)])
    found = augmented(ramps.expand(n, -1, -1, -1).double(), seeded(), **{setting: size})
    middle, right = found[:, :, pixels // 2, pixels // 2], found[:, :, pixels // 2, pixels // 2 + 5]
    step = (right - middle) * pixels / 5
    drawn = {
        "rotation_deg": torch.rad2deg(torch.atan2(-step[:, 1], step[:, 0])),
        "scale_pct": 100 * (1 / step.norm(dim=1) - 1),
        "shift_pct": -100 * middle[:, 1],
    }[setting] / size
    assert drawn.abs().max() == pytest.approx(1, abs=0.01)
    assert drawn.mean().item() == pytest.approx(0, abs=4 / math.sqrt(3 * n))
    assert drawn.std().item() == pytest.approx(1 / math.sqrt(3), rel=0.05)


def test_a_flip_happens_to_every_second_image_and_to_all_of_it():
    x = torch.rand(1, 3, 5, 6, generator=seeded()).repeat(4000, 1, 1, 1)
    for setting, axis in (("horizontal_flip", 3), ("vertical_flip", 2)):
        found = augmented(x, seeded(), **{setting: True})
        flipped = (found == x.flip(axis)).flatten(1).all(1)
        assert torch.equal(flipped, ~(found == x).flatten(1).all(1)), "either all of an image, or nothing"
        assert 1900 < int(flipped.sum()) < 2100
    both = augmented(x, seeded(), horizontal_flip=True, vertical_flip=True)
    turned_over = (both == x.flip((2, 3))).flatten(1).all(1)
    assert 900 < int(turned_over.sum()) < 1100, "each by itself"


def test_flips_leave_the_other_draws_as_they_are(images):
    moves = {"rotation_deg": 20.0, "shift_pct": 10.0}
    found = augmented(images, seeded(3), **moves, horizontal_flip=True)
    plain, mirrored = augmented(images, seeded(3), **moves), augmented(images.flip(3), seeded(3), **moves)
    for row in range(len(images)):
        assert torch.equal(found[row], plain[row]) or torch.equal(found[row], mirrored[row])
