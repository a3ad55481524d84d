"""Rates and cost ratios against closed forms, integration and simulation; the Pareto set against brute force."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.integrate import quad

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.risk.survival import SurvivalFit, fit_survival
from advrisk.risk.survival.cost import (
    benign_rate,
    broken,
    cost_ratio,
    failure_rate,
    mean_of,
    over_mean,
    rate_influence,
    scaled,
    total_cost_ratio,
)
from advrisk.risk.survival.pareto import Criterion, dominates, pareto_set, surely_dominates


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 0.95, 10, "by hand")


class TestRates:
    def test_clean_failures_follow_each_other(self) -> None:
        rate = benign_rate(np.arange(100) < 20, 0.5, unit="seconds")
        assert rate.estimate.value == pytest.approx(0.4)
        assert rate.estimate.low < 0.4 < rate.estimate.high
        assert rate.probability(3.0).value == pytest.approx(1 - math.exp(-1.2))

    def test_a_probability_never_exceeds_one(self) -> None:
        rate = benign_rate(np.arange(100) < 99, 0.001, unit="seconds")  # the paper's (1 - accuracy)/t would be 990
        assert rate.probability(10.0).high <= 1

    def test_failures_over_what_was_spent(self) -> None:
        rate = failure_rate([1, 0, 1, 1], [5, 20, 10, 15], unit="forward passes")
        assert rate.estimate.value == pytest.approx(3 / 50)
        assert rate.unit == "forward passes"

    def test_its_interval_covers_a_known_rate(self) -> None:
        """Exponential times at rate 0.2, cut off at 6, three rows of each sample that share a frailty."""
        rng = np.random.default_rng(3)
        covered = 0
        for _ in range(400):
            rates = 0.2 * rng.gamma(4, 1 / 4, size=(80, 1))
            times = rng.exponential(1 / rates, size=(80, 3))
            hits, spent = (times < 6).sum(1), np.minimum(times, 6).sum(1)
            found = failure_rate(hits.astype(float), spent, unit="passes").estimate
            covered += found.low <= TRUE_RATE <= found.high
        assert 0.92 <= covered / 400 <= 0.98

    def test_without_failures_the_interval_is_poisson(self) -> None:
        found = failure_rate([0, 0], [10, 10], unit="passes").estimate
        assert (found.value, found.low) == (0, 0)
        assert found.high == pytest.approx(-math.log(0.025) / 20)

    def test_influences_add_up_to_nothing(self) -> None:
        assert rate_influence(np.array([1.0, 0, 2]), np.array([3.0, 9, 4])).sum() == pytest.approx(0)

    @pytest.mark.parametrize(
        ("failures", "spent", "message"),
        [
            ([], [], "one entry for each sample"),
            ([1], [1, 2], "one entry for each sample"),
            ([1, math.nan], [1, 2], "finite and at least 0"),
            ([1, 0], [0, 0], "nothing was spent"),
        ],
    )
    def test_mistakes(self, failures: list[float], spent: list[float], message: str) -> None:
        with pytest.raises(RiskError, match=message):
            failure_rate(failures, spent, unit="passes")

    def test_times_are_checked(self) -> None:
        with pytest.raises(RiskError, match="a time above 0, found 0"):
            benign_rate(np.arange(10) < 1, 0.0, unit="seconds")
        with pytest.raises(RiskError, match="a time is at least 0, found -1"):
            benign_rate(np.arange(10) < 1, 1.0, unit="seconds").probability(-1.0)


def _true_rate() -> float:
    """E[hits] / E[spent] of the world above: with a gamma frailty, 1 - S(6) over the integral of S."""
    laplace = lambda t: (1 + 0.2 * t / 4) ** -4  # noqa: E731
    return float((1 - laplace(6.0)) / quad(laplace, 0, 6.0)[0])


TRUE_RATE = _true_rate()


@pytest.fixture(scope="module")
def fit() -> SurvivalFit:
    """Weibull times with rho = 1.5 and a scale that halves from x = 0 to x = 1, cut off at 12."""
    rng = np.random.default_rng(11)
    x = rng.uniform(0, 1, 800)
    times = 10 * 0.5**x * rng.weibull(1.5, 800)
    frame = {"x": x, "time": np.minimum(times, 12), "event": times < 12}
    return fit_survival(frame, duration="time", event="event", covariates=["x"], family="weibull")


class TestCostRatio:
    def test_it_is_training_over_the_area_under_the_curve(self, fit: SurvivalFit) -> None:
        area = quad(lambda t: fit.survival(t, at={"x": 0.3}).value, 0, fit.longest, limit=200)[0]
        found = cost_ratio(2.0, fit, at={"x": 0.3})
        assert found.value == pytest.approx(2.0 / area, rel=1e-6)
        assert "mean time up to 12" in found.method
        assert found.low < found.value < found.high

    def test_a_closed_form_without_a_limit(self, fit: SurvivalFit) -> None:
        """E[T] = lambda Gamma(1 + 1/rho)."""
        rho = math.exp(fit.coefficient("intercept", part="shape").natural.estimate.value)
        scale = math.exp(
            fit.coefficient("intercept").natural.estimate.value + 0.3 * fit.coefficient("x").natural.estimate.value
        )
        found = cost_ratio(2.0, fit, at={"x": 0.3}, extrapolated=True)
        assert found.value == pytest.approx(2.0 / (scale * math.gamma(1 + 1 / rho)), rel=1e-9)
        assert "extrapolated" in found.method

    def test_it_is_near_the_truth(self, fit: SurvivalFit) -> None:
        truth = 2.0 / (10 * math.gamma(1 + 1 / 1.5))
        found = cost_ratio(2.0, fit, at={"x": 0.0}, extrapolated=True)
        assert found.low < truth < found.high

    def test_units_and_the_whole_training(self, fit: SurvivalFit) -> None:
        found = cost_ratio(2.0, fit, until=6.0)
        assert cost_ratio(2.0, fit, until=6.0, seconds_per_unit=0.5).value == pytest.approx(2 * found.value)
        assert total_cost_ratio(200.0, fit, until=6.0).value == pytest.approx(100 * found.value)

    def test_the_ends_change_places(self) -> None:
        found = over_mean(10.0, estimate(4, 2, 5))
        assert (found.low, found.value, found.high) == (2, 2.5, 5)
        endless = over_mean(10.0, estimate(math.inf, 2, math.inf))
        assert (endless.low, endless.value, endless.high) == (0, 0, 5)
        assert over_mean(10.0, estimate(4, 0, 5)).high == math.inf

    def test_means_of_several_and_other_units(self) -> None:
        found = mean_of([estimate(1, 0, 3), estimate(3, 2, 5)])
        assert (found.value, found.low, found.high) == (2, 1, 4)
        assert scaled(found, 10.0, "cents").high == 40
        with pytest.raises(RiskError, match="no estimate"):
            mean_of([])

    def test_mistakes(self, fit: SurvivalFit) -> None:
        with pytest.raises(RiskError, match="train_seconds_per_sample is a number above 0, found 0"):
            cost_ratio(0.0, fit)
        with pytest.raises(RiskError, match="choose one"):
            cost_ratio(1.0, fit, until=3.0, extrapolated=True)


class TestBroken:
    @pytest.mark.parametrize(
        ("ratio", "beyond", "verdict"),
        [
            ((20, 15, 30), (12, 11, 13), "broken"),
            ((20, 15, 30), (5, 4, 6), "undecided"),  # attacks gave up early
            ((20, 15, 30), None, "broken"),
            ((12, 9, 15), (12, 11, 13), "undecided"),
            ((5, 4, 6), (5, 4, 6), "not broken"),
            ((20, 15, 30), (0, 0, 12), "undecided"),  # a law without a mean
        ],
    )
    def test_both_intervals_must_say_so(
        self, ratio: tuple[float, float, float], beyond: tuple[float, float, float] | None, verdict: str
    ) -> None:
        extrapolated = None if beyond is None else estimate(*beyond)
        assert broken(estimate(*ratio), 10.0, extrapolated=extrapolated) == verdict

    def test_samples_that_held_leave_it_open_where_no_law_goes_on(self) -> None:
        ratio = estimate(20, 15, 30)
        assert broken(ratio, 10.0, censored=True) == "undecided"
        assert broken(ratio, 10.0, censored=True, extrapolated=ratio) == "broken"
        assert broken(estimate(5, 4, 6), 10.0, censored=True) == "not broken"

    def test_the_factor_is_checked(self) -> None:
        with pytest.raises(RiskError, match="factor is a number above 0, found -1"):
            broken(estimate(1, 1, 1), -1.0)


def criterion(values: dict[str, float], half: float, *, more: bool) -> Criterion:
    gaps = {(a, b): values[a] - values[b] for a, b in permutations(values, 2)}
    found = {pair: estimate(gap, gap - half, gap + half) for pair, gap in gaps.items()}
    return Criterion("c", values, found, more_is_better=more)


class TestPareto:
    def test_it_equals_brute_force(self) -> None:
        rng = np.random.default_rng(5)
        for _ in range(100):
            models = ["a", "b", "c", "d"]
            tables = [{model: float(rng.integers(0, 4)) for model in models} for _ in range(3)]
            criteria = [criterion(values, 0.0, more=place == 0) for place, values in enumerate(tables)]
            signs = (1, -1, -1)
            for standing in pareto_set(models, criteria):
                better = [
                    other
                    for other in models
                    if all(s * t[other] >= s * t[standing.model] for s, t in zip(signs, tables, strict=True))
                    and any(s * t[other] > s * t[standing.model] for s, t in zip(signs, tables, strict=True))
                ]
                assert list(standing.dominated_by) == better
                assert standing.on_front == (not better)
                assert standing.decided  # exact numbers leave no doubt
                assert standing.undecided_against == ()

    def test_sure_statements_hold_for_every_truth_within_the_intervals(self) -> None:
        """With a and b apart by v ± half in two criteria, try all corners of what may be true."""
        for first, second, half in product((-1.5, 0.0, 1.5), (-1.5, 0.0, 1.5), (0.0, 1.0)):
            criteria = [criterion({"a": v, "b": 0.0}, half, more=True) for v in (first, second)]
            worlds = [(first + x, second + y) for x, y in product((-half, 0, half), repeat=2)]
            true = [min(gaps) >= 0 and max(gaps) > 0 for gaps in worlds]
            answer = surely_dominates("a", "b", criteria)
            assert dominates("a", "b", criteria) == (min(first, second) >= 0 and max(first, second) > 0)
            if answer == "yes":
                assert all(true)
            if answer == "no":
                assert not any(true)
            if half == 0:
                assert answer == ("yes" if true[0] else "no")

    def test_doubt_is_told_of_whom_it_is_about(self) -> None:
        accuracy = criterion({"a": 0.9, "b": 0.89, "c": 0.5}, 0.05, more=True)
        cost = criterion({"a": 1.0, "b": 2.0, "c": 9.0}, 0.0, more=False)
        a, b, c = pareto_set(["a", "b", "c"], [accuracy, cost])
        assert (a.on_front, a.decided, a.undecided_against) == (True, True, ())
        assert (b.dominated_by, b.decided, b.undecided_against) == (("a",), False, ("a",))
        assert (c.dominated_by, c.decided) == (("a", "b"), True)

    def test_nothing_to_compare(self) -> None:
        with pytest.raises(RiskError, match="found 0 and 0"):
            pareto_set([], [])
