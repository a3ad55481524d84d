"""Whether answers differ between groups: statistic against scipy's optimiser, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import minimize

from advrisk.assess.damage.answers import difference_warning
from advrisk.core.errors import RiskError
from advrisk.risk.evasion import differs


def answers(seed: int, shift: float, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups = rng.choice(["pgd", "square"], n)
    sizes = rng.uniform(0, 2, n)
    threshold = 1 + shift * (groups == "square")
    return sizes, rng.random(n) < 1 / (1 + np.exp(-4 * (threshold - sizes))), groups


def test_the_statistic_is_twice_the_gain_in_penalised_log_likelihood() -> None:
    sizes, undetected, groups = answers(0, 0.2)
    z = (sizes - sizes.mean()) / sizes.std()

    def least(keep: np.ndarray) -> float:
        def negative(at: np.ndarray) -> float:
            eta = at[0] + at[1] * z[keep]
            return float(0.05 * at @ at - (undetected[keep] * eta - np.logaddexp(0, eta)).sum())

        return minimize(negative, [0.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}).fun

    gain = 2 * (least(groups != "") - least(groups == "pgd") - least(groups == "square"))
    found = differs(sizes, undetected, list(groups), resamples=9, rng=np.random.default_rng(0))
    assert found.statistic == pytest.approx(gain, abs=1e-6)
    assert found.groups == ("pgd", "square")
    assert found.n == 120


def test_a_clear_difference_is_found_and_warned_of() -> None:
    found = differs(*answers(0, 0.8), resamples=199, rng=np.random.default_rng(0))
    assert found.p_value == 1 / 200
    assert "differ between pgd, square (p = 0.005)" in str(difference_warning(found))


def test_no_difference_is_not_warned_of() -> None:
    found = differs(*answers(3, 0.0), resamples=199, rng=np.random.default_rng(0))
    assert found.p_value > 0.05
    assert difference_warning(found) is None
    assert difference_warning(found, alpha=1.0) is not None


def test_separated_groups_and_a_group_of_one_are_no_trouble() -> None:
    sizes = [1, 2, 3, 4, 1, 2, 3, 4, 9]
    found = differs(sizes, [1, 1, 0, 0, 1, 1, 1, 0, 0], list("aaaabbbbc"), resamples=99, rng=np.random.default_rng(0))
    assert 0.2 < found.p_value <= 1


@pytest.mark.parametrize(
    ("groups", "message"),
    [(["a", "b"], "there are 3 answers and 2 groups"), (["a", "a", "a"], "all answers are of one group, 'a'")],
)
def test_groups_that_cannot_be_compared_are_refused(groups: list[str], message: str) -> None:
    with pytest.raises(RiskError, match=message):
        differs([1, 2, 3], [1, 0, 0], groups, rng=np.random.default_rng(0))


def test_at_least_one_resample() -> None:
    with pytest.raises(RiskError, match="resamples must be at least 1"):
        differs([1, 2], [1, 0], ["a", "b"], resamples=0, rng=np.random.default_rng(0))
