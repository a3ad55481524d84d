"""Bands and half points against closed forms."""

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import (
    as_curve,
    average,
    curve_band,
    fit_bayesian,
    fit_logistic,
    fit_monotone,
    half_detected,
    threshold,
    values_of,
)

SIZES = np.repeat([0.2, 0.5, 0.8, 1.1, 1.6, 2.5], 8)
UNDETECTED = np.tile(np.arange(8), 6) < np.repeat([8, 7, 5, 3, 1, 0], 8)
AT = np.array([0.0, 0.3, 1.0, 2.0, 9.0, np.inf])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


FITS = {
    "logistic": fit_logistic(SIZES, UNDETECTED),
    "bayesian": fit_bayesian(SIZES, UNDETECTED),
    "labellers": fit_bayesian(SIZES, UNDETECTED, labellers=np.arange(48) % 3),
    "monotone": fit_monotone(SIZES, UNDETECTED),
}


@pytest.mark.parametrize("curve", [threshold(1.0), as_curve(lambda sizes: np.exp(-sizes)), average({"a": [1.0, 2.0]})])
def test_a_known_curve_is_its_own_band(curve) -> None:
    for limit in curve_band(curve, AT):
        np.testing.assert_array_equal(limit, curve(AT))


@pytest.mark.parametrize("name", FITS)
def test_a_band_holds_the_curve_falls_and_is_wider_at_a_higher_level(name: str) -> None:
    low, high = curve_band(FITS[name], AT)
    inner_low, inner_high = curve_band(FITS[name], AT, 0.5)
    value = FITS[name](AT)
    for smaller, larger in [(low, inner_low), (inner_low, value), (value, inner_high), (inner_high, high)]:
        assert (smaller <= larger).all()
    assert (np.diff(low) <= 0).all()
    assert (np.diff(high) <= 0).all()
    assert high[2] - low[2] > 0.1
    assert low[-1] == high[-1] == 0


def test_a_band_leaves_out_as_many_draws_as_its_level_says() -> None:
    low, high = curve_band(FITS["bayesian"], AT[1:4].reshape(3, 1), 0.9)
    drawn = values_of(FITS["bayesian"].draws(20_000, np.random.default_rng(1)), AT[1:4])
    assert low.shape == (3, 1)
    assert ((drawn < low.T) | (drawn > high.T)).mean(axis=0) == pytest.approx(0.1, abs=0.03)


def test_a_monotone_band_knows_only_that_the_curve_falls() -> None:
    low, high = curve_band(FITS["monotone"], [0.1, 3.0])
    assert high[0] == 1
    assert low[1] == 0
    at_last, between = (curve_band(FITS["monotone"], [size]) for size in (1.6, 2.0))
    assert between[1] == at_last[1]
    assert between[0] <= at_last[0]


def test_half_points_are_those_of_the_formulas() -> None:
    assert half_detected(threshold(1.5)).value == pytest.approx(1.5)
    assert half_detected(as_curve(lambda sizes: np.exp(-sizes))).value == pytest.approx(np.log(2))
    curve = FITS["logistic"].curve
    assert half_detected(FITS["logistic"]).value == pytest.approx(-curve.intercept / curve.slope)
    drawn = FITS["logistic"].draws(1000, rng())
    halves = [-curve.intercept / curve.slope for curve in drawn]
    found = half_detected(FITS["logistic"], 0.9)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(halves, [0.05, 0.95])), rel=0.01)
    assert (found.level, found.n) == (0.9, 48)


def test_the_half_point_of_a_bayesian_curve_is_its_threshold() -> None:
    thresholds = [curve.threshold for curve in FITS["bayesian"].draws(1000, rng())]
    found = half_detected(FITS["bayesian"])
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(thresholds, [0.025, 0.975])), rel=0.01)
    assert FITS["bayesian"](found.value) == pytest.approx(0.5)
    several = half_detected(FITS["labellers"])
    assert several.high / several.low > found.high / found.low


def test_the_half_point_of_a_monotone_curve_lies_between_knots() -> None:
    found = half_detected(FITS["monotone"])
    assert {found.low, found.high} <= {0.0, np.inf, *SIZES, *FITS["monotone"]._blocks[0]}
    assert found.low <= 0.8 <= 1.1 <= found.high
    assert FITS["monotone"](found.value) == pytest.approx(0.5)


def test_a_curve_that_never_comes_to_one_half_has_no_half_point() -> None:
    assert half_detected(threshold(0.0)) is None
    assert half_detected(threshold(np.inf)) is None
    assert half_detected(as_curve(lambda sizes: 0.4 * np.exp(-sizes))) is None
    assert half_detected(as_curve(lambda sizes: np.full(sizes.shape, 0.7))) is None


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(RiskError, match="level must lie between 0 and 1, found 95"):
        curve_band(FITS["logistic"], AT, 95)
    with pytest.raises(RiskError, match="level must lie"):
        half_detected(FITS["logistic"], 0)
