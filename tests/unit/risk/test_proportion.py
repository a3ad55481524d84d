"""Clopper–Pearson against scipy's own, and against its definition."""

import pytest
from scipy.stats import binom, binomtest

from advrisk.core.errors import RiskError
from advrisk.risk.proportion import proportion


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (997, 1000)])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_equals_scipy(hits: int, n: int, level: float) -> None:
    theirs = binomtest(hits, n).proportion_ci(level, method="exact")
    ours = proportion(hits, n, level=level)
    assert (ours.value, ours.n, ours.level) == (hits / n, n, level)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_ends_leave_half_of_the_error_on_each_side() -> None:
    ours = proportion(7, 40)
    assert binom.sf(6, 40, ours.low) == pytest.approx(0.025)
    assert binom.cdf(7, 40, ours.high) == pytest.approx(0.025)


@pytest.mark.parametrize(("hits", "n"), [(1, 0), (-1, 5), (6, 5), (0, 0)])
def test_impossible_counts_are_refused(hits: int, n: int) -> None:
    with pytest.raises(RiskError, match=f"found {hits} of {n}"):
        proportion(hits, n)
