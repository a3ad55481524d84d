"""The grid finds densities whose moments are known, wherever they lie."""

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.evasion.grid import EDGE_MASS, Axis, posterior


@pytest.mark.parametrize(("centre", "spread"), [(0.0, 1.0), (500.0, 3.0), (0.3, 0.001)])
def test_a_normal_density_is_found_wherever_it_lies(centre: float, spread: float) -> None:
    found = posterior(lambda x, y: -(((x - centre) / spread) ** 2) / 2 - y**2 / 2, [Axis(-5, 5, 41), Axis(-1, 1, 41)])
    values, mass = found.axes[0].values(), found.marginal(0)
    assert mass @ values == pytest.approx(centre, abs=1e-3 * spread)
    assert mass @ (values - centre) ** 2 == pytest.approx(spread**2, rel=1e-3)
    assert max(found.marginal(1)[[0, -1]]) < EDGE_MASS


def test_a_parameter_stays_where_it_exists() -> None:
    found = posterior(lambda x: -x, [Axis(0, 1, 201, least=0.0)])  # exponential
    draws = found.draws(20_000, np.random.default_rng(0))
    assert found.axes[0].low == 0
    assert draws.min() >= 0
    assert draws.mean() == pytest.approx(1, abs=0.03)


def test_an_atom_keeps_its_probability() -> None:
    # prior: 0.3 at 0, else uniform on [0, 1]; likelihood 1 + x: 0.3 against 0.7 * 1.5
    found = posterior(lambda x: np.log1p(x), [Axis(0, 1, 50, least=0.0, most=1.0, atom=0.3)])
    assert found.mass[0] == pytest.approx(0.3 / (0.3 + 0.7 * 1.5))
    assert (found.draws(4000, np.random.default_rng(0)) == 0).mean() == pytest.approx(0.222, abs=0.03)


def test_a_density_without_end_is_refused() -> None:
    with pytest.raises(RiskError, match="too little for a posterior"):
        posterior(lambda x: 0 * x, [Axis(-1, 1, 21)])
