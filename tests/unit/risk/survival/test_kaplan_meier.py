"""Kaplan and Meier's curve against one worked out by hand, and where it ends flat."""

import sys

import numpy as np
import pytest

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
    assert "extrapolated" in plateau.message


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
    with pytest.raises(RiskError, match="says nothing of time 9: the longest duration is 5"):
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
