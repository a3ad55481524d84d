"""Runs that stop when they know enough: intervals that still cover, and decisions that are as seldom wrong as promised.

The worlds are those of `bench/looks.py`, which prints the shares.
"""

import numpy as np
import pytest

from advrisk.risk.damage import detector_free_damage
from bench.looks import (
    LIMITS,
    TRUTHS,
    WORLDS,
    rarely_fails,
    rarely_opposed,
    stopped_damage_coverage,
    stopped_relative_coverage,
    stopped_share_coverage,
    wrong_decisions,
    wrong_passes,
)

ALPHA = 0.05
RUNS = 1000
NOISE = 3 * (ALPHA * (1 - ALPHA) / RUNS) ** 0.5


def test_shares_at_their_limit_are_decided_as_seldom_as_promised() -> None:
    """Exactly: over all paths. Looks that do not share the error decide too often."""
    assert max(wrong_passes(limit, 8, shares=True) for limit in LIMITS) <= ALPHA
    assert max(wrong_passes(limit, 8, shares=False) for limit in LIMITS) > 2 * ALPHA


def test_models_alike_are_seldom_told_apart() -> None:
    """At 0.05, more than 13 of 100 runs come with a probability below 1e-3."""
    found = wrong_decisions(WORLDS["two models alike"], 8, 100, seed=5)
    assert found <= 13 / 100


def test_models_alike_but_on_rare_samples_are_seldom_told_apart() -> None:
    """At 0.05, more than 13 of 100 runs come with a probability below 1e-3."""
    world = WORLDS["and the other resists, on 2%"]
    assert wrong_decisions(world, 8, 100, seed=5) <= 13 / 100


def test_the_rare_worlds_hold_models_that_are_alike() -> None:
    """Relative damage of many samples; the standard error of the difference is below 0.001."""
    for world in (rarely_fails(0.1), rarely_fails(0.01), rarely_opposed(0.1), rarely_opposed(0.01)):
        found = world(100_000, np.random.default_rng(1))
        made = detector_free_damage(found, resamples=1, rng=np.random.default_rng(0)).estimates
        assert abs(made["m0"].value - made["m1"].value) < 0.003


def test_intervals_of_shares_cover_where_a_run_stopped() -> None:
    """Stopping on width has no promise; what is told is that it costs less than two hundredths, whatever the truth."""
    assert min(stopped_share_coverage(truth, 0.1, 16) for truth in TRUTHS[::20]) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("margin", [0.02, 0.05, 0.1])
def test_intervals_of_shares_cover_for_every_truth(margin: float) -> None:
    found = [stopped_share_coverage(truth, margin, 64) for truth in TRUTHS]
    assert min(found) >= 0.93
    assert sum(found) / len(found) >= 0.95


@pytest.mark.slow
def test_damage_is_covered_where_a_run_stopped() -> None:
    assert stopped_damage_coverage(0.06, 16, RUNS, seed=6) >= 1 - ALPHA - NOISE
    assert stopped_relative_coverage(0.03, 16, RUNS, seed=7) >= 1 - ALPHA - NOISE


@pytest.mark.slow
@pytest.mark.parametrize("world", list(WORLDS))
def test_wrong_decisions_stay_below_what_is_allowed(world: str) -> None:
    assert wrong_decisions(WORLDS[world], 16, RUNS, seed=8) <= ALPHA + NOISE
