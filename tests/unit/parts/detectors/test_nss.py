"""Natural scene statistics against other libraries, known distributions and scikit-learn's own SVM."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from scipy.ndimage import correlate, gaussian_filter
from scipy.optimize import brentq
from scipy.special import gamma as gamma_function
from scipy.stats import gennorm
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC
from torch import Tensor

from advrisk.core.errors import DataError
from advrisk.engine import Model
from advrisk.parts.detectors import Examples, detectors, nss
from advrisk.parts.detectors.nss import (
    NaturalSceneStatistics,
    asymmetric_parameters,
    gray,
    normalised,
    shape_of,
    statistics,
    symmetric_parameters,
)
from advrisk.testing import toys

MODEL = toys.label_only(toys.conv_net(size=16))  # its bounds are used, it is never asked


def smooth_images(n: int, *, seed: int = 0, channels: int = 1, size: int = 16) -> Tensor:
    """Images without grain: coarse noise, enlarged."""
    coarse = torch.rand(n, channels, 4, 4, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")


def grainy(x: Tensor, *, seed: int = 1, eps: float = 0.05) -> Tensor:
    noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed))
    return (x + eps * (2 * noise - 1).sign()).clamp(0, 1)


def examples(n: int = 60, *, seed: int = 3) -> Examples:
    clean = smooth_images(n)
    origin = torch.arange(0, n, 2)
    return Examples(clean, torch.zeros(n, dtype=torch.long), grainy(clean[origin]), origin, seed)


def fitted(given: Examples | None = None, **settings: object) -> dict[str, Tensor]:
    part = detectors.get("nss")
    detector = part.function(**part.bind(settings))
    return dict(detector.fit(given or examples(), MODEL, on_progress=lambda share: None))


class TestNormalised:
    @pytest.mark.parametrize("shape", [(28, 28), (9, 13), (4, 5)])
    def test_it_is_what_scipy_computes(self, shape: tuple[int, int]) -> None:
        image = np.random.default_rng(0).random(shape)
        places = np.arange(-3, 4)
        window = np.exp(-(places[:, None] ** 2 + places**2) / (2 * (7 / 6) ** 2))
        window /= window.sum()
        mean = correlate(image, window, mode="constant")
        deviation = np.sqrt(np.abs(correlate(image**2, window, mode="constant") - mean**2))
        expected = (image - mean) / (deviation + 1 / 255)
        found = normalised(torch.from_numpy(image)[None])[0].numpy()
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def test_flat_regions_are_exactly_zero(self) -> None:
        image = torch.full((1, 20, 20), 0.3, dtype=torch.float64)
        assert torch.equal(normalised(image)[:, 3:-3, 3:-3], torch.zeros(1, 14, 14, dtype=torch.float64))


class TestSymmetricParameters:
    @pytest.mark.parametrize("shape", [0.4, 1.0, 2.0, 4.0])
    def test_known_distributions_are_recovered(self, shape: float) -> None:
        rng = np.random.default_rng(1)
        x = 1.7 * gennorm.rvs(shape, size=(4, 100_000), random_state=rng)
        found, variance = symmetric_parameters(torch.from_numpy(x))
        assert found.numpy() == pytest.approx(shape, rel=0.04)
        assert variance.numpy() == pytest.approx(1.7**2 * gennorm.var(shape), rel=0.04)

    def test_exact_moments_give_the_exact_shape(self) -> None:
        shapes = np.exp(np.random.default_rng(2).uniform(math.log(0.2), math.log(10), 500))
        ratio = gamma_function(2 / shapes) ** 2 / (gamma_function(1 / shapes) * gamma_function(3 / shapes))
        assert shape_of(torch.from_numpy(ratio)).numpy() == pytest.approx(shapes, rel=1e-5)

    def test_gaussian_and_laplace(self) -> None:
        ratios = torch.tensor([2 / math.pi, 1 / 2], dtype=torch.float64)  # (E|x|)² / E x², in closed form
        assert shape_of(ratios).tolist() == pytest.approx([2.0, 1.0], abs=1e-6)

    def test_what_no_shape_has_becomes_the_nearest(self) -> None:
        assert shape_of(torch.tensor([0.0, 0.01, 0.99], dtype=torch.float64)).tolist() == pytest.approx([0.2, 0.2, 10])


class TestAsymmetricParameters:
    @pytest.mark.parametrize(("shape", "left", "right"), [(2.0, 1.0, 1.0), (1.0, 0.5, 2.0), (0.6, 3.0, 1.0)])
    def test_known_distributions_are_recovered(self, shape: float, left: float, right: float) -> None:
        """Its density is that of two halves with deviations l and r, which weigh l : r."""
        rng = np.random.default_rng(4)
        size = (3, 200_000)
        spread = np.abs(gennorm.rvs(shape, size=size, random_state=rng)) / gennorm.std(shape)
        below = rng.random(size) < left / (left + right)
        x = np.where(below, -left * spread, right * spread)
        found = [value.numpy() for value in asymmetric_parameters(torch.from_numpy(x))]
        for value, expected, tolerance in zip(
            found, (shape, x.mean(), left**2, right**2), (0.03, 0.05, 0.03, 0.03), strict=True
        ):
            assert value == pytest.approx(expected, rel=tolerance, abs=0.02)

    def test_a_symmetric_one_is_the_symmetric_case(self) -> None:
        x = torch.randn(1, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        both = torch.cat([x, -x], 1)
        shape, mean, left, right = asymmetric_parameters(both)
        expected_shape, variance = symmetric_parameters(both)
        for value, expected in ((shape, expected_shape), (left, variance), (right, variance), (mean, mean * 0)):
            assert value.tolist() == pytest.approx(expected.tolist(), abs=1e-9)

    def test_one_side_only(self) -> None:
        found = asymmetric_parameters(torch.rand(2, 50, dtype=torch.float64, generator=torch.Generator()))
        assert all(bool(value.isfinite().all()) for value in found)
        assert found[2].tolist() == [0.0, 0.0]

    def test_zeros_lie_on_the_right(self) -> None:
        """The right variance is the mean square from 0 on, zeros included: r² = (4 + 0 + 0 + 16) / 4."""
        x = torch.tensor([[-1.0, -3.0, 2.0, 0.0, 0.0, 4.0]], dtype=torch.float64)
        *_, left, right = asymmetric_parameters(x)
        assert (left.tolist(), right.tolist()) == ([5.0], [5.0])


def parameters_by_hand(image: NDArray[np.float64]) -> list[float]:
    """The 18 numbers of an image, pixel by pixel: each product is of a pixel and its neighbour in one direction."""
    m = normalised(torch.from_numpy(image)[None])[0].numpy()
    height, width = m.shape
    numbers = [_shape((np.abs(m).mean() ** 2) / (m**2).mean()), (m**2).mean()]
    for down, right in ((0, 1), (1, 0), (1, 1), (-1, 1)):
        products = np.array(
            [
                m[row, column] * m[row + down, column + right]
                for row in range(height)
                for column in range(width)
                if 0 <= row + down < height and column + right < width
            ]
        )
        left, rest = (products[products < 0] ** 2).mean(), (products[products >= 0] ** 2).mean()
        l, r = math.sqrt(left), math.sqrt(rest)  # noqa: E741
        ratio = np.abs(products).mean() ** 2 / (products**2).mean() * (l**3 + r**3) * (l + r) / (left + rest) ** 2
        shape = _shape(ratio)
        numbers += [shape, (r - l) * gamma_function(2 / shape) / _root_of_gammas(shape), left, rest]
    return numbers


def _shape(ratio: float) -> float:
    return float(brentq(lambda a: (gamma_function(2 / a) / _root_of_gammas(a)) ** 2 - ratio, 0.2, 10))


def _root_of_gammas(shape: float) -> float:
    return math.sqrt(gamma_function(1 / shape) * gamma_function(3 / shape))


class TestStatistics:
    def test_all_18_are_those_of_plain_loops(self) -> None:
        """On an image that is smooth along one diagonal most, then to the right, then down: no two directions agree."""
        rng = np.random.default_rng(0)
        image = gaussian_filter(rng.random((24, 31)), (0.7, 1.1))
        for _ in range(2):
            image = (image + np.roll(image, (1, 1), (0, 1))) / 2
        expected = parameters_by_hand(image)
        found = statistics(torch.from_numpy(image)[None, None], (0.0, 1.0), scales=1)[0].tolist()
        assert found == pytest.approx(expected, rel=1e-5)
        directions = [expected[2 + 4 * place : 6 + 4 * place] for place in range(4)]
        for place, one in enumerate(directions):
            for other in directions[place + 1 :]:
                assert all(abs(a - b) > 1e-3 * abs(a) for a, b in zip(one, other, strict=True))

    def test_there_are_18_for_each_scale(self) -> None:
        x = toys.images(3, size=12)
        assert statistics(x, (0.0, 1.0)).shape == (3, 36)
        assert torch.equal(statistics(x, (0.0, 1.0), scales=1), statistics(x, (0.0, 1.0))[:, :18])

    def test_the_second_scale_is_the_image_of_half_the_size(self) -> None:
        small = toys.images(3, size=9)
        large = small.repeat_interleave(2, 2).repeat_interleave(2, 3)
        assert torch.equal(statistics(large, (0.0, 1.0))[:, 18:], statistics(small, (0.0, 1.0), scales=1))

    def test_bounds_do_not_matter_but_for_rounding(self) -> None:
        x = toys.images(3, size=12).double()
        torch.testing.assert_close(statistics(x * 4 - 2, (-2.0, 2.0)), statistics(x, (0.0, 1.0)))

    def test_colours_are_turned_to_luma(self) -> None:
        x = toys.images(2, channels=3, size=8).double()
        expected = np.einsum("nchw,c->nhw", x.numpy(), [0.2125, 0.7154, 0.0721])
        assert gray(x).numpy() == pytest.approx(expected)
        assert gray(x[:, :2]).numpy() == pytest.approx(x[:, :2].mean(1).numpy())

    @pytest.mark.parametrize("level", [0.0, 0.3, 1.0])
    def test_flat_images_have_finite_statistics_and_slopes(self, level: float) -> None:
        x = torch.full((2, 1, 28, 28), level, requires_grad=True)
        found = statistics(x, (0.0, 1.0))
        (slope,) = torch.autograd.grad(found.sum(), x)
        assert bool(found.isfinite().all())
        assert bool(slope.isfinite().all())

    def test_slopes_are_those_of_finite_differences(self) -> None:
        x = toys.images(2, size=9, channels=3).double()
        direction = torch.randn(x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
        weights = torch.randn(36, dtype=torch.float64, generator=torch.Generator().manual_seed(6))

        def value(step: float) -> Tensor:
            return (statistics(x + step * direction, (0.0, 1.0)) * weights).sum()

        given = x.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad((statistics(given, (0.0, 1.0)) * weights).sum(), given)
        expected = (value(1e-7) - value(-1e-7)) / 2e-7
        assert float((slope * direction).sum()) == pytest.approx(float(expected), rel=5e-3)

    def test_tiny_images_are_refused(self) -> None:
        with pytest.raises(DataError, match="3 × 8 have too few neighbours for 2 scales; they need 4 × 4"):
            statistics(torch.rand(1, 1, 3, 8, generator=torch.Generator()), (0.0, 1.0))


class TestDetector:
    def test_the_score_is_the_decision_function_of_the_svm(self) -> None:
        given = examples()
        features = statistics(torch.cat([given.clean, given.adversarial]), (0.0, 1.0)).numpy()
        mean, deviation = features.mean(0), features.std(0)
        attacked = np.r_[np.zeros(60), np.ones(30)]
        svm = SVC(C=2.0, gamma=0.01, class_weight="balanced").fit((features - mean) / deviation, attacked)
        x = torch.cat([smooth_images(10, seed=9), grainy(smooth_images(10, seed=8))])
        expected = svm.decision_function((statistics(x, (0.0, 1.0)).numpy() - mean) / deviation)
        found = NaturalSceneStatistics().score(x, MODEL, fitted(given, c=2.0, gamma=0.01))
        assert found.numpy() == pytest.approx(expected, rel=1e-9, abs=1e-12)

    def test_grain_is_found_on_unseen_images(self) -> None:
        clean = smooth_images(50, seed=11)
        x = torch.cat([clean, grainy(clean, seed=12)])
        scores = NaturalSceneStatistics().score(x, MODEL, fitted())
        assert roc_auc_score(np.r_[np.zeros(50), np.ones(50)], scores.numpy()) > 0.99

    def test_the_best_of_the_grid_is_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[tuple[float, float]] = []

        def area(features: Tensor, attacked: Tensor, fold: Tensor, *, c: float, gamma: float) -> float:
            asked.append((c, gamma))
            return 0.9 if (c, gamma) == (10.0, 0.3) else 0.5

        monkeypatch.setattr(nss, "_area", area)
        assert fitted()["gamma"].tolist() == [0.3]
        assert asked == [(c, gamma) for c in (1.0, 10.0, 100.0) for gamma in (0.003, 0.03, 0.3)]
        asked.clear()
        assert fitted(gamma=0.5)["gamma"].tolist() == [0.5]
        assert asked == [(c, 0.5) for c in (1.0, 10.0, 100.0)]

    def test_folds_keep_an_input_and_what_was_made_of_it_together(self) -> None:
        given = examples(11)
        fold = nss._folds(given)
        assert fold[11:].tolist() == fold[given.origin].tolist()
        for one in range(3):
            assert (fold[:11] == one).any()
            assert (fold[11:] == one).any()
        assert fold.tolist() != nss._folds(examples(11, seed=4)).tolist()

    def test_the_same_seed_gives_the_same_state(self) -> None:
        first, again = fitted(), fitted()
        assert first.keys() == again.keys()
        assert all(torch.equal(first[name], again[name]) for name in first)

    def test_what_was_learned_can_be_stored_as_safetensors(self, tmp_path: Path) -> None:
        x, state, detector = smooth_images(5, seed=20), fitted(), NaturalSceneStatistics()
        save_file(state, tmp_path / "nss.safetensors")
        again = load_file(tmp_path / "nss.safetensors")
        assert torch.equal(detector.score(x, MODEL, again), detector.score(x, MODEL, state))

    def test_rows_do_not_depend_on_their_batch(self) -> None:
        x, state, detector = smooth_images(40, seed=21), fitted(), NaturalSceneStatistics()
        whole = detector.score(x, MODEL, state)
        for rows in (range(1), range(3, 8), range(39, -1, -1), range(0, 40, 3)):
            assert torch.equal(detector.score(x[list(rows)], MODEL, state), whole[list(rows)])

    def test_the_score_can_be_differentiated(self) -> None:
        state, detector = fitted(), NaturalSceneStatistics()
        x = grainy(smooth_images(2, seed=22)).double().requires_grad_(True)
        direction = torch.randn(x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
        (slope,) = torch.autograd.grad(detector.score(x, MODEL, state).sum(), x)

        def value(step: float) -> float:
            with torch.no_grad():
                return float(detector.score(x + step * direction, MODEL, state).sum())

        expected = (value(1e-7) - value(-1e-7)) / 2e-7
        assert float((slope * direction).sum()) == pytest.approx(expected, rel=5e-3)
        assert abs(expected) > 1e-3

    def test_blank_images_can_be_learned_and_scored(self) -> None:
        clean = torch.zeros(12, 1, 16, 16)
        given = Examples(clean, torch.zeros(12), grainy(clean), torch.arange(12), 0)
        scores = NaturalSceneStatistics().score(clean, MODEL, fitted(given))
        assert bool(scores.isfinite().all())

    def test_it_tells_how_far_it_is_and_leaves_global_generators_alone(self) -> None:
        told: list[float] = []
        record: Callable[[float], None] = told.append
        before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
        NaturalSceneStatistics().fit(examples(), MODEL, on_progress=record)
        assert told == sorted(told)
        assert told[-1] == 1.0
        assert len(told) > 9
        assert torch.equal(torch.random.get_rng_state(), before[0])
        assert np.array_equal(np.random.get_state()[1], before[1])

    def test_too_few_attacks_are_refused(self) -> None:
        clean = smooth_images(20)
        few = Examples(clean, torch.zeros(20), grainy(clean[[1, 1, 5]]), torch.tensor([1, 1, 5]), 0)
        with pytest.raises(DataError, match="on at least 3 inputs, found 2 among 20; let it learn from a stronger"):
            NaturalSceneStatistics().fit(few, MODEL, on_progress=lambda share: None)

    def test_the_model_is_not_asked(self) -> None:
        raising: Model = toys.raising(toys.conv_net(size=16))
        given = examples()
        state = NaturalSceneStatistics(c=1.0, gamma=0.1).fit(given, raising, on_progress=lambda share: None)
        assert NaturalSceneStatistics().score(given.clean, raising, state).shape == (60,)
