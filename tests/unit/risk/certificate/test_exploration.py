"""What a search promises: the parts of the theorem against what they bound."""

import itertools
import math

import numpy as np
import pytest

from advrisk.assess.certificate.words import guarantee_text
from advrisk.core.errors import RiskError
from advrisk.core.plain import plain_fields
from advrisk.risk.certificate import SearchGuarantee, search_guarantee
from advrisk.risk.certificate.exploration import correlation, information_gain

GRID = np.array(list(itertools.product(np.linspace(0, 1, 8), repeat=2)))


def gram(points: np.ndarray, kernel: str) -> np.ndarray:
    return np.array([correlation(point, points, kernel) for point in points])


def ask(**changes: object) -> SearchGuarantee:
    given = {"rounds": 50, "settings": GRID, "kernel": "matern-5/2", "length_scale": 0.3}
    given |= {"norm_bound": 1.0, "noise": 0.01, "delta": 0.05, "beta": 3.0}
    return search_guarantee(0.05, **(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel", ["squared-exponential", "matern-5/2"])
def test_kernels_are_those_of_scikit_learn(kernel: str) -> None:
    from sklearn.gaussian_process.kernels import RBF, Matern

    theirs = RBF(1.0) if kernel == "squared-exponential" else Matern(1.0, nu=2.5)
    assert gram(3 * GRID, kernel) == pytest.approx(theirs(3 * GRID), abs=1e-12)


@pytest.mark.parametrize("kernel", ["squared-exponential", "matern-5/2"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_information_gain_bounds_that_of_any_points(kernel: str, rounds: int) -> None:
    points = 2 * GRID[::9]
    most = 0.0
    for chosen in itertools.combinations_with_replacement(range(len(points)), rounds):
        matrix = np.eye(rounds) + gram(points[list(chosen)], kernel) / (1 + 2 / rounds)
        most = max(most, 0.5 * float(np.linalg.slogdet(matrix)[1]))
    assert most <= information_gain(points, rounds, kernel) + 1e-12 <= most / (1 - 1 / math.e) + 1e-9


def test_the_spread_at_the_points_visited_is_within_the_lemma() -> None:
    """Chowdhury & Gopalan, Lemma 4, and the regret of GP-UCB on functions of known norm, with bounded noise."""
    rounds, rng = 30, np.random.default_rng(0)
    kernel = gram(GRID / 0.3, "matern-5/2")
    for _ in range(5):
        weights = rng.normal(size=len(GRID))
        surface = kernel @ weights / math.sqrt(weights @ kernel @ weights)  # of norm 1
        said = ask(rounds=rounds, noise=0.05, beta=100.0)
        visited: list[int] = []
        seen: list[float] = []
        spread = 0.0
        for _ in range(rounds):
            mean, sigma = posterior(kernel, visited, seen, 1 + 2 / rounds)
            visited.append(int(np.argmax(mean + said.beta * sigma)))
            spread += float(sigma[visited[-1]])
            seen.append(float(surface[visited[-1]] + rng.uniform(-0.05, 0.05)))
        assert spread <= math.sqrt(4 * (rounds + 2) * said.information_gain)
        assert surface.max() - surface[visited].mean() <= said.gap


def posterior(kernel: np.ndarray, visited: list[int], seen: list[float], noise: float) -> tuple[np.ndarray, np.ndarray]:
    if not visited:
        return np.zeros(len(kernel)), np.ones(len(kernel))
    inverse = np.linalg.inv(kernel[np.ix_(visited, visited)] + noise * np.eye(len(visited)))
    across = kernel[:, visited]
    variance = 1 - np.einsum("ij,jk,ik->i", across, inverse, across)
    return across @ inverse @ np.array(seen), np.sqrt(np.maximum(variance, 0))


def test_the_formulas() -> None:
    found = ask()
    gain = found.information_gain
    beta = 1 + 0.01 * math.sqrt(2 * (gain + 1 + math.log(20)))
    assert found.beta == pytest.approx(beta)
    assert found.gap == pytest.approx(4 * beta * math.sqrt(52 * gain) / 50)


def test_fifty_rounds_promise_nothing() -> None:
    found = ask()
    assert found.level is None
    assert found.error is None
    assert "no guarantee from the search: untried settings may have a p larger by" in guarantee_text(found)
    assert plain_fields(found)["level"] is None


def test_a_search_with_a_beta_of_its_own_promises_nothing() -> None:
    found = ask(norm_bound=0.0, noise=0.0, beta=0.0)
    assert found.level == pytest.approx(0.05), "a surface that is flat"
    assert found.error == pytest.approx(0.1)
    found = ask(beta=0.1, norm_bound=1e-3, noise=0.1)
    assert found.level is None
    assert "used beta = 0.1, and the theorem asks for" in guarantee_text(found)


def test_many_rounds_on_two_settings_promise_something() -> None:
    found = ask(rounds=4000, settings=[[0.0], [0.1]], norm_bound=0.1, noise=0.0, beta=0.1)
    assert found.level is not None
    assert 0 < found.level < 0.05
    assert "if the largest p found is at most" in guarantee_text(found)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 2.5}, "rounds"),
        ({"delta": 0.0}, "delta must lie"),
        ({"norm_bound": -1.0}, "norm_bound must be"),
        ({"noise": math.inf}, "noise must be"),
        ({"beta": math.nan}, "beta must be"),
        ({"kernel": "matern"}, "did you mean 'matern-5/2'"),
        ({"settings": []}, "settings must be a table"),
        ({"settings": [[math.nan]]}, "settings must be a table"),
        ({"length_scale": 0}, "length_scale"),
        ({"length_scale": [1, 2, 3]}, "length_scale"),
    ],
)
def test_mistakes_are_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(RiskError, match=says):
        ask(**changes)
