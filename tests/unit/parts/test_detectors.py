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
from advrisk.parts.detectors.feature_squeezing import FeatureSqueezing, fewer_bits, median_filtered
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
        with pytest.raises(StudyError, match="neither bits nor median; at least one squeezer is needed"):
            FeatureSqueezing(bits=None, median=None)


def test_the_slope_of_rounding_goes_straight_through() -> None:
    """It is zero almost everywhere, and an attacker who knows that takes another; the values stay exact."""
    x = toys.images(4).requires_grad_(True)
    squeezed = fewer_bits(x, 1, (0.0, 1.0))
    assert squeezed.unique().tolist() == [0.0, 1.0]
    weight = toys.images(4, seed=1)
    (slope,) = torch.autograd.grad((weight * squeezed).sum(), x)
    assert torch.equal(slope, weight)
