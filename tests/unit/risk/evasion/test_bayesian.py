"""The posterior against weighted draws from its prior, and the curve against its definition."""

import pickle

import numpy as np
import pytest
from scipy.special import expit

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import fit_bayesian
from advrisk.risk.evasion.bayesian import PsychometricCurve

SIZES = np.array([0.0, 0.0, 0.0, 0.0, 0.2, 0.4, 0.5, 0.7, 0.8, 1.0, 1.1, 1.3, 1.6, 2.0, 3.0, 4.0])
UNDETECTED = np.array([1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0], dtype=bool)
AT = np.array([0.0, 0.3, 0.9, 1.5, 5.0])


def by_hand(sizes: np.ndarray, m: np.ndarray, r: np.ndarray, scale: str) -> np.ndarray:
    if scale == "log":
        with np.errstate(divide="ignore"):
            return expit((np.log(m) - np.log(sizes)) / r)
    return expit((m - sizes) / (m * r)) / expit(1 / r)


def prior_rates(rng: np.random.Generator, n: int) -> np.ndarray:
    """Half 0, half with density 9 (1 - rate)^8, by inversion; beyond 1/2 is one in 500."""
    return np.where(rng.random(n) < 0.5, 0.0, 1 - rng.random(n) ** (1 / 9))


@pytest.mark.parametrize("scale", ["log", "linear"])
@pytest.mark.parametrize("rates", ["given", "guess learned", "both learned"])
def test_the_posterior_is_the_prior_weighted_by_the_likelihood(scale: str, rates: str) -> None:
    rng, n = np.random.default_rng(0), 400_000
    low, high = 0.02, 40.0  # a tenth of the least size above 0, ten times the largest
    m = np.exp(np.log(low * high) / 2 + np.log(high / low) / (2 * 1.959964) * rng.standard_normal(n))
    r = np.exp(np.log(0.3) + 1.25 * rng.standard_normal(n))
    guess = np.full(n, 0.1) if rates == "given" else prior_rates(rng, n)
    lapse = prior_rates(rng, n) if rates == "both learned" else np.full(n, 0.05)
    likelihood = np.ones(n)
    for size, flag in zip(SIZES, UNDETECTED, strict=True):
        p = lapse + (1 - guess - lapse) * by_hand(size, m, r, scale)
        likelihood *= p if flag else 1 - p
    likelihood /= likelihood.sum()
    values = lapse + (1 - guess - lapse) * by_hand(AT[:, None], m, r, scale)
    mean = values @ likelihood
    spread = np.sqrt((values - mean[:, None]) ** 2 @ likelihood)
    fit = fit_bayesian(
        SIZES, UNDETECTED, scale=scale,
        guess=0.1 if rates == "given" else None, lapse=None if rates == "both learned" else 0.05,
    )  # fmt: skip
    drawn = np.array([curve(AT) for curve in fit.draws(20_000, rng)])
    assert fit(AT) == pytest.approx(mean, abs=0.006)
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=0.006)
    assert drawn.std(axis=0) == pytest.approx(spread, abs=0.006)


def test_no_mass_is_left_at_the_edges() -> None:
    fit = fit_bayesian(SIZES, UNDETECTED, guess=None)
    for place in (0, 1):
        marginal = fit._posterior.marginal(place)
        assert max(marginal[0], marginal[-1]) < 1e-6


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_the_curve_begins_at_one_minus_the_false_alarm_rate(scale: str) -> None:
    curve = PsychometricCurve(0.5, 0.8, guess=0.2, lapse=0.1, scale=scale)
    assert curve(0.0) == pytest.approx(0.8)
    assert curve(1e9) == pytest.approx(0.1, abs=1e-6)
    assert curve(np.inf) == 0
    fit = fit_bayesian(SIZES, UNDETECTED, scale=scale, guess=0.2, lapse=0.1)
    assert fit(0.0) == pytest.approx(0.8)


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_curve_and_draws_do_not_increase(scale: str) -> None:
    fit = fit_bayesian(SIZES, UNDETECTED, scale=scale, guess=None, lapse=None)
    sizes = np.append(np.linspace(0, 6, 200), np.inf)
    for curve in (fit, *fit.draws(50, np.random.default_rng(0))):
        assert (np.diff(curve(sizes)) <= 1e-12).all()
        assert 0 <= curve(sizes).min() <= curve(sizes).max() <= 1


def test_catch_trials_tell_the_false_alarm_rate() -> None:
    sizes = np.concatenate([np.zeros(400), np.repeat([0.5, 1.0, 2.0], 10)])
    undetected = np.concatenate([np.arange(400) >= 80, np.tile([1] * 5 + [0] * 5, 3)])
    assert fit_bayesian(sizes, undetected, guess=None)(0.0) == pytest.approx(0.8, abs=0.02)


def test_an_absent_false_alarm_rate_may_be_exactly_absent() -> None:
    sizes = np.concatenate([np.zeros(50), [0.5, 1.0, 2.0]])
    fit = fit_bayesian(sizes, np.concatenate([np.ones(50), [1, 1, 0]]), guess=None)
    starts = np.array([curve(0.0) for curve in fit.draws(2000, np.random.default_rng(0))])
    assert (starts == 1).mean() > 0.5


def test_the_order_and_the_choice_of_sizes_do_not_enter() -> None:
    order = np.random.default_rng(0).permutation(SIZES.size)
    shuffled = fit_bayesian(SIZES[order], UNDETECTED[order], guess=0.1)
    np.testing.assert_array_equal(shuffled(AT), fit_bayesian(SIZES, UNDETECTED, guess=0.1)(AT))


def test_the_unit_of_the_sizes_does_not_matter() -> None:
    for scale in ("log", "linear"):
        in_255ths = fit_bayesian(SIZES * 255, UNDETECTED, scale=scale, guess=0.1)
        np.testing.assert_allclose(in_255ths(AT * 255), fit_bayesian(SIZES, UNDETECTED, scale=scale, guess=0.1)(AT))


def test_without_answers_the_prior_speaks_if_that_is_asked_for() -> None:
    fit = fit_bayesian([], [], plausible=(0.1, 10.0), few=True)
    assert fit(1.0) == pytest.approx(0.5, abs=1e-6)
    assert fit.extrapolated([1.0, np.inf]).tolist() == [True, False]
    with pytest.raises(RiskError, match="found 0 answers"):
        fit_bayesian([], [], plausible=(0.1, 10.0))


def test_an_answer_tells_most_near_the_threshold() -> None:
    sizes = np.repeat([0.1, 0.5, 1.0, 2.0, 10.0], 20)
    undetected = np.tile(np.arange(20), 5) < np.repeat([20, 18, 10, 2, 0], 20)
    information = fit_bayesian(sizes, undetected).expected_information([0.01, 1.0, 100.0])
    assert information[1] > 5 * max(information[0], information[2])
    assert (information >= -1e-12).all()


def test_sizes_of_any_shape_and_another_process() -> None:
    fit = fit_bayesian(SIZES, UNDETECTED, guess=0.1)
    assert fit(np.ones((2, 3))).shape == (2, 3)
    assert fit(1.0).shape == ()
    assert pickle.loads(pickle.dumps(fit.draws(3, np.random.default_rng(0))))[0](1.0) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guess": 0.0}, r"1 unchanged inputs \(size 0\) were reported as perturbed.*guess=None"),
        ({"guess": -0.1}, "guess must be at least 0 and below 0.5, found -0.1"),
        ({"guess": 0.1, "lapse": 0.7}, "lapse must be at least 0"),
        ({"guess": 0.1, "scale": "logg"}, "did you mean 'log'"),
        ({"guess": 0.1, "plausible": (2.0, 1.0)}, "found 2 and 1"),
    ],
)
def test_impossible_settings_are_refused(options: dict, message: str) -> None:
    with pytest.raises(RiskError, match=message):
        fit_bayesian(SIZES, UNDETECTED, **options)


def test_answers_about_unchanged_inputs_alone_are_refused() -> None:
    with pytest.raises(RiskError, match="greater than 0"):
        fit_bayesian([0, 0], [1, 0], guess=None)
