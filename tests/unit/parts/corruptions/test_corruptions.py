"""What all corruptions by sensors and noise have in common; what each does is in the two files beside this one."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_sample_images

from advrisk.core.errors import StudyError
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions

BOX = Space.box(0.0, 1.0)
OURS = [part for part in corruptions if part.traits.cause in ("sensor", "noise")]
NO_ZERO = ["jpeg"]  # the best quality still rounds
MIXING = [
    "blur",
    "contrast",
    "defocus",
    "jpeg",
    "motion-blur",
    "pixelation",
    "rotation",
]  # a pixel shows its neighbours

each = pytest.mark.parametrize("part", OURS, ids=lambda part: part.name)


def corrupted(part, x, space=BOX, **strength):
    return part.function(x, Noise(range(len(x))), torch.arange(len(x)), space, **strength)


def at_level(part, level):
    return {name: values[level - 1] for name, values in part.traits.levels.items()}


def images(*shape, n=6):
    """Multiples of 1/255, so that 8 bits hold them."""
    return torch.randint(0, 256, (n, *shape), generator=torch.Generator().manual_seed(1)) / 255


def photographs():
    """60 cuts of 64 × 64 from two photographs."""
    cuts = [
        photo[i : i + 64, j : j + 64]
        for photo in load_sample_images().images
        for i in range(0, 320, 64)
        for j in range(0, 384, 64)
    ]
    return torch.from_numpy(np.array(cuts).transpose(0, 3, 1, 2) / np.float32(255))


@each
def test_there_are_five_levels(part):
    assert part.traits.n_levels == 5
    assert [len(values) for values in part.traits.levels.values()] == [5]
    for level in range(1, 6):
        assert part.bind(at_level(part, level)) == at_level(part, level)


@each
def test_photographs_change_more_at_higher_levels(part):
    changes = changes_by_level(part, photographs())
    assert changes[0] > 0
    assert all(later > 1.1 * earlier for earlier, later in pairwise(changes)), changes


@each
def test_small_digits_change_no_less_at_higher_levels(part):
    """Of 8 × 8 pixels, so that the least blur is none."""
    digits = torch.from_numpy(load_digits().images[:200, None] / 16).float()
    changes = changes_by_level(part, digits)
    assert changes == sorted(changes)
    assert changes[-1] > 0


def changes_by_level(part, x):
    results = [BOX.project(corrupted(part, x, **at_level(part, level)), x) for level in range(1, 6)]
    return [float(((result - x) ** 2).mean()) for result in results]


@pytest.mark.parametrize("part", [part for part in OURS if part.name not in NO_ZERO], ids=lambda part: part.name)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0), (-2.1, 2.6)])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 12)])
def test_no_strength_changes_nothing(part, bounds, shape):
    low, high = bounds
    x = low + (high - low) * images(*shape)
    result = corrupted(part, x, Space.box(low, high), **dict.fromkeys(part.traits.levels, 0.0))
    assert torch.equal(result, x)


@each
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 1), (1, 5, 7), (3, 7, 5), (3, 1, 9), (4, 2, 3)])
@pytest.mark.parametrize("level", [1, 5])
def test_images_may_have_any_shape(part, shape, level):
    x = images(*shape)
    result = corrupted(part, x, **at_level(part, level))
    assert result.shape == x.shape
    assert torch.isfinite(result).all()


@each
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 255.0)])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 12)])
def test_a_level_means_the_same_between_other_bounds(part, bounds, shape):
    low, high = bounds
    x = images(*shape)
    result = corrupted(part, low + (high - low) * x, Space.box(low, high), **at_level(part, 3))
    expected = low + (high - low) * corrupted(part, x, **at_level(part, 3))
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=2e-6 * (high - low))


@pytest.mark.parametrize("part", [part for part in OURS if part.name not in MIXING], ids=lambda part: part.name)
def test_every_feature_may_have_bounds_of_its_own(part):
    x = images(3, 4, 5)
    low = torch.linspace(-3, 3, 60).view(3, 4, 5)
    high = low + torch.linspace(0.5, 4, 60).flip(0).view(3, 4, 5)
    result = corrupted(part, low + (high - low) * x, Space(low, high, torch.tensor(1.0)), **at_level(part, 3))
    expected = low + (high - low) * corrupted(part, x, **at_level(part, 3))
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["jpeg", "shot-noise"])
def test_a_feature_without_room_stays(name):
    space = Space(torch.zeros(1, 4, 4), torch.ones(1, 4, 4).index_fill(2, torch.tensor([1]), 0.0), torch.tensor(1.0))
    part = corruptions.get(name)
    result = corrupted(part, images(1, 4, 4) * space.high, space, **at_level(part, 3))
    assert torch.isfinite(result).all()
    assert (result[..., 1] == 0).all()


@pytest.mark.parametrize("name", ["blur", "defocus", "motion-blur", "pixelation", "rotation", "contrast"])
@pytest.mark.parametrize("level", [1, 5])
def test_an_even_surface_stays_even(name, level):
    part = corruptions.get(name)
    x = torch.tensor([0.1, 0.5, 0.7]).view(1, 3, 1, 1).expand(4, 3, 20, 30).contiguous()
    torch.testing.assert_close(corrupted(part, x, **at_level(part, level)), x, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("gaussian-noise", {}, "needs sigma: float"),
        ("gaussian-noise", {"sigma": -1}, "must be at least 0"),
        ("jpeg", {"quality": 0}, "must be at least 1"),
        ("jpeg", {"quality": 101}, "must be at most 100"),
        ("jpeg", {"quality": 50.5}, "a whole number is needed"),
        ("rotation", {"angle_deg": 200}, "must be at most 180"),
        ("rotation", {"angle": 20}, "rotation has no parameter 'angle'; did you mean 'angle_deg'?"),
        ("salt-and-pepper", {"share": 1.5}, "must be at most 1"),
        ("brightness", {"stops": 100}, "must be at most 20"),
    ],
)
def test_the_strength_must_be_said_and_make_sense(name, given, message):
    with pytest.raises(StudyError, match=message):
        corruptions.get(name).bind(given)
