"""Lists, grids of sizes and several models: against procedures written out from their definitions."""

import itertools

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.core.plain import plain_fields
from advrisk.risk.certificate import certified_sizes, fixed_sequence, holm


def test_a_sequence_stops_at_the_first_failure_and_skips_none() -> None:
    found = fixed_sequence({0.1: 0.01, 0.2: 0.05, 0.3: 0.06, 0.4: 0.001}, 0.05)
    assert found.largest == 0.2
    assert found.stopped_at == 0.3
    assert found.n_certified == 2
    assert found.level == 0.05
    assert plain_fields(found)["largest"] == 0.2


def test_the_ends_of_a_sequence() -> None:
    assert fixed_sequence({0.1: 0.06, 0.2: 0.0}, 0.05).largest is None
    through = fixed_sequence({0.1: 0.04, 0.2: 0.03}, 0.05)
    assert (through.largest, through.stopped_at) == (0.2, None)


def test_holm_against_its_steps() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.2, 0.9]) == pytest.approx([0.4, 0.9])
    rng = np.random.default_rng(0)
    for _ in range(50):
        p, zeta = rng.random(5) ** 3, 0.1
        rejected: set[int] = set()
        for step, place in enumerate(np.argsort(p)):
            if p[place] > zeta / (5 - step):
                break
            rejected.add(int(place))
        assert set(np.flatnonzero(holm(p) <= zeta).tolist()) == rejected


def test_models_of_one_size_are_tested_by_holm() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        p = rng.random(4) ** 3
        found = certified_sizes({str(model): {1.0: value} for model, value in enumerate(p)}, 0.1)
        assert [one.n_certified == 1 for one in found.values()] == (holm(p) <= 0.1).tolist()


def by_graph(grids: list[list[float]], zeta: float) -> list[int]:
    """Bretz et al. (2009), Algorithm 1, on the graph in which a chain's last size hands on to all other chains."""
    nodes = [(m, i) for m, grid in enumerate(grids) for i in range(len(grid))]
    place = {node: number for number, node in enumerate(nodes)}
    weight = np.array([1 / len(grids) if i == 0 else 0.0 for _, i in nodes])
    edges = np.zeros((len(nodes), len(nodes)))
    for m, i in nodes:
        if i + 1 < len(grids[m]):
            edges[place[m, i], place[m, i + 1]] = 1
        else:
            for other in set(range(len(grids))) - {m}:
                edges[place[m, i], place[other, 0]] = 1 / (len(grids) - 1)
    left, done = set(range(len(nodes))), [0] * len(grids)
    while ready := [n for n in sorted(left) if grids[nodes[n][0]][nodes[n][1]] <= weight[n] * zeta and weight[n] > 0]:
        j = ready[0]
        done[nodes[j][0]] += 1
        left.remove(j)
        weight = np.array([w + weight[j] * edges[j, n] if n in left else 0.0 for n, w in enumerate(weight)])
        updated = np.zeros_like(edges)
        for one, other in itertools.permutations(left, 2):
            loop = edges[one, j] * edges[j, one]
            if loop < 1:
                updated[one, other] = (edges[one, other] + edges[one, j] * edges[j, other]) / (1 - loop)
        edges = updated
    return done


def test_several_models_follow_the_graphical_procedure() -> None:
    rng, seen = np.random.default_rng(2), set()
    for _ in range(200):
        grids = [(rng.random(rng.integers(1, 4)) ** 5).tolist() for _ in range(3)]
        by_model = {str(m): {float(i): p for i, p in enumerate(grid)} for m, grid in enumerate(grids)}
        found = [one.n_certified for one in certified_sizes(by_model, 0.2).values()]
        assert found == by_graph(grids, 0.2)
        seen.add(tuple(found))
    assert len(seen) > 15


def test_a_model_that_is_through_hands_its_share_on() -> None:
    found = certified_sizes({"a": {0.1: 0.02, 0.2: 0.02}, "b": {0.1: 0.04, 0.2: 0.5}}, 0.05)
    assert found["a"].largest == 0.2
    assert found["b"].largest == 0.1, "with 0.025 it would not be"
    assert (found["a"].level, found["b"].level) == (0.025, 0.05)


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ({0.2: 0.1, 0.1: 0.1}, "must ascend.*0.2, 0.1"),
        ({float("nan"): 0.1}, "must ascend"),
        ({}, "shape"),
        ({0.1: 1.2}, "between 0 and 1, found 1.2"),
        ({0.1: float("nan")}, "between 0 and 1"),
        ({0.1: "low"}, "must be numbers"),
    ],
)
def test_grids_that_are_none_are_refused(grid: dict[float, float], says: str) -> None:
    with pytest.raises(RiskError, match=says):
        fixed_sequence(grid, 0.05)


def test_no_model_and_no_level_are_refused() -> None:
    with pytest.raises(RiskError, match="no model"):
        certified_sizes({}, 0.05)
    with pytest.raises(RiskError, match="zeta"):
        fixed_sequence({0.1: 0.01}, 1.0)
    with pytest.raises(RiskError, match="of net must ascend"):
        certified_sizes({"net": {2.0: 0.1, 1.0: 0.1}}, 0.05)
