import math

import pytest
import torch

from advrisk.core.errors import RegistryError
from advrisk.engine import Goal, objectives


def test_ace_is_minus_the_log_probability_of_the_reference():
    scores = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    expected = [math.log(math.e + math.e**2 + math.e**3) - 2, math.log(3)]
    assert objectives.value("ace", scores, Goal(torch.tensor([1, 0]))).tolist() == pytest.approx(expected)


def test_ace_reads_logits_and_log_probabilities_alike():
    scores = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)) * 5
    reference = torch.tensor([0, 1, 2, 3, 0, 1])
    from_logits = objectives.value("ace", scores, Goal(reference))
    torch.testing.assert_close(objectives.value("ace", scores.log_softmax(1), Goal(reference)), from_logits)


def test_an_unknown_objective_is_refused_with_the_nearest_name():
    with pytest.raises(RegistryError, match="did you mean 'ace'"):
        objectives.value("acee", torch.zeros(1, 2), Goal(torch.tensor([0])))


@pytest.mark.parametrize("lead", [0.0, 5.0, 17.0, 40.0, 80.0, -5.0, -30.0])
def test_ace_and_its_slope_are_exact_however_sure_the_model_is(lead):
    """By hand in float64; torch's own cross-entropy has slope 0 in float32 from a lead of about 17 on."""
    scores = torch.tensor([[lead, 0.0, -1.0]], requires_grad=True)
    value = objectives.value("ace", scores, Goal(torch.tensor([0])))
    (slope,) = torch.autograd.grad(value.sum(), scores)
    weights = [math.exp(-lead), math.exp(-1 - lead)]  # of the others, in units of the reference class
    total = 1 + sum(weights)
    assert value.item() == pytest.approx(math.log1p(sum(weights)), rel=1e-5, abs=0)
    expected = [-sum(weights) / total, *(weight / total for weight in weights)]
    assert slope[0].tolist() == pytest.approx(expected, rel=1e-5, abs=0)


def test_a_row_does_not_depend_on_its_place_in_the_batch():
    """torch's float32 exp and log differ in the last bit between the body and the tail of a vector."""
    generator = torch.Generator().manual_seed(0)
    scores = 6 * torch.randn(64, 10, generator=generator)
    reference = torch.randint(0, 10, (64,), generator=generator)

    def slopes(rows):
        asked = scores[rows].clone().requires_grad_(True)
        return torch.autograd.grad(objectives.value("ace", asked, Goal(reference[rows])).sum(), asked)[0]

    whole = slopes(slice(None))
    for start, stop in ((0, 16), (0, 23), (5, 40), (41, 64)):
        assert torch.equal(slopes(slice(start, stop)), whole[start:stop])
