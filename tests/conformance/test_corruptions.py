"""Every registered corruption on toy images; and the kit itself against broken corruptions."""

import pytest
import torch

from advrisk.core.registry import Registry
from advrisk.core.traits import CorruptionTraits
from advrisk.parts.corruptions import corruptions
from advrisk.testing import ConformanceError, check_corruption, toys

SETTINGS = {
    "blur": [{"sigma_pct": 3.5}, {"sigma_pct": 40.0}],
    "brightness": [{"stops": 1.0}, {"stops": 20.0}],
    "colour-cast": [{"stops": 0.5}, {"stops": 20.0}],
    "column-drift": [{"shift_scales": 0.3}, {"shift_scales": -2.0, "share": 1}],
    "contrast": [{"lost": 0.5}, {"lost": 1.0}],
    "defocus": [{"radius_pct": 5.0}, {"radius_pct": 60.0}],
    "fog": [{"optical_depth": 0.4}, {"optical_depth": 3.0, "patchiness": 2.0}],
    "frost": [{"coverage_pct": 30}],
    "gaussian-noise": [{"sigma": 0.1}, {"sigma": 3.0}],
    "hot-pixels": [{"share": 0.05}, {"share": 0.9}],
    "jpeg": [{"quality": 1}, {"quality": 50}, {"quality": 100}],
    "missing-values": [{"share": 0.2}, {"share": 0.5, "fill": 0.5}],
    "motion-blur": [{"length_pct": 17.0}, {"length_pct": 100.0}],
    "pixelation": [{"block_pct": 25.0}, {"block_pct": 100.0}],
    "rain": [{"coverage_pct": 10}, {"coverage_pct": 40, "direction_deg": -30, "length_pct": 90}],
    "rotation": [{"angle_deg": 15.0}, {"angle_deg": 180.0}],
    "salt-and-pepper": [{"share": 0.1}, {"share": 1.0}],
    "shadow": [{"depth": 0.5}, {"depth": 1.0}],
    "shot-noise": [{"sigma_white": 0.001}, {"sigma_white": 0.1}, {"sigma_white": 5.0}],
    "snow": [{"coverage_pct": 10}, {"coverage_pct": 60, "size_pct": 15}],
    "speckle-noise": [{"sigma": 0.3}, {"sigma": 3.0}],
    "sun-flare": [{"glare_pct": 80}],
    "table-noise": [{"sigma_scales": 0.2}],
    "uniform-noise": [{"reach": 0.1}, {"reach": 3.0}],
    "unit-error": [{"factor": 2.54}, {"factor": 1000.0, "row_share": 0.5}],
}


@pytest.mark.parametrize("part", list(corruptions), ids=lambda part: part.name)
def test_keeps_its_promises(part):
    for params in SETTINGS[part.name]:
        if part.traits.inputs != "tables":
            check_corruption(part, params=params)
            check_corruption(part, params=params, x=toys.images(20, channels=3, size=7)[:, :, :5])
            check_corruption(part, params=params, x=toys.images(20, channels=2, size=3))
        if part.traits.inputs != "images":
            check_corruption(part, params=params, x=toys.images(20, size=5).flatten(1))


@pytest.mark.parametrize("part", list(corruptions), ids=lambda part: part.name)
def test_every_level_keeps_its_promises(part):
    levels = [
        {name: values[place] for name, values in part.traits.levels.items()} for place in range(part.traits.n_levels)
    ]
    x = toys.images(20, channels=3, size=32) if part.traits.inputs != "tables" else toys.images(20, size=5).flatten(1)
    for params in levels:
        check_corruption(part, params=params, x=x)


class TestTheKit:
    def refused(self, function, message, *, random=True):
        registry = Registry("corruptions")
        registry.register("broken", traits=CorruptionTraits("tests", "tests", random=random))(function)
        with pytest.raises(ConformanceError, match=message):
            check_corruption(registry.get("broken"))

    def test_an_honest_corruption_passes(self):
        registry = Registry("corruptions")
        registry.register("dark", traits=CorruptionTraits("tests", "tests", random=False))(
            lambda x, noise, rows, space: x * 0.5
        )
        check_corruption(registry.get("dark"))

    def test_another_shape(self):
        self.refused(lambda x, noise, rows, space: x[:, :, :-1], "to keep the shape, seen: .*7, 8")

    def test_another_type(self):
        self.refused(lambda x, noise, rows, space: x.double(), "to keep the type torch.float32, seen: torch.float64")

    def test_no_number(self):
        self.refused(lambda x, noise, rows, space: x / 0, "finite numbers")

    def test_writing_into_its_input(self):
        self.refused(lambda x, noise, rows, space: x.mul_(0.5), "to leave its input as it is")

    def test_looking_at_its_batch_mates(self):
        self.refused(lambda x, noise, rows, space: x - x.mean(), "whatever their batch mates")

    def test_looking_at_its_place_in_the_batch(self):
        self.refused(lambda x, noise, rows, space: x + rows.view(-1, 1, 1, 1), "whatever their batch mates")

    def test_being_random_without_saying_so(self):
        def corruption(x, noise, rows, space):
            return x + noise.normal(rows, tuple(x.shape[1:]))

        self.refused(corruption, "not to be random", random=False)

    def test_saying_it_is_random_without_being_so(self):
        self.refused(lambda x, noise, rows, space: x * 0.5, "is to be random")

    def test_not_repeating_itself(self):
        generator = torch.Generator().manual_seed(0)
        self.refused(
            lambda x, noise, rows, space: x + torch.rand(x.shape, generator=generator), "the same for the same seed"
        )

    def test_drawing_from_a_global_generator(self):
        def corruption(x, noise, rows, space):
            torch.rand(1)
            return x + noise.normal(rows, tuple(x.shape[1:]))

        with torch.random.fork_rng(devices=()):
            self.refused(corruption, "global random generator moved")
