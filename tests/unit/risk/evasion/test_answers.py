"""Answers that no curve can be made from are refused with what was found."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import fit_bayesian, fit_logistic, fit_monotone
from advrisk.risk.evasion.answers import checked_answers

BAD = [
    pytest.param([], [], "found 0 answers, and a curve needs two or more", id="none"),
    pytest.param([1.0], [1], "found 1 answer, and", id="one"),
    pytest.param([1, 2, 3], [1, 1, 1], "all 3 perturbations up to size 3 went undetected.*ask about larger", id="all"),
    pytest.param([1, 2, 3], [0, 0, 0], "all 3 perturbations down to size 1 were detected.*ask about smaller", id="no"),
    pytest.param([1, np.nan], [1, 0], "found nan at index 1", id="nan"),
    pytest.param([1, -2], [1, 0], r"found -2.0 at index 1", id="negative"),
    pytest.param([1, np.inf], [1, 0], "found inf at index 1", id="inf"),
    pytest.param([1, 2, 3], [1, 0], "there are 3 sizes and 2 answers", id="lengths"),
    pytest.param([1, 2], [1, 0.5], "found 0.5 at index 1; 1 is undetected", id="half"),
    pytest.param([1, 2], [1, np.nan], "found nan at index 1; 1 is undetected", id="nan answer"),
    pytest.param([1, 2], ["yes", "no"], "True .*or False is needed", id="text"),
    pytest.param([[1, 2]], [[1, 0]], r"shape \(1, 2\)", id="two-dimensional"),
]


@pytest.mark.parametrize("fit", [fit_logistic, fit_bayesian, fit_monotone])
@pytest.mark.parametrize(("sizes", "undetected", "message"), BAD)
def test_bad_answers_are_refused(fit: Callable[..., Any], sizes: Any, undetected: Any, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        fit(sizes, undetected)


def test_answers_are_counted_by_size() -> None:
    sizes, total, undetected = checked_answers([2, 1, 2, 2], [True, True, False, False]).counts()
    assert (sizes.tolist(), total.tolist(), undetected.tolist()) == ([1, 2], [1, 3], [1, 1])


def test_very_many_sizes_are_pooled_and_zero_stays_by_itself() -> None:
    rng = np.random.default_rng(0)
    answers = checked_answers(np.append(np.zeros(50), rng.random(5000)), rng.random(5050) < 0.5)
    sizes, total, undetected = answers.pooled_counts()
    assert 390 <= sizes.size <= 402
    assert (sizes[0], total[0]) == (0, 50)
    assert sizes[1] > 0
    assert total.sum() == 5050
    assert undetected.sum() == answers.undetected.sum()
    assert sizes @ total == pytest.approx(answers.sizes.sum())


def test_few_sizes_are_not_pooled() -> None:
    answers = checked_answers([1, 2, 2, 3], [1, 1, 0, 0])
    for pooled, counted in zip(answers.pooled_counts(), answers.counts(), strict=True):
        assert pooled.tolist() == counted.tolist()
