"""Gates whose truth is known: at the limit itself, a wrong pass must not come more often than (1 - level) / 2.

The worlds are those of `bench/gate_validity.py`, which prints the shares.
"""

import pytest

from bench.gate_validity import (
    DIFFERENT,
    fitted_curve,
    known_curve,
    known_difference,
    share_passes,
    unknown_passes,
    whole_gate,
)
from bench.rare_failures import by_scenario

TAIL = 0.025
RUNS = 8000
NOISE = 3 * (TAIL * (1 - TAIL) / RUNS) ** 0.5


@pytest.mark.parametrize("n", [7, 30])
def test_shares_at_their_limit(n: int) -> None:
    assert all(share_passes(n, limit) <= TAIL for limit in (0.01, 0.07, 0.2, 0.5, 0.9))


def test_damage_at_its_limit_seldom_passes() -> None:
    """Three hundred runs: at 0.025, more than 18 come with a probability below 1e-3."""
    assert known_curve(40, 300, seed=1) <= 18 / 300


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 100])
def test_damage_under_a_known_curve(n: int) -> None:
    assert 0 < known_curve(n, RUNS, seed=11) <= TAIL + NOISE
    assert 0 < known_difference(n, RUNS, share=DIFFERENT[n], seed=12) <= TAIL + NOISE  # some do pass


@pytest.mark.slow
def test_damage_under_a_fitted_curve() -> None:
    runs = 1000
    assert fitted_curve(100, 60, runs, seed=13) <= TAIL + 3 * (TAIL / runs) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("unknown", [0, 5, 20])
def test_samples_without_a_verdict_make_no_pass(unknown: int) -> None:
    assert unknown_passes(100, unknown, 0.2, RUNS, seed=14) <= TAIL + NOISE


@pytest.mark.slow
def test_a_gate_of_several_requirements() -> None:
    found = whole_gate(100, RUNS, seed=15)
    assert found["all"] <= found["one"] <= TAIL + NOISE
    assert 0.05 < found["fails"] < 5 * TAIL + 3 * (5 * TAIL / RUNS) ** 0.5  # wrong fails do add up


def test_a_risk_at_its_limit_seldom_passes_where_losses_are_rare() -> None:
    """A hundred runs: at 0.025, more than 9 come with a probability below 1e-3."""
    assert by_scenario(0.02, 300, 100, seed=16)[0].passes <= 9 / 100


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 300, 1000])
@pytest.mark.parametrize("rare", [0.01, 0.02, 0.05])
def test_a_risk_at_its_limit_passes_as_seldom_as_promised(rare: float, n: int) -> None:
    runs = 600
    found, _ = by_scenario(rare, n, runs, seed=17)
    assert found.passes <= TAIL + 3 * (TAIL * (1 - TAIL) / runs) ** 0.5


@pytest.mark.slow
def test_korn_and_graubards_interval_alone_would_pass_it_too_often() -> None:
    """The contrast: without it, the test above might not be able to fail."""
    assert by_scenario(0.01, 300, 1000, seed=17)[1].passes > TAIL
