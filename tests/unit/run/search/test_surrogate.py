"""GP-UCB against surfaces whose maximum is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from advrisk.plan import Search, SearchAxis, Setting
from advrisk.run.search.design import first_settings, grid_settings, random_settings
from advrisk.run.search.surrogate import CANDIDATES, beta_at, next_settings
from advrisk.study import Arm

Rate = Callable[[Setting], float]

X = SearchAxis("x", 0.0, 1.0)
Y = SearchAxis("y", 0.0, 1.0)
SIGMA = SearchAxis("sigma", 1e-4, 1.0, log=True)


def search(
    *axes: SearchAxis, rounds: int = 10, batch: int = 1, method: str = "gp-ucb", beta: float | str = 0.1
) -> Search:
    arm = Arm("toy-linf-1", "attack", "toy", norm="linf", eps=1.0)
    return Search("plain", arm, "toy-linf-1", axes, method, rounds, batch, beta, 1, False, ("search", 0))


def found(one: Search, rate: Rate, *, seed: int = 0) -> list[float]:
    """The rates of all settings in their order, as the loop would have them."""
    settings = first_settings(one, seed)
    for n_round in range(1, one.rounds + 1):
        settings += next_settings(one, settings, [rate(each) for each in settings], n_round=n_round, seed=seed)
    return [rate(each) for each in settings]


def bump(x: float, top: float, width: float) -> float:
    return math.exp(-(((x - top) / width) ** 2))


def noisy(rate: Rate, n: int) -> Rate:
    """What n samples would show: the same number whenever the same setting is asked."""

    def seen(setting: Setting) -> float:
        rng = np.random.default_rng(abs(hash(tuple(setting.values()))) % 2**32)
        return float(rng.binomial(n, rate(setting)) / n)

    return seen


def test_a_smooth_hill_is_climbed_in_a_few_rounds() -> None:
    rates = found(search(X, rounds=4), lambda at: 0.6 * bump(at["x"], 0.37, 0.2))
    assert max(rates) > 0.99 * 0.6
    assert max(rates) > max(rates[:4]), "what it began with was not the top"


def test_a_batch_holds_different_settings_that_are_new() -> None:
    one = search(X, Y, batch=3)
    settings = first_settings(one, 1)
    batch = next_settings(one, settings, [bump(at["x"], 0.5, 0.3) for at in settings], n_round=1, seed=1)
    values = {tuple(setting.values()) for setting in [*settings, *batch]}
    assert len(batch) == 3
    assert len(values) == len(settings) + 3
    assert batch == next_settings(one, settings, [bump(at["x"], 0.5, 0.3) for at in settings], n_round=1, seed=1)


def test_a_flat_surface_is_explored() -> None:
    one = search(X)
    settings = [{"x": 0.1}, {"x": 0.2}]
    (chosen,) = next_settings(one, settings, [0.0, 0.0], n_round=1, seed=0)
    assert chosen["x"] > 0.8, "farthest from what is known"


def test_a_box_of_whole_numbers_can_be_exhausted() -> None:
    one = search(SearchAxis("steps", 1, 4, whole=1), batch=5)
    chosen = next_settings(one, [{"steps": 2}], [0.5], n_round=1, seed=0)
    assert sorted(setting["steps"] for setting in chosen) == [1, 3, 4]
    assert next_settings(one, [{"steps": n} for n in (1, 2, 3, 4)], [0.1, 0.2, 0.3, 0.2], n_round=2, seed=0) == []


def test_the_schedule_of_the_theory() -> None:
    assert beta_at(0.1, 7) == 0.1
    by_hand = 2 * math.log(2 * CANDIDATES * 9 * math.pi**2 / (6 * 0.1))
    assert beta_at("theory", 3) == pytest.approx(by_hand)


def test_the_first_design_is_the_papers_where_it_has_one() -> None:
    sigma = SearchAxis("sigma", 1e-4, 0.1, log=True, start=(0.005, 0.01, 0.015))
    step = SearchAxis("step_size", 1e-3, 1.0, log=True, start=(0.01, 0.02, 0.03))
    design = first_settings(search(sigma, step), 0)
    expected = [{"sigma": s, "step_size": e} for s in (0.005, 0.01, 0.015) for e in (0.01, 0.02, 0.03)]
    assert design == expected
    assert len(first_settings(search(sigma, X), 0)) == 6, "one without named values: a few Sobol points"


def test_grids_and_random_points_fill_the_box() -> None:
    grid = grid_settings(search(X, SIGMA, method="grid", rounds=3, batch=4))
    assert len(grid) == 9, "three by three fit into twelve"
    assert {setting["sigma"] for setting in grid} == {1e-4, 0.01, 1.0}
    drawn = random_settings(search(SIGMA, method="random", rounds=200, batch=5), 3)
    share = np.mean([setting["sigma"] < 0.01 for setting in drawn])
    assert share == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(1000)), "evenly by ratios"
    few = random_settings(search(SearchAxis("steps", 2, 9, whole=2), method="random", rounds=50), 0)
    assert sorted(setting["steps"] for setting in few) == [2, 4, 6, 8]


SURFACES: dict[str, tuple[tuple[SearchAxis, ...], Rate, float]] = {
    "smooth": ((X, Y), lambda at: 0.8 * bump(at["x"], 0.7, 0.3) * bump(at["y"], 0.2, 0.3), 0.8),
    "log-scaled": ((SIGMA,), lambda at: 0.5 * bump(math.log10(at["sigma"]), -2.7, 0.5), 0.5),
    "two hills": ((X,), lambda at: 0.4 * bump(at["x"], 0.2, 0.15) + 0.7 * bump(at["x"], 0.8, 0.15), 0.7),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SURFACES)
@pytest.mark.parametrize("seed", range(3))
def test_the_known_maximum_is_found(name: str, seed: int) -> None:
    axes, rate, top = SURFACES[name]
    assert max(found(search(*axes, rounds=20), rate, seed=seed)) > 0.98 * top


@pytest.mark.slow
@pytest.mark.parametrize("name", SURFACES)
def test_noise_of_finitely_many_samples_does_not_mislead_it(name: str) -> None:
    """The true rate at what looks worst is near the largest one; 200 samples have a deviation of 0.035 at one half."""
    axes, rate, top = SURFACES[name]
    one = search(*axes, rounds=25)
    settings = first_settings(one, 0)
    seen = noisy(rate, 200)
    for n_round in range(1, one.rounds + 1):
        settings += next_settings(one, settings, [seen(each) for each in settings], n_round=n_round, seed=0)
    worst = max(settings, key=seen)
    assert rate(worst) > top - 0.08
