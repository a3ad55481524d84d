import itertools
import re

import pytest
import torch

from advrisk.engine import Space, within_rounding
from advrisk.engine.norms import NORMS


def tensor(*values):
    return torch.tensor(values, dtype=torch.float32)


def mask(*values):
    return torch.tensor(values, dtype=torch.bool)


def uniform(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def table(**masks):
    """Four columns in [-10, 10], in units of 1, 2, 4 and 1."""
    return Space(tensor(-10, -10, -10, -10), tensor(10, 10, 10, 10), tensor(1, 2, 4, 1), **masks)


class TestDistance:
    @pytest.mark.parametrize(("norm", "expected"), [("l0", 3), ("l1", 4.5), ("l2", (9 + 1 + 0.25) ** 0.5), ("linf", 3)])
    def test_is_measured_in_units_of_scale(self, norm, expected):
        x0, x = tensor(0, 0, 0, 5)[None], tensor(3, -2, 2, 5)[None]
        assert table().distance(x, x0, norm).item() == pytest.approx(expected)

    @pytest.mark.parametrize(("norm", "expected"), [("l0", 2), ("l1", 4), ("l2", 10**0.5), ("linf", 3)])
    def test_a_changed_category_counts_one(self, norm, expected):
        x0, x = tensor(0, 0, 0, 0)[None], tensor(3, 0, 0, 7)[None]
        space = table(category=mask(0, 0, 0, 1))
        assert space.distance(x, x0, norm).item() == pytest.approx(expected)


class TestProject:
    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_without_masks_is_the_projection_in_scaled_units(self, norm):
        """Among many feasible points none is nearer (in units of scale) than the projection."""
        space, eps = table(), 1.5
        x0 = uniform(1, 4) * 20 - 10
        x = x0 + (uniform(1, 4, seed=1) - 0.5) * 30
        projected = space.project(x, x0, norm=norm, eps=eps)
        assert space.valid(projected, x0).all()
        assert space.distance(projected, x0, norm).item() <= eps * (1 + 1e-5)
        candidates = x0 + (uniform(200_000, 4, seed=2) * 2 - 1) * eps * space.scale
        feasible = space.valid(candidates, x0) & (space.distance(candidates, x0, norm) <= eps)
        assert feasible.sum() > 1000
        nearest = space.distance(candidates[feasible], x, "l2").min()
        assert space.distance(projected, x, "l2").item() <= nearest.item() * (1 + 1e-6)

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("masks", [{}, {"integer": mask(0, 1, 0, 0), "category": mask(0, 0, 0, 1)}])
    def test_a_limit_for_each_row_is_that_rows_own(self, norm, masks):
        space, x0 = table(**masks), (uniform(9, 4) * 20 - 10).round()
        x, limits = x0 + (uniform(9, 4, seed=1) - 0.5) * 30, torch.linspace(0, 4, 9)
        together = space.project(x, x0, norm=norm, eps=limits)
        for row, limit in enumerate(limits.tolist()):
            one = slice(row, row + 1)
            assert torch.equal(together[one], space.project(x[one], x0[one], norm=norm, eps=limit))

    def test_without_eps_only_the_bounds_hold(self):
        x0 = tensor(0, 0, 0, 0)[None]
        assert table().project(tensor(-99, 3, 11, 10)[None], x0).tolist() == [[-10, 3, 10, 10]]

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_an_immutable_feature_takes_no_share_of_the_ball(self, norm):
        """However far the immutable feature was pushed, the others go where they would go without it."""
        x0 = tensor(1, 1, 1, 1)[None]
        pushed = table(immutable=mask(1, 0, 0, 0)).project(tensor(9, 3, 4, 0.5)[None], x0, norm=norm, eps=0.6)
        expected = table().project(tensor(1, 3, 4, 0.5)[None], x0, norm=norm, eps=0.6)
        assert pushed[0, 0] == 1
        torch.testing.assert_close(pushed, expected)

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("scale", [1, 3, 7, 10, 12, 100])
    @pytest.mark.parametrize("sign", [-1, 1])
    def test_an_integer_goes_as_many_whole_steps_as_eps_allows(self, norm, scale, sign):
        """eps = k/scale allows k steps, though 1/3 is no number in binary."""
        space = Space(torch.tensor(-1000.0), torch.tensor(1000.0), torch.tensor(float(scale)), integer=mask(1))
        for start, steps in itertools.product((0, 123), range(1, 40)):
            x0 = torch.tensor([[float(start)]])
            for eps in (steps / scale, (steps + 0.9) / scale):
                projected = space.project(x0 + sign * 800, x0, norm=norm, eps=eps)
                assert projected.item() == start + sign * steps
                assert space.distance(projected, x0, norm).item() <= within_rounding(eps, space, norm, (1,))

    @pytest.mark.parametrize("norm", NORMS)
    def test_with_every_mask_the_result_is_valid_and_within_eps(self, norm):
        space = table(immutable=mask(1, 0, 0, 0), integer=mask(0, 1, 0, 0), category=mask(0, 0, 0, 1))
        x0 = (uniform(300, 4) * 20 - 10).round()
        x = x0 + (uniform(300, 4, seed=1) - 0.5) * 40
        for eps in (0.0, 0.4, 1.0, 2.5):
            projected = space.project(x, x0, norm=norm, eps=eps)
            assert space.valid(projected, x0).all()
            reach = within_rounding(eps, space, norm, (4,))
            assert (space.distance(projected.double(), x0.double(), norm) <= reach).all()

    def test_a_category_takes_the_nearest_code_however_far(self):
        """A change counts one, whatever the codes are called: eps = 1 in linf allows any."""
        space = table(category=mask(0, 0, 0, 1))
        x0 = tensor(0, 0, 0, 0)[None]
        projected = space.project(tensor(5, 0, 0, 6.6)[None], x0, norm="linf", eps=1.0)
        assert projected.tolist() == [[1, 0, 0, 7]]

    def test_a_category_that_eps_does_not_allow_is_put_back(self):
        space = table(category=mask(0, 0, 0, 1))
        x0 = tensor(0, 0, 0, 2)[None]
        assert space.project(tensor(0.3, 0, 0, 6)[None], x0, norm="linf", eps=0.5).tolist() == [
            pytest.approx([0.3, 0, 0, 2])
        ]

    def test_category_codes_stay_within_bounds(self):
        space = Space(torch.tensor(-0.5), torch.tensor(4.5), torch.tensor(1.0), category=mask(1))
        x0 = torch.tensor([[1.0]])
        assert space.project(torch.tensor([[9.0]]), x0).item() == 4
        assert space.project(torch.tensor([[-9.0]]), x0).item() == 0

    def test_nan_stays_nan_so_that_it_is_noticed(self):
        for space, norm in itertools.product((table(), table(integer=mask(0, 1, 0, 0))), ("l1", "l2", "linf", None)):
            x0 = tensor(0, 0, 0, 0)[None]
            eps = None if norm is None else 0.5
            projected = space.project(tensor(torch.nan, 3, 3, 3)[None], x0, norm=norm, eps=eps)
            assert not space.valid(projected, x0).any()


class TestValid:
    SPACE = table(immutable=mask(1, 0, 0, 0), integer=mask(0, 1, 0, 0), category=mask(0, 0, 0, 1))
    X0 = tensor(0.5, 1, 0, 2)

    @pytest.mark.parametrize(
        ("x", "violation"),
        [
            ((0.5, 3, 9.9, 7), None),
            ((0.5, 1, 10.5, 2), r"feature 2 is 10.5, outside \[-10, 10\]"),
            ((0.5, -11, 0, 2), "feature 1 is -11"),
            ((0.6, 1, 0, 2), "immutable feature 0 changed"),
            ((0.5, 1.5, 0, 2), "not a whole number"),
            ((0.5, 1, 0, 2.5), "not a whole number"),
            ((0.5, 1, float("nan"), 2), "not finite"),
            ((0.5, 1, float("inf"), 2), "not finite"),
        ],
    )
    def test_says_what_is_wrong(self, x, violation):
        point = tensor(*x)
        assert self.SPACE.valid(point[None], self.X0[None]).item() is (violation is None)
        if violation:
            assert re.search(violation, self.SPACE.violation(point, self.X0))

    def test_looks_at_each_row(self):
        x = torch.stack([self.X0, self.X0 + 1])
        assert self.SPACE.valid(x, self.X0.expand(2, -1)).tolist() == [True, False]

    def test_images_have_one_pair_of_bounds(self):
        images = uniform(3, 1, 4, 4)
        images[1, 0, 2, 3] = -0.001
        assert Space.box(0, 1).valid(images, images).tolist() == [True, False, True]
        assert "feature 11 is -0.001" in Space.box(0, 1).violation(images[1], images[1])


class TestRounding:
    def test_eight_bits_are_the_multiples_of_1_255(self):
        x = uniform(100)
        stored = Space.box(0, 1).rounded_8bit(x)
        levels = torch.arange(256) / 255
        nearest = levels[(x[:, None] - levels).abs().argmin(1)]
        torch.testing.assert_close(stored, nearest)

    def test_eight_bits_follow_the_bounds(self):
        stored = Space(tensor(-1, 2), tensor(1, 2), tensor(1, 1)).rounded_8bit(tensor(0.001, 2)[None])
        torch.testing.assert_close(stored, tensor(1 / 255, 2)[None])  # -1 + 128/255·2, and a feature with one value

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("eps", [1e-3, 0.1, 10.0])
    @pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (1000.0, 1001.0)])
    def test_what_was_projected_is_within_rounding(self, norm, eps, low, high):
        """Storing x0 + delta in float32 moves every feature a little; with 3,072 of them this adds up in l1.

        Equal features round alike, so their errors do not cancel.
        """
        space, shape = Space.box(low, high), (3, 32, 32)
        x0 = torch.cat([uniform(20, *shape), torch.full((20, *shape), 0.7)]) * (high - low) + low
        direction = torch.cat([uniform(20, *shape, seed=1) - 0.5, torch.ones(20, *shape)])
        projected = space.project(x0 + direction * eps * 5, x0, norm=norm, eps=eps)
        reach = within_rounding(eps, space, norm, shape)
        assert (space.distance(projected, x0, norm) <= reach).all()
        assert (space.distance(projected.double(), x0.double(), norm) <= reach).all()

    @pytest.mark.parametrize(("norm", "most"), [("linf", 1e-6), ("l2", 1e-5), ("l1", 1e-3), ("l0", 1e-4)])
    def test_is_no_licence(self, norm, most):
        assert 8 <= within_rounding(8, Space.box(0, 1), norm, (3, 32, 32)) < 8 * (1 + 2e-5) + most


def test_moves_to_a_device_whole():
    space = table(integer=mask(0, 1, 0, 0)).to("meta")
    assert {space.low.device.type, space.high.device.type, space.scale.device.type} == {"meta"}
    assert space.integer.device.type == "meta"
    assert space.category is None
