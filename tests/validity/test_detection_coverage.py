"""Intervals of AUROC and false-positive rate against truths that are known: see `bench.detection_coverage`."""

import numpy as np
import pytest
from scipy.stats import binom

from bench.detection_coverage import MORE, WORLDS, World, misses


def most_misses(runs: int, share: float = 0.05) -> int:
    """Misses that this share exceeds once in a thousand such tests."""
    return int(binom.isf(0.001, runs, share))


@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover_the_truth(name: str) -> None:
    runs = 200
    found = misses(WORLDS[name], runs, seed=7)
    assert max(found.values()) <= most_misses(runs), found


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS | MORE)
def test_intervals_cover_the_truth_in_many_runs(name: str) -> None:
    """At least 93.5 %, where 95 % is promised: at n = 100 the variance itself is an estimate."""
    runs = 2000
    found = misses((WORLDS | MORE)[name], runs, seed=8)
    assert max(found.values()) <= most_misses(runs, 0.065), found


def test_the_truths_themselves_are_those_of_large_samples() -> None:
    world = World(40_000, (1.0,), arms=3, common=0.4)
    found = world.draw(np.random.default_rng(1))[0]
    assert found.auroc == pytest.approx(world.auroc(1.0), abs=0.012)
    assert found.fpr == pytest.approx(world.fpr(1.0), abs=0.02)
    assert World(1, (0.0,), arms=4).auroc(0.0) == pytest.approx(1 / 5), "noise: the chance level"
