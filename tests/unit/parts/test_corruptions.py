import pytest
import torch
from scipy import stats

from advrisk.core.errors import StudyError
from advrisk.engine import Noise, Space
from advrisk.parts.corruptions import corruptions

BOX = Space.box(0.0, 1.0)
GAUSSIAN = corruptions.get("gaussian-noise")


@pytest.mark.parametrize("sigma", [0.01, 0.5])
def test_gaussian_noise_is_normal_with_that_deviation(sigma):
    x = torch.full((40, 1, 16, 16), 0.3)
    noisy = GAUSSIAN.function(x, Noise(range(40)), torch.arange(40), BOX, sigma=sigma)
    drawn = (noisy - x).double().flatten().numpy() / sigma
    assert stats.kstest(drawn, "norm").pvalue > 0.001


def test_no_noise_changes_nothing():
    x = torch.full((3, 5), 0.3)
    assert torch.equal(GAUSSIAN.function(x, Noise(range(3)), torch.arange(3), BOX, sigma=0.0), x)


@pytest.mark.parametrize(("given", "message"), [({}, "needs sigma: float"), ({"sigma": -1}, "must be at least 0")])
def test_the_strength_must_be_said(given, message):
    with pytest.raises(StudyError, match=message):
        GAUSSIAN.bind(given)
