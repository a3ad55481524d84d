"""The three laws against their definitions, in more digits than a float has."""

import mpmath as mp
import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival.families import FAMILIES, family_named
from advrisk.risk.survival.likelihood import log_difference

SURVIVAL = {
    "weibull": lambda z: mp.exp(-mp.exp(z)),
    "lognormal": lambda z: mp.erfc(z / mp.sqrt(2)) / 2,
    "loglogistic": lambda z: 1 / (1 + mp.exp(z)),
}
FAILURE = {
    "weibull": lambda z: -mp.expm1(-mp.exp(z)),
    "lognormal": lambda z: mp.erfc(-z / mp.sqrt(2)) / 2,
    "loglogistic": lambda z: 1 / (1 + mp.exp(-z)),
}
DENSITY = {
    "weibull": lambda z: mp.exp(z - mp.exp(z)),
    "lognormal": lambda z: mp.npdf(z),
    "loglogistic": lambda z: mp.exp(z) / (1 + mp.exp(z)) ** 2,
}
POINTS = {
    "weibull": [-30.0, -3.0, -0.2, 0.0, 1.5, 4.0],
    "lognormal": [-30.0, -3.0, 0.0, 0.7, 8.0, 35.0],
    "loglogistic": [-40.0, -2.0, 0.0, 3.0, 40.0],
}


@pytest.fixture(autouse=True)
def _digits() -> object:
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("law", ["log_density", "log_survival"])
def test_values_and_slopes_are_those_of_the_definition(name: str, law: str) -> None:
    exact = DENSITY[name] if law == "log_density" else SURVIVAL[name]
    for z in POINTS[name]:
        found = getattr(family_named(name), law)(np.array([z]))
        for order, value in enumerate(found):
            wanted = mp.diff(lambda w: mp.log(exact(w)), z, order)
            assert value[0] == pytest.approx(float(wanted), rel=1e-9, abs=1e-14), (z, order)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_log_of_failure_and_the_quantile_are_right_in_both_tails(name: str) -> None:
    family = family_named(name)
    for z in POINTS[name]:
        wanted = float(mp.log(FAILURE[name](mp.mpf(z))))
        assert family.log_failure(np.array([z]))[0] == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    shares = np.array([1e-8, 0.2, 0.5, 0.9, 1 - 1e-8])
    assert np.exp(family.log_survival(family.quantile(shares)).value) == pytest.approx(shares, rel=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("low", "high"), [(-2.0, 1.0), (2.0, 2.001), (-8.0, -7.999), (-30.0, -1.0), (3.0, 3.5)])
def test_the_probability_of_an_interval_does_not_cancel(name: str, low: float, high: float) -> None:
    found = log_difference(family_named(name), np.array([low]), np.array([high]))[0]
    assert found == pytest.approx(float(mp.log(SURVIVAL[name](mp.mpf(low)) - SURVIVAL[name](mp.mpf(high)))), rel=1e-11)


@pytest.mark.parametrize("name", FAMILIES)
def test_an_interval_from_0_is_all_that_came_before(name: str) -> None:
    for z in POINTS[name]:
        found = log_difference(family_named(name), np.array([-np.inf]), np.array([z]))[0]
        assert found == pytest.approx(float(mp.log(FAILURE[name](mp.mpf(z)))), rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("sigma", [0.05, 0.5, 0.9999, 1.0, 1.3, 3.0, 40.0])
def test_the_restricted_mean_is_the_integral_of_survival(name: str, sigma: float) -> None:
    """Over t, with v = s/t: the integral of S(z + log(v)/sigma) over 0 < v < 1, in closed form or by quadrature."""
    closed = {
        "weibull": lambda s, z: mp.hyp1f1(s, 1 + s, -mp.exp(z)),
        "lognormal": lambda s, z: mp.exp(s * s / 2 - s * z) * mp.ncdf(z - s) + mp.ncdf(-z),
        "loglogistic": lambda s, z: mp.hyp2f1(1, s, 1 + s, -mp.exp(z)),
    }[name]
    for z in [-60.0, -3.0, -0.1, 0.0, 0.4, 2.0, 7.0, 60.0]:
        found = family_named(name).restricted(np.array([sigma]), np.array([z]))[0]
        assert found == pytest.approx(float(closed(mp.mpf(sigma), mp.mpf(z))), rel=1e-12), z


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("sigma", [0.3, 0.8])
def test_means_are_integrals_of_survival(name: str, sigma: float) -> None:
    """E[T] is the integral of S(t), not of t S(t)."""

    def integrand(log_t: mp.mpf) -> mp.mpf:
        return SURVIVAL[name](log_t / sigma) * mp.exp(log_t)

    family = family_named(name)
    with mp.workdps(20):
        log_mean, slope = family.log_mean(np.array([sigma]))
        assert float(np.exp(log_mean[0])) == pytest.approx(
            float(mp.quad(integrand, [-50, -10, -3, 0, 1, 3, 9, 30, 200])), rel=1e-9
        )
        until = mp.quad(integrand, [-50, -10, -3, -1, 0, mp.log(2.5)])
    assert 2.5 * family.restricted(np.array([sigma]), np.array([np.log(2.5) / sigma]))[0] == pytest.approx(float(until))
    step = 1e-6
    around = [family.log_mean(np.array([sigma * np.exp(d)]))[0][0] for d in (-step, step)]
    assert slope[0] == pytest.approx((around[1] - around[0]) / (2 * step), rel=1e-6)


def test_a_log_logistic_law_with_a_heavy_tail_has_no_mean() -> None:
    log_mean, _ = family_named("loglogistic").log_mean(np.array([0.99, 1.0, 2.0]))
    assert np.isfinite(log_mean).tolist() == [True, False, False]


def test_an_unknown_family_is_refused_with_the_nearest() -> None:
    with pytest.raises(RiskError, match="'weibul'; did you mean 'weibull'"):
        family_named("weibul")
