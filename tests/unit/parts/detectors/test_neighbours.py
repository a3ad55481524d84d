"""Distances, densities and dimensions against other libraries, brute force and data of known dimension."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.neighbors import KernelDensity
from torch import Tensor

from advrisk.engine.threads import one_thread
from advrisk.parts.detectors.neighbours import LARGEST_DIMENSION, local_dimension, log_density, squared_distances


@pytest.fixture(autouse=True, scope="module")
def single_thread() -> Iterator[None]:
    """As in a run: sums that are split over threads depend on the size of the batch."""
    with one_thread():
        yield


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class TestDistances:
    @pytest.mark.parametrize("features", [1, 5, 8192, 10_000])
    def test_they_are_those_of_scipy(self, features: int) -> None:
        x, points = normal(7, features) + 100, normal(11, features, seed=1) + 100
        expected = cdist(x.numpy(), points.numpy(), "sqeuclidean")
        assert squared_distances(x, points).numpy() == pytest.approx(expected, rel=1e-10)

    def test_the_same_point_is_at_distance_zero_and_a_near_one_is_not(self) -> None:
        points = (normal(50, 3000) + 10).float()
        near = points.clone()
        near[:, 0] += 0.01
        same = torch.eye(50, dtype=torch.bool)
        assert torch.equal(squared_distances(points, points) == 0, same)
        squared = squared_distances(near, points)[same]
        assert squared.numpy() == pytest.approx((near - points).double().square().sum(1).numpy(), rel=1e-6)

    @pytest.mark.parametrize(("features", "n_points"), [(700, 130), (9408, 500), (32, 4000)])
    def test_a_row_does_not_depend_on_its_batch_mates(self, features: int, n_points: int) -> None:
        x, points = normal(257, features).float(), normal(n_points, features, seed=1).float()
        whole = squared_distances(x, points)
        for n in (1, 2, 5, 16, 31, 32, 33, 100):
            assert torch.equal(squared_distances(x[-n:], points), whole[-n:])


class TestDensity:
    @pytest.mark.parametrize("bandwidth", [0.2, 1.0, 7.0])
    def test_it_is_that_of_scikit_learn(self, bandwidth: float) -> None:
        points, x = normal(60, 4), normal(25, 4, seed=1)
        expected = KernelDensity(bandwidth=bandwidth).fit(points.numpy()).score_samples(x.numpy())
        found = log_density(squared_distances(x, points), bandwidth, 4)
        assert found.numpy() == pytest.approx(expected, rel=1e-9)

    def test_infinite_distances_are_left_out(self) -> None:
        points, x = normal(60, 4), normal(25, 4, seed=1)
        squared = squared_distances(x, points)
        squared[:, 40:] = torch.inf
        expected = KernelDensity(bandwidth=0.5).fit(points[:40].numpy()).score_samples(x.numpy())
        assert log_density(squared, 0.5, 4).numpy() == pytest.approx(expected, rel=1e-9)

    def test_far_away_it_is_small_and_finite(self) -> None:
        far = torch.full((1, 4), 1e9, dtype=torch.float64)
        (found,) = log_density(squared_distances(far, torch.zeros(3, 4)), 0.01, 4)
        assert float(found) == pytest.approx(-4e18 / 2e-4, rel=1e-9)


def dimension_of(x: np.ndarray, points: np.ndarray, neighbours: int) -> float:
    """One row, as the formula is printed."""
    radii = sorted(r for r in (math.dist(x, point) for point in points) if r > 0)[:neighbours]
    return -1 / (sum(math.log(radius / radii[-1]) for radius in radii) / len(radii))


def on_a_subspace(kind: str, dimension: int, n: int) -> Tensor:
    """Points of a `dimension`-dimensional ball or normal, laid into 50 dimensions."""
    direction = normal(n, dimension, seed=dimension)
    if kind == "ball":
        unit = torch.rand(n, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        direction = direction / direction.norm(dim=1, keepdim=True) * unit ** (1 / dimension)
    turn = torch.linalg.qr(normal(50, 50, seed=9)).Q[:dimension]
    return direction @ turn + 3


class TestDimension:
    @pytest.mark.parametrize("neighbours", [2, 5, 20])
    def test_it_is_the_formula(self, neighbours: int) -> None:
        x, points = normal(10, 6), normal(40, 6, seed=1)
        expected = [dimension_of(row, points.numpy(), neighbours) for row in x.numpy()]
        found = local_dimension(squared_distances(x, points), neighbours)
        assert found.numpy() == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize(
        ("kind", "dimension", "n"),
        [
            ("ball", 1, 500),
            ("ball", 2, 500),
            ("ball", 5, 500),
            ("ball", 10, 500),
            ("normal", 1, 2000),
            ("normal", 2, 2000),
        ],
    )
    def test_known_dimensions_are_found(self, kind: str, dimension: int, n: int) -> None:
        """Seen from the centre, around which the ball is even at any size, and the normal where many points lie close.

        There k / (Σ of k − 1 independent exponentials) has mean d · k / (k − 2).
        """
        neighbours, repeats = 100, 100
        points = on_a_subspace(kind, dimension, n * repeats)
        centre = torch.full((1, 50), 3.0, dtype=torch.float64)
        found = local_dimension(squared_distances(centre, points).view(repeats, n), neighbours)
        assert float(found.mean()) == pytest.approx(dimension * 100 / 98, rel=0.04)

    def test_the_row_itself_does_not_count(self) -> None:
        points = normal(40, 6)
        found = local_dimension(squared_distances(points, points), 10)
        expected = [dimension_of(row, np.delete(points.numpy(), i, 0), 10) for i, row in enumerate(points.numpy())]
        assert found.numpy() == pytest.approx(expected, rel=1e-9)

    def test_equal_distances_give_a_large_finite_number(self) -> None:
        assert local_dimension(torch.full((1, 30), 4.0), 20).tolist() == pytest.approx([LARGEST_DIMENSION])

    def test_doubles_leave_fewer_neighbours(self) -> None:
        squared = torch.tensor([[0.0, 0.0, 1.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0, 9.0], [0.0] * 5])
        expected = -1 / ((math.log(1 / 2) + 0) / 2)
        assert local_dimension(squared, 4).tolist() == pytest.approx([expected, 0.0, 0.0])

    def test_slopes_are_finite_even_at_doubles_and_ties(self) -> None:
        squared = torch.tensor([[0.0, 0.0, 1.0, 4.0], [2.0, 2.0, 2.0, 2.0], [0.0] * 4], requires_grad=True)
        local_dimension(squared, 3).sum().backward()
        assert squared.grad is not None
        assert bool(torch.isfinite(squared.grad).all())

    def test_slopes_are_right(self) -> None:
        points = normal(30, 5, seed=1)
        x = normal(4, 5).requires_grad_(True)
        assert torch.autograd.gradcheck(lambda x: local_dimension(squared_distances(x, points), 8), x)
        assert torch.autograd.gradcheck(lambda x: log_density(squared_distances(x, points), 0.7, 5), x)
