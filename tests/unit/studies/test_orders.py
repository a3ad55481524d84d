"""Orders of models and what turns them round, each against a definition written out or a case known by heart."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.convergence import DAMAGE, MEAN, SMALLEST
from advrisk.risk.evasion import threshold
from studies import orders

INF = math.inf
# As in docs/damage-method.md: B is ahead of C, and behind it without A.
THREE = {"A": [5, 5, 7, 9], "B": [1, 2, 8, 9], "C": [3, 3, 4, 8]}


def arrays(distances: dict[str, list[float]]) -> dict[str, np.ndarray]:
    return {model: np.array(values, dtype=float) for model, values in distances.items()}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def relative_damage(distances: dict[str, np.ndarray], model: str) -> Fraction:
    """Of all triples (own sample, any model, any of its samples), the share with a strictly greater distance."""
    others = [d for values in distances.values() for d in values]
    return Fraction(sum(d > own for own in distances[model] for d in others), len(others) * len(distances[model]))


def random_distances(seed: int, n_models: int = 4, n: int = 12) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(seed)
    values = np.round(drawn.exponential(drawn.uniform(0.5, 2, (n_models, 1)), (n_models, n)), 1)
    values[drawn.random(values.shape) < 0.1] = INF
    return {f"m{place}": row for place, row in enumerate(values)}


def test_an_exact_paired_test_counts_samples_that_one_model_only_loses() -> None:
    distances = arrays({"a": [1] * 9 + [1] * 2 + [9] * 5, "b": [9] * 9 + [1] * 2 + [9] * 4 + [1]})
    found = orders.paired_at(distances, "a", "b", 2)
    assert found.only == (9, 1)
    assert found.ratios == (11 / 16, 3 / 16)
    assert found.p_value == pytest.approx(2 * (1 + 10) / 2**10)  # 9 or 10 heads of 10 coins, either side


def test_models_that_lose_the_same_samples_do_not_differ() -> None:
    distances = arrays({"a": [1, 2, 3], "b": [1, 2, 3]})
    assert orders.paired_at(distances, "a", "b", 2).p_value == 1


def test_a_certain_disagreement_is_found_and_a_thin_one_is_not_certain() -> None:
    # first: nothing at 1, everything at 3; second: 40 of 100 at 1 and no more; third: 1 at 1, 99 at 3
    distances = arrays({"late": [2] * 100, "early": [1] * 40 + [9] * 60, "thin": [1] + [2] * 98 + [9]})
    found = {(each.first, each.second): each for each in orders.disagreements(distances, small=1, large=3)}
    assert set(found) == {("late", "early"), ("thin", "early"), ("late", "thin")}
    sure = found["late", "early"]
    assert (sure.small.only, sure.large.only) == ((0, 40), (60, 0))
    assert sure.p_value == pytest.approx(3 * 2 * 0.5**40)  # the larger of two, times three pairs
    assert found["late", "thin"].p_value == 1


@pytest.mark.parametrize("seed", range(5))
def test_disagreements_are_those_that_a_definition_gives(seed: int) -> None:
    distances = random_distances(seed)

    def ratio(model: str, eps: float) -> int:
        return sum(d <= eps for d in distances[model])

    expected = {
        frozenset((a, b))
        for a, b in combinations(distances, 2)
        if (ratio(a, 0.5) - ratio(b, 0.5)) * (ratio(a, 1.5) - ratio(b, 1.5)) < 0
    }
    found = orders.disagreements(distances, small=0.5, large=1.5)
    assert {frozenset((each.first, each.second)) for each in found} == expected
    for each in found:
        assert ratio(each.first, 0.5) < ratio(each.second, 0.5)


def test_sizes_must_differ() -> None:
    with pytest.raises(RiskError, match="the smaller first"):
        orders.disagreements(arrays(THREE), small=2, large=2)


def test_holm_corrects_step_by_step_and_never_falls() -> None:
    assert orders.holm([0.01, 0.02, 0.02, 0.4], 5) == pytest.approx([0.05, 0.08, 0.08, 0.8])
    assert orders.holm([0.3, 0.4], 4) == [1, 1]
    assert orders.holm([], 4) == []


def test_the_swap_of_the_documentation_is_found() -> None:
    (swap,) = orders.swaps(arrays(THREE), rng=rng())
    assert (swap.dropped, swap.lower, swap.higher) == (("A",), "B", "C")
    assert swap.before.value < 0 < swap.after.value


@pytest.mark.parametrize("seed", range(6))
def test_swaps_are_the_smallest_and_the_clearest_of_all(seed: int) -> None:
    distances = random_distances(seed, n_models=5, n=6)
    damage = {model: relative_damage(distances, model) for model in distances}
    turned: dict[tuple[str, str], list[tuple[int, Fraction]]] = {}
    for size in (1, 2, 3):
        for dropped in combinations(distances, size):
            kept = {model: values for model, values in distances.items() if model not in dropped}
            after = {model: relative_damage(kept, model) for model in kept}
            for a, b in ((a, b) for a in kept for b in kept):
                if damage[a] < damage[b] and after[a] > after[b]:
                    turned.setdefault((a, b), []).append((size, after[a] - after[b]))
    found: dict[tuple[str, str], list[orders.Swap]] = {}
    for swap in orders.swaps(distances, rng=rng()):
        found.setdefault((swap.lower, swap.higher), []).append(swap)
        assert swap.before.value == pytest.approx(float(damage[swap.lower] - damage[swap.higher]))
    assert set(found) == set(turned)
    for pair, ways in turned.items():
        assert len(found[pair][0].dropped) == min(size for size, _ in ways)
        assert found[pair][-1].after.value == pytest.approx(float(max(difference for _, difference in ways)))


def test_some_of_those_seeds_have_swaps_of_two_models_and_more() -> None:
    sizes = [
        len(swap.dropped)
        for seed in range(6)
        for swap in orders.swaps(random_distances(seed, n_models=5, n=6), rng=rng())
    ]
    assert min(sizes) == 1
    assert max(sizes) >= 2


def test_more_models_than_subsets_can_be_tried_for_are_refused() -> None:
    many = {f"m{place}": np.array([1.0]) for place in range(orders.MOST_MODELS + 1)}
    with pytest.raises(RiskError, match="compare at most 12"):
        orders.swaps(many, rng=rng())


def test_relative_damage_without_each_model_is_that_of_the_others() -> None:
    distances = arrays(THREE)
    found = orders.left_out(distances, rng=rng())
    for dropped in distances:
        kept = {model: values for model, values in distances.items() if model != dropped}
        assert found[dropped] == {model: float(relative_damage(kept, model)) for model in kept}
    assert orders.left_out({"A": distances["A"], "B": distances["B"]}, rng=rng()) == {}


@pytest.mark.parametrize("seed", range(4))
def test_votes_are_shares_of_triples_and_their_mean_is_the_difference(seed: int) -> None:
    distances = random_distances(seed)
    found = orders.votes(distances, "m0", "m1")
    for model, sizes in distances.items():
        won = sum(int(d > a) - int(d > b) for d in sizes for a, b in zip(distances["m0"], distances["m1"], strict=True))
        assert found[model] == pytest.approx(won / 12**2)
    difference = relative_damage(distances, "m0") - relative_damage(distances, "m1")
    assert np.mean(list(found.values())) == pytest.approx(float(difference))


def test_damage_under_a_given_curve_does_not_change_with_the_models() -> None:
    assert orders.largest_change(arrays(THREE), threshold(3), rng=rng()) == 0


def test_smallest_sizes_rest_on_one_sample() -> None:
    distances = arrays({"a": [0, 1, 6, INF], "b": [2, 3, 4, 5], "c": [0, 0, 7, INF], "d": [0, INF, INF, INF]})
    found = orders.smallest_sizes(distances)
    assert found["a"] == orders.Smallest(1, 6, rank=3, rank_without=2)
    assert found["b"] == orders.Smallest(2, 3, rank=2, rank_without=2)
    assert found["c"] == orders.Smallest(7, None, rank=1, rank_without=None)
    assert "d" not in found


def test_equal_values_share_a_rank() -> None:
    assert orders.ranks({"a": 1, "b": 2, "c": 2}) == {"a": 3, "b": 1, "c": 1}


def test_samples_that_are_all_alike_always_give_the_same_order() -> None:
    distances = arrays({"a": [1] * 20, "b": [2] * 20, "c": [4] * 20})
    found = orders.same_order(distances, counts=[1, 5], thresholds=[1], resamples=7, rng=rng())
    assert found == {
        "attack success rate at 1": orders.Agreement(2, (1, 1)),  # b and c are not told apart by all samples either
        SMALLEST: orders.Agreement(3, (1, 1)),
        MEAN: orders.Agreement(3, (1, 1)),
        DAMAGE: orders.Agreement(3, (1, 1)),
    }


def test_one_drawn_sample_shows_the_order_as_often_as_it_tells_the_models_apart() -> None:
    distances = arrays({"a": [1] * 30 + [9] * 70, "b": [9] * 100})
    found = orders.same_order(distances, counts=[1, 3], thresholds=[5], resamples=4000, rng=rng())
    expected = tuple(told + (1 - told) / 2 for told in (0.3, 1 - 0.7**3))  # a drawn sample is broken in a, or a tie
    assert found["attack success rate at 5"].shares == pytest.approx(expected, abs=0.02)
    assert found[SMALLEST].shares == pytest.approx(expected, abs=0.02)


def test_a_measure_that_tells_no_two_models_apart_has_no_share() -> None:
    distances = arrays({"a": [0, INF], "b": [0, INF]})
    found = orders.same_order(distances, counts=[2], thresholds=[1], resamples=3, rng=rng())
    assert all(each.n_pairs == 0 and math.isnan(each.shares[0]) for each in found.values())
