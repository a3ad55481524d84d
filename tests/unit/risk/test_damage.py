"""Relative damage and perturbation sizes: expected numbers are counted by hand or are closed forms."""

import dataclasses
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, norm, t

from advrisk.core.errors import RiskError
from advrisk.risk import damage
from advrisk.risk.damage import (
    DamageComparison,
    OrderChange,
    detector_free_damage,
    mean_perturbation_size,
    minimal_perturbation_size,
    success_ratio,
)

INF = math.inf

# With distances 1 to 9 a distance v has 9 - v greater ones: a 7+6+1 = 14, b 2+8+3 = 13, c 4+5+0 = 9.
# Without c, a has 4+3+0 = 7 and b 1+5+2 = 8 greater distances among the six left.
SWAPPED_BY_C = {"a": [2.0, 3.0, 8.0], "b": [7.0, 1.0, 6.0], "c": [5.0, 4.0, 9.0]}


def compare(distances_by_model: dict[str, Any], **options: Any) -> DamageComparison:
    return detector_free_damage(distances_by_model, rng=np.random.default_rng(7), **{"resamples": 50} | options)


def values(comparison: DamageComparison) -> dict[str, float]:
    return {model: estimate.value for model, estimate in comparison.estimates.items()}


# The success ratio


def test_success_ratio_counts_up_to_and_including_tau() -> None:
    ratios = success_ratio([0.0, 1.0, 1.0, 4.0, INF], [0.0, 0.5, 1.0, 4.0])
    assert ratios.tolist() == [1 / 5, 1 / 5, 3 / 5, 4 / 5]


def test_a_failed_attack_is_no_success_at_any_threshold() -> None:
    assert success_ratio([1.0, INF], [1e300, INF]).tolist() == [1 / 2, 1 / 2]


def test_success_ratio_keeps_the_shape_of_the_thresholds() -> None:
    assert success_ratio([1.0], np.ones((2, 3))).shape == (2, 3)
    assert success_ratio([1.0], 1.0).shape == ()


# The value


def test_value_is_the_share_of_strictly_greater_distances() -> None:
    # a: 1 has 3 greater, 3 has 1; b: 2 has 2, inf has none; of 2 * 2 * 2 triples
    assert values(compare({"a": [1, 3], "b": [2, INF]})) == {"a": 4 / 8, "b": 2 / 8}


def test_value_is_the_mean_of_the_evasion_of_the_distances() -> None:
    distances = {"a": [0.0, 1.0, 1.0, INF], "b": [1.0, 2.0, 0.0, 3.0]}
    comparison = compare(distances)
    for model, found in distances.items():
        assert comparison.estimates[model].value == pytest.approx(comparison.evasion(found).mean(), abs=1e-15)


def test_nothing_succeeded_is_zero_with_clopper_and_pearsons_interval() -> None:
    estimate = compare({"a": [INF] * 50, "b": [INF] * 50}).estimates["a"]
    assert (estimate.value, estimate.low) == (0.0, 0.0)
    assert estimate.high == pytest.approx(1 - 0.025 ** (1 / 50), rel=1e-12)


def test_a_single_sample_gives_the_interval_of_a_single_sample() -> None:
    comparison = compare({"a": [1.0], "b": [INF]})
    assert values(comparison) == {"a": 1 / 2, "b": 0.0}
    assert comparison.estimates["b"].high == pytest.approx(0.975, rel=1e-12)
    assert comparison.undecided("a", "b")


def test_interval_is_clopper_and_pearsons_at_the_effective_size() -> None:
    # One success of 60 in a, none in b: 119 of 60 * 60 * 2 triples. Without the success no triple is left,
    # without any other sample 117 of 59 * 59 * 2: the jackknife's standard error is 59/60 * 117/6962.
    estimate = compare({"a": [1.0] + [INF] * 59, "b": [INF] * 60}).estimates["a"]
    value, error = 119 / 7200, 59 / 60 * 117 / 6962
    size = value * (1 - value) / error**2 * (norm.ppf(0.975) / t.ppf(0.975, df=59)) ** 2
    assert 50 < size < 60
    assert estimate.value == value
    assert estimate.low == pytest.approx(beta.ppf(0.025, size * value, size * (1 - value) + 1), rel=1e-9)
    assert estimate.high == pytest.approx(beta.ppf(0.975, size * value + 1, size * (1 - value)), rel=1e-9)
    assert (estimate.n, estimate.level) == (60, 0.95)


def test_interval_never_rests_on_less_than_the_weight_of_one_sample() -> None:
    # Two models that agree on n - 1 of n different distances: only the one sample that b resists moves the value
    # of a, by half its weight 1/n. So the standard error is about 1/(2n), and 1/n stands in for it.
    n = 40
    distances = np.arange(1.0, n + 1)
    estimate = compare({"a": distances, "b": np.append(INF, distances[1:])}).estimates["a"]
    size = n**2 * estimate.value * (1 - estimate.value)
    low = beta.ppf(0.025, size * estimate.value, size * (1 - estimate.value) + 1)
    high = beta.ppf(0.975, size * estimate.value + 1, size * (1 - estimate.value))
    assert (estimate.low, estimate.high) == pytest.approx((low, high), rel=1e-9)


def test_small_values_keep_the_size_of_the_sample() -> None:
    # The one success of a is at a distance beyond all of b's: of 80 distances 39 + 1 are greater. The weight of one
    # sample instead of the error would give a size of 40^2 P (1 - P) = 20, less than the 40 samples there are.
    n = 40
    estimate = compare({"a": [99.0] + [INF] * 39, "b": [*np.arange(1.0, n), INF]}).estimates["a"]
    assert estimate.value == 40 / (n * n * 2)
    assert estimate.high == pytest.approx(beta.ppf(0.975, n * estimate.value + 1, n * (1 - estimate.value)), rel=1e-9)


def test_a_higher_level_gives_a_wider_interval() -> None:
    narrow, wide = (compare(SWAPPED_BY_C, level=level).estimates["a"] for level in (0.8, 0.99))
    assert wide.low < narrow.low
    assert wide.high > narrow.high


def test_clean_error_is_the_part_from_distance_zero() -> None:
    # a: 0 has 3 greater, 2 has 1; so 3 of its 4 come from 0
    comparison = compare({"a": [0, 2], "b": [1, INF]})
    assert comparison.clean_error == {"a": 3 / 8, "b": 0.0}
    assert values(comparison) == {"a": 4 / 8, "b": 2 / 8}


# Comparing models


def test_dropping_a_model_can_swap_two_others() -> None:
    comparison = compare(SWAPPED_BY_C)
    assert values(comparison) == {"a": 14 / 27, "b": 13 / 27, "c": 9 / 27}
    assert comparison.order_changes == (OrderChange(dropped="c", lower="b", higher="a"),)


def test_two_models_have_no_third_to_drop() -> None:
    assert compare({"a": [1, 3], "b": [2, INF]}).order_changes == ()


def test_counting_ties_as_greater_can_swap_two_models() -> None:
    # greater: a 1+1 = 2, b 3+0 = 3; greater or equal: a 3+3 = 6, b 4+1 = 5
    assert compare({"a": [2, 2], "b": [1, 3]}).ties == (("a", "b"),)


def test_without_ties_nothing_depends_on_them() -> None:
    assert compare(SWAPPED_BY_C).ties == ()


def test_failed_attacks_are_no_tie() -> None:
    # Greater: a 7+0, b 5+4; greater or equal: a 8+0, b 6+5. Were inf >= inf counted, a would have 8+4 to b's 11,
    # and swap with it; a failed attack does no damage either way.
    assert compare({"a": [1, INF], "b": [10, 11], "c": [2, INF], "d": [INF, INF]}).ties == ()


def test_difference_is_exact_and_antisymmetric() -> None:
    comparison = compare(SWAPPED_BY_C)
    there, back = comparison.difference("a", "b"), comparison.difference("b", "a")
    assert there.value == 1 / 27
    assert (there.value, there.low, there.high) == (-back.value, -back.high, -back.low)


def test_difference_of_identical_models_is_zero_with_an_honest_interval() -> None:
    distances = np.random.default_rng(1).exponential(size=40)
    comparison = compare({"a": distances, "b": distances, "c": 2 * distances})
    difference = comparison.difference("a", "b")
    unseen = 1 - 0.025 ** (1 / 40)
    assert difference.value == 0.0
    assert (difference.low, difference.high) == pytest.approx((-unseen, unseen), rel=0.02)
    assert comparison.undecided("a", "b")
    assert comparison.probability_lower("a", "b") == 0.5


def test_constant_difference_is_decided_once_there_are_enough_samples() -> None:
    # a is always wrong and b never: the difference is 1/2, and n samples rule out a shift of 1 - 0.025^(1/n)
    few, more = (compare({"a": [0.0] * n, "b": [INF] * n}) for n in (5, 6))
    assert few.difference("a", "b").value == more.difference("a", "b").value == 0.5
    assert few.undecided("a", "b")
    assert not more.undecided("b", "a")


def test_interval_of_the_difference_stays_within_its_range() -> None:
    difference = compare({"a": [0.0], "b": [INF]}).difference("a", "b")
    assert (difference.low, difference.high) == (-1.0, 1.0)


def test_a_model_that_fails_totally_on_rare_samples_is_not_named_before_they_show() -> None:
    """b needs a little less than a on every sample, and a fails at once on 1 of 300 samples, or on none.

    A t interval knows the spread of what was seen, and would name a.
    """
    common = 1 + (np.arange(300) + 0.5) / 300
    for failures in (0, 1):
        found = {"a": np.where(np.arange(300) < failures, 0.0, common), "b": common - 0.01}
        comparison = compare(found)
        difference, (error, _) = comparison.difference("a", "b"), comparison.standard_errors("a", "b")
        assert difference.value < -1.98 * max(error, 1 / 300)
        assert difference.low < 0 < difference.high
    clear = compare({"a": common, "b": common - 0.2}).difference("a", "b")
    assert clear.high < 0  # what no rare sample could turn is decided


def test_probability_best_splits_ties_and_sums_to_one() -> None:
    same = [1.0, 2.0, INF]
    assert compare({"a": same, "b": same}).probability_best == {"a": 0.5, "b": 0.5}
    assert sum(compare(SWAPPED_BY_C).probability_best.values()) == pytest.approx(1)


def test_a_model_that_is_never_broken_is_best_in_every_resample() -> None:
    comparison = compare({"weak": [1.0, 2.0, 3.0], "strong": [INF] * 3})
    assert comparison.probability_best == {"weak": 0.0, "strong": 1.0}
    assert comparison.probability_lower("strong", "weak") == 1.0
    assert comparison.probability_lower("weak", "strong") == 0.0


def test_probability_lower_of_two_samples_is_the_binomial_one() -> None:
    # Samples are drawn 2, 1 or 0 times with probability 1/4, 1/2, 1/4. a breaks on the first only, b on the
    # second only: b has less damage when the first is drawn twice.
    comparison = compare({"a": [1.0, INF], "b": [INF, 1.0]}, resamples=40_000)
    probability = comparison.probability_lower("b", "a")
    assert probability == pytest.approx(1 / 4 + 1 / 2 / 2, abs=4 * math.sqrt(1 / 8 / 40_000))
    assert probability + comparison.probability_lower("a", "b") == pytest.approx(1)


def test_resampled_counts_are_those_of_the_drawn_samples() -> None:
    matrix = np.array([[0.0, 1.0, 1.0, INF, 3.0], [1.0, 2.0, INF, INF, 0.5]])
    found = damage._resampled_counts(damage._pooled(matrix), 30, np.random.default_rng(3))
    draws = np.random.default_rng(3).integers(5, size=(30, 5))
    for counts, drawn in zip(found, draws, strict=True):
        sample = matrix[:, drawn]
        assert counts.tolist() == [(sample[None] > row[:, None, None]).sum() for row in sample]


def test_resamples_do_not_depend_on_the_size_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(SWAPPED_BY_C, resamples=100).probability_best
    monkeypatch.setattr(damage, "_BLOCK_CELLS", 7 * 9)
    assert compare(SWAPPED_BY_C, resamples=100).probability_best == whole


def test_same_seed_same_comparison() -> None:
    first, second = compare(SWAPPED_BY_C), compare(SWAPPED_BY_C)
    assert first.probability_best == second.probability_best
    assert first.estimates == second.estimates


def test_a_comparison_can_be_sent_to_another_process() -> None:
    comparison = compare(SWAPPED_BY_C)
    back = pickle.loads(pickle.dumps(comparison))
    assert back.difference("a", "c") == comparison.difference("a", "c")


def test_a_comparison_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        compare(SWAPPED_BY_C).n = 9  # type: ignore[misc]


# What is refused


def test_one_model_alone_is_refused_with_the_reason() -> None:
    with pytest.raises(RiskError, match=r"found only the model 'a'.*relative.*two or more"):
        compare({"a": [1.0, 2.0]})


BAD_DISTANCES = [
    pytest.param([1.0, 2.0, math.nan], r"model 'b': found nan at index 2", id="nan"),
    pytest.param([1.0, -0.5, 2.0], r"model 'b': found -0\.5 at index 1", id="negative"),
    pytest.param([], r"model 'b': there is no distance", id="empty"),
    pytest.param([1.0, 2.0], r"model 'b' has 2 distances and model 'a' has 3", id="length"),
    pytest.param([[1.0, 2.0, 3.0]], r"model 'b':.*shape \(1, 3\)", id="two-dimensional"),
    pytest.param(["near", "far", "far"], r"model 'b': numbers are needed", id="text"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD_DISTANCES)
def test_bad_distances_are_refused_by_name(wrong: Any, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        compare({"a": [1.0, 2.0, 3.0], "b": wrong})


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 95, math.nan])
def test_a_level_lies_between_zero_and_one(level: float) -> None:
    with pytest.raises(RiskError, match="level"):
        compare(SWAPPED_BY_C, level=level)
    with pytest.raises(RiskError, match="level"):
        mean_perturbation_size([1.0, 2.0], level=level)


def test_at_least_one_resample() -> None:
    with pytest.raises(RiskError, match="resamples must be at least 1, found 0"):
        compare(SWAPPED_BY_C, resamples=0)


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    comparison = compare({"plain": [1.0, 2.0], "hardened": [3.0, INF]})
    for ask in (comparison.difference, comparison.undecided, comparison.probability_lower):
        with pytest.raises(RiskError, match=r"no model 'hardend' was compared; did you mean 'hardened'\?"):
            ask("plain", "hardend")


@pytest.mark.parametrize(
    "measure", [lambda d: success_ratio(d, [1.0]), minimal_perturbation_size, mean_perturbation_size]
)
@pytest.mark.parametrize(
    ("wrong", "message"), [([], "no distance"), ([1, math.nan], "nan at index 1"), ([-1], "index 0")]
)
def test_bad_distances_of_one_model_are_refused(measure: Callable[[Any], Any], wrong: Any, message: str) -> None:
    with pytest.raises(RiskError, match=f"distances: .*{message}"):
        measure(wrong)


def test_a_bad_threshold_is_refused() -> None:
    with pytest.raises(RiskError, match="thresholds: found nan at index 1"):
        success_ratio([1.0], [0.0, math.nan])


# Perturbation sizes


def test_minimal_perturbation_size_leaves_out_zero_and_inf() -> None:
    size = minimal_perturbation_size([0.0, 0.0, 3.0, 2.0, INF])
    assert (size.value, size.n_already_wrong, size.n_resisted) == (2.0, 2, 1)
    assert (size.estimate.low, size.estimate.high, size.estimate.n) == (0.0, 2.0, 2)


def test_mean_perturbation_size_has_the_textbook_t_interval() -> None:
    # 1, 2, 3: mean 2, standard error 1/sqrt(3), t(2; 0.975) = 4.302653
    size = mean_perturbation_size([1.0, 0.0, 2.0, 3.0, INF, INF])
    assert (size.value, size.n_already_wrong, size.n_resisted, size.estimate.n) == (2.0, 1, 2, 3)
    assert size.estimate.high == pytest.approx(2 + 4.302653 / math.sqrt(3), rel=1e-6)
    assert size.estimate.low == 0.0  # the t interval reaches below 0, a size does not


def test_mean_of_one_distance_has_no_upper_end() -> None:
    estimate = mean_perturbation_size([4.0, INF]).estimate
    assert (estimate.value, estimate.low, estimate.high) == (4.0, 0.0, INF)


@pytest.mark.parametrize("measure", [minimal_perturbation_size, mean_perturbation_size])
def test_no_attacked_distance_is_refused(measure: Callable[[Any], Any]) -> None:
    with pytest.raises(RiskError, match=r"of 3 distances 1 are 0 \(already wrong\) and 2 are inf \(resisted\)"):
        measure([0.0, INF, INF])


def test_scipy_stats_is_not_imported() -> None:
    code = (
        "import sys, numpy as np; from advrisk.risk.damage import detector_free_damage as d; "
        "d({'a': [1, 2], 'b': [2, 3]}, rng=np.random.default_rng(0)); "
        "sys.exit(any(name in sys.modules for name in ('scipy.stats', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_each_sample_adds_to_a_skewed_difference_and_what_one_not_seen_may_add() -> None:
    """Pseudo-values by leaving each sample out; the ends by trying every sample that could come."""
    rng = np.random.default_rng(3)
    found = {name: np.where(rng.random(9) < 0.3, rng.choice([0, np.inf]), rng.random(9)) for name in "abc"}
    made = detector_free_damage(found, resamples=1, rng=rng)

    def difference(without: int | None = None) -> float:
        left = {name: one if without is None else np.delete(one, without) for name, one in found.items()}
        estimates = detector_free_damage(left, resamples=1, rng=np.random.default_rng(0)).estimates
        return estimates["a"].value - estimates["b"].value

    whole = difference()
    each, low, high = made._pseudo_values(0, 1, whole)
    assert each == pytest.approx([9 * whole - 8 * difference(i) for i in range(9)])

    def share_below(name: str, size: float) -> float:
        return float((found[name] < size).mean())

    places = np.unique(np.concatenate([*found.values(), [0.0, np.inf]]))
    adds = [
        made.evasion(np.array([a]))[0]
        - made.evasion(np.array([b]))[0]
        + sum(share_below("a", size) - share_below("b", size) for size in (a, b, c)) / 3
        - whole
        for a, b, c in product([*places[::2].tolist(), np.inf], repeat=3)
    ]
    assert low <= min(adds)
    assert high >= max(adds)
    exact = [
        made.evasion(np.array([a]))[0]
        - made.evasion(np.array([b]))[0]
        + (share_below("a", a) - share_below("b", a) + share_below("a", b) - share_below("b", b)) / 3
        for a, b in product(places.tolist(), repeat=2)
    ]
    beside = [(share_below("a", size) - share_below("b", size)) / 3 for size in places.tolist()]
    assert high == pytest.approx(max(max(exact) + max(beside) - whole, float(each.max())))
    assert low == pytest.approx(min(min(exact) + min(beside) - whole, float(each.min())))
    told, usual = made.difference("a", "b"), detector_free_damage(found, resamples=1, rng=rng).difference("a", "b")
    assert told.value == usual.value
    assert told.low < told.value < told.high
    assert told.method.endswith("Gaffke")
    assert made.difference("b", "a").low == pytest.approx(-told.high, abs=1e-6)
