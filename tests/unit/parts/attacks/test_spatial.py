"""Turned and shifted images are what they should be, and the grid's worst case is that of a brute force."""

from dataclasses import replace

import pytest
import torch

from advrisk.core.errors import DataError, StudyError
from advrisk.engine import Goal, Noise, Probe, Space, Task
from advrisk.engine.objectives import margin
from advrisk.parts.attacks import attacks
from advrisk.parts.attacks.spatial import grid_points, moved
from advrisk.testing import toys

NET = toys.conv_net(channels=3, size=9)
IMAGES = toys.images(12, channels=3, size=9)
FINE = {"rotations": 7, "translations": 3}  # 63 points


def move_of(*numbers, n):
    return torch.tensor([numbers], dtype=torch.float64).expand(n, 3)


def turned(*numbers, x=IMAGES, outside=-0.25):
    return moved(x, move_of(*numbers, n=len(x)), outside=torch.tensor(outside))


def attacked(name, *, x0=IMAGES, model=NET, keep="first", space=None, max_queries=None, seeds=range(12), **params):
    """The batches that the attack asks the model about, and the probe it used."""
    model, record = toys.recorded(replace(model, min_rows=1))
    with torch.no_grad():
        answer = model.ask(x0)
    record.passes.clear()
    reference = answer if model.capability == "labels" else answer.argmax(1)
    task = Task(x0, Goal(reference), space or Space.box(0, 1), None, None, "margin", keep=keep, max_queries=max_queries)
    probe = Probe(model, task, Noise(list(seeds)[: len(x0)]))
    part = attacks.get(name)
    part.function(probe, **part.bind(params))
    return [x for x, _ in record.passes], probe


class TestMoved:
    def test_no_move_is_the_image_itself(self):
        assert torch.equal(turned(0, 0, 0), IMAGES)

    @pytest.mark.parametrize("quarters", [-2, -1, 1, 2, 3])
    @pytest.mark.parametrize("size", [8, 9])
    def test_quarter_turns_are_exact(self, quarters, size):
        x = toys.images(3, channels=2, size=size)
        assert torch.equal(turned(90 * quarters, 0, 0, x=x), torch.rot90(x, quarters, (2, 3)))

    @pytest.mark.parametrize(("down", "right"), [(2, 0), (0, -3), (1, 4), (-2, -2)])
    def test_shifts_by_whole_pixels_are_exact(self, down, right):
        x = toys.images(3, channels=2, size=9)[..., :7]  # not square
        expected = torch.full_like(x, -0.25)
        for i in range(9):
            for j in range(7):
                if 0 <= i - down < 9 and 0 <= j - right < 7:
                    expected[:, :, i, j] = x[:, :, i - down, j - right]
        assert torch.equal(turned(0, down, right, x=x), expected)

    def test_between_pixels_lies_the_mean(self):
        x = torch.tensor([[0.0, 1.0, 0.5]])[None, None]
        torch.testing.assert_close(turned(0, 0, 0.5, x=x, outside=0.2), torch.tensor([[[[0.1, 0.5, 0.75]]]]))

    @pytest.mark.parametrize("numbers", [(17, 1.3, -0.4), (-45, 0, 0), (5, -2.5, 3)])
    def test_is_what_torch_makes_of_it(self, numbers):
        """Its affine grid says where pixels come from as shares of the sides."""
        angle, down, right = torch.tensor(numbers, dtype=torch.float64).unbind()
        cos, sin = torch.deg2rad(angle).cos(), torch.deg2rad(angle).sin()
        x = IMAGES.double()
        shift = 2 * torch.stack([right, down]) / 9
        back = torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])])
        theta = torch.cat([back, -(back @ shift)[:, None]], 1).expand(len(x), 2, 3)
        grid = torch.nn.functional.affine_grid(theta, list(x.shape), align_corners=False)
        theirs = torch.nn.functional.grid_sample(x, grid, align_corners=False, padding_mode="zeros")
        torch.testing.assert_close(turned(*numbers, x=x, outside=0.0), theirs, atol=2e-5, rtol=0)

    def test_the_slope_is_that_of_finite_differences(self):
        weight = torch.randn(IMAGES.shape, generator=torch.Generator().manual_seed(0)).double()
        move = torch.tensor([[11.3, 0.7, -1.2]], dtype=torch.float64).repeat(len(IMAGES), 1)

        def height(numbers):
            return (moved(IMAGES.double(), numbers, outside=torch.tensor(-0.25)) * weight).flatten(1).sum(1)

        leaf = move.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(height(leaf).sum(), leaf)
        for place in range(3):
            step = 1e-4 * torch.eye(3, dtype=torch.float64)[place]
            measured = (height(move + step) - height(move - step)) / 2e-4
            torch.testing.assert_close(slope[:, place], measured, atol=0.05, rtol=0.02)

    def test_what_is_no_image_is_refused(self):
        with pytest.raises(DataError, match=r"only images can be turned and shifted, found inputs of shape \(12,\)"):
            moved(torch.zeros(2, 12), move_of(0, 0, 0, n=2), outside=torch.tensor(0.0))


class TestGrid:
    def test_the_papers_has_775_points_and_begins_with_the_clean_input(self):
        grid = grid_points(30, 3, 31, 5)
        assert grid.shape == (775, 3)
        assert not grid[0].any()
        assert len({tuple(point) for point in grid.tolist()}) == 775
        assert set(grid[:, 0].tolist()) == {float(angle) for angle in range(-30, 31, 2)}
        assert set(grid[:, 1].tolist()) == set(grid[:, 2].tolist()) == {-3, -1.5, 0, 1.5, 3}

    def test_the_smallest_moves_come_first(self):
        grid = grid_points(30, 3, 7, 5)
        share = (grid / torch.tensor([30, 3, 3])).abs().amax(1)
        assert bool((share[1:] >= share[:-1]).all())

    def test_what_has_no_room_is_there_once(self):
        assert len(grid_points(0, 3, 31, 5)) == 25
        assert len(grid_points(30, 3, 31, 1)) == 31


class TestSpatial:
    def brute_force(self, model=NET, **grid):
        """The margin of every sample at every grid point."""
        points = grid_points(30, 3, grid["rotations"], grid["translations"])
        images = [moved(IMAGES, point.expand(len(IMAGES), 3), outside=torch.tensor(0.0)) for point in points]
        goal = Goal(model.ask(IMAGES).argmax(1))
        return torch.stack([margin(model.ask(x).double(), goal) for x in images]), torch.stack(images)

    def test_the_worst_case_is_that_of_a_brute_force(self):
        height, images = self.brute_force(**FINE)
        _, probe = attacked("spatial", keep="strongest", **FINE)
        worst = height.argmax(0)
        assert torch.equal(probe.memory.success, height.amax(0) > 0)
        assert 0 < int(probe.memory.success.sum()) < len(IMAGES)
        assert torch.equal(probe.memory.kept, images[worst, torch.arange(len(IMAGES))])
        assert (probe.memory.n_forward == 63).all()

    def test_the_last_point_is_the_worst_case(self):
        _, strongest = attacked("spatial", keep="strongest", **FINE)
        _, last = attacked("spatial", keep="last", **FINE)
        assert torch.equal(last.memory.kept, strongest.memory.kept)
        assert (last.memory.n_forward == 64).all()

    def test_a_sample_leaves_with_the_block_of_its_first_success(self):
        height, _ = self.brute_force(**FINE)
        ends = torch.tensor([1, 3, 7, 15, 31, 63])
        first = torch.where((height > 0).any(0), (height > 0).int().argmax(0), 62)
        _, probe = attacked("spatial", **FINE)
        assert torch.equal(probe.memory.n_forward, ends[torch.searchsorted(ends, first + 1)])

    def test_labels_are_enough(self):
        points, probe = attacked("spatial", model=toys.label_only(NET), keep="last", **FINE)
        _, known = attacked("spatial", keep="strongest", **FINE)
        assert torch.equal(probe.memory.success, known.memory.success)
        assert sum(len(x) for x in points) == 64 * len(IMAGES)

    def test_from_labels_the_largest_successful_move_is_the_worst(self):
        kept = [attacked("spatial", model=toys.label_only(NET), keep=keep, **FINE)[1] for keep in ("last", "strongest")]
        hit = kept[0].memory.success
        assert hit.any()
        assert torch.equal(kept[0].memory.kept[hit], kept[1].memory.kept[hit])

    def test_batches_are_about_as_large_as_the_shard(self):
        points, _ = attacked("spatial", keep="strongest", **FINE)
        assert max(len(x) for x in points) <= 32
        many = toys.images(80, channels=3, size=9)
        points, _ = attacked("spatial", x0=many, seeds=range(80), keep="strongest", **FINE)
        assert max(len(x) for x in points) == 80
        assert min(len(x) for x in points) >= 16

    @pytest.mark.parametrize("limit", [1, 2, 5, 40])
    def test_max_queries_is_exact(self, limit):
        points, probe = attacked("spatial", keep="last", max_queries=limit, **FINE)
        assert (probe.memory.n_forward == limit).all()
        assert sum(len(x) for x in points) == limit * len(IMAGES)

    def test_features_that_cannot_move_do_not(self):
        still = torch.zeros(3, 9, 9, dtype=torch.bool)
        still[:, 2:5] = True
        space = Space(torch.tensor(0.0), torch.tensor(1.0), torch.tensor(1.0), immutable=still)
        _, probe = attacked("spatial", keep="strongest", space=space, **FINE)
        assert not probe.memory.failed
        assert torch.equal(probe.memory.kept[:, still], IMAGES[:, still])


class TestGradient:
    def test_climbs(self):
        """From the same starts, more steps are never worse, and mostly better."""
        few, many = (
            attacked("spatial-gradient", keep="strongest", steps=steps, restarts=1)[1].memory for steps in (1, 15)
        )
        assert (many.merit >= few.merit).double().mean() > 0.9
        assert (many.merit > few.merit).any()

    def test_passes(self):
        _, probe = attacked("spatial-gradient", keep="last", steps=4, restarts=3)
        assert (probe.memory.n_forward == 15).all()
        assert (probe.memory.n_backward == 12).all()

    def test_stays_within_its_limits(self):
        """A model that likes what lies outside: a shift by 2 pixels shows no more than 2 rows of it."""
        x0 = torch.ones(4, 1, 9, 9)
        model = replace(
            toys.conv_net(size=9),
            answer=lambda x: torch.stack([0 * x.sum((1, 2, 3)), -x.sum((1, 2, 3))], 1),
            n_classes=2,
        )
        settings = {"max_rotation": 0.0, "max_translation": 2.0, "steps": 40}
        _, probe = attacked("spatial-gradient", x0=x0, model=model, keep="strongest", **settings)
        shown = (probe.memory.kept < 0.5).flatten(1).sum(1)
        assert (shown == 81 - 49).all()

    def test_a_step_is_a_share_of_the_largest_move(self):
        with pytest.raises(StudyError, match=r"spatial-gradient.step_size: must be at most 1, found 2"):
            attacks.get("spatial-gradient").bind({"step_size": 2})
