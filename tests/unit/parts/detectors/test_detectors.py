"""The built-in detectors against their formulas, written out or computed by another library."""

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from scipy.ndimage import median_filter
from torch import Tensor

from advrisk.core.errors import StudyError
from advrisk.engine import Model
from advrisk.parts.detectors.confidence import Confidence
from advrisk.parts.detectors.feature_squeezing import (
    FeatureSqueezing,
    Windows,
    fewer_bits,
    median_filtered,
    non_local_means,
    parsed_windows,
)
from advrisk.testing import toys


def answering(logits: Tensor) -> Model:
    """A model that gives these logits, whatever it is asked."""
    return Model("fixed", lambda x: logits[: len(x)], "gradients", (1,), logits.shape[1], (0.0, 1.0), digest="fixed")


class TestConfidence:
    def scores(self, logits: list[list[float]]) -> list[float]:
        given = torch.tensor(logits)
        return Confidence().score(torch.zeros(len(given), 1), answering(given)).tolist()

    def test_it_is_one_minus_the_largest_probability(self) -> None:
        logits = torch.randn(50, 7, generator=torch.Generator().manual_seed(0))
        expected = 1 - torch.softmax(logits.double(), 1).amax(1)
        assert self.scores(logits.tolist()) == pytest.approx(expected.tolist(), rel=1e-12)

    def test_log_probabilities_give_the_same_as_logits(self) -> None:
        model = toys.conv_net()
        x = toys.images(20)
        given = Confidence().score(x, model)
        torch.testing.assert_close(Confidence().score(x, toys.score_only(model)), given, rtol=1e-5, atol=0)

    @pytest.mark.parametrize("lead", [20.0, 50.0, 300.0, 600.0])
    def test_sure_answers_keep_all_their_digits(self, lead: float) -> None:
        mpmath.mp.dps = 400
        others = 2 * mpmath.exp(-mpmath.mpf(lead))
        (found,) = self.scores([[lead, 0.0, 0.0]])
        assert found == pytest.approx(float(others / (1 + others)), rel=1e-12)
        assert found > 0

    def test_equal_and_huge_logits(self) -> None:
        assert self.scores([[3.0, 3.0, 3.0], [1e30, -1e30, 0.0], [-1e30, -1e30, -1e30]]) == pytest.approx(
            [2 / 3, 0.0, 2 / 3]
        )

    def test_it_can_be_differentiated(self) -> None:
        model = toys.linear().model
        x = toys.linear().inputs(5).double().requires_grad_(True)
        linear = replace(model, answer=lambda x: (x[:, None] * toys.linear().weight.double()).sum(2))
        assert torch.autograd.gradcheck(lambda x: Confidence().score(x, linear), x)


class TestFeatureSqueezing:
    def test_bits_round_to_the_nearest_level(self) -> None:
        x = torch.rand(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        for bits in (1, 3, 5):
            levels = np.array([float(Fraction(k, 2**bits - 1)) for k in range(2**bits)])
            nearest = levels[np.abs(x.numpy()[:, None] - levels).argmin(1)]
            assert fewer_bits(x, bits, (0.0, 1.0)).numpy() == pytest.approx(nearest, abs=1e-15)

    def test_bits_are_of_the_bounds(self) -> None:
        x = torch.tensor([-2.0, -1.1, 0.9, 2.0], dtype=torch.float64)
        assert fewer_bits(x, 1, (-2.0, 2.0)).tolist() == [-2.0, -2.0, 2.0, 2.0]

    @pytest.mark.parametrize("side", [2, 3, 4, 5])
    @pytest.mark.parametrize("shape", [(3, 1, 8, 8), (2, 3, 5, 7), (1, 1, 2, 2)])
    def test_the_median_is_that_of_scipy_which_the_authors_used(self, side: int, shape: tuple[int, ...]) -> None:
        x = torch.rand(shape, generator=torch.Generator().manual_seed(side))
        expected = np.stack(
            [[median_filter(channel, side, mode="reflect") for channel in image] for image in x.numpy()]
        )
        assert np.array_equal(median_filtered(x, side).numpy(), expected)

    def test_the_score_is_the_largest_change_of_any_squeezer(self) -> None:
        model, x = toys.conv_net(), toys.images(20)

        def probabilities(given: Tensor) -> Tensor:
            return torch.softmax(model.ask(given).double(), 1)

        changes = [
            (probabilities(x) - probabilities(squeezed)).abs().sum(1)
            for squeezed in (fewer_bits(x, 2, (0.0, 1.0)), median_filtered(x, 3))
        ]
        found = FeatureSqueezing(bits=2, median=3).score(x, model)
        assert torch.equal(found, torch.maximum(*changes))
        assert torch.equal(FeatureSqueezing(bits=2, median=None).score(x, model), changes[0])
        assert torch.equal(FeatureSqueezing(bits=None, median=3).score(x, model), changes[1])
        assert not torch.equal(*changes)

    def test_an_input_that_squeezing_leaves_alone_scores_zero(self) -> None:
        flat = torch.ones(4, 1, 8, 8)
        assert FeatureSqueezing().score(flat, toys.conv_net()).tolist() == [0.0] * 4

    def test_no_squeezer_at_all_is_refused(self) -> None:
        with pytest.raises(StudyError, match="neither bits nor median nor non_local_means; set at least one"):
            FeatureSqueezing(bits=None, median=None)

    def test_slopes_pass_through_fewer_bits(self) -> None:
        x = torch.rand(50, generator=torch.Generator().manual_seed(0))
        given = x.clone().requires_grad_(True)
        squeezed = fewer_bits(given, 3, (0.0, 1.0))
        (slope,) = torch.autograd.grad((squeezed * torch.arange(50)).sum(), given)
        assert torch.equal(squeezed.detach(), (x * 7).round() / 7)
        assert slope.tolist() == list(range(50))

    def test_the_score_has_a_slope_whatever_the_squeezer(self) -> None:
        model = toys.conv_net()
        for settings in ({"median": None}, {"bits": None}, {"bits": None, "median": None, "non_local_means": "5-3-20"}):
            x = toys.images(8).requires_grad_(True)
            (slope,) = torch.autograd.grad(FeatureSqueezing(**settings).score(x, model).sum(), x)
            assert bool(slope.isfinite().all())
            assert bool((slope.flatten(1).abs().amax(1) > 0).all())


def means_by_hand(x: Tensor, windows: Windows, bounds: tuple[float, float]) -> np.ndarray:
    """Pixel by pixel in steps of 8 bits, as OpenCV documents it; its edges go on as numpy's mode `reflect`."""
    steps = (x.double().numpy() - bounds[0]) / (bounds[1] - bounds[0]) * 255
    reach, border = windows.search // 2, windows.patch // 2
    around = reach + border
    padded = np.pad(steps, [(0, 0), (0, 0), (around, around), (around, around)], mode="reflect")
    result = np.empty_like(steps)
    for image, row, column in np.ndindex(steps.shape[0], *steps.shape[2:]):

        def patch(down: int, right: int, image: int = image, row: int = row, column: int = column) -> np.ndarray:
            top, left = row + around + down, column + around + right
            return padded[image, :, top - border : top + border + 1, left - border : left + border + 1]

        total, weights = np.zeros(steps.shape[1]), 0.0
        for down in range(-reach, reach + 1):
            for right in range(-reach, reach + 1):
                weight = np.exp(-((patch(0, 0) - patch(down, right)) ** 2).mean() / windows.strength**2)
                weights += weight
                total += weight * padded[image, :, row + around + down, column + around + right]
        result[image, :, row, column] = total / weights
    return result / 255 * (bounds[1] - bounds[0]) + bounds[0]


class TestNonLocalMeans:
    @pytest.mark.parametrize("shape", [(2, 1, 8, 8), (1, 3, 6, 9), (1, 2, 3, 3)])
    @pytest.mark.parametrize("windows", [Windows(5, 3, 40.0), Windows(3, 1, 20.0), Windows(7, 5, 60.5)])
    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (-2.0, 2.0)])
    def test_they_are_those_computed_by_hand(
        self, shape: tuple[int, ...], windows: Windows, bounds: tuple[float, float]
    ) -> None:
        x = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        x = x * (bounds[1] - bounds[0]) + bounds[0]
        expected = means_by_hand(x, windows, bounds)
        assert non_local_means(x, windows, bounds).numpy() == pytest.approx(expected, rel=1e-10, abs=1e-12)
        assert non_local_means(x.float(), windows, bounds).numpy() == pytest.approx(expected, abs=1e-5)
        assert np.abs(expected - x.numpy()).max() > 0.01  # it is no mere copy

    def test_the_papers_settings_leave_edges_and_take_grain_away(self) -> None:
        grain = torch.randn(1, 1, 20, 20, generator=torch.Generator().manual_seed(0)) * 2 / 255
        edge = torch.zeros(1, 1, 20, 20)
        edge[..., 10:] = 0.8
        restored = non_local_means(edge + grain, parsed_windows("11-3-4"), (0.0, 1.0))
        assert float((restored - edge).abs().mean()) < 0.5 * float(grain.abs().mean())
        assert float((restored - edge).abs().amax()) < 0.05

    def test_a_flat_image_stays_and_a_huge_strength_gives_the_mean_of_the_window(self) -> None:
        flat = torch.full((1, 3, 9, 9), 0.3, dtype=torch.float64)
        torch.testing.assert_close(non_local_means(flat, Windows(13, 3, 2.0), (0.0, 1.0)), flat)
        x = torch.rand(1, 1, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        expected = x[..., 2:7, 2:7].mean()
        found = non_local_means(x, Windows(5, 3, 1e6), (0.0, 1.0))[0, 0, 4, 4]
        assert float(found) == pytest.approx(float(expected), rel=1e-6)

    def test_slopes_are_those_of_finite_differences(self) -> None:
        x = torch.rand(2, 2, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        windows = Windows(3, 3, 60.0)
        assert torch.autograd.gradcheck(lambda x: non_local_means(x, windows, (0.0, 1.0)), x.requires_grad_(True))

    def test_rows_do_not_depend_on_their_batch(self) -> None:
        x = toys.images(70, channels=3)
        whole = non_local_means(x, Windows(5, 3, 20.0), (0.0, 1.0))
        for rows in (slice(0, 1), slice(30, 35), slice(1, 70)):
            assert torch.equal(non_local_means(x[rows], Windows(5, 3, 20.0), (0.0, 1.0)), whole[rows])

    def test_the_score_takes_them_in(self) -> None:
        model, x = toys.conv_net(), toys.images(20)
        squeezed = non_local_means(x, Windows(5, 3, 20.0), model.bounds)
        change = (torch.softmax(model.ask(x).double(), 1) - torch.softmax(model.ask(squeezed).double(), 1)).abs().sum(1)
        found = FeatureSqueezing(bits=None, median=None, non_local_means="5-3-20").score(x, model)
        assert torch.equal(found, change)

    def test_windows_are_written_as_in_the_paper(self) -> None:
        assert parsed_windows("13-3-2") == (13, 3, 2.0)
        assert parsed_windows("11-1-0.5") == (11, 1, 0.5)

    @pytest.mark.parametrize(
        "text", ["", "13-3", "12-3-2", "13-4-2", "13-3-0", "13-3-2-1", "a-3-2", "13 3 2", "-13-3-2"]
    )
    def test_what_is_no_window_is_refused(self, text: str) -> None:
        with pytest.raises(StudyError, match=r"non_local_means: found .*write search-patch-strength"):
            FeatureSqueezing(non_local_means=text)
