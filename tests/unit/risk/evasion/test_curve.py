"""A user's function works as an evasion, and is not believed."""

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import as_curve, average, fit_logistic, fit_monotone, threshold, values_of
from advrisk.risk.evasion.bayesian import fit_bayesian

ANSWERS = ([0.5, 0.7, 0.7, 1.0, 1.2, 2.0], [1, 1, 0, 1, 0, 0])
CURVES = {
    "function": as_curve(lambda sizes: np.exp(-sizes)),
    "threshold": threshold(1.0),
    "average": average({"a": [1.0, np.inf]}),
    "logistic": fit_logistic(*ANSWERS),
    "bayesian": fit_bayesian(*ANSWERS),
    "monotone": fit_monotone(*ANSWERS),
}


def test_a_function_is_its_own_draw_and_nowhere_extrapolated() -> None:
    curve = as_curve(lambda sizes: np.exp(-sizes))
    assert curve([0.0, 1.0, np.inf]) == pytest.approx([1, np.exp(-1), 0])
    assert all(drawn is curve for drawn in curve.draws(3, np.random.default_rng(0)))
    assert not curve.extrapolated([0.0, 9.0]).any()
    assert as_curve(curve) is curve


@pytest.mark.parametrize("name", CURVES)
def test_every_curve_and_its_draws_are_zero_at_inf_and_fall(name: str) -> None:
    sizes = np.append(np.linspace(0, 3, 50), np.inf)
    rng = np.random.default_rng(0)
    for curve in (CURVES[name], *CURVES[name].draws(20, rng)):
        values = curve(sizes)
        assert values[-1] == 0
        assert (np.diff(values) <= 1e-12).all()
        assert 0 <= values.min() <= values.max() <= 1
        assert curve(np.ones((2, 2))).shape == (2, 2)


@pytest.mark.parametrize("name", CURVES)
def test_drawn_curves_are_the_same_together_and_one_by_one(name: str) -> None:
    sizes = np.array([0.0, 0.4, 1.3, np.inf])
    drawn = CURVES[name].draws(5, np.random.default_rng(0))
    assert len(drawn) == 5
    np.testing.assert_allclose(values_of(drawn, sizes), [curve(sizes) for curve in drawn], atol=1e-14)
    np.testing.assert_allclose(values_of(drawn[1:3], sizes), [drawn[1](sizes), drawn[2](sizes)], atol=1e-14)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda sizes: sizes / 10, r"rises, from 0\.1 at size 1\.0 to 0\.2 at size 2\.0.*\*un\*detected"),
        (lambda sizes: 2 - sizes / 10, r"gives 1\.9 at size 1\.0"),
        (lambda sizes: sizes * np.nan, r"gives nan at size 1\.0"),
        (lambda sizes: 0.5, r"returned shape \(\) for sizes of shape \(2,\)"),
    ],
)
def test_a_function_that_is_no_evasion_is_refused(function, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        as_curve(function)([1.0, 2.0])


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(RiskError, match="a function of sizes, found float"):
        as_curve(0.5)  # type: ignore[arg-type]
