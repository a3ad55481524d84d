"""Damage under an evasion curve: closed forms, exact intervals, and what is refused."""

import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.stats import beta

from advrisk.core.errors import RiskError
from advrisk.risk.damage import (
    EvasionComparison,
    compare_damage,
    damage_probability,
    operational_risk,
    success_ratio,
)
from advrisk.risk.evasion import (
    average,
    fit_bayesian,
    fit_logistic,
    fit_monotone,
    read_evasion,
    threshold,
    values_of,
    write_evasion,
)

INF = np.inf
ANSWERS = ([0.2, 0.5, 0.7, 0.7, 1.0, 1.2, 1.5, 2.0], [1, 1, 1, 0, 1, 0, 0, 0])
FITS = {"logistic": fit_logistic, "bayesian": fit_bayesian, "monotone": fit_monotone}


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def falling(sizes: Any) -> Any:
    return np.exp(-np.asarray(sizes))


def compare(distances: dict[str, Any], evasion: Any = falling, **options: Any) -> EvasionComparison:
    return compare_damage(distances, evasion, rng=rng(), **options)


@dataclass(frozen=True)
class Flat:
    """Psi is one number, not known better than that it is uniform on [low, high]."""

    low: float
    high: float

    def __call__(self, sizes: ArrayLike, /) -> Any:
        return np.where(np.isfinite(sizes), (self.low + self.high) / 2, 0.0)

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Any]:
        return [Flat(value, value) for value in rng.uniform(self.low, self.high, n)]

    def extrapolated(self, sizes: ArrayLike) -> Any:
        return np.zeros(np.shape(sizes), dtype=bool)


# Values


def test_damage_is_the_mean_over_all_samples_and_resisted_ones_count_nothing() -> None:
    found = damage_probability([0.0, 1.0, 2.0, INF], falling, rng=rng())
    assert found.value == pytest.approx((1 + np.exp(-1) + np.exp(-2)) / 4)
    assert (found.n, found.level, found.method) == (4, 0.95, "Gaffke")


def test_clean_error_is_the_part_from_distance_zero() -> None:
    comparison = compare({"a": [0.0, 0.0, 1.0, INF]}, lambda sizes: 0.8 * np.exp(-sizes))
    assert comparison.clean_error["a"] == pytest.approx(0.4)
    assert comparison.estimates["a"].value == pytest.approx(0.4 + 0.2 * np.exp(-1))


def test_extrapolated_distances_are_counted() -> None:
    comparison = compare({"a": [0.1, 1.0, 9.0, INF]}, fit_logistic(*ANSWERS))
    assert comparison.extrapolated == {"a": 0.5}


# Intervals


@pytest.mark.parametrize("hits", [0, 1, 7, 20])
def test_a_threshold_gives_clopper_and_pearsons_interval(hits: int) -> None:
    distances = [0.5] * hits + [2.0] * (20 - hits)
    found = damage_probability(distances, threshold(1.0), rng=rng())
    assert found.value == success_ratio(distances, 1.0) == hits / 20
    assert found.low == pytest.approx(beta.ppf(0.025, hits, 21 - hits) if hits else 0.0, rel=1e-9)
    assert found.high == pytest.approx(beta.ppf(0.975, hits + 1, 20 - hits) if hits < 20 else 1.0, rel=1e-9)
    assert found.method == "Clopper-Pearson"


def test_limits_do_not_depend_on_who_asks(tmp_path: Path) -> None:
    """Of few answers, where limits that are drawn differ in the second digit; and against very many draws."""
    generator = rng()
    sizes = np.exp(generator.uniform(np.log(0.02), 0.0, 20))
    undetected = generator.random(20) < 1 / (1 + (sizes / 0.2) ** 3)
    broken = np.exp(generator.normal(np.log(0.2), 0.5, 60))
    by_model = {"a": np.append(broken, [np.inf] * 60), "b": np.append(np.sort(broken) * 1.1, [np.inf] * 60)}
    curve = fit_bayesian(sizes, undetected, guess=None, lapse=None)
    one, other = (compare_damage(by_model, curve, rng=np.random.default_rng(seed)) for seed in (1, 2))
    assert one.estimates == other.estimates
    assert one.difference("a", "b") == other.difference("a", "b")
    assert one.estimates["a"] == damage_probability(by_model["a"], curve, rng=np.random.default_rng(3))
    write_evasion(tmp_path / "curve.json", curve, norm="linf")  # as `label --fit` does for `select --evasion`
    again = read_evasion(tmp_path / "curve.json", norm="linf")
    assert damage_probability(by_model["a"], again, rng=rng()) == one.estimates["a"]
    drawn: dict[str, list[Any]] = {"low": [], "high": [], "difference": []}
    for _ in range(20):
        weights = generator.standard_exponential((10_000, 121))
        weights /= weights.sum(axis=1, keepdims=True)
        curves = curve.draws(10_000, generator)
        first, second = ((weights[:, :60] * values_of(curves, by_model[model][:60])).sum(axis=1) for model in "ab")
        drawn["low"].append(first)
        drawn["high"].append(first + weights[:, -1])
        drawn["difference"].append(first - second + weights[:, -1])
    low, high, difference = (np.concatenate(parts) for parts in drawn.values())
    assert one.estimates["a"].low == pytest.approx(np.quantile(low, 0.025), abs=0.0025)  # of the draws: 0.0008
    assert one.estimates["a"].high == pytest.approx(np.quantile(high, 0.975), abs=0.0025)
    assert one.difference("a", "b").high == pytest.approx(np.quantile(difference, 0.975), abs=0.001)


def test_samples_in_groups_and_curves_at_fewer_sizes_change_no_digit() -> None:
    """1,500 different distances are grouped; 60 copies of 25 are not."""
    few = np.linspace(0.05, 0.9, 25)
    many = np.repeat(few, 60) + np.tile(np.linspace(-1e-6, 1e-6, 60), 25)
    curve = fit_logistic([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [True, True, False, True, False, False])
    exact, grouped = (damage_probability(one, curve, rng=rng()) for one in (np.repeat(few, 60), many))
    assert (grouped.low, grouped.high) == pytest.approx((exact.low, exact.high), abs=1e-4)


def test_one_sample_has_the_closed_form() -> None:
    # The weight of the sample is uniform on [0, 1], the unseen one has the rest.
    found = damage_probability([1.0], lambda sizes: np.full(sizes.shape, 0.6), rng=rng())
    assert found.low == pytest.approx(0.025 * 0.6, abs=0.006)
    assert found.high == pytest.approx(0.6 + 0.4 * 0.975, abs=0.006)


def test_nothing_broken_is_not_certainty() -> None:
    for evasion in (falling, threshold(1.0), *[fit(*ANSWERS) for fit in FITS.values()]):
        found = damage_probability([INF] * 50, evasion, rng=rng())
        assert (found.value, found.low) == (0, 0)
        assert found.high == pytest.approx(1 - 0.025 ** (1 / 50), rel=0.1)


def test_many_samples_give_the_interval_of_a_mean() -> None:
    distances = np.random.default_rng(0).exponential(size=5000)
    found = damage_probability(distances, falling, rng=rng())
    half = 1.96 * falling(distances).std() / np.sqrt(5000)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=0.1 * half)


def test_the_uncertainty_of_the_curve_is_carried() -> None:
    # With very many samples all that is left is the curve's: 95 % of the uniform distribution on [0.2, 0.6].
    found = damage_probability(np.ones(20_000), Flat(0.2, 0.6), rng=rng())
    assert found.value == pytest.approx(0.4)
    assert (found.low, found.high) == pytest.approx((0.21, 0.59), abs=0.01)
    assert found.method == "Gaffke, fitted evasion"


@pytest.mark.parametrize("name", FITS)
def test_a_fitted_curve_widens_the_interval(name: str) -> None:
    fit = FITS[name](*ANSWERS)
    distances = np.random.default_rng(0).exponential(size=400)
    known, fitted = (damage_probability(distances, curve, rng=rng()) for curve in (lambda sizes: fit(sizes), fit))
    assert fitted.value == pytest.approx(known.value)
    assert fitted.high - fitted.low > 1.5 * (known.high - known.low)


def test_beyond_the_answers_a_monotone_curve_leaves_everything_open() -> None:
    beyond, below = (damage_probability([size] * 1000, fit_monotone(*ANSWERS), rng=rng()) for size in (9.0, 0.01))
    assert beyond.low == 0
    assert below.high == pytest.approx(1, abs=1e-9)


def test_a_higher_level_gives_a_wider_interval() -> None:
    narrow, wide = (damage_probability([0.1, 1.0, 2.0, INF], falling, level=level, rng=rng()) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_same_seed_same_estimate() -> None:
    first, second = (damage_probability([0.1, 1.0, INF], fit_bayesian(*ANSWERS), rng=rng()) for _ in range(2))
    assert first == second


# Differences


def test_difference_is_paired_exact_and_antisymmetric() -> None:
    comparison = compare({"a": [0.1, 0.5, 1.0, 2.0], "b": [0.2, 0.6, 1.5, INF]})
    there, back = comparison.difference("a", "b"), comparison.difference("b", "a")
    values = {model: estimate.value for model, estimate in comparison.estimates.items()}
    assert there.value == pytest.approx(values["a"] - values["b"])
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))


@pytest.mark.parametrize("evasion", [falling, threshold(1.0), *[fit(*ANSWERS) for fit in FITS.values()]])
def test_equal_models_differ_by_what_was_not_seen(evasion: Any) -> None:
    distances = np.random.default_rng(1).exponential(size=40)
    difference = compare({"a": distances, "b": distances}, evasion).difference("a", "b")
    unseen = 1 - 0.025 ** (1 / 40)
    assert difference.value == 0
    assert (difference.low, difference.high) == pytest.approx((-unseen, unseen), rel=0.1)


def test_what_the_models_share_cancels() -> None:
    """Psi is not known better than [0.2, 0.6], and still a is damaged on more samples for certain."""
    comparison = compare({"a": [1.0] * 300, "b": [1.0] * 100 + [INF] * 200}, Flat(0.2, 0.6))
    assert not comparison.undecided("a", "b")
    assert comparison.probability_lower("b", "a") == 1
    assert comparison.probability_best == {"a": 0.0, "b": 1.0}


def test_beyond_the_answers_a_monotone_curve_does_not_tell_models_apart() -> None:
    fit = fit_monotone(*ANSWERS)
    comparison = compare({"a": [3.0] * 200, "b": [4.0] * 200}, fit)
    difference = comparison.difference("a", "b")
    assert difference.value == 0
    assert difference.low == pytest.approx(-1 + 0.025 ** (1 / 200), abs=0.01)  # a is nearer, so never less damaged
    assert difference.high > 0.1


def test_equal_draws_share_the_best_place() -> None:
    comparison = compare({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    assert comparison.probability_best == {"a": 0.5, "b": 0.5}
    assert comparison.probability_lower("a", "b") == 0.5


def test_a_comparison_can_be_sent_to_another_process() -> None:
    for evasion in (threshold(1.0), *[fit(*ANSWERS) for fit in FITS.values()]):
        comparison = compare({"a": [0.1, 2.0], "b": [1.0, INF]}, evasion)
        assert pickle.loads(pickle.dumps(comparison)).difference("a", "b") == comparison.difference("a", "b")


# Money


def test_operational_risk_is_damage_times_cost() -> None:
    distances = [0.1, 1.0, 2.0, INF]
    damage = damage_probability(distances, falling, rng=rng())
    money = operational_risk(distances, falling, cost=25_000, rng=rng())
    assert (money.value, money.low, money.high) == pytest.approx(
        (25_000 * damage.value, 25_000 * damage.low, 25_000 * damage.high)
    )


@pytest.mark.parametrize("cost", [-1.0, INF, np.nan])
def test_an_impossible_cost_is_refused(cost: float) -> None:
    with pytest.raises(RiskError, match=r"the cost of one damage must be a number, at least 0, found"):
        operational_risk([1.0], falling, cost=cost, rng=rng())


def test_relative_damage_is_refused() -> None:
    relative = average({"a": [1.0, 2.0], "b": [2.0, INF]})
    for ask in (damage_probability, lambda *given, **more: operational_risk(*given, cost=1, **more)):
        with pytest.raises(RiskError, match=r"average of a, b, .* relative, no probability, and has no cost"):
            ask([1.0, 2.0], relative, rng=rng())


# What is refused


@pytest.mark.parametrize(
    ("distances", "message"),
    [([], "no distance"), ([1, np.nan], "nan at index 1"), ([-1.0], "index 0"), ([[1.0]], "shape")],
)
def test_bad_distances_are_refused(distances: Any, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        damage_probability(distances, falling, rng=rng())


@pytest.mark.parametrize("level", [0.0, 1.0, 95, np.nan])
def test_a_level_lies_between_zero_and_one(level: float) -> None:
    with pytest.raises(RiskError, match="level"):
        damage_probability([1.0], falling, level=level, rng=rng())


def test_models_on_different_samples_and_unknown_models_are_refused() -> None:
    with pytest.raises(RiskError, match="model 'b' has 1 distances and model 'a' has 2"):
        compare({"a": [1.0, 2.0], "b": [1.0]})
    with pytest.raises(RiskError, match="no model 'c' was compared"):
        compare({"a": [1.0], "b": [2.0]}).difference("a", "c")


def test_neither_scipy_stats_nor_torch_is_imported() -> None:
    code = (
        "import sys, numpy as np; from advrisk.risk.damage import damage_probability as d; "
        "from advrisk.risk.evasion import differs, fit_bayesian, fit_logistic, fit_monotone; "
        "a, r = ([1, 2, 2, 3], [1, 1, 0, 0]), np.random.default_rng(0); "
        "[d([1, 2], fit(*a), rng=r) for fit in (fit_bayesian, fit_logistic, fit_monotone)]; "
        "differs(*a, 'abab', resamples=9, rng=r); "
        "sys.exit(any(name in sys.modules for name in ('scipy.stats', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
