import itertools
import math

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from advrisk.engine.noise import Noise
from advrisk.engine.norms import NORMS, length, project_ball_and_box, random_in_ball, steepest

DUAL = {"linf": 1, "l2": 2, "l1": np.inf}


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def box_around_zero(*shape, seed=1):
    """Bounds of which some are tight, some loose, and some forbid one direction."""
    unit = torch.rand(2, *shape, generator=torch.Generator().manual_seed(seed))
    low, high = -unit[0], unit[1]
    return torch.where(low > -0.1, 0.0, low), torch.where(high > 0.9, 20.0, high)


@pytest.mark.parametrize(("norm", "order"), [("l0", 0), ("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_length_is_the_norm_of_each_row(norm, order):
    delta = normal(5, 2, 3, 3)
    delta[:, 0, 0] = 0
    expected = [np.linalg.norm(row.ravel(), order) for row in delta.numpy()]
    np.testing.assert_allclose(length(delta, norm).numpy(), expected, rtol=1e-6)


class TestProjection:
    @staticmethod
    def nearest_by_scipy(delta, low, high, norm, eps):
        """Minimise ‖z − delta‖² over the box and the ball; z = p − q with p, q >= 0 keeps l1 smooth."""
        d = len(delta)

        def z(v):
            return v[:d] - v[d:]

        inside = {
            "l1": lambda v: eps - v.sum(),
            "l2": lambda v: eps**2 - (z(v) ** 2).sum(),
            "linf": lambda v: eps - np.abs(z(v)).max(),
        }[norm]
        bounds = [(0, h) for h in high] + [(0, -lo) for lo in low]
        if norm == "linf":
            bounds = [(0, min(h, eps)) for h in high] + [(0, min(-lo, eps)) for lo in low]
        best = optimize.minimize(
            lambda v: ((z(v) - delta) ** 2).sum(),
            np.zeros(2 * d) + 1e-3,
            bounds=bounds,
            constraints=[] if norm == "linf" else [{"type": "ineq", "fun": inside}],
            method="L-BFGS-B" if norm == "linf" else "SLSQP",
            options={"maxiter": 500} if norm == "linf" else {"maxiter": 500, "ftol": 1e-12},
        )
        return z(best.x)

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("size", [0.3, 1.0, 5.0])
    def test_is_the_nearest_point_that_an_optimiser_finds(self, norm, size):
        n, d, eps = 12, 5, 0.7
        delta = normal(n, d, seed=3) * size
        low, high = box_around_zero(n, d)
        ours = project_ball_and_box(delta, low, high, norm, eps)
        for row in range(n):
            reference = self.nearest_by_scipy(*(t[row].double().numpy() for t in (delta, low, high)), norm, eps)
            np.testing.assert_allclose(ours[row].numpy(), reference, atol=2e-3)

    @pytest.mark.parametrize("count", [0, 1, 2, 3, 6])
    def test_l0_is_the_best_of_all_subsets(self, count):
        n, d = 15, 6
        delta = normal(n, d, seed=4) * 2
        low, high = box_around_zero(n, d, seed=5)
        ours = project_ball_and_box(delta, low, high, "l0", count)
        boxed = torch.clamp(delta, low, high)
        assert ((ours != 0).sum(1) <= count).all()
        assert ((ours == 0) | (ours == boxed)).all()
        for row in range(n):
            candidates = []
            for subset in itertools.combinations(range(d), count):
                point = torch.zeros(d)
                point[list(subset)] = boxed[row, list(subset)]
                candidates.append(float((point - delta[row]).norm()))
            assert float((ours[row] - delta[row]).norm()) == pytest.approx(min(candidates), rel=1e-6)

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("far", [1e-3, 1.0, 1e4])
    def test_lands_in_ball_and_box_and_stays(self, norm, far):
        delta = normal(40, 3, 4, 4) * far
        low, high = box_around_zero(40, 3, 4, 4)
        eps = 5 if norm == "l0" else 0.8
        once = project_ball_and_box(delta, low, high, norm, eps)
        assert (length(once.double(), norm) <= eps * (1 + 2e-6)).all()
        assert ((once >= low) & (once <= high)).all()
        torch.testing.assert_close(project_ball_and_box(once, low, high, norm, eps), once, atol=1e-5, rtol=1e-5)

    @pytest.mark.parametrize("norm", ["l1", "l2"])
    def test_uses_the_whole_ball_where_the_box_allows(self, norm):
        delta = normal(40, 48) * 100
        low, high = torch.full((40, 48), -1.0), torch.full((40, 48), 1.0)
        projected = project_ball_and_box(delta, low, high, norm, 0.5)
        torch.testing.assert_close(length(projected.double(), norm), torch.full((40,), 0.5).double(), rtol=3e-6, atol=0)

    def test_l0_without_a_limit_is_the_box(self):
        delta = normal(4, 9) * 3
        projected = project_ball_and_box(delta, delta * 0 - 1, delta * 0 + 1, "l0", float("inf"))
        assert torch.equal(projected, delta.clamp(-1, 1))

    @pytest.mark.parametrize("norm", NORMS)
    def test_a_point_inside_does_not_move(self, norm):
        delta = torch.zeros(3, 10)
        delta[:, 2] = torch.tensor([0.1, -0.2, 0.05])
        projected = project_ball_and_box(delta, torch.full_like(delta, -1), torch.full_like(delta, 1), norm, 1.0)
        assert torch.equal(projected, delta)

    @pytest.mark.parametrize("norm", NORMS)
    def test_eps_zero_leaves_only_the_origin(self, norm):
        delta = normal(4, 9)
        assert not project_ball_and_box(delta, delta * 0 - 1, delta * 0 + 1, norm, 0.0).any()

    @pytest.mark.parametrize("norm", NORMS)
    def test_each_row_is_projected_by_itself(self, norm):
        """Rows of very different size need different numbers of steps; none may wait for another."""
        delta = normal(48, 1, 9, 9) * torch.logspace(-2, 3, 48).view(-1, 1, 1, 1)
        low, high = box_around_zero(48, 1, 9, 9)
        low[::2], high[::2] = -1e6, 1e6  # and rows that no bound holds back need only one
        eps = 4 if norm == "l0" else 0.6
        together = project_ball_and_box(delta, low, high, norm, eps)
        for picked in ([5, 6, 7], list(range(47, -1, -1)), *([row] for row in range(48))):
            apart = project_ball_and_box(delta[picked], low[picked], high[picked], norm, eps)
            assert torch.equal(apart, together[picked])

    @pytest.mark.parametrize("norm", NORMS)
    def test_a_limit_for_each_row_is_that_rows_own(self, norm):
        delta = normal(24, 1, 5, 5) * 3
        low, high = box_around_zero(24, 1, 5, 5)
        limits = torch.linspace(0, 6, 24) if norm == "l0" else torch.linspace(0, 2, 24)
        together = project_ball_and_box(delta, low, high, norm, limits)
        for row, limit in enumerate(limits.tolist()):
            one = slice(row, row + 1)
            assert torch.equal(together[one], project_ball_and_box(delta[one], low[one], high[one], norm, limit))

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_nan_is_not_hidden(self, norm):
        delta = normal(3, 6) * 5
        delta[1, 2] = torch.nan
        low, high = delta.nan_to_num() * 0 - 1, delta.nan_to_num() * 0 + 1
        projected = project_ball_and_box(delta, low, high, norm, 0.5)
        assert torch.isnan(projected).any(1).tolist() == [False, True, False]


class TestSteepest:
    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_climbs_as_fast_as_any_direction_of_length_one(self, norm):
        """Below 30 features the l1 share is a single feature, so all three are exact: <g, d> = ‖g‖*."""
        gradient = normal(20, 12)
        direction = steepest(gradient, norm)
        torch.testing.assert_close(length(direction, norm), torch.ones(20))
        climbed = (gradient * direction).sum(1).numpy()
        np.testing.assert_allclose(climbed, np.linalg.norm(gradient.numpy(), DUAL[norm], axis=1), rtol=1e-5)

    def test_l1_takes_equal_steps_on_the_share_with_the_largest_slope(self):
        gradient = normal(6, 1, 10, 10)
        direction = steepest(gradient, "l1", share=0.07).flatten(1)
        for row, slope in zip(direction, gradient.flatten(1), strict=True):
            chosen = slope.abs().argsort(descending=True)[:7]
            expected = torch.zeros(100)
            expected[chosen] = slope[chosen].sign() / 7
            torch.testing.assert_close(row, expected)

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("factor", [1e-37, 1e-30, 1e-22, 1e-8, 1e8, 1e18])
    def test_does_not_depend_on_the_size_of_the_slope(self, norm, factor):
        """A saturated model has slopes far below 1e-20, whose squares vanish in float32."""
        gradient = normal(5, 12)
        torch.testing.assert_close(steepest(gradient * factor, norm), steepest(gradient, norm), rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_no_slope_no_move(self, norm):
        gradient = normal(3, 8)
        gradient[1] = 0
        assert steepest(gradient, norm).abs().sum(1).gt(0).tolist() == [True, False, True]


class TestRandomInBall:
    N, D, EPS = 4000, 6, 0.3

    def draw(self, norm):
        noise = Noise(range(self.N))
        return (
            random_in_ball(noise, torch.arange(self.N), (2, 3), norm, self.EPS).flatten(1).double().numpy() / self.EPS
        )

    @pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", np.inf)])
    def test_the_radius_is_that_of_a_uniform_point(self, norm, order):
        """In a ball of dimension d the share of points within radius r is r^d."""
        radius = np.linalg.norm(self.draw(norm), order, axis=1)
        assert radius.max() <= 1 + 1e-6
        assert stats.kstest(radius**self.D, "uniform").pvalue > 0.001

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_each_feature_has_the_marginal_of_a_uniform_point(self, norm):
        """linf: uniform; l2: (x + 1)/2 is Beta((d+1)/2, (d+1)/2); l1: |x| is Beta(1, d) with a fair sign."""
        points = self.draw(norm)
        for feature in points.T:
            if norm == "l1":
                assert stats.kstest(np.abs(feature), stats.beta(1, self.D).cdf).pvalue > 0.001
                assert stats.binomtest(int((feature > 0).sum()), self.N).pvalue > 0.001
            else:
                half = (self.D + 1) / 2 if norm == "l2" else 1
                assert stats.kstest((feature + 1) / 2, stats.beta(half, half).cdf).pvalue > 0.001

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_a_row_does_not_depend_on_how_many_are_drawn(self, norm):
        for n_features in (4, 12, 13, 30, 41):
            whole = random_in_ball(Noise(range(200)), torch.arange(200), (n_features,), norm, 1.5)
            for rows in (torch.arange(1), torch.arange(5), torch.arange(190, 200)):
                few = random_in_ball(Noise(range(200)), rows, (n_features,), norm, 1.5)
                assert torch.equal(few, whole[rows])

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_features_are_not_correlated(self, norm):
        correlation = np.corrcoef(self.draw(norm).T)[np.triu_indices(self.D, 1)]
        assert np.abs(correlation).max() < 4 / math.sqrt(self.N)
