"""Fits: coding and its undoing, standard errors by cluster, and that order does not matter."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.survival import FAMILIES, SurvivalFit, fit_survival

GIVEN: dict[str, Any] = {
    "duration": "t",
    "event": "e",
    "covariates": ["eps", "defence"],
    "reference": {"defence": "none"},
}


@pytest.fixture(scope="module")
def fits(tables: dict[str, Any]) -> dict[str, SurvivalFit]:
    return {family: fit_survival(tables[family], **GIVEN, family=family) for family in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_truth_is_within_four_standard_errors(fits: dict[str, SurvivalFit], family: str) -> None:
    fit = fits[family]
    sign = 1 if family == "lognormal" else -1
    truth = {"intercept": 2.0, "eps": -0.5, "defence=noise": 1 / 3, "defence=squeeze": 0.0}
    for name, value in truth.items():
        found = fit.coefficient(name).natural
        assert abs(found.estimate.value - value) < 4 * found.standard_error
    shape = fit.coefficient("intercept", part="shape").natural
    assert abs(shape.estimate.value - sign * np.log(0.6)) < 4 * shape.standard_error
    assert fit.n == 400
    assert fit.n_events == int(fit.n_events)
    assert fit.iterations < 10


def test_coefficients_are_told_over_the_range_and_by_the_unit(
    tables: dict[str, Any], fits: dict[str, SurvivalFit]
) -> None:
    table, fit = tables["weibull"], fits["weibull"]
    eps = fit.coefficient("eps")
    width = np.ptp(table["eps"])
    assert eps.natural.estimate.value * width == pytest.approx(eps.scaled.estimate.value)
    assert eps.natural.standard_error * width == pytest.approx(eps.scaled.standard_error)
    assert eps.natural.z == pytest.approx(eps.scaled.z)
    noise = fit.coefficient("defence=squeeze")
    assert (noise.covariate, noise.reference) == ("defence", "none")
    stretched = fit_survival({**table, "eps": 255 * table["eps"] - 3}, **GIVEN, family="weibull")
    assert stretched.log_likelihood == pytest.approx(fit.log_likelihood)
    assert stretched.coefficient("eps").natural.estimate.value == pytest.approx(eps.natural.estimate.value / 255)
    assert stretched.coefficient("eps").scaled.estimate.value == pytest.approx(eps.scaled.estimate.value)
    moved = fit.coefficient("intercept").natural.estimate.value + 3 / 255 * eps.natural.estimate.value
    assert stretched.coefficient("intercept").natural.estimate.value == pytest.approx(moved)


def test_another_reference_is_another_zero(tables: dict[str, Any], fits: dict[str, SurvivalFit]) -> None:
    other = fit_survival(tables["weibull"], **{**GIVEN, "reference": {"defence": "squeeze"}}, family="weibull")
    assert other.log_likelihood == pytest.approx(fits["weibull"].log_likelihood)
    assert other.coefficient("defence=none").natural.estimate.value == pytest.approx(
        -fits["weibull"].coefficient("defence=squeeze").natural.estimate.value, abs=1e-8
    )
    assert other.coefficient("defence=none").reference == "squeeze"


def test_information_criteria_count_all_coefficients(fits: dict[str, SurvivalFit]) -> None:
    fit = fits["lognormal"]
    assert fit.n_coefficients == 5  # intercept, eps, two levels, shape
    assert fit.aic == pytest.approx(10 - 2 * fit.log_likelihood)
    assert fit.bic == pytest.approx(5 * np.log(400) - 2 * fit.log_likelihood)


def test_time_in_other_units_moves_the_intercept_alone(tables: dict[str, Any], fits: dict[str, SurvivalFit]) -> None:
    table = tables["loglogistic"]
    slower = fit_survival({**table, "t": 1000 * table["t"]}, **GIVEN, family="loglogistic")
    for one, other in zip(fits["loglogistic"].coefficients, slower.coefficients, strict=True):
        shift = np.log(1000) if (one.name, one.part) == ("intercept", "scale") else 0.0
        assert other.natural.estimate.value == pytest.approx(one.natural.estimate.value + shift, abs=1e-9)
        assert other.natural.standard_error == pytest.approx(one.natural.standard_error, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cluster", [None, "sample"])
def test_the_order_of_rows_does_not_matter(tables: dict[str, Any], family: str, cluster: str | None) -> None:
    table = {**tables[family], "t": np.ceil(tables[family]["t"]), "low": np.ceil(tables[family]["t"]) - 1}
    given = {**GIVEN, "family": family, "lower": "low", "cluster": cluster}
    shuffled = np.random.default_rng(1).permutation(400)
    one = fit_survival(table, **given)
    other = fit_survival({name: values[shuffled] for name, values in table.items()}, **given)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-10)
    assert other.concordance == one.concordance
    for a, b in zip(one.coefficients, other.coefficients, strict=True):
        assert b.natural.estimate.value == pytest.approx(a.natural.estimate.value, abs=1e-10)
        assert b.natural.standard_error == pytest.approx(a.natural.standard_error, abs=1e-10)


def test_clustered_errors_are_the_sandwich_written_out(tables: dict[str, Any]) -> None:
    """Scores by finite differences of each cluster's own log-likelihood."""
    table = tables["weibull"]
    given = {"duration": "t", "event": "e", "covariates": ["eps"], "family": "weibull"}
    fit = fit_survival(table, **given, cluster="sample")
    theta = np.array([one.natural.estimate.value for one in fit.coefficients])

    def row_values(theta: np.ndarray) -> np.ndarray:
        z = (np.log(table["t"]) - theta[0] - theta[1] * table["eps"]) * np.exp(theta[2])
        return table["e"] * (z + theta[2] - np.log(table["t"])) - np.exp(z)

    step = 1e-5 * np.eye(3)
    slopes = np.stack([(row_values(theta + s) - row_values(theta - s)) / 2e-5 for s in step], axis=1)
    hessian = np.array(
        [
            [
                (row_values(theta + a + b) - row_values(theta + a - b) - row_values(theta - a + b)
                 + row_values(theta - a - b)).sum() / 4e-8
                for a in 10 * step
            ]
            for b in 10 * step
        ]
    )  # fmt: skip
    names = np.unique(table["sample"])
    sums = np.stack([slopes[table["sample"] == name].sum(axis=0) for name in names])
    inverse = np.linalg.inv(-hessian)
    wanted = inverse @ (sums.T @ sums) @ inverse * len(names) / (len(names) - 1)
    assert fit.n_clusters == len(names)
    assert [one.natural.standard_error for one in fit.coefficients] == pytest.approx(
        np.sqrt(np.diag(wanted)).tolist(), rel=1e-4
    )
    assert "cluster" in fit.coefficients[0].natural.estimate.method


def test_repeating_every_row_does_not_fool_clustered_errors(draw: Callable[..., Any]) -> None:
    table = draw("lognormal", n=120)
    ten = {name: np.repeat(values, 10) for name, values in table.items()} | {"sample": np.repeat(np.arange(120), 10)}
    given = {**GIVEN, "family": "lognormal", "cluster": "sample"}
    once = fit_survival({**table, "sample": np.arange(120)}, **given)
    often = fit_survival(ten, **given)
    for a, b in zip(once.coefficients, often.coefficients, strict=True):
        assert b.natural.standard_error == pytest.approx(a.natural.standard_error, rel=1e-6)


def test_too_few_clusters_are_refused_with_their_number(tables: dict[str, Any]) -> None:
    table = {**tables["weibull"], "sample": tables["weibull"]["sample"] % 12}
    with pytest.raises(RiskError, match=r"'sample' has 12 values; .* need about 30 or more"):
        fit_survival(table, **GIVEN, family="weibull", cluster="sample")


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exact_time_is_an_interval_without_width(tables: dict[str, Any], family: str) -> None:
    table = tables[family]
    exact = fit_survival(table, **GIVEN, family=family)
    same = fit_survival({**table, "low": table["t"]}, **GIVEN, family=family, lower="low")
    assert same.log_likelihood == pytest.approx(exact.log_likelihood)
    narrow = fit_survival({**table, "low": table["t"] * (1 - 1e-4)}, **GIVEN, family=family, lower="low")
    for a, b in zip(exact.coefficients, narrow.coefficients, strict=True):
        assert b.natural.estimate.value == pytest.approx(a.natural.estimate.value, abs=1e-3)


def test_shape_covariates_are_fitted_and_named(draw: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, 3000)
    t = np.exp(1 + x + np.exp(-0.5 + 0.8 * x) * rng.normal(size=3000))
    fit = fit_survival(
        {"x": x, "t": t, "e": np.ones(3000)},
        duration="t", event="e", covariates=["x"], shape_covariates=["x"], family="lognormal",
    )  # fmt: skip
    for name, part, truth in (("x", "scale", 1.0), ("intercept", "shape", -0.5), ("x", "shape", 0.8)):
        found = fit.coefficient(name, part=part).natural
        assert abs(found.estimate.value - truth) < 4 * found.standard_error
    assert fit.acceleration_factors()[0].holds == "at the median"


def test_held_out_rows_have_a_likelihood_of_their_own(tables: dict[str, Any], fits: dict[str, SurvivalFit]) -> None:
    table, fit = tables["weibull"], fits["weibull"]
    assert fit.row_log_likelihoods(table).sum() == pytest.approx(fit.log_likelihood)
    values = fit.row_log_likelihoods(table)
    some = {name: column[7:9] for name, column in table.items()}
    assert fit.row_log_likelihoods(some) == pytest.approx(values[7:9])
    with pytest.raises(RiskError, match=r"'defence': 'nois' is not among the levels .* did you mean 'noise'"):
        fit.row_log_likelihoods({**some, "defence": ["nois", "none"]})


def test_a_coefficient_that_is_not_there_is_refused(fits: dict[str, SurvivalFit]) -> None:
    with pytest.raises(RiskError, match="no scale coefficient 'epss'; did you mean 'eps'"):
        fits["weibull"].coefficient("epss")


def test_p_values_are_two_sided(fits: dict[str, SurvivalFit]) -> None:
    for one in fits["weibull"].coefficients:
        assert one.natural.p_value == pytest.approx(math.erfc(abs(one.natural.z) / math.sqrt(2)), rel=1e-9)
        half = 1.959963984540054 * one.natural.standard_error
        assert one.natural.estimate.high - one.natural.estimate.value == pytest.approx(half)
