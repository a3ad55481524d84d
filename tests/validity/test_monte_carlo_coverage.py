"""Intervals of the Monte Carlo damage against a truth that is known: a detector whose scores are drawn.

An attack succeeds on a share of the samples; what it makes scores N(shift, 1), a clean input N(0, 1).
"""

import numpy as np
import pytest
from scipy.stats import binom, norm

from advrisk.risk.monte_carlo import MonteCarloDamage, Walk, monte_carlo_from_answers, walked_damage

RUNS, N, LIMIT = 300, 100, 1.0
SHARES = {"weak": 0.9, "strong": 0.3, "rare": 0.05}
SHIFT, CLEAN_ERROR = 1.5, 0.1


def most_misses(share: float = 0.05) -> int:
    """Misses that this share exceeds once in a thousand such tests."""
    return int(binom.isf(0.001, RUNS, share))


def truth(model: str) -> float:
    unseen = norm.cdf(LIMIT - SHIFT)
    return float(CLEAN_ERROR * norm.cdf(LIMIT) + (1 - CLEAN_ERROR) * SHARES[model] * unseen)


def drawn(rng: np.random.Generator) -> MonteCarloDamage:
    """One study: all models on the same samples, whose difficulty they share."""
    difficulty, wrong = rng.random(N), rng.random(N) < CLEAN_ERROR
    walked = {}
    for model, share in SHARES.items():
        clean, attacked = rng.normal(size=N), rng.normal(SHIFT, size=N)
        broken = difficulty < share
        size = np.where(wrong, 0.0, np.where(broken, 0.1, np.inf))
        score = np.where(wrong, clean, np.where(broken, attacked, np.nan))
        arm = tuple("pgd" if hit and not error else "" for hit, error in zip(broken, wrong, strict=True))
        walked[model] = Walk(size, score, score, arm, clean, ~wrong)
    return walked_damage(walked, dict.fromkeys(SHARES, LIMIT), detector="eye", rng=rng)


@pytest.fixture(scope="module")
def studies() -> list[MonteCarloDamage]:
    rng = np.random.default_rng(5)
    return [drawn(rng) for _ in range(RUNS)]


@pytest.mark.parametrize("model", SHARES)
def test_intervals_cover_the_damage(studies: list[MonteCarloDamage], model: str) -> None:
    found = [study.estimates[model] for study in studies]
    misses = sum(not one.low <= truth(model) <= one.high for one in found)
    assert misses <= most_misses()
    assert np.mean([one.value for one in found]) == pytest.approx(truth(model), abs=4 * 0.5 / np.sqrt(RUNS * N))


@pytest.mark.parametrize("model", SHARES)
def test_intervals_cover_the_rate_of_false_alarms(studies: list[MonteCarloDamage], model: str) -> None:
    found = [alarms for study in studies if (alarms := study.false_alarms[model])]
    assert len(found) == RUNS
    assert sum(not one.low <= norm.sf(LIMIT) <= one.high for one in found) <= most_misses()


@pytest.mark.parametrize(("a", "b"), [("weak", "strong"), ("strong", "rare")])
def test_intervals_cover_paired_differences(studies: list[MonteCarloDamage], a: str, b: str) -> None:
    found = [study.difference(a, b) for study in studies]
    assert sum(not one.low <= truth(a) - truth(b) <= one.high for one in found) <= most_misses()


def test_intervals_cover_what_several_people_miss() -> None:
    """Three people look at every success; each misses it with a probability that belongs to the sample."""
    rng = np.random.default_rng(6)
    misses = 0
    for _ in range(RUNS):
        chance = rng.beta(2, 3, N) * (rng.random(N) < 0.5)
        found = monte_carlo_from_answers(rng.binomial(3, chance) / 3, rng=rng)
        misses += not found.low <= 0.5 * 0.4 <= found.high
    assert misses <= most_misses()
