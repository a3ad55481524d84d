"""Relative damage equals what counting every triple gives, whatever the distances."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from advrisk.risk import damage
from advrisk.risk.bounded_mean import mean_limits
from advrisk.risk.damage import DamageComparison, OrderChange, detector_free_damage

Matrix = NDArray[np.float64]

FEW_VALUES = st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf])  # so that ties, zeros and infs are the rule
ANY_VALUES = st.one_of(FEW_VALUES, st.floats(0, allow_nan=False))


@st.composite
def matrices(draw: st.DrawFn, *, least_samples: int = 1, least_models: int = 2) -> Matrix:
    n_models, n = draw(st.integers(least_models, 4)), draw(st.integers(least_samples, 7))
    numbers = draw(
        st.lists(draw(st.sampled_from([FEW_VALUES, ANY_VALUES])), min_size=n_models * n, max_size=n_models * n)
    )
    return np.array(numbers).reshape(n_models, n)


def compare(matrix: Matrix) -> DamageComparison:
    by_model = {str(j): row for j, row in enumerate(matrix)}
    return detector_free_damage(by_model, resamples=5, rng=np.random.default_rng(0))


def naive_counts(matrix: Matrix, *, ties: bool = False) -> list[int]:
    """Triples (i, k, l) with d_kl > d_ji (or >=, but never from a failed attack), one by one."""
    return [
        sum(bool(other > own or (ties and other == own and own < math.inf)) for own in row for other in matrix.ravel())
        for row in matrix
    ]


def naive_swaps(before: list[int], after: list[int]) -> set[tuple[str, str]]:
    n_models = len(before)
    return {
        (str(a), str(b))
        for a in range(n_models)
        for b in range(n_models)
        if before[a] < before[b] and after[a] > after[b]
    }


@given(matrices())
def test_value_equals_brute_force_to_the_last_digit(matrix: Matrix) -> None:
    comparison = compare(matrix)
    n_models, n = matrix.shape
    for estimate, count in zip(comparison.estimates.values(), naive_counts(matrix), strict=True):
        assert estimate.value == count / (n * n * n_models)


@given(matrices())
def test_pair_counts_equal_brute_force(matrix: Matrix) -> None:
    counts = damage._counted(matrix, damage._pooled(matrix))
    naive = [[sum(bool(x > y) for y in own for x in other) for other in matrix] for own in matrix]
    assert counts.pairs.tolist() == naive


@given(matrices(least_samples=2))
def test_jackknife_counts_equal_recomputation_without_each_sample(matrix: Matrix) -> None:
    counts = damage._counted(matrix, damage._pooled(matrix))
    for m in range(matrix.shape[1]):
        assert counts.without[:, m].tolist() == naive_counts(np.delete(matrix, m, axis=1))


def naive_error(matrix: Matrix, model: int) -> float:
    n_models, n = matrix.shape
    replicates = []
    for m in range(n):
        left = np.array(naive_counts(np.delete(matrix, m, axis=1))) / ((n - 1) ** 2 * n_models)
        replicates.append(left[model])
    return float(np.sqrt((n - 1) / n * np.sum((np.array(replicates) - np.mean(replicates)) ** 2)))


def naive_pseudo_values(matrix: Matrix) -> list[float]:
    """What each sample adds to the difference of the first two models, by leaving it out."""
    n_models, n = matrix.shape
    whole = np.array(naive_counts(matrix)) / (n * n * n_models)
    left = [np.array(naive_counts(np.delete(matrix, m, axis=1))) / ((n - 1) ** 2 * n_models) for m in range(n)]
    return [float(n * (whole[0] - whole[1]) - (n - 1) * (one[0] - one[1])) for one in left]


@given(matrices(least_samples=2))
def test_the_interval_of_a_difference_is_that_of_its_naive_pseudo_values(matrix: Matrix) -> None:
    comparison = compare(matrix)
    difference = comparison.difference("0", "1")
    values, lowest, highest = comparison._pseudo_values(0, 1, difference.value)
    assert values == pytest.approx(naive_pseudo_values(matrix), abs=1e-9)
    assert lowest <= values.min() + 1e-9
    assert highest >= values.max() - 1e-9
    low, high = mean_limits(np.array(naive_pseudo_values(matrix)), lowest, highest, 0.95)
    if high - low < 1e-12:
        low, high = (difference.value + sign * (1 - 0.025 ** (1 / matrix.shape[1])) for sign in (-1, 1))
    expected = (max(min(low, difference.value), -1), min(max(high, difference.value), 1))
    assert (difference.low, difference.high) == pytest.approx(expected, abs=1e-6)


@given(matrices(least_samples=2))
def test_standard_error_of_the_value_is_the_naive_jackknifes(matrix: Matrix) -> None:
    counts = damage._counted(matrix, damage._pooled(matrix))
    found = damage._jackknife_error(counts.without[0], matrix.shape[0])
    assert found == pytest.approx(naive_error(matrix, 0), rel=1e-9, abs=1e-12)


@given(matrices())
def test_values_and_intervals_stay_in_bounds_and_are_never_a_point(matrix: Matrix) -> None:
    comparison = compare(matrix)
    for model, estimate in comparison.estimates.items():
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.low < estimate.high
        assert 0 <= comparison.clean_error[model] <= estimate.value
    for a in comparison.models:
        for b in comparison.models:
            difference = comparison.difference(a, b)
            assert -1 <= difference.low < difference.high <= 1


@given(matrices())
def test_clean_error_is_what_is_lost_when_clean_errors_do_no_damage(matrix: Matrix) -> None:
    comparison = compare(matrix)
    n_models, n = matrix.shape
    for row, clean in zip(matrix, comparison.clean_error.values(), strict=True):
        naive = sum(bool(other > own) for own in row if own == 0 for other in matrix.ravel())
        assert clean == naive / (n * n * n_models)


@given(st.integers(2, 4), st.integers(1, 8), st.randoms(use_true_random=False))
def test_mean_over_models_is_one_half_without_ties(n_models: int, n: int, random: object) -> None:
    numbers = [float(k) for k in range(n_models * n)]
    random.shuffle(numbers)  # type: ignore[attr-defined]
    estimates = compare(np.array(numbers).reshape(n_models, n)).estimates.values()
    # Of N^2 ordered pairs of N different numbers N(N-1)/2 have the first greater.
    expected = 1 / 2 - 1 / (2 * n_models * n)
    assert sum(estimate.value for estimate in estimates) / n_models == pytest.approx(expected, abs=1e-14)


@given(matrices())
def test_mean_over_models_is_at_most_one_half(matrix: Matrix) -> None:
    values = [estimate.value for estimate in compare(matrix).estimates.values()]
    assert sum(values) / len(values) <= 1 / 2


@given(matrices(), st.randoms(use_true_random=False))
def test_the_order_of_the_samples_does_not_matter(matrix: Matrix, random: object) -> None:
    order = list(range(matrix.shape[1]))
    random.shuffle(order)  # type: ignore[attr-defined]
    before, after = compare(matrix), compare(matrix[:, order])
    for model, estimate in before.estimates.items():
        other = after.estimates[model]
        assert other.value == estimate.value
        assert (other.low, other.high) == pytest.approx((estimate.low, estimate.high), rel=1e-9, abs=1e-12)


@given(matrices())
def test_only_the_order_of_the_distances_matters(matrix: Matrix) -> None:
    ranks = np.searchsorted(np.unique(matrix), matrix).astype(np.float64) + 3.0
    ranks[np.isinf(matrix)] = np.inf
    before, after = compare(matrix), compare(ranks)
    assert after.estimates == before.estimates
    assert after.probability_best == before.probability_best
    assert (after.ties, after.order_changes) == (before.ties, before.order_changes)


@given(matrices())
def test_tie_sensitivity_equals_brute_force(matrix: Matrix) -> None:
    """An order depends on ties if it does not hold strictly when they count half, or as greater."""
    strict, wide = naive_counts(matrix), naive_counts(matrix, ties=True)
    expected = {
        (str(lower), str(higher))
        for lower, higher in permutations(range(len(matrix)), 2)
        if strict[lower] < strict[higher]
        and not (strict[lower] + wide[lower] < strict[higher] + wide[higher] and wide[lower] < wide[higher])
    }
    found = compare(matrix)
    assert set(found.ties) == expected
    for row, (model, tied) in enumerate(found.tied.items()):
        scale = matrix.shape[1] ** 2 * len(matrix)
        assert (tied.greater, tied.not_less) == (strict[row] / scale, wide[row] / scale), model


@given(matrices(least_models=3))
def test_order_changes_equal_brute_force(matrix: Matrix) -> None:
    everyone = naive_counts(matrix)
    expected = set()
    for dropped in range(matrix.shape[0]):
        kept = [j for j in range(matrix.shape[0]) if j != dropped]
        left = naive_counts(matrix[kept])
        for a, b in naive_swaps([everyone[j] for j in kept], left):
            expected.add(OrderChange(str(dropped), str(kept[int(a)]), str(kept[int(b)])))
    assert set(compare(matrix).order_changes) == expected


@given(matrices())
def test_the_evasion_reproduces_the_value(matrix: Matrix) -> None:
    comparison = compare(matrix)
    for row, estimate in zip(matrix, comparison.estimates.values(), strict=True):
        assert comparison.evasion(row).mean() == pytest.approx(estimate.value, abs=1e-12)
