"""Kaplan and Meier's curve against one worked out by hand, and where it ends flat."""

import sys

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from advrisk.core.errors import RiskError
from advrisk.risk.survival import kaplan_meier

# Six rows: events at 1, 2 (two of them) and 5; censored at 2 and 4.
T = [1.0, 2.0, 2.0, 2.0, 4.0, 5.0]
E = [1, 1, 1, 0, 0, 1]


def test_a_curve_worked_out_by_hand() -> None:
    found = kaplan_meier(T, E)
    assert found.times.tolist() == [1, 2, 4, 5]
    assert found.at_risk.tolist() == [6, 5, 2, 1]
    assert found.events.tolist() == [1, 2, 0, 1]
    assert found.survival == pytest.approx([5 / 6, 5 / 6 * 3 / 5, 1 / 2, 0])
    assert (found.n, found.n_events, found.longest) == (6, 4, 5.0)
    assert found.at(0.5).value == 1
    assert found.at(3.0).value == pytest.approx(0.5)


def test_intervals_are_greenwoods_on_the_log_log_scale() -> None:
    found = kaplan_meier(T, E)
    variance = 1 / (6 * 5) + 2 / (5 * 3)
    half = 1.959963984540054 * np.sqrt(variance) / abs(np.log(0.5))
    assert found.low[1] == pytest.approx(0.5 ** np.exp(half))
    assert found.high[1] == pytest.approx(0.5 ** np.exp(-half))
    assert (found.low[3], found.high[3]) == (0, found.high[2])  # nothing is left
    assert found.at(0.5).low == pytest.approx(0.025 ** (1 / 6))  # no event yet: (1 - p)^6 = 0.025


def test_the_mean_is_the_area_under_the_curve() -> None:
    found = kaplan_meier(T, E).mean(4.5)
    assert found.value == pytest.approx(1 + 5 / 6 + 0.5 * 2.5)
    error = np.sqrt((5 / 6 + 0.5 * 2.5) ** 2 / 30 + (0.5 * 2.5) ** 2 * 2 / 15)
    assert np.log(found.value / found.low) == pytest.approx(1.959963984540054 * error / found.value)


# Freireich et al. (1963): weeks of remission under 6-mercaptopurine and under placebo.
TREATED = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
RELAPSED = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]


def test_medians_are_those_of_the_textbook() -> None:
    """23 weeks [13, not reached] and 8 [4, 11], as SAS PROC LIFETEST prints them (log-log intervals)."""
    treated, placebo = kaplan_meier(TREATED, RELAPSED).median(), kaplan_meier(PLACEBO, [1] * 21).median()
    assert (treated.value, treated.low, treated.high) == (23, 13, np.inf)
    assert (placebo.value, placebo.low, placebo.high) == (8, 4, 11)


def test_a_median_that_was_not_reached_is_infinite() -> None:
    found = kaplan_meier([1, 2, 9, 9, 9], [1, 1, 0, 0, 0]).median()
    assert found.value == np.inf
    assert found.method.endswith("not reached within 9")
    few = kaplan_meier(np.arange(1, 101), np.arange(100) < 5).median()  # not even the band comes down to a half
    assert (few.value, few.low, few.high) == (np.inf, 100, np.inf)
    with pytest.raises(RiskError, match="between 0 and 1"):
        kaplan_meier(T, E).quantile(1.0)


def test_once_nothing_is_left_a_mean_has_no_limit() -> None:
    found = kaplan_meier(PLACEBO, [1] * 21)
    assert found.end == np.inf
    assert found.mean(500.0).value == pytest.approx(np.mean(PLACEBO))
    spread = np.std(PLACEBO, ddof=0) / np.sqrt(21)
    assert np.log(found.mean(500.0).high / np.mean(PLACEBO)) == pytest.approx(
        1.96 * spread / np.mean(PLACEBO), rel=1e-3
    )
    assert kaplan_meier(TREATED, RELAPSED).end == 35


def test_where_all_rows_are_alike_the_mean_is_not_exact() -> None:
    """No event in n rows: a share of 1 - 0.025^(1/n) may have been missed."""
    found = kaplan_meier([10.0] * 20, [0] * 20).mean(10.0)
    assert (found.value, found.high) == (10, 10)
    assert found.low == pytest.approx(10 * 0.025 ** (1 / 20))


def test_a_difference_of_means_is_paired_by_cluster() -> None:
    """Without censoring: the paired t interval, with clusters that only one curve has counted for that one alone."""
    rng = np.random.default_rng(3)
    base = rng.exponential(size=60) * 5
    first, second = base + rng.exponential(size=60), base + rng.exponential(size=60) * 0.5
    names = [f"s{place}" for place in range(60)]
    one, other = (kaplan_meier(times, [1] * 60, cluster=names) for times in (first, second))
    found = one.mean_difference(other, 100.0)
    gaps = first - second
    assert found.value == pytest.approx(gaps.mean())
    half = stats.t.ppf(0.975, 59) * np.std(gaps, ddof=1) / np.sqrt(60)
    assert found.high - found.value == pytest.approx(half, rel=1e-9)
    apart = kaplan_meier(first, [1] * 60).mean_difference(kaplan_meier(second, [1] * 60), 100.0)
    assert apart.high - apart.value > 3 * half  # two groups of other samples say much less


def test_the_interval_of_a_difference_covers_it_under_censoring() -> None:
    """Weibull times of 80 pairs, cut off at 4: 95 % of 400 intervals, give or take 2.2 standard errors."""
    rng, held = np.random.default_rng(11), 0
    truth = quad(lambda t: np.exp(-((t / 3) ** 1.3)) - np.exp(-((t / 2) ** 1.3)), 0, 4)[0]
    for _ in range(400):
        shared = rng.uniform(size=80) < 0.5  # half of the pairs have one and the same chance
        u = rng.uniform(size=(2, 80))
        u[1] = np.where(shared, u[0], u[1])
        times = np.array([[3.0], [2.0]]) * (-np.log(u)) ** (1 / 1.3)
        curves = [kaplan_meier(np.minimum(t, 4), t <= 4, cluster=np.arange(80)) for t in times]
        found = curves[0].mean_difference(curves[1], 4.0)
        held += found.low <= truth <= found.high
    assert abs(held / 400 - 0.95) < 2.2 * np.sqrt(0.95 * 0.05 / 400)


def test_without_censoring_it_is_the_share_that_is_left() -> None:
    t = np.random.default_rng(0).exponential(size=200)
    found = kaplan_meier(t, np.ones(200))
    for time in (0.2, 1.0):
        assert found.at(time).value == pytest.approx(float((t > time).mean()))
    assert found.mean(float(t.max())).value == pytest.approx(t.mean())


def test_rows_may_come_in_any_order() -> None:
    order = np.random.default_rng(0).permutation(6)
    one, other = kaplan_meier(T, E), kaplan_meier(np.array(T)[order], np.array(E)[order])
    assert one.low.tolist() == other.low.tolist()


def test_samples_that_no_one_breaks_are_a_plateau() -> None:
    t = np.concatenate([np.linspace(1, 200, 60), np.full(40, 1000.0)])
    e = np.concatenate([np.ones(60), np.zeros(40)])
    plateau = kaplan_meier(t, e).plateau
    assert plateau is not None
    assert plateau.share.value == pytest.approx(0.4)
    assert (plateau.since, plateau.until) == (200, 1000)
    assert "ends flat at 40 %: the last event came at 200, and 40 rows went on" in plateau.message


def test_no_event_at_all_is_a_plateau() -> None:
    found = kaplan_meier([3.0, 4.0, 5.0], [0, 0, 0])
    assert found.plateau is not None
    assert "no event came at all" in found.plateau.message
    assert found.survival.tolist() == [1, 1, 1]
    assert found.low[2] == pytest.approx(0.025)  # one row was watched for that long


def test_a_curve_that_still_falls_when_it_ends_is_none() -> None:
    """An exponential law, stopped at its median: half is left, but events come until the end."""
    t = np.random.default_rng(0).exponential(size=400)
    assert kaplan_meier(np.minimum(t, np.log(2)), t < np.log(2)).plateau is None
    assert kaplan_meier(t, np.ones(400)).plateau is None


@pytest.mark.parametrize(
    ("t", "e", "message"),
    [
        ([0.0, 1.0], [1, 1], "'durations' is 0 in 1 row"),
        ([1.0, np.nan], [1, 1], "not a finite number"),
        ([1.0], [1, 0], "differ in length"),
        ([], [], "no rows"),
        ([1.0, 2.0], [1, 3], "must be 1 .seen. or 0"),
    ],
)
def test_what_is_no_curve_is_refused(t: list[float], e: list[int], message: str) -> None:
    with pytest.raises(RiskError, match=message):
        kaplan_meier(t, e)


def test_nothing_is_said_beyond_the_longest_duration() -> None:
    with pytest.raises(RiskError, match="is undefined at time 9: the longest duration is 5"):
        kaplan_meier(T, E).at(9.0)
    with pytest.raises(RiskError, match="level must lie between 0 and 1"):
        kaplan_meier(T, E, level=2.0)


class TestClusters:
    def test_of_one_row_each_they_give_greenwoods_formula(self) -> None:
        rng = np.random.default_rng(1)
        t, e = rng.integers(1, 9, 40).astype(float), rng.integers(0, 2, 40)
        one, other = kaplan_meier(t, e), kaplan_meier(t, e, cluster=np.arange(40))
        assert other._rows.running_spread() == pytest.approx(one._rows.running_spread() * 40 / 39)
        weights = rng.random(one.times.size)
        assert other._rows.spread(weights) == pytest.approx(one._rows.spread(weights) * 40 / 39)

    def test_rows_said_twice_add_nothing(self) -> None:
        """Every row ten times, all of one cluster: the band is that of the rows once, but for few-cluster terms."""
        rng = np.random.default_rng(2)
        t, e = rng.exponential(size=200), rng.random(200) < 0.7
        once = kaplan_meier(t, e, cluster=np.arange(200))
        tenfold = kaplan_meier(np.repeat(t, 10), np.repeat(e, 10), cluster=np.repeat(np.arange(200), 10))
        assert tenfold.survival == pytest.approx(once.survival)
        inner = (once.survival > 0.1) & (once.survival < 0.95)
        assert tenfold.low[inner] == pytest.approx(once.low[inner], abs=0.01)
        assert tenfold.mean(1.0).low == pytest.approx(once.mean(1.0).low, rel=0.01)

    def test_blocks_of_times_give_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(3)
        t, e, cluster = rng.exponential(size=90), rng.random(90) < 0.7, rng.integers(0, 30, 90)
        whole = kaplan_meier(t, e, cluster=cluster)
        monkeypatch.setattr(sys.modules["advrisk.risk.survival.kaplan_meier"], "_BLOCK", 200)
        cut = kaplan_meier(t, e, cluster=cluster)
        assert cut.low == pytest.approx(whole.low)
        assert cut.mean(1.0).low == pytest.approx(whole.mean(1.0).low)

    def test_bands_cover_where_rows_of_a_cluster_depend_on_each_other(self) -> None:
        """100 clusters of 10 rows with a shared part, at the true median; taken as independent rows they cover less."""
        rng = np.random.default_rng(4)
        covered = {True: 0, False: 0}
        cluster = np.repeat(np.arange(100), 10)
        for _ in range(300):
            z = np.sqrt(0.5) * rng.normal(size=100)[cluster] + np.sqrt(0.5) * rng.normal(size=1000)
            for known in covered:
                found = kaplan_meier(np.exp(z), z < 2, cluster=cluster if known else None).at(1.0)
                covered[known] += found.low <= 0.5 <= found.high
        assert 0.925 <= covered[True] / 300 <= 0.98
        assert covered[False] / 300 < 0.8

    @pytest.mark.parametrize(("cluster", "said"), [(["a"] * 6, "one cluster"), (["a", "b"], "each of the 6 rows")])
    def test_clusters_that_say_nothing_are_refused(self, cluster: list[str], said: str) -> None:
        with pytest.raises(RiskError, match=said):
            kaplan_meier(T, E, cluster=cluster)
