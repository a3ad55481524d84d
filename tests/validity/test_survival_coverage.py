"""Intervals of survival fits against laws that are known: how often do 95 % intervals hold the truth?

The worlds are those of `bench/survival_coverage.py`, which prints the shares.
"""

import numpy as np
import pytest

from advrisk.risk.survival import FAMILIES, fit_survival, kaplan_meier
from bench.survival_coverage import CALIBRATED, FEW, RUNS, WORLDS, coverage, cured, doubted


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_cover_as_they_say(world: str, family: str) -> None:
    found = coverage(WORLDS[world], family, RUNS)
    assert all(0.93 <= share <= 0.97 for share in found.values()), found


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_about_as_they_say(family: str) -> None:
    """Sixty runs: at 95 %, fewer than 49 come with a probability below 1e-4 each."""
    found = coverage(WORLDS["passes"], family, 60)
    assert all(share > 48.5 / 60 for share in found.values()), found


@pytest.mark.slow
def test_rows_that_recur_are_too_sure_without_clusters() -> None:
    """The reason for clusters: an effect that the rows of a sample share is found with too narrow an interval."""
    world = WORLDS["recurring"]
    held = 0
    for run in range(300):
        table = world.table("lognormal", np.random.default_rng([run, 5]))
        fit = fit_survival(table, duration="t", event="e", covariates=["eps", "kind"], family="lognormal")
        found = fit.coefficient("intercept").natural.estimate
        held += found.low <= 1 <= found.high
    assert held / 300 < 0.92


@pytest.mark.slow
def test_kaplan_meier_intervals_cover_as_they_say() -> None:
    """An exponential law, a third of it censored; at three heights of the curve, and the restricted mean."""
    held = np.zeros(4)
    for run in range(RUNS):
        rng = np.random.default_rng([run, 6])
        t, stopped = rng.exponential(size=150), rng.exponential(2.0, 150)
        curve = kaplan_meier(np.minimum(t, stopped), t <= stopped)
        found = [*(curve.at(time) for time in (0.1, 0.7, 1.3)), curve.mean(1.3)]
        truth = [*np.exp([-0.1, -0.7, -1.3]), 1 - np.exp(-1.3)]
        held += [one.low <= value <= one.high for one, value in zip(found, truth, strict=True)]
    assert ((held / RUNS >= 0.93) & (held / RUNS <= 0.98)).all(), held / RUNS


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("world", CALIBRATED)
def test_a_right_law_is_seldom_beyond_chance(world: str, family: str) -> None:
    """At 5 %, 300 runs, fitted on one half and calibrated on the other: beyond 10 % with a probability below 0.001."""
    share, ici, chance = doubted(CALIBRATED[world], family, 300)
    assert share < 0.10
    assert ici < chance


def test_a_right_law_is_not_often_beyond_chance() -> None:
    """Forty runs with samples that recur: at 5 %, more than 8 come with a probability below 1e-3."""
    share, _, _ = doubted(CALIBRATED["100 x 10 rows, alike by .8"], "weibull", 40)
    assert share <= 8 / 40


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("world", FEW)
def test_intervals_of_few_clusters_cover_nearly_as_they_say(world: str, family: str) -> None:
    """30 clusters are what a fit accepts: its shape is covered less well than all else, and the page says so."""
    found = coverage(FEW[world], family, RUNS)
    assert found.pop("shape") >= 0.90
    assert all(0.925 <= share <= 0.975 for share in found.values()), found


CURED = 300  # runs; the standard error of a share near 0.95 is 0.013


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("watched", [20, 40, 100])
def test_medians_hold_where_three_of_ten_rows_never_fail(watched: int, family: str) -> None:
    """The law's own median often misses; it is refused then, and the rows' median is covered as its interval says."""
    found = cured(family, never=0.3, watched=watched, runs=CURED)
    assert watched == 20 or found.law < 0.93
    assert found.quoted <= 0.05
    assert found.kaplan_meier >= 0.95 - 3 * (0.05 * 0.95 / CURED) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("watched", [20, 100])
def test_medians_are_seldom_refused_where_all_rows_fail(watched: int, family: str) -> None:
    """At 5 %, up to 10 % in 300 rows: the test is one of many rows."""
    found = cured(family, never=0.0, watched=watched, runs=CURED)
    assert found.refused <= 0.10 + 3 * (0.1 * 0.9 / CURED) ** 0.5
    assert found.law >= 0.95 - 3 * (0.05 * 0.95 / CURED) ** 0.5


def test_a_median_is_not_quoted_where_three_of_ten_rows_never_fail() -> None:
    """Forty runs: the rows' median misses more than 7 times with a probability below 1e-3 at 5 %."""
    found = cured("weibull", never=0.3, watched=40, runs=40)
    assert found.law < 0.5
    assert found.quoted == 0
    assert found.kaplan_meier >= 33 / 40
