"""Survival, quantiles and means of a fit: against integrals, brute force over rows, and draws of the coefficients."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from advrisk.core.errors import RiskError
from advrisk.risk.survival import FAMILIES, SurvivalFit, fit_survival

GIVEN: dict[str, Any] = {"duration": "t", "event": "e", "covariates": ["eps", "defence"]}
HERE = {"eps": 1.5, "defence": "noise"}


@pytest.fixture(scope="module")
def fits(tables: dict[str, Any]) -> dict[str, SurvivalFit]:
    return {family: fit_survival(tables[family], **GIVEN, family=family) for family in FAMILIES}


def survival(fit: SurvivalFit, t: Any, eta: float, sigma: float) -> Any:
    """The law as it is written in terms of t."""
    from scipy.special import ndtr

    t = np.asarray(t, dtype=float)
    if fit.family == "weibull":
        return np.exp(-((t / np.exp(eta)) ** (1 / sigma)))
    if fit.family == "lognormal":
        with np.errstate(divide="ignore"):
            return ndtr(-(np.log(t) - eta) / sigma)
    return 1 / (1 + (t / np.exp(eta)) ** (1 / sigma))


def parameters(fit: SurvivalFit, eps: float, defence: str) -> tuple[float, float]:
    value = {(one.part, one.name): one.natural.estimate.value for one in fit.coefficients}
    eta = value["scale", "intercept"] + eps * value["scale", "eps"] + value.get(("scale", f"defence={defence}"), 0.0)
    return eta, float(np.exp((1 if fit.family == "lognormal" else -1) * value["shape", "intercept"]))


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_are_those_of_the_law(fits: dict[str, SurvivalFit], family: str) -> None:
    fit = fits[family]
    eta, sigma = parameters(fit, **HERE)
    assert fit.survival(3.0, at=HERE).value == pytest.approx(float(survival(fit, 3.0, eta, sigma)), rel=1e-10)
    assert survival(fit, fit.median(at=HERE).value, eta, sigma) == pytest.approx(0.5)
    assert survival(fit, fit.quantile(0.1, at=HERE).value, eta, sigma) == pytest.approx(0.9)
    until = quad(lambda t: float(survival(fit, t, eta, sigma)), 0, 4, epsabs=1e-12)[0]
    assert fit.mean(at=HERE, until=4.0).value == pytest.approx(until, rel=1e-8)
    whole = quad(lambda s: float(survival(fit, np.exp(s), eta, sigma)) * np.exp(s), -40, 60, limit=400)[0]
    assert fit.mean(at=HERE).value == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_value_predictions_are_means_over_the_rows(
    tables: dict[str, Any], fits: dict[str, SurvivalFit], family: str
) -> None:
    table, fit = tables[family], fits[family]
    rows = [{"eps": float(e), "defence": str(d)} for e, d in zip(table["eps"], table["defence"], strict=True)]
    assert fit.mean(until=5.0).value == pytest.approx(np.mean([fit.mean(at=row, until=5.0).value for row in rows]))
    fixed = [{**row, "eps": 2.0} for row in rows]
    assert fit.survival(3.0, at={"eps": 2.0}).value == pytest.approx(
        np.mean([fit.survival(3.0, at=row).value for row in fixed])
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("at", [HERE, {"eps": 2.0}])
def test_intervals_are_those_of_drawn_coefficients(fits: dict[str, SurvivalFit], family: str, at: Any) -> None:
    """Coefficients drawn from their normal law and put through each prediction: near the delta method's interval."""
    fit = fits[family]
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(fit._covariance)
    drawn = [fit._theta + root @ rng.normal(size=len(root)) for _ in range(300)]
    for predict in (
        lambda one: one.survival(3.0, at=at),
        lambda one: one.median(at=at),
        lambda one: one.mean(at=at, until=6.0),
        lambda one: one.mean(at=at),
    ):
        found = predict(fit)
        values = []
        for theta in drawn:
            other = object.__new__(SurvivalFit)
            other.__dict__.update(fit.__dict__, _theta=theta)
            values.append(predict(other).value)
        wanted = np.quantile(values, [0.025, 0.975])
        width = wanted[1] - wanted[0]
        assert [found.low, found.high] == pytest.approx(wanted.tolist(), abs=0.15 * width)


def test_what_lies_beyond_the_rows_is_marked(fits: dict[str, SurvivalFit]) -> None:
    fit = fits["weibull"]
    assert "extrapolated" not in fit.mean(until=fit.longest).method
    assert "extrapolated beyond" in fit.mean(until=2 * fit.longest).method
    assert "extrapolated beyond" in fit.mean().method
    assert fit.outside({"eps": 9.0, "defence": "none"}) == ("eps",)
    assert fit.outside({"eps": 2.0}) == ()


def test_a_log_logistic_law_without_a_mean_says_why() -> None:
    rng = np.random.default_rng(0)
    t = np.exp(1 + 1.6 * rng.logistic(size=300))
    fit = fit_survival({"t": t, "e": np.ones(300)}, duration="t", event="e", covariates=[], family="loglogistic")
    mean = fit.mean()
    assert (mean.value, mean.high) == (np.inf, np.inf)
    assert "infinite, as a log-logistic law with b <= 1 has no mean" in mean.method
    assert mean.low == pytest.approx(fit.mean(until=fit.longest).low)
    near = fit_survival(
        {"t": t ** (0.92 / 1.6), "e": np.ones(300)}, duration="t", event="e", covariates=[], family="loglogistic"
    ).mean()
    assert np.isfinite(near.value)
    assert near.high == np.inf
    assert "not excluded" in near.method


def test_a_restricted_mean_comes_near_the_whole_one(fits: dict[str, SurvivalFit]) -> None:
    for family in ("weibull", "lognormal"):
        fit = fits[family]
        assert fit.mean(until=1e6).value == pytest.approx(fit.mean().value, rel=1e-6)
        assert fit.mean(until=1e-6).value == pytest.approx(1e-6, rel=1e-3)


def test_acceleration_factors_multiply_every_quantile(fits: dict[str, SurvivalFit]) -> None:
    fit = fits["loglogistic"]
    factor = {one.name: one for one in fit.acceleration_factors()}["eps"]
    assert factor.unit_text.endswith(", one standard deviation")
    for share in (0.1, 0.5, 0.9):
        more = {**HERE, "eps": HERE["eps"] + factor.unit}
        ratio = fit.quantile(share, at=more).value / fit.quantile(share, at=HERE).value
        assert ratio == pytest.approx(factor.per_unit.value)
    assert factor.per_unit.low < factor.per_unit.value < factor.per_unit.high < 1
    assert factor.holds == "at every quantile"


def law_of(fit: SurvivalFit, eta: float, sigma: float) -> Any:
    """The same law in scipy's words."""
    if fit.family == "weibull":
        return stats.weibull_min(1 / sigma, scale=np.exp(eta))
    return (
        stats.lognorm(sigma, scale=np.exp(eta))
        if fit.family == "lognormal"
        else stats.fisk(1 / sigma, scale=np.exp(eta))
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_density_and_hazard_are_those_of_the_law(fits: dict[str, SurvivalFit], family: str) -> None:
    fit = fits[family]
    law = law_of(fit, *parameters(fit, HERE["eps"], HERE["defence"]))
    for time in (0.05, 1.0, 3.0, 20.0, 200.0):
        density, hazard = fit.density(time, at=HERE), fit.hazard(time, at=HERE)
        assert density.value == pytest.approx(law.pdf(time), rel=1e-9)
        assert hazard.value == pytest.approx(law.pdf(time) / law.sf(time), rel=1e-7)
        assert 0 <= hazard.low < hazard.value < hazard.high


@pytest.mark.parametrize("family", FAMILIES)
def test_survival_is_what_the_hazard_leaves_also_of_many_rows(fits: dict[str, SurvivalFit], family: str) -> None:
    """Eq. 4: S(t) = exp(-integral of h). Of rows that differ, the hazard is that of the whole."""
    fit = fits[family]
    spent = quad(lambda time: fit.hazard(time).value, 1e-9, 4.0, limit=200)[0]
    assert np.exp(-spent) == pytest.approx(fit.survival(4.0).value, rel=1e-5)
    failed = quad(lambda time: fit.density(time).value, 1e-9, 4.0, limit=200)[0]
    assert 1 - failed == pytest.approx(fit.survival(4.0).value, rel=1e-5)


@pytest.mark.parametrize("number", ["hazard", "density"])
def test_their_intervals_are_those_of_draws_of_the_coefficients(fits: dict[str, SurvivalFit], number: str) -> None:
    """The delta method beside a small step in each coefficient."""
    fit = fits["weibull"]
    step = 1e-6
    slope = np.array(
        [
            (
                np.log(getattr(fit.moved(place, step), number)(2.0).value)
                - np.log(getattr(fit.moved(place, -step), number)(2.0).value)
            )
            / (2 * step)
            for place in range(fit.n_coefficients)
        ]
    )
    half = fit.interval_quantile * np.sqrt(slope @ fit.coefficient_covariance @ slope)
    found = getattr(fit, number)(2.0)
    assert np.log(found.high / found.value) == pytest.approx(half, rel=1e-4)
    assert np.log(found.value / found.low) == pytest.approx(half, rel=1e-4)
    with pytest.raises(RiskError, match="above 0"):
        getattr(fit, number)(0.0)


def test_partial_effects_are_curves_with_bands(fits: dict[str, SurvivalFit]) -> None:
    found = fits["lognormal"].partial_effects("eps", [0.5, 3.0], [0.0, 1.0, 4.0])
    assert found.values == (0.5, 3.0)
    for value, curve in zip(found.values, found.curves, strict=True):
        assert curve.survival[0] == 1
        assert (np.diff(curve.survival) < 0).all()
        one = fits["lognormal"].survival(4.0, at={"eps": value})
        assert (curve.survival[2], curve.low[2], curve.high[2]) == (one.value, one.low, one.high)
    assert (found.curves[0].survival[1:] > found.curves[1].survival[1:]).all()
    with pytest.raises(RiskError, match="'wrong' is not among the levels"):
        fits["lognormal"].partial_effects("defence", ["wrong"], [1.0])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda fit: fit.survival(-1.0), "a time must be a finite number of at least 0, found -1"),
        (lambda fit: fit.mean(until=0.0), "a finite number above 0"),
        (lambda fit: fit.mean(until=np.nan), "found nan"),
        (lambda fit: fit.quantile(1.0), "between 0 and 1, found 1"),
        (lambda fit: fit.median(at={"epss": 1.0}), "no covariate 'epss'; did you mean 'eps'"),
        (lambda fit: fit.median(at={"eps": "high"}), "'eps' is a number; found 'high'"),
        (lambda fit: fit.median(at={"eps": np.inf}), "'eps' is a number; found inf"),
        (lambda fit: fit.outside({"epss": 1.0}), "no covariate 'epss'"),
    ],
)
def test_questions_that_make_no_sense_are_refused(fits: dict[str, SurvivalFit], ask: Any, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        ask(fits["weibull"])


def test_far_tails_give_numbers(fits: dict[str, SurvivalFit]) -> None:
    for fit in fits.values():
        assert 0 <= fit.survival(1e12, at=HERE).value < 1e-5
        assert fit.survival(1e-12, at=HERE).value == pytest.approx(1)
        assert fit.mean(until=1e-9, at=HERE).value == pytest.approx(1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_end_of_a_restricted_mean_lies_beyond_its_limit_and_none_of_a_mean_below_it(family: str) -> None:
    rng = np.random.default_rng(4)
    t = 20 * rng.weibull(1.2, 40)
    frame = {"t": np.minimum(t, 8.0), "e": (t < 8.0).astype(int)}
    fit = fit_survival(frame, duration="t", event="e", covariates=[], family=family)
    for until in (1e-3, 1.0, 8.0):
        mean = fit.mean(until=until)
        assert 0 < mean.low <= mean.value <= mean.high <= until
    assert fit.mean().low >= fit.mean(until=fit.longest).low
