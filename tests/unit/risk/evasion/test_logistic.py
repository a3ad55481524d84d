"""The logistic fit against closed forms, scipy's optimiser and a grid in other coordinates."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import fit_logistic
from advrisk.risk.evasion.logistic import LogisticCurve, log_likelihood, maximum


def answers(seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(0, 2, n)
    return sizes, rng.random(n) < expit(3 - 3 * sizes)


def negative_log_likelihood(at: np.ndarray, sizes: np.ndarray, undetected: np.ndarray) -> float:
    eta = at[0] + at[1] * sizes
    return float(-(undetected * eta - np.logaddexp(0, eta)).sum())


def penalised(at: np.ndarray, sizes: np.ndarray, undetected: np.ndarray) -> float:
    """Firth: minus log likelihood and half the log determinant of the information."""
    p = expit(at[0] + at[1] * sizes)
    design = np.stack([np.ones_like(sizes), sizes], axis=1)
    information = design.T @ ((p * (1 - p))[:, None] * design)
    return negative_log_likelihood(at, sizes, undetected) - np.linalg.slogdet(information)[1] / 2


def test_two_sizes_are_fitted_exactly() -> None:
    # 3 of 4 undetected at size 1, 1 of 4 at size 2
    fit = fit_logistic([1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 0, 1, 0, 0, 0])
    assert fit([1.0, 2.0]) == pytest.approx([0.75, 0.25], abs=1e-9)
    assert fit.curve.slope == pytest.approx(logit(0.25) - logit(0.75), rel=1e-9)
    assert fit.separated is None


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_maximum_of_the_likelihood(seed: int) -> None:
    sizes, undetected = answers(seed)
    fit = fit_logistic(sizes, undetected)
    best = minimize(negative_log_likelihood, [0.0, -1.0], args=(sizes, undetected), method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 10_000})  # fmt: skip
    assert (fit.curve.intercept, fit.curve.slope) == pytest.approx(tuple(best.x), rel=1e-5)


def test_the_unit_of_the_sizes_does_not_matter() -> None:
    sizes, undetected = answers(1)
    in_255ths = fit_logistic(sizes * 255, undetected)
    np.testing.assert_allclose(in_255ths(sizes * 255), fit_logistic(sizes, undetected)(sizes), rtol=1e-8)


def test_a_curve_that_would_rise_is_flat() -> None:
    fit = fit_logistic([1, 2, 3, 4, 5], [0, 0, 1, 0, 1])
    assert fit.curve.slope == 0
    assert fit([0.0, 3.0, 100.0]) == pytest.approx([0.4] * 3)


def test_separated_answers_give_firths_estimate_and_the_gap() -> None:
    sizes, undetected = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), np.array([1, 1, 1, 0, 0, 0])
    fit = fit_logistic(sizes, undetected)
    best = minimize(penalised, [3.0, -8.0], args=(sizes, undetected), method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 10_000})  # fmt: skip
    assert fit.separated == (0.3, 0.4)
    assert (fit.curve.intercept, fit.curve.slope) == pytest.approx(tuple(best.x), rel=1e-5)


def test_draws_of_separated_answers_are_honest_about_the_gap() -> None:
    fit = fit_logistic([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1, 1, 1, 0, 0, 0])
    values = np.array([curve([0.2, 0.35, 0.5]) for curve in fit.draws(2000, np.random.default_rng(0))])
    assert (values.std(axis=0) > 0.05).all()
    assert values[:, 1].std() > 0.2  # anything may be true in the middle of the gap


@pytest.mark.parametrize("seed", [0, 3])
def test_draws_are_those_of_jeffreys_posterior(seed: int) -> None:
    """Brute force on a fixed grid of intercept and slope themselves."""
    sizes, undetected = answers(seed, n=40)
    intercept, slope = np.meshgrid(np.linspace(-4, 16, 321), np.linspace(-16, 0, 321), indexing="ij")
    eta = intercept[..., None] + slope[..., None] * sizes
    p = expit(eta)
    weight = p * (1 - p)
    i0, i1, i2 = weight.sum(-1), weight @ sizes, weight @ sizes**2
    log = (undetected * eta - np.logaddexp(0, eta)).sum(-1) + np.log(i0 * i2 - i1**2) / 2
    mass = np.exp(log - log.max())
    mass /= mass.sum()
    at = np.array([0.0, 0.8, 1.2, 2.0])
    values = expit(intercept[..., None] + slope[..., None] * at)
    mean = (mass[..., None] * values).sum((0, 1))
    spread = np.sqrt((mass[..., None] * (values - mean) ** 2).sum((0, 1)))
    drawn = np.array([curve(at) for curve in fit_logistic(sizes, undetected).draws(20_000, np.random.default_rng(1))])
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=4 * spread.max() / np.sqrt(20_000) + 1e-3)
    assert drawn.std(axis=0) == pytest.approx(spread, rel=0.05, abs=1e-3)


def test_many_answers_need_a_small_grid() -> None:
    sizes, undetected = answers(0, n=20_000)
    values = np.array([curve(1.0) for curve in fit_logistic(sizes, undetected).draws(500, np.random.default_rng(0))])
    assert values.mean() == pytest.approx(0.5, abs=0.03)
    assert values.std() == pytest.approx(0.0046, rel=0.5)


def test_a_narrow_overlap_makes_a_steep_curve() -> None:
    """Two answers in the wrong order, 1e-6 apart: each is as likely as not."""
    fit = fit_logistic([0, 0.5, 1, 1.000001, 1.5, 2], [1, 1, 0, 1, 0, 0])
    assert fit.separated is None
    assert fit([0.5, 1, 1.000001, 1.5]) == pytest.approx([1, 0.5, 0.5, 0], abs=1e-4)


def test_rows_are_fitted_side_by_side() -> None:
    rng = np.random.default_rng(0)
    z, total = np.linspace(-2, 2, 9), np.full(9, 5.0)
    hits = rng.binomial(5, expit(-1.5 * z), size=(20, 9)).astype(float)
    together = maximum(z, total, hits, ridge=1e-6)
    alone = np.concatenate([maximum(z, total, row[None], ridge=1e-6) for row in hits])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_a_little_ridge_reaches_the_likelihood_of_separated_answers() -> None:
    z, total, hits = np.array([-1.0, 0.0, 1.0]), np.ones(3), np.array([[1.0, 1.0, 0.0]])
    assert log_likelihood(maximum(z, total, hits, ridge=1e-6), z, total, hits)[0] == pytest.approx(0, abs=1e-3)


def test_a_failed_attack_goes_nowhere() -> None:
    assert LogisticCurve(3.0, 0.0)([1.0, np.inf]).tolist() == pytest.approx([expit(3.0), 0.0])


def test_sizes_outside_the_answers_are_extrapolated() -> None:
    fit = fit_logistic([0.5, 1, 1, 2], [1, 1, 0, 0])
    assert fit.extrapolated([0, 0.5, 1.5, 2, 2.1, np.inf]).tolist() == [True, False, False, False, True, False]


def test_one_size_is_refused() -> None:
    with pytest.raises(RiskError, match=r"all 3 answers are of size 2; .*two sizes"):
        fit_logistic([2, 2, 2], [1, 0, 1])
