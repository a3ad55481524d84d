import math

import pytest
import torch

from advrisk.core.errors import RegistryError
from advrisk.engine import objectives


def test_ace_is_minus_the_log_probability_of_the_reference():
    scores = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    expected = [math.log(math.e + math.e**2 + math.e**3) - 2, math.log(3)]
    assert objectives.value("ace", scores, torch.tensor([1, 0])).tolist() == pytest.approx(expected)


def test_ace_reads_logits_and_log_probabilities_alike():
    scores = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)) * 5
    reference = torch.tensor([0, 1, 2, 3, 0, 1])
    from_logits = objectives.value("ace", scores, reference)
    torch.testing.assert_close(objectives.value("ace", scores.log_softmax(1), reference), from_logits)


def test_an_unknown_objective_is_refused_with_the_nearest_name():
    with pytest.raises(RegistryError, match="did you mean 'ace'"):
        objectives.value("acee", torch.zeros(1, 2), torch.tensor([0]))
