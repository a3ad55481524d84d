"""Intervals of damage under known and fitted evasion curves, and the test whether curves differ, against the truth.

Detectors, distances and ways to fit are those of `bench/coverage.py`, which prints the coverage of each
(`python -m bench coverage`).
"""

import numpy as np
import pytest
from scipy.stats import binom

from advrisk.risk.damage import compare_damage
from advrisk.risk.evasion import differs, fit_bayesian
from bench.coverage import (
    CROSSED,
    LABELLERS,
    POOLED,
    POPULATIONS,
    SETTINGS,
    Setting,
    comparisons,
    log_logistic,
    misses,
    true_damage,
)
from bench.evasion_shape import RIGHT, WRONG, coverage, doubted

QUICK, SLOW = 300, 2000
FEW = 60  # where every run fits a curve
LEAST = 0.93  # what every 95 % interval must cover
RUNS = {50: 100, 200: 100, 1000: 40}  # in the long tests, by number of samples
RUNS_OF_LABELLERS = {50: 60, 200: 60, 1000: 30}


def most_misses(runs: int, share: float = 1 - LEAST, *, worst_of: int = 1) -> int:
    """Misses that this share exceeds once in a thousand such tests, in the worst of so many populations."""
    return int(binom.isf(0.001 / worst_of, runs, share))


def check(name: str, n: int, runs: int, share: float = 0.05, settings: dict[str, Setting] = SETTINGS) -> None:
    found, _ = misses(settings[name], n, runs)
    allowed = most_misses(runs, share, worst_of=len(POPULATIONS))
    coverage = dict(zip(POPULATIONS, 1 - found / runs, strict=True))
    assert found.max() <= allowed, f"{name}, n = {n}: {coverage}"


@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize("name", ["threshold", "known curve"])
def test_intervals_cover_under_a_known_curve(name: str, n: int) -> None:
    check(name, n, QUICK)


@pytest.mark.parametrize("name", ["logistic", "bayesian", "bayesian, sizes chosen by answers", "monotone, six sizes"])
def test_intervals_cover_under_a_fitted_curve(name: str) -> None:
    check(name, 50, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("name", SETTINGS)
def test_intervals_cover_in_many_runs(name: str, n: int) -> None:
    check(name, n, RUNS[n])


# Several labellers


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("name", LABELLERS)
def test_intervals_cover_with_several_labellers_in_many_runs(name: str, n: int) -> None:
    check(name, n, RUNS_OF_LABELLERS[n], settings=LABELLERS)


@pytest.mark.slow
def test_intervals_cover_with_labellers_and_images() -> None:
    check("labellers and images", 200, FEW, 1 - LEAST, CROSSED)


def test_labellers_who_are_not_told_apart_make_intervals_too_narrow() -> None:
    """Were it not so, there would be no need to tell them apart."""
    found, _ = misses(POOLED["3 labellers, not told apart"], 200, FEW)
    assert found[list(POPULATIONS).index("50 %")] > most_misses(FEW)


def test_the_truth_of_several_labellers_is_the_mean_over_many() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([0.3, 1.0, 2.0])
    mean = log_logistic(sizes / np.exp(0.5 * rng.standard_normal((200_000, 1)))).mean(axis=0)
    assert LABELLERS["3 labellers"].detector(sizes) == pytest.approx(mean, abs=0.005)


def test_the_truth_is_the_value_of_a_huge_sample() -> None:
    setting = SETTINGS["known curve"]
    (huge,) = comparisons(setting, 50_000, 1)
    values = [estimate.value for estimate in huge.estimates.values()]
    assert values == pytest.approx(true_damage(setting).tolist(), abs=4 * 0.5 / np.sqrt(50_000))
    assert true_damage(setting)[:3] == pytest.approx([0.02, 0.1, 0.5], abs=1e-6)


def test_intervals_are_not_wider_than_they_must_be() -> None:
    """A fifth more than 1.96 standard deviations of the values, which is what nobody can know."""
    found = [comparison.estimates["50 %"] for comparison in comparisons(SETTINGS["known curve"], 200, QUICK)]
    half_width = np.mean([estimate.high - estimate.low for estimate in found]) / 2
    assert half_width <= 1.2 * 1.96 * np.std([estimate.value for estimate in found])


# Differences


PAIRS = [("10 %", "50 %"), ("damage 2 %", "rare zeros"), ("zeros", "ties")]


@pytest.mark.parametrize("name", ["known curve", "bayesian"])
def test_intervals_of_differences_cover(name: str) -> None:
    setting = SETTINGS[name]
    truth = dict(zip(POPULATIONS, true_damage(setting), strict=True))
    missed, runs = dict.fromkeys(PAIRS, 0), QUICK if setting.fit is None else FEW
    for comparison in comparisons(setting, 50, runs, seed=1):
        for a, b in PAIRS:
            estimate = comparison.difference(a, b)
            missed[a, b] += not estimate.low <= truth[a] - truth[b] <= estimate.high
    assert max(missed.values()) <= most_misses(runs, 0.05), missed


@pytest.mark.parametrize("success", [0.04, 0.2, 1.0])
def test_equal_models_are_rarely_decided(success: float) -> None:
    rng, decided = np.random.default_rng(0), 0
    for _ in range(QUICK):
        broken = rng.random((2, 100)) < success
        a, b = np.where(broken, rng.lognormal(0, 0.8, (2, 100)), np.inf)
        decided += not compare_damage({"a": a, "b": b}, log_logistic, rng=rng).undecided("a", "b")
    assert decided <= most_misses(QUICK, 0.05)


# Whether curves differ


def p_values(n: int, runs: int, *, steep: float) -> list[float]:
    """Of answers that all come from one logistic detector, in three groups that were asked different sizes."""
    rng, found = np.random.default_rng([n, round(steep)]), []
    while len(found) < runs:
        groups = rng.integers(0, 3, n)
        sizes = rng.uniform(0, 2, n) * (1 + groups / 4)
        undetected = rng.random(n) < 1 / (1 + np.exp(-steep * (1 - sizes)))
        if undetected.any() and not undetected.all() and len(set(groups)) > 1:
            found.append(differs(sizes, undetected, groups.tolist(), resamples=99, rng=rng).p_value)
    return found


@pytest.mark.parametrize(("n", "steep"), [(30, 3.0), (30, 30.0), (120, 3.0)])
def test_one_detector_is_rarely_taken_for_three(n: int, steep: float) -> None:
    found = np.array(p_values(n, FEW, steep=steep))
    assert (found <= 0.05).sum() <= most_misses(FEW, 0.05)
    assert (found <= 0.2).sum() <= most_misses(FEW, 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "steep"), [(30, 3.0), (30, 30.0), (120, 3.0), (120, 30.0)])
def test_one_detector_is_rarely_taken_for_three_in_many_runs(n: int, steep: float) -> None:
    assert sum(p <= 0.05 for p in p_values(n, SLOW, steep=steep)) <= most_misses(SLOW, 0.05)


# Whether answers have the shape of the curve


@pytest.mark.parametrize("name", ["logistic, 60 answers", "bayesian, 60"])
def test_the_right_shape_is_rarely_doubted(name: str) -> None:
    assert doubted(RIGHT[name], 40, seed=4) <= most_misses(40, 0.05) / 40


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_the_right_shape_is_rarely_doubted_in_many_runs(name: str) -> None:
    """At 5 %, 200 runs: more than 22 come with a probability below 1e-3."""
    assert doubted(RIGHT[name], 200, seed=4) <= most_misses(200, 0.06) / 200


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in WRONG if name.startswith("plateaus")])
def test_who_follows_the_advice_is_covered(name: str) -> None:
    """With 300 answers a wrong shape is nearly always doubted, and then the monotone curve covers; 100 runs each."""
    as_it_is, advised, doubts = coverage(WRONG[name], 100, seed=4)
    assert advised >= as_it_is
    assert advised >= 1 - most_misses(100, 0.07) / 100
    assert name.endswith(" 60") or doubts >= 0.95
    assert name != "plateaus, fit_bayesian, 300" or as_it_is < LEAST


def test_thirty_answers_at_informative_sizes_give_a_useful_curve() -> None:
    """Each size is the one that is expected to tell most; the threshold of 1 is then known to about a third."""
    rng = np.random.default_rng(0)
    offered = np.geomspace(0.05, 20, 60)
    sizes: list[float] = []
    undetected: list[bool] = []
    for _ in range(30):
        fit = fit_bayesian(sizes, undetected, plausible=(0.05, 20.0), few=True)
        sizes.append(float(offered[np.argmax(fit.expected_information(offered))]))
        undetected.append(bool(rng.random() < log_logistic(np.array(sizes[-1]))))
    fit = fit_bayesian(sizes, undetected, plausible=(0.05, 20.0))
    thresholds = np.array([curve.threshold for curve in fit.draws(1000, rng)])  # type: ignore[attr-defined]
    low, high = np.quantile(thresholds, [0.025, 0.975])
    assert low < 1 < high
    assert high / low < 3
