"""Concordance against all pairs, one by one."""

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival.prediction import concordance, counts_before


def all_pairs(t: np.ndarray, predicted: np.ndarray, e: np.ndarray) -> float:
    right, pairs = 0.0, 0
    for i in range(len(t)):
        for j in range(len(t)):
            if e[i] and (t[i] < t[j] or (t[i] == t[j] and not e[j])):
                pairs += 1
                right += 0.5 if predicted[i] == predicted[j] else float(predicted[i] < predicted[j])
    return right / pairs


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_share_of_pairs_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    t, predicted = rng.integers(1, 9, n).astype(float), rng.integers(0, 6, n).astype(float)
    e = (rng.uniform(size=n) < 0.7).astype(float)
    e[0], t[0] = 1, 0.5
    assert concordance(t, predicted, e) == pytest.approx(all_pairs(t, predicted, e), abs=1e-15)


def test_counts_before_counts() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 40, 50).astype(np.int32)
    ends, wanted = rng.integers(0, 51, 30).astype(np.int32), rng.integers(0, 45, 30).astype(np.int32)
    less, equal = counts_before(values, ends, wanted)
    assert less.tolist() == [int((values[:end] < want).sum()) for end, want in zip(ends, wanted, strict=True)]
    assert equal.tolist() == [int((values[:end] == want).sum()) for end, want in zip(ends, wanted, strict=True)]


def test_perfect_order_is_1_and_no_order_a_half() -> None:
    t, e = np.arange(1.0, 50.0), np.ones(49)
    assert concordance(t, t, e) == 1
    assert concordance(t, -t, e) == 0
    assert concordance(t, np.ones(49), e) == 0.5


def test_rows_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(RiskError, match="no two rows can be compared"):
        concordance(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([0.0, 1.0]))
