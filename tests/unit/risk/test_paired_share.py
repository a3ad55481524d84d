"""Differences of paired shares: against closed forms, other ways to the same number, and all tables there are."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from advrisk.core.errors import RiskError
from advrisk.risk.absolute import compare_damage
from advrisk.risk.evasion import threshold
from advrisk.risk.paired_share import at_least, share_difference
from advrisk.risk.proportion import proportion
from bench.paired_share import missed, tango, tango_estimate, wrong_passes


def test_with_no_pair_that_differs_the_limit_is_that_of_none_of_n() -> None:
    for n in (1, 20, 500):
        found = share_difference(0, 0, n)
        assert found.value == 0
        assert (found.low, found.high) == pytest.approx((-(1 - 0.025 ** (1 / n)), 1 - 0.025 ** (1 / n)), abs=1e-9)


@pytest.mark.parametrize(("up", "n"), [(1, 10), (3, 50), (7, 7)])
def test_where_all_differences_have_one_sign_it_is_clopper_and_pearson(up: int, n: int) -> None:
    assert share_difference(up, 0, n).high == pytest.approx(proportion(up, n).high, abs=1e-9)
    assert share_difference(0, up, n).low == pytest.approx(-proportion(up, n).high, abs=1e-9)


@pytest.mark.parametrize(
    ("up", "down", "n", "margin"), [(3, 7, 40, 0.05), (5, 1, 10, 0.3), (12, 9, 60, -0.1), (2, 8, 10, 0.01)]
)
def test_the_p_value_is_a_tail_of_dirichlets_weights(up: int, down: int, n: int, margin: float) -> None:
    """Integrated over both weights, in another order: the sum of the weights first."""
    share = stats.beta(up + 1, down)
    total = stats.beta(up + 1 + down, n - up - down) if n > up + down else None

    def above(s: float) -> float:
        return float(share.sf((margin / s + 1) / 2)) if s > 0 else float(margin <= 0)

    if total is None:
        expected = above(1.0)
    else:
        parts = sorted({0.0, abs(margin), 1.0})
        expected = sum(
            integrate.quad(lambda s: total.pdf(s) * above(s), one, other, limit=200)[0]
            for one, other in pairwise(parts)
        )
    assert at_least(up, down, n, margin) == pytest.approx(expected, abs=2e-5)


def test_the_interval_and_the_p_value_agree() -> None:
    for up, down, n in ((0, 0, 30), (4, 1, 30), (10, 12, 200)):
        found = share_difference(up, down, n, level=0.9)
        assert at_least(up, down, n, found.high) == pytest.approx(0.05, abs=1e-6)
        assert at_least(down, up, n, -found.low) == pytest.approx(0.05, abs=1e-6)


def test_it_is_what_is_drawn_for_damage() -> None:
    rng = np.random.default_rng(0)
    first, second = np.where(rng.random((2, 80)) < 0.3, 0.0, np.inf)
    up, down = int(((first == 0) & (second > 0)).sum()), int(((second == 0) & (first > 0)).sum())
    drawn = compare_damage({"a": first, "b": second}, threshold(1.0), rng=rng).difference("a", "b")
    found = share_difference(up, down, 80)
    assert (found.value, found.low, found.high) == pytest.approx((drawn.value, drawn.low, drawn.high), abs=0.008)


def test_it_is_the_same_the_other_way_round() -> None:
    found, back = share_difference(9, 4, 50), share_difference(4, 9, 50)
    assert (found.low, found.high) == pytest.approx((-back.high, -back.low))


@pytest.mark.parametrize("n", [4, 9, 16, 30])
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1, 0.25])
def test_no_truth_is_called_not_worse_too_often(n: int, margin: float) -> None:
    share, _ = wrong_passes(at_least, n, margin)
    assert share <= 0.025


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 120, 200])
@pytest.mark.parametrize("margin", [0.0, 0.01, 0.05, 0.2])
def test_no_truth_is_called_not_worse_too_often_among_more(n: int, margin: float) -> None:
    share, _ = wrong_passes(at_least, n, margin)
    assert 0.01 < share <= 0.025


def test_intervals_cover_at_least_as_often_as_they_say() -> None:
    @cache
    def limits(up: int, down: int, n: int) -> tuple[float, float]:
        found = share_difference(up, down, n, level=0.9)
        return found.low, found.high

    for p_up, p_down in ((0.0, 0.0), (0.02, 0.02), (0.3, 0.1), (0.5, 0.5), (0.05, 0.4)):
        assert missed(limits, 9, p_up, p_down) <= 0.1


def test_tangos_score_is_called_not_worse_too_often() -> None:
    """Why it is not used. The restricted estimate in it is the most likely one, found here by search."""
    found = tango_estimate(7, 3, 40, 0.05)

    def unlikely(q: float) -> float:
        return -(7 * np.log(q + 0.05) + 3 * np.log(q) + 30 * np.log(1 - 0.05 - 2 * q))

    best = optimize.minimize_scalar(unlikely, bounds=(1e-6, 0.47), method="bounded", options={"xatol": 1e-10})
    assert found == pytest.approx(best.x, abs=1e-6)
    assert wrong_passes(tango, 10, 0.02)[0] > 0.04


def test_samples_without_a_verdict_count_at_their_worst() -> None:
    whole = share_difference(5, 3, 40, unknown=4)
    for more_up in range(5):
        for more_down in range(5 - more_up):
            full = share_difference(5 + more_up, 3 + more_down, 44)
            assert whole.low <= full.low
            assert whole.high >= full.high
    assert whole.value == share_difference(5, 3, 40).value


@pytest.mark.parametrize(("up", "down", "n", "unknown"), [(3, 3, 5, 0), (-1, 0, 5, 0), (0, 0, 0, 0), (1, 1, 5, -1)])
def test_impossible_counts_are_refused(up: int, down: int, n: int, unknown: int) -> None:
    with pytest.raises(RiskError, match=r"found|cannot differ"):
        share_difference(up, down, n, unknown=unknown)
