"""Each corruption by a sensor against closed forms, brute force, other libraries and its distribution."""

import io
import math

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage, stats

from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions
from advrisk.parts.corruptions.blur import gaussian_kernel
from advrisk.parts.corruptions.defocus import disc_kernel
from advrisk.parts.corruptions.motion_blur import line_kernels
from advrisk.parts.corruptions.rotation import turned

BOX = Space.box(0.0, 1.0)


def corrupted(name, x, space=BOX, **strength):
    return corruptions.get(name).function(x, Noise(range(len(x))), torch.arange(len(x)), space, **strength)


def images(*shape, n=4):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(2))


def is_uniform(values, low, high):
    values = torch.as_tensor(values).double().flatten().numpy()
    return stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > 0.001


class TestBrightness:
    def test_stops_are_uniform_to_both_sides(self):
        space = Space.box(-1.0, 1.0)
        x = torch.tensor([-1.0, -0.5]).view(1, 1, 1, 2).repeat(3000, 1, 1, 1)
        result = corrupted("brightness", x, space, stops=1.5)
        assert (result[..., 0] == -1).all()
        assert is_uniform(((result[..., 1] + 1) / 0.5).log2(), -1.5, 1.5)

    def test_all_pixels_of_an_image_share_them(self):
        x = images(3, 4, 5)
        factor = corrupted("brightness", x, stops=1.0) / x
        torch.testing.assert_close(factor, factor[:, :1, :1, :1].expand_as(factor))


def test_contrast_keeps_the_mean_and_shrinks_the_deviation():
    x = images(3, 8, 9)
    result = corrupted("contrast", x, lost=0.75)
    torch.testing.assert_close(result.mean((2, 3)), x.mean((2, 3)))
    torch.testing.assert_close(result.std((2, 3)), 0.25 * x.std((2, 3)))
    flat = corrupted("contrast", x, lost=1.0)
    torch.testing.assert_close(flat, x.mean((2, 3), keepdim=True).expand_as(x))


class TestRotation:
    @pytest.mark.parametrize("quarters", [-1, 1, 2, 3])
    def test_quarter_turns_are_exact(self, quarters):
        for size in (5, 8):
            x = images(2, size, size)
            angles = torch.full((4, 1), 90.0 * quarters, dtype=torch.float64)
            assert torch.equal(turned(x, angles), x.rot90(quarters, (2, 3)))

    def test_half_a_turn_of_any_shape_is_exact(self):
        x = images(3, 4, 7)
        assert torch.equal(turned(x, torch.full((4, 1), 180.0, dtype=torch.float64)), x.flip(2, 3))

    @pytest.mark.parametrize("shape", [(1, 9, 9), (2, 8, 13)])
    @pytest.mark.parametrize("angle", [-70.0, 3.0, 25.0, 131.0])
    def test_any_angle_is_that_of_scipy(self, shape, angle):
        x = images(*shape)
        expected = ndimage.rotate(x.double().numpy(), angle, axes=(3, 2), reshape=False, order=1, mode="nearest")
        found = turned(x, torch.full((4, 1), angle, dtype=torch.float64))
        assert found.numpy() == pytest.approx(expected, abs=1e-5)

    def test_angles_are_uniform_to_both_sides(self):
        """A plane that rises downwards rises to the right by the sine of the angle, once it is turned."""
        x = torch.arange(5.0).view(1, 1, 5, 1).expand(3000, 1, 5, 5)
        result = corrupted("rotation", x.contiguous(), Space.box(0.0, 4.0), angle_deg=60.0)[:, 0]
        down, right = result[:, 3, 2] - result[:, 2, 2], result[:, 2, 3] - result[:, 2, 2]
        torch.testing.assert_close(down**2 + right**2, torch.ones(3000), atol=1e-4, rtol=0)
        assert is_uniform(torch.rad2deg(torch.atan2(right, down)), -60, 60)


class TestShadow:
    @pytest.mark.parametrize("shape", [(3, 6, 9), (1, 40, 30)])
    def test_is_what_its_formula_says_pixel_by_pixel(self, shape):
        space = Space.box(-1.0, 1.0)
        x = 2 * images(*shape) - 1
        result = corrupted("shadow", x, space, depth=0.6)
        drawn = Noise(range(4)).uniform(torch.arange(4), (3,)).tolist()
        _, height, width = shape
        soft = max(1, 0.05 * min(height, width))
        for row, (down, right, turn) in enumerate(drawn):
            for i in range(height):
                for j in range(width):
                    away_i, away_j = i + 0.5 - down * height, j + 0.5 - right * width
                    beyond = math.cos(2 * math.pi * turn) * away_i + math.sin(2 * math.pi * turn) * away_j
                    weight = min(1, max(0, beyond / soft + 0.5))
                    expected = -1 + (1 - 0.6 * weight) * (x[row, :, i, j] + 1)
                    torch.testing.assert_close(result[row, :, i, j], expected, rtol=0, atol=1e-5)

    def test_every_place_lies_in_the_shadow_half_of_the_time(self):
        dark = corrupted("shadow", torch.ones(4000, 1, 24, 32), depth=1.0)
        for i, j in ((0, 0), (12, 16), (23, 5)):
            assert stats.binomtest(int((dark[:, 0, i, j] < 0.5).sum()), 4000, 0.5).pvalue > 0.001

    def test_it_lies_in_every_direction(self):
        """Which of four neighbours of the middle is darkest: each as often."""
        dark = corrupted("shadow", torch.ones(4000, 1, 9, 9), depth=1.0)[:, 0]
        left, right, above, below = (dark[:, i, j] for i, j in ((4, 1), (4, 7), (1, 4), (7, 4)))
        for first, second in ((left, right), (above, below)):
            unequal = first != second
            assert unequal.sum() > 1000
            assert stats.binomtest(int((first < second).sum()), int(unequal.sum()), 0.5).pvalue > 0.001


class TestBlur:
    @pytest.mark.parametrize("shape", [(1, 20, 20), (3, 16, 25)])
    @pytest.mark.parametrize("sigma_pct", [2.0, 5.0, 12.0])
    def test_is_that_of_scipy_up_to_the_edge(self, shape, sigma_pct):
        x = images(*shape)
        sigma = sigma_pct / 100 * min(shape[1:])
        expected = ndimage.gaussian_filter(x.double().numpy(), sigma, axes=(2, 3), mode="nearest")
        assert corrupted("blur", x, sigma_pct=sigma_pct).numpy() == pytest.approx(expected, abs=2e-6)

    @pytest.mark.parametrize("sigma", [0.0, 0.1, 0.5, 3.0])
    def test_weights_are_even_and_sum_to_one(self, sigma):
        kernel = gaussian_kernel(sigma)
        assert float(kernel.sum()) == pytest.approx(1, abs=1e-15)
        assert torch.equal(kernel, kernel.flip(0))


class TestDefocus:
    @pytest.mark.parametrize("radius", [0.0, 0.3, 0.5, 0.7, 1.0, 1.6, 3.3])
    def test_weights_are_shares_of_a_disc(self, radius):
        kernel = disc_kernel(radius)
        assert float(kernel.sum()) == pytest.approx(1, abs=1e-14)
        assert torch.equal(kernel, kernel.T)
        assert torch.equal(kernel, kernel.flip(0))
        if radius:
            fine = (np.arange(-500 * len(kernel), 500 * len(kernel)) + 0.5) / 1000
            inside = fine[:, None] ** 2 + fine**2 <= radius**2
            shares = inside.reshape(len(kernel), 1000, len(kernel), 1000).sum((1, 3)) / inside.sum()
            assert kernel.numpy() == pytest.approx(shares, abs=0.015 / max(1, radius))

    @pytest.mark.parametrize("shape", [(1, 20, 20), (3, 16, 25)])
    def test_is_the_mean_over_the_disc_up_to_the_edge(self, shape):
        x = images(*shape)
        kernel = disc_kernel(0.1 * min(shape[1:])).numpy()
        expected = ndimage.convolve(x.double().numpy(), kernel[None, None], mode="nearest")
        assert corrupted("defocus", x, radius_pct=10.0).numpy() == pytest.approx(expected, abs=2e-6)


class TestMotionBlur:
    def test_weights_along_the_axes_in_closed_form(self):
        """The mean of 1 − |t| over a way of two pixels: one half in the middle, a quarter on either side."""
        across, upright = line_kernels(2.0, [0.0, math.pi / 2])
        expected = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
        torch.testing.assert_close(across[2, 1:4], expected)
        torch.testing.assert_close(upright[1:4, 2], expected)

    @pytest.mark.parametrize("length", [0.0, 0.4, 1.0, 3.7, 8.0])
    def test_weights_are_even_and_sum_to_one(self, length):
        kernels = line_kernels(length, [0.0, 0.3, 1.2, 2.0, 3.1])
        torch.testing.assert_close(kernels.sum((1, 2)), torch.ones(5, dtype=torch.float64))
        torch.testing.assert_close(kernels, kernels.flip(1, 2))

    @pytest.mark.parametrize("length_pct", [10.0, 23.0])
    def test_is_the_mean_along_the_way(self, length_pct):
        """Far from the edge, by brute force: scipy's bilinear values at 4,000 points of the way."""
        x = images(1, 31, 40)
        angles = math.pi * Noise(range(4)).uniform(torch.arange(4), ()).double().numpy()
        result = corrupted("motion-blur", x, length_pct=length_pct)
        along = ((np.arange(4000) + 0.5) / 4000 - 0.5) * length_pct / 100 * 31
        for row, angle in enumerate(angles):
            for i, j in ((15, 20), (10, 9), (20, 33)):
                way = np.array([i + along * np.sin(angle), j + along * np.cos(angle)])
                expected = ndimage.map_coordinates(x[row, 0].double().numpy(), way, order=1).mean()
                assert float(result[row, 0, i, j]) == pytest.approx(expected, abs=0.003)

    def test_directions_are_uniform(self):
        """A point becomes a line, whose direction its second moments tell."""
        x = torch.zeros(1500, 1, 25, 25)
        x[:, :, 12, 12] = 1
        line = corrupted("motion-blur", x, length_pct=60.0)[:, 0].double()
        away = torch.arange(25.0, dtype=torch.float64) - 12
        down, right, both = (
            (line * moment).sum((1, 2)) for moment in (away[:, None] ** 2, away**2, away[:, None] * away)
        )
        assert is_uniform((torch.atan2(2 * both, right - down) / 2).remainder(math.pi), 0, math.pi)


class TestJpeg:
    @pytest.mark.parametrize("quality", [1, 30, 75, 100])
    @pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (3, 5, 7), (2, 9, 8)])
    def test_is_that_of_pillow(self, quality, shape):
        stored = torch.randint(0, 256, (3, *shape), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
        result = corrupted("jpeg", stored / 255, quality=quality)
        for image, found in zip(stored.numpy(), result.numpy(), strict=True):
            pictures = [image.transpose(1, 2, 0)] if len(image) == 3 else list(image)
            decoded = [self.decoded(picture, quality) for picture in pictures]
            expected = decoded[0].transpose(2, 0, 1) if len(image) == 3 else np.stack(decoded)
            assert (np.float32(expected) / np.float32(255) == found).all()

    def decoded(self, picture, quality):
        file = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(picture)).save(file, format="jpeg", quality=quality)
        return np.asarray(Image.open(io.BytesIO(file.getvalue())))

    def test_the_best_quality_hardly_changes_a_smooth_picture(self):
        x = torch.linspace(0, 1, 32).view(1, 1, 1, 32).expand(2, 1, 32, 32).contiguous()
        assert (corrupted("jpeg", x, quality=100) - x).abs().max() < 3 / 255


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 14), (2, 7, 5)])
@pytest.mark.parametrize("block_pct", [10.0, 25.0, 40.0, 100.0])
def test_pixelation_shows_means_of_blocks(shape, block_pct):
    x = images(*shape, n=2)
    result = corrupted("pixelation", x, block_pct=block_pct)
    side = max(1, round(block_pct / 100 * min(shape[1:])))
    for i in range(shape[1]):
        for j in range(shape[2]):
            top, left = i // side * side, j // side * side
            block = x[:, :, top : top + side, left : left + side].double().mean((2, 3))
            torch.testing.assert_close(result[:, :, i, j].double(), block, rtol=0, atol=1e-6)


class TestHotPixels:
    def test_strike_a_share_of_the_pixels_in_one_channel_each(self):
        x = torch.full((60, 3, 16, 16), 0.25)
        hot = corrupted("hot-pixels", x, Space.box(-1.0, 2.0), share=0.1) == 2
        n_pixels = 60 * 16 * 16
        assert hot.sum(1).max() == 1
        assert stats.binomtest(int(hot.sum()), n_pixels, 0.1).pvalue > 0.001
        assert stats.chisquare(hot.sum((0, 2, 3)).numpy()).pvalue > 0.001

    def test_leave_everything_else_as_it_is(self):
        x = images(3, 16, 16) * 0.9
        result = corrupted("hot-pixels", x, share=0.1)
        assert ((result == x) | (result == 1)).all()


class TestColourCast:
    def gains(self, channels, n=3000):
        x = torch.tensor([-1.0, -0.5]).view(1, 1, 1, 2).repeat(n, channels, 1, 1)
        result = corrupted("colour-cast", x, Space.box(-1.0, 1.0), stops=0.8)
        assert (result[..., 0] == -1).all()
        return ((result[:, :, 0, 1] + 1) / 0.5).double().log2()

    def test_colours_are_uniform_on_the_circle(self):
        gains = self.gains(3)
        torch.testing.assert_close(gains.sum(1), torch.zeros(3000, dtype=torch.float64), rtol=0, atol=1e-5)
        squares = torch.full((3000,), 1.5 * 0.64, dtype=torch.float64)
        torch.testing.assert_close((gains**2).sum(1), squares, rtol=0, atol=1e-5)
        red, green, blue = gains.T
        assert is_uniform(torch.atan2((green - blue) / 3**0.5, red).remainder(2 * math.pi), 0, 2 * math.pi)

    def test_a_gray_image_becomes_brighter_or_darker(self):
        """The cosine of a uniform angle has the arcsine distribution."""
        gains = self.gains(1)[:, 0].numpy() / 0.8
        assert stats.kstest(gains, stats.arcsine(-1, 2).cdf).pvalue > 0.001
