"""Fronts and crowding against their definitions, one pair at a time; and what survives."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from advrisk.parts.attacks.nsga import best_first, crowding, fronts


def dominates(one, other):
    return all(a <= b for a, b in zip(one, other, strict=True)) and any(a < b for a, b in zip(one, other, strict=True))


def fronts_by_definition(costs):
    left, front, place = set(range(len(costs))), {}, 0
    while left:
        free = {i for i in left if not any(dominates(costs[j], costs[i]) for j in left)}
        front |= dict.fromkeys(free, place)
        left, place = left - free, place + 1
    return [front[i] for i in range(len(costs))]


def crowding_by_definition(costs, front):
    """Deb et al. 2002, crowding-distance-assignment, for each front."""
    distance = [0.0] * len(costs)
    for place in set(front):
        members = [i for i in range(len(costs)) if front[i] == place]
        for column in range(len(costs[0])):
            members.sort(key=lambda i: costs[i][column])
            least, most = costs[members[0]][column], costs[members[-1]][column]
            distance[members[0]] = distance[members[-1]] = float("inf")
            for before, i, after in zip(members, members[1:], members[2:], strict=False):
                if most > least:
                    distance[i] += (costs[after][column] - costs[before][column]) / (most - least)
            members.sort()
    return distance


# Few different numbers, so that ties are frequent.
POPULATIONS = hnp.arrays(
    "float64",
    st.tuples(st.integers(1, 4), st.integers(1, 9), st.integers(1, 3)),
    elements=st.sampled_from([0.0, 1e-12, 0.5, 1.0, 2.0, 7.0, 1e9]),
)


@given(POPULATIONS)
def test_fronts_are_those_of_the_definition(costs):
    expected = [fronts_by_definition(sample.tolist()) for sample in costs]
    assert fronts(torch.from_numpy(costs)).tolist() == expected


@given(POPULATIONS)
def test_crowding_is_that_of_the_definition(costs):
    costs = torch.from_numpy(costs)
    front = fronts(costs)
    pairs = zip(costs.tolist(), front.tolist(), strict=True)
    expected = torch.tensor([crowding_by_definition(*pair) for pair in pairs], dtype=torch.float64)
    torch.testing.assert_close(crowding(costs, front), expected)


@pytest.mark.parametrize("n", [2, 30, 60])
def test_many_random_candidates(n):
    costs = torch.rand(5, n, 2, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    front = fronts(costs)
    assert front.tolist() == [fronts_by_definition(sample.tolist()) for sample in costs]
    pairs = zip(costs.tolist(), front.tolist(), strict=True)
    expected = torch.tensor([crowding_by_definition(*pair) for pair in pairs], dtype=torch.float64)
    torch.testing.assert_close(crowding(costs, front), expected)


@given(POPULATIONS)
def test_the_best_come_first_and_a_sample_stands_alone(costs):
    costs = torch.from_numpy(costs)
    order, front = best_first(costs), fronts(costs)
    distance = crowding(costs, front)
    for sample, places in enumerate(order.tolist()):
        assert sorted(places) == list(range(costs.shape[1]))
        keys = [(int(front[sample, i]), -float(distance[sample, i])) for i in places]
        assert keys == sorted(keys)
        assert best_first(costs[[sample]])[0].tolist() == places


def test_by_hand():
    """Three fronts; in the first, the candidate with the wider gap beside it goes before the other."""
    costs = torch.tensor([[[0.0, 9.0], [1.0, 8.0], [5.0, 4.0], [9.0, 0.0], [5.0, 5.0], [9.0, 9.0]]])
    assert fronts(costs).tolist() == [[0, 0, 0, 0, 1, 2]]
    torch.testing.assert_close(
        crowding(costs, fronts(costs)),
        torch.tensor([[torch.inf, 5 / 9 + 5 / 9, 8 / 9 + 8 / 9, torch.inf, torch.inf, torch.inf]]),
    )
    assert best_first(costs).tolist() == [[0, 3, 2, 1, 4, 5]]


def test_what_was_not_asked_comes_last():
    costs = torch.tensor([[[torch.inf, 1.0], [0.0, 2.0], [torch.inf, 1.0], [3.0, 0.5]]], dtype=torch.float64)
    assert set(best_first(costs)[0, :2].tolist()) == {1, 3}
