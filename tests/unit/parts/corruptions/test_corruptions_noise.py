"""Each kind of noise against its distribution."""

import numpy as np
import pytest
import torch
from scipy import stats

from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions
from advrisk.parts.corruptions.poisson import poisson_quantile

BOX = Space.box(0.0, 1.0)


def corrupted(name, x, space=BOX, **strength):
    return corruptions.get(name).function(x, Noise(range(len(x))), torch.arange(len(x)), space, **strength)


def even(value, *shape, n=40):
    return torch.full((n, *(shape or (1, 16, 16))), value)


def is_from(values, distribution):
    return stats.kstest(values.double().flatten().numpy(), distribution).pvalue > 0.001


@pytest.mark.parametrize("sigma", [0.01, 0.5])
def test_gaussian_noise_is_normal_with_that_deviation(sigma):
    x = even(0.3)
    assert is_from((corrupted("gaussian-noise", x, sigma=sigma) - x) / sigma, "norm")


def test_the_deviation_is_a_share_of_the_range():
    x = even(100.0)
    noisy = corrupted("gaussian-noise", x, Space.box(0.0, 255.0), sigma=0.1)
    assert is_from((noisy - x) / 25.5, "norm")


def test_between_0_and_1_gaussian_noise_is_what_it_was():
    """Version 1 had no range: x + sigma·z."""
    x = even(0.3, 3, 5, 7)
    expected = x + 0.2 * Noise(range(40)).normal(torch.arange(40), (3, 5, 7))
    assert torch.equal(corrupted("gaussian-noise", x, sigma=0.2), expected)


@pytest.mark.parametrize("name", ["gaussian-noise", "uniform-noise"])
def test_these_are_for_tables_too(name):
    space = Space(torch.tensor([0.0, -5.0]), torch.tensor([1.0, 5.0]), torch.tensor([1.0, 1.0]))
    x = torch.tensor([[0.5, 2.0]]).repeat(4000, 1)
    strength = {"gaussian-noise": {"sigma": 0.1}, "uniform-noise": {"reach": 0.1 * 3**0.5}}
    moved = corrupted(name, x, space, **strength[name]) - x
    assert moved.std(0).numpy() == pytest.approx([0.1, 1.0], rel=0.04)


def test_uniform_noise_is_uniform_to_both_sides():
    x = even(0.5)
    moved = (corrupted("uniform-noise", x, reach=0.25) - x) / 0.25
    assert is_from(moved, stats.uniform(-1, 2).cdf)
    assert moved.abs().max() <= 1.0001


@pytest.mark.parametrize("share", [0.03, 0.4])
def test_salt_and_pepper_strike_a_share_of_the_pixels(share):
    x = even(0.5, 3, 16, 16)
    result = corrupted("salt-and-pepper", x, share=share)
    assert (result == result[:, :1]).all()  # all channels of a pixel
    pixels = result[:, 0]
    pepper, salt = int((pixels == 0).sum()), int((pixels == 1).sum())
    assert int((pixels == 0.5).sum()) == pixels.numel() - pepper - salt
    for struck in (pepper, salt):
        assert stats.binomtest(struck, pixels.numel(), share / 2).pvalue > 0.001


def test_all_pixels_may_be_struck():
    result = corrupted("salt-and-pepper", even(-0.5), Space.box(-1.0, 3.0), share=1.0)
    assert set(result.unique().tolist()) == {-1.0, 3.0}


def test_speckle_grows_with_the_light():
    space = Space.box(-1.0, 1.0)
    for value in (-0.5, 0.8):
        x = even(value)
        assert is_from((corrupted("speckle-noise", x, space, sigma=0.3) - x) / (0.3 * (value + 1)), "norm")
    dark = even(-1.0)
    assert torch.equal(corrupted("speckle-noise", dark, space, sigma=0.3), dark)


@pytest.mark.parametrize("value", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("sigma", [0.5, 0.2, 0.05])
def test_shot_noise_counts_photons(value, sigma):
    """As many photons as a Poisson distribution has, in a χ² test of the counts that are expected 5 times or more."""
    x = even(value)
    photons = sigma**-2
    counts = (corrupted("shot-noise", x, sigma_white=sigma).double() * photons).flatten().numpy()
    assert np.abs(counts - counts.round()).max() < 1e-3
    rate = float(x[0, 0, 0, 0]) * photons
    numbers = np.arange(counts.max() + 2)
    expected = stats.poisson.pmf(numbers, rate) * counts.size
    usual = expected >= 5
    seen = np.array([(counts.round() == number).sum() for number in numbers])
    rest = counts.size - expected[usual].sum()
    observed, awaited = seen[usual], expected[usual]
    if rest >= 1:
        observed, awaited = np.append(observed, counts.size - observed.sum()), np.append(awaited, rest)
    awaited *= observed.sum() / awaited.sum()
    assert stats.chisquare(observed, awaited).pvalue > 0.001


def test_shot_noise_has_the_deviation_of_its_name_at_white_and_its_root_below():
    space = Space.box(-1.0, 1.0)
    for share in (1.0, 0.25, 0.04):
        x = even(2 * share - 1, 1, 100, 100)
        moved = (corrupted("shot-noise", x, space, sigma_white=0.2) - x).double() / 2
        assert float(moved.mean()) == pytest.approx(0, abs=4 * 0.2 * share**0.5 / 400000**0.5)
        assert float(moved.std()) == pytest.approx(0.2 * share**0.5, rel=0.01)
    assert torch.equal(corrupted("shot-noise", even(-1.0), space, sigma_white=0.2), even(-1.0))


def test_shot_noise_too_weak_to_be_stored_is_none():
    x = even(0.3)
    assert torch.equal(corrupted("shot-noise", x, sigma_white=1e-200), x)
    assert (corrupted("shot-noise", x, sigma_white=1e-6) - x).abs().max() < 1e-5


def test_poisson_quantiles_of_small_rates_are_those_of_scipy():
    rates = np.array([0.0, 1e-9, 0.01, 0.5, 1.0, 2.5, 7.0, 12.3, 15.999])
    levels = (np.arange(2**10) + 0.5) / 2**10
    levels = np.concatenate([levels, [2.0**-25, 1 - 2.0**-25, 1e-4, 1 - 1e-4]])
    level, rate = (grid.flatten() for grid in np.meshgrid(levels, rates))
    assert (poisson_quantile(level, rate) == np.maximum(stats.poisson.ppf(level, rate), 0)).all()


@pytest.mark.parametrize(("rate", "error"), [(16.0, 2e-5), (20.0, 1.5e-5), (33.3, 5e-6), (100.0, 2e-6), (1e4, 2e-6)])
def test_poisson_quantiles_of_large_rates_are_nearly_poisson(rate, error):
    """The share of levels whose quantile is n or less, against the distribution function at n."""
    levels = (np.arange(2**20) + 0.5) / 2**20
    found = np.sort(poisson_quantile(levels, np.full(levels.size, rate)))
    numbers = np.arange(int(rate + 12 * rate**0.5))
    shares = np.searchsorted(found, numbers, side="right") / levels.size
    assert np.abs(shares - stats.poisson.cdf(numbers, rate)).max() < error
