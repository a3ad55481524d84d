"""Weather: what is stated of its distributions holds, and nothing happens where there is none of it."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from advrisk.core.errors import StudyError
from advrisk.core.seeds import key
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions
from advrisk.parts.corruptions.plasma import plasma
from advrisk.parts.corruptions.scatter import bell, scattered, transmission
from advrisk.parts.presets import presets
from advrisk.testing import toys

BOX = Space.box(0.0, 1.0)
STRENGTH = {
    "rain": "coverage_pct",
    "snow": "coverage_pct",
    "frost": "coverage_pct",
    "fog": "optical_depth",
    "sun-flare": "glare_pct",
}
WEATHER = list(STRENGTH)


def corrupted(name, x, *, space=BOX, seed=0, **params):
    part = corruptions.get(name)
    noise = Noise([key("test", seed, row) for row in range(len(x))])
    return part.function(x, noise, torch.arange(len(x)), space, **part.bind(params))


def black(n, height=40, width=40):
    return torch.zeros(n, 1, height, width)


def level(name, number):
    return {key: values[number - 1] for key, values in corruptions.get(name).traits.levels.items()}


class TestAll:
    def test_all_of_this_cause_are_tested_here(self):
        assert {part.name for part in corruptions if part.traits.cause == "weather"} == set(WEATHER)
        assert all(corruptions.get(name).traits.inputs == "images" for name in WEATHER)
        assert all(corruptions.get(name).traits.n_levels == 5 for name in WEATHER)

    @pytest.mark.parametrize("name", WEATHER)
    def test_none_of_it_changes_nothing(self, name):
        x = toys.images(4, channels=3, size=9) * 2 - 1
        assert torch.equal(corrupted(name, x, space=Space.box(-1.0, 1.0), **{STRENGTH[name]: 0}), x)

    @pytest.mark.parametrize("name", WEATHER)
    def test_every_level_changes_more(self, name):
        x = toys.images(60, size=24) / 2
        changes = [
            float((BOX.project(corrupted(name, x, **level(name, number)), x) - x).abs().mean())
            for number in range(1, 6)
        ]
        assert changes == sorted(changes)
        assert changes[0] > 0.005
        assert changes[4] > 3 * changes[0]

    @pytest.mark.parametrize("name", WEATHER)
    @pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 7), (1, 2, 2), (3, 5, 3), (2, 17, 40)])
    def test_pictures_of_any_size(self, name, shape):
        x = torch.rand(3, *shape, generator=torch.Generator().manual_seed(0))
        for number in (1, 5):
            y = corrupted(name, x, **level(name, number))
            assert y.shape == x.shape
            assert torch.isfinite(y).all()

    @pytest.mark.parametrize("name", WEATHER)
    def test_all_channels_meet_the_same_weather(self, name):
        x = torch.full((5, 3, 20, 20), 0.25)
        y = corrupted(name, x, **level(name, 4))
        assert torch.equal(y[:, 0], y[:, 1])
        assert torch.equal(y[:, 0], y[:, 2])
        assert not torch.equal(y[0], y[1])

    @pytest.mark.parametrize("name", WEATHER)
    def test_other_bounds_mean_the_same_picture(self, name):
        x = toys.images(6, channels=3, size=12)
        low, high = -20.0, 235.0
        wide = corrupted(name, low + x * (high - low), space=Space.box(low, high), **level(name, 3))
        assert torch.allclose((wide - low) / (high - low), corrupted(name, x, **level(name, 3)), atol=1e-5)

    @pytest.mark.parametrize("name", WEATHER)
    def test_bounds_of_every_feature(self, name):
        x = toys.images(6, channels=3, size=12)
        low, high = torch.tensor([0.0, -1.0, 5.0]).view(3, 1, 1), torch.tensor([1.0, 1.0, 6.0]).view(3, 1, 1)
        each = Space(low.expand(3, 12, 12), high.expand(3, 12, 12), torch.tensor(1.0))
        own = corrupted(name, low + x * (high - low), space=each, **level(name, 3))
        assert torch.allclose((own - low) / (high - low), corrupted(name, x, **level(name, 3)), atol=1e-5)

    @pytest.mark.parametrize("name", WEATHER)
    def test_less_than_nothing_is_refused(self, name):
        with pytest.raises(StudyError, match="must be at least 0, found -1"):
            corruptions.get(name).bind({STRENGTH[name]: -1})

    def test_the_preset_holds_them_at_three_levels(self):
        (line,) = presets.get("weather").function()
        assert set(line["corruption"]) == set(WEATHER)
        assert line["level"] == [1, 3, 5]


class TestScatter:
    def test_the_number_is_poisson(self):
        things = scattered(Noise(range(4000)), torch.arange(4000), (10, 20), mean=3.0, margin=5.0)
        mean = 3.0 * (20 * 30) / (10 * 20)
        counts = things.count.numpy()
        expected = 4000 * np.diff(stats.poisson.cdf([-1, 5, 7, 9, 11, 13, 1000], mean))
        found = np.histogram(counts, bins=[0, 6, 8, 10, 12, 14, 1001])[0]
        assert stats.chisquare(found, expected).pvalue > 0.001
        assert things.down.shape[1] >= counts.max()

    def test_places_are_uniform_up_to_the_margin(self):
        things = scattered(Noise(range(500)), torch.arange(500), (10, 20), mean=3.0, margin=5.0)
        assert stats.kstest(things.down.flatten().numpy(), "uniform", (-5, 20)).pvalue > 0.001
        assert stats.kstest(things.right.flatten().numpy(), "uniform", (-5, 30)).pvalue > 0.001

    def test_normal_numbers_from_uniform_ones(self):
        assert stats.kstest(bell(torch.arange(2**12) / 2**12).numpy(), "norm").pvalue > 0.9
        assert torch.isfinite(bell(torch.tensor([0.0, 1 - 2**-24]))).all()

    def test_what_passes_is_the_product(self):
        things = scattered(Noise(range(50)), torch.arange(50), (4, 4), mean=2.0, margin=0.0)
        passed = transmission(things, (4, 4), lambda down, right, slot: 0.25 * torch.ones_like(down * right), reach=4.0)
        assert torch.allclose(passed[:, 1, 2], 0.75 ** things.count.float())

    def test_windows_leave_nothing_out(self):
        """Against every thing at every pixel."""
        things = scattered(Noise(range(20)), torch.arange(20), (7, 12), mean=6.0, margin=3.0)

        def disc(down, right, slot):
            return (1 - (down.square() + right.square()) / 2.6**2).clamp_min(0)

        passed = torch.ones(20, 7, 12)
        for row in range(20):
            for slot in range(int(things.count[row])):
                down = torch.arange(7).view(-1, 1) + 0.5 - things.down[row, slot]
                right = torch.arange(12).view(1, -1) + 0.5 - things.right[row, slot]
                passed[row] *= 1 - disc(down, right, slot)
        assert torch.allclose(transmission(things, (7, 12), disc, reach=2.6), passed, atol=1e-6)


class TestPlasma:
    @pytest.mark.parametrize("size", [(32, 32), (7, 50)])
    def test_is_standard_normal_at_every_pixel(self, size):
        field = plasma(Noise(range(2000)), torch.arange(2000), size, cells=2, fade=0.5)
        assert field.shape == (2000, *size)
        assert field.mean(0).abs().max() < 5 / math.sqrt(2000)
        assert (field.var(0) - 1).abs().max() < 5 * math.sqrt(2 / 2000)
        assert stats.kstest(field[:, 3, 4].numpy(), "norm").pvalue > 0.001

    def test_neighbours_are_alike_and_those_far_away_are_not(self):
        field = plasma(Noise(range(1000)), torch.arange(1000), (64, 64), cells=2, fade=0.5).double()
        beside = float((field[:, :, 1:] * field[:, :, :-1]).mean())
        far = float((field[:, 0, 0] * field[:, -1, -1]).mean())
        assert beside > 0.97
        assert abs(far) < 5 / math.sqrt(1000)


class TestRain:
    @pytest.mark.parametrize("setting", [{}, {"length_pct": 40, "width_pct": 1, "direction_deg": 60}])
    @pytest.mark.parametrize("coverage", [5, 40])
    def test_replaces_as_much_light_as_stated_everywhere(self, setting, coverage):
        hidden = corrupted("rain", black(400), coverage_pct=coverage, **setting)[:, 0].double() / 0.9
        stated = 1 - math.exp(-0.6 * coverage / 100)
        error = hidden.mean((1, 2)).std() / math.sqrt(400)
        assert abs(float(hidden.mean()) - stated) < 4 * float(error)
        edge = hidden[:, [0, -1]].mean() - hidden[:, 18:22].mean()  # no less rain at the border
        assert abs(float(edge)) < 0.2 * stated

    @pytest.mark.parametrize("direction", [-60.0, 0.0, 35.0])
    def test_falls_the_way_it_is_told_to(self, direction):
        y = corrupted(
            "rain", black(20, 120, 120), coverage_pct=12, direction_deg=direction, spread_deg=0, length_pct=30
        )
        found = torch.tensor([streak_direction(picture) for picture in y[:, 0]])
        assert abs(float(found.mean()) - direction) < 1
        assert (found - direction).abs().max() < 4  # as single drops differ by 2 degrees

    def test_directions_of_pictures_are_normal(self):
        y = corrupted("rain", black(300, 80, 80), coverage_pct=6, direction_deg=10, spread_deg=12, length_pct=40)
        found = np.array([streak_direction(picture) for picture in y[:, 0]])
        assert stats.kstest((found - 10) / 12, "norm").pvalue > 0.001

    def test_longer_streaks_are_fewer(self):
        short, long = (
            corrupted("rain", black(50), coverage_pct=8, length_pct=length, spread_deg=0) for length in (5, 50)
        )
        assert short.mean().item() == pytest.approx(long.mean().item(), rel=0.15)
        assert vertical_change(short) > 2 * vertical_change(long)


def streak_direction(picture):
    """Light changes least along the streaks: by the moments of a picture's spectrum, without its finest waves."""
    side = len(picture)
    window = torch.hann_window(side, periodic=False, dtype=torch.float64)
    power = torch.fft.fft2((picture.double() - picture.double().mean()) * window * window[:, None]).abs().square()
    waves = torch.fft.fftfreq(side, dtype=torch.float64)
    down, right = waves.view(-1, 1), waves.view(1, -1)
    power = torch.where((down.square() + right.square()).sqrt() < 0.2, power, 0.0)
    mixed = (power * down * right).sum()
    tensor = torch.stack([(power * down**2).sum(), mixed, mixed, (power * right**2).sum()]).view(2, 2)
    ahead_down, ahead_right = torch.linalg.eigh(tensor)[1][:, 0].tolist()
    return math.degrees(math.atan(ahead_right / ahead_down))


def vertical_change(pictures):
    return float((pictures[:, :, 1:] - pictures[:, :, :-1]).abs().mean())


class TestSnow:
    @pytest.mark.parametrize("setting", [{}, {"size_pct": 2}, {"size_pct": 15, "direction_deg": 45}])
    @pytest.mark.parametrize("coverage", [5, 40])
    def test_replaces_as_much_light_as_stated_everywhere(self, setting, coverage):
        hidden = corrupted("snow", black(300), coverage_pct=coverage, **setting)[:, 0].double()
        stated = 1 - math.exp(-coverage / 100)
        error = hidden.mean((1, 2)).std() / math.sqrt(300)
        assert abs(float(hidden.mean()) - stated) < 4 * float(error)
        edge = hidden[:, [0, -1]].mean() - hidden[:, 18:22].mean()
        assert abs(float(edge)) < 0.2 * stated

    def test_flakes_are_as_large_as_told(self):
        """One flake of (1 − ρ²)²: the ratio of its sums of opacity and squared opacity tells its area."""
        y = corrupted("snow", black(400, 100, 100), coverage_pct=0.1, size_pct=6)[:, 0].double()
        alone = y[(y.flatten(1).sum(1) > 0)]
        area = alone.flatten(1).sum(1).sum() / alone.square().flatten(1).sum(1).sum()  # (π/3) / (π/5), times overlap
        assert float(area) == pytest.approx(5 / 3, rel=0.05)


class TestFog:
    def test_optical_depth_is_lognormal_with_the_stated_mean(self):
        hidden = corrupted("fog", black(1500, 16, 16), optical_depth=0.8, patchiness=0.4)[:, 0].double() / 0.9
        depth = -torch.log1p(-hidden)
        assert float(depth.mean()) == pytest.approx(0.8, rel=0.03)
        drawn = (depth[:, 5, 9].log() - math.log(0.8) + 0.4**2 / 2) / 0.4
        assert stats.kstest(drawn.numpy(), "norm").pvalue > 0.001

    def test_even_fog_is_koschmieders_law(self):
        x = toys.images(3, size=8)
        assert torch.allclose(
            corrupted("fog", x, optical_depth=1.5, patchiness=0), x * math.exp(-1.5) + 0.9 * (1 - math.exp(-1.5))
        )


class TestFrost:
    @pytest.mark.parametrize("coverage", [0.1, 30, 77.7, 100])
    def test_covers_exactly_that_share(self, coverage):
        y = corrupted("frost", black(8, 30, 21), coverage_pct=coverage)
        assert (y > 0).flatten(1).sum(1).tolist() == [round(coverage / 100 * 30 * 21)] * 8

    def test_opacity_is_spread_evenly(self):
        y = corrupted("frost", black(3, 50, 50), coverage_pct=40)
        opacity = y[0][y[0] > 0].double() / 0.92
        assert stats.kstest(opacity.numpy(), "uniform", (0.25, 0.7)).statistic < 0.002

    def test_grows_from_the_border(self):
        covered = (corrupted("frost", black(100), coverage_pct=30)[:, 0] > 0).float().mean(0)
        rings = [covered[i : 40 - i, i : 40 - i].sum() for i in range(0, 25, 5)]
        areas = [(40 - 2 * i) ** 2 for i in range(0, 25, 5)]
        shares = [float((rings[i] - rings[i + 1]) / (areas[i] - areas[i + 1])) for i in range(4)]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] > 0.5
        assert shares[3] < 0.1


def flare(i, j, size, halo_pct, drawn):
    """The light at one pixel as docs and docstring state it, in units of the glare."""
    halo, (top, left) = halo_pct / 100 * min(size), (drawn[0] * size[0], drawn[1] * size[1])
    down, right = i + 0.5 - top, j + 0.5 - left
    others = [0.0]
    for line in range(3):
        angle = math.radians(60 * (drawn[2] + line))
        along = down * math.cos(angle) + right * math.sin(angle)
        across = abs(right * math.cos(angle) - down * math.sin(angle)) / max(0.1 * halo, 0.75)
        others.append(0.5 * (1 - across**2) ** 2 / (1 + (along / (2.5 * halo)) ** 2) ** 2 if across < 1 else 0)
    for ghost in range(3):
        far, radius = 0.5 + 2 * drawn[3 + 2 * ghost], halo * (0.2 + 0.4 * drawn[4 + 2 * ghost])
        away = math.hypot(i + 0.5 - top - (size[0] / 2 - top) * far, j + 0.5 - left - (size[1] / 2 - left) * far)
        others.append(0.1 * min(1, max(0, radius + 0.5 - away)))  # an edge of one pixel
    around = 1 / (1 + (math.hypot(down, right) / halo) ** 2) ** 2
    return around + (1 - around) * max(others)


class TestSunFlare:
    def test_the_source_is_uniform_and_as_bright_as_told(self):
        y = corrupted("sun-flare", black(400, 30, 60), glare_pct=50, halo_pct=10)[:, 0]
        brightest = y.flatten(1).argmax(1)
        down, right = brightest // 60, brightest % 60
        assert stats.kstest((down + 0.5).numpy() / 30, "uniform").pvalue > 0.001
        assert stats.kstest((right + 0.5).numpy() / 60, "uniform").pvalue > 0.001
        assert y.amin() >= 0
        off = math.hypot(0.5, 0.5) / 3  # at most, from a source to the middle of its pixel, in halos
        peaks = y.flatten(1).amax(1)
        assert peaks.max() <= 0.5
        assert peaks.min() >= 0.5 / (1 + off**2) ** 2

    @pytest.mark.parametrize("halo_pct", [8.0, 60.0])  # rays as narrow as they get, and a tenth of the halo
    def test_every_pixel_is_what_the_formula_says(self, halo_pct):
        height, width = 15, 22
        y = corrupted("sun-flare", black(3, height, width), glare_pct=70, halo_pct=halo_pct)[:, 0]
        drawn = Noise([key("test", 0, row) for row in range(3)]).uniform(torch.arange(3), (9,)).double()
        for picture, draws in zip(y, drawn.tolist(), strict=True):
            stated = [flare(i, j, (height, width), halo_pct, draws) for i in range(height) for j in range(width)]
            np.testing.assert_allclose(picture.flatten().numpy(), 0.7 * np.array(stated), atol=2e-5)

    def test_the_halo_falls_off_as_stated(self):
        """The median over all directions knows neither rays nor ghosts."""
        y = corrupted("sun-flare", black(60, 101, 101), glare_pct=100, halo_pct=10)[:, 0].double()
        down, right = torch.meshgrid(torch.arange(101), torch.arange(101), indexing="ij")
        for picture in y[:20]:
            brightest = int(picture.argmax())
            away = torch.hypot((down - brightest // 101).double(), (right - brightest % 101).double())
            ring = picture[(away - 15).abs() < 0.5]
            stated = 1 / (1 + (15 / 10.1) ** 2) ** 2
            assert float(ring.quantile(0.3)) == pytest.approx(stated, rel=0.25)

    def test_light_is_added(self):
        x = toys.images(4, size=20) / 4
        dark = corrupted("sun-flare", torch.zeros_like(x), glare_pct=60)
        assert torch.allclose(corrupted("sun-flare", x, glare_pct=60), x + dark)
