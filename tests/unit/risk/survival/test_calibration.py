"""Calibration: near the diagonal where the fit is right, away from it where it is not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival import FAMILIES, calibration, fit_survival

GIVEN: dict[str, Any] = {"duration": "t", "event": "e", "covariates": ["eps", "defence"]}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_right_fit_is_calibrated_on_rows_it_has_not_seen(draw: Callable[..., Any], family: str) -> None:
    fit = fit_survival(draw(family, n=4000, seed=1), **GIVEN, family=family)
    found = calibration(fit, draw(family, n=4000, seed=2), 3.0)
    # A share among 4000 rows has a standard error of 0.008, and so, nearly, has what the fit says of them.
    assert found.ici < 0.03
    assert found.e50 <= found.e90 < 0.06
    assert found.by_chance is not None
    assert found.ici < 2 * found.by_chance
    assert (np.diff(found.predicted) > 0).all()
    assert found.low is not None
    assert found.high is not None
    inside = (found.low <= found.predicted) & (found.predicted <= found.high)
    assert inside.mean() > 0.5


def test_what_a_model_leaves_out_shows(draw: Callable[..., Any]) -> None:
    """Survival that falls, then rises with eps, fitted as if it only fell; and one that is twice as long."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4000)
    t = np.exp(3 * x**2 + 0.5 * x + 0.5 * rng.normal(size=4000))
    bent = {"x": x, "t": t, "e": np.ones(4000)}
    given = {"duration": "t", "event": "e", "covariates": ["x"], "family": "lognormal"}
    found = calibration(fit_survival(bent, **given), bent, 2.0)
    assert found.by_chance is not None
    assert found.ici > max(0.05, 3 * found.by_chance)
    straight = draw("weibull", n=3000, seed=1)
    fit = fit_survival(straight, **GIVEN, family="weibull")
    slower = {**draw("weibull", n=3000, seed=2)}
    slower["t"] = 2 * slower["t"]
    moved = calibration(fit, slower, 3.0)
    assert moved.by_chance is not None
    assert moved.ici > max(0.1, 3 * moved.by_chance)
    assert (moved.observed < moved.predicted).mean() > 0.9


def test_the_curve_finds_probabilities_that_are_known(draw: Callable[..., Any]) -> None:
    """Rows whose times are stretched by a known factor, against the exact probability to fail by then."""
    fit = fit_survival(draw("weibull", n=3000, seed=1), **GIVEN, family="weibull")
    stretched = {**draw("weibull", n=20000, seed=2)}
    stretched["t"] = 1.5 * stretched["t"]
    found = calibration(fit, stretched, 3.0)
    exact = 1 - (1 - found.predicted) ** (1.5 ** (-1 / 0.6))  # H(t / 1.5) = H(t) 1.5^(-1/sigma)
    assert np.abs(found.observed - exact).max() < 0.03


def test_whole_passes_are_calibrated_as_intervals(draw: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    eps = rng.uniform(0, 2, 4000)
    t = np.exp(1 - eps / 2 + 0.7 * np.log(rng.exponential(size=4000)))
    passes = {"eps": eps, "t": np.minimum(np.ceil(t), 4), "e": (t <= 4).astype(float), "low": np.ceil(t) - 1}
    given = {"duration": "t", "event": "e", "covariates": ["eps"], "family": "weibull", "lower": "low"}
    found = calibration(fit_survival(passes, **given), passes, 2.0)
    assert found.ici < 0.02
    assert found.n_events == int((t <= 2).sum())


def test_without_covariates_it_compares_two_shares() -> None:
    t = np.random.default_rng(0).exponential(size=500)
    fit = fit_survival({"t": t, "e": np.ones(500)}, duration="t", event="e", covariates=[], family="weibull")
    found = calibration(fit, {"t": t, "e": np.ones(500)}, 1.0)
    assert found.predicted.size == 1
    assert found.observed[0] == pytest.approx((t <= 1).mean(), abs=0.02)


@pytest.mark.parametrize(
    ("time", "message"),
    [(1e9, "choose another time"), (1e-9, "needs 10 events by then"), (0.0, "above 0"), (np.nan, "found nan")],
)
def test_a_time_of_which_rows_say_nothing_is_refused(tables: dict[str, Any], time: float, message: str) -> None:
    fit = fit_survival(tables["weibull"], **GIVEN, family="weibull")
    with pytest.raises(RiskError, match=message):
        calibration(fit, tables["weibull"], time)
