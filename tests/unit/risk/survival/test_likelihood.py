"""Value, gradient and Hessian against the definition, differentiated by mpmath."""

from itertools import product

import mpmath as mp
import numpy as np
import pytest

from advrisk.risk.survival.families import FAMILIES, family_named
from advrisk.risk.survival.fitting import starting_point
from advrisk.risk.survival.likelihood import LawLikelihood, sorted_rows
from advrisk.risk.survival.newton import maximise

T = np.array([0.7, 2.0, 5.0, 1.3, 9.0, 1.0, 4.0])
EVENT = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
LOWER = np.array([0.0, 9.0, 4.0, 1.3, 0.0, 0.0, 3.9])
X = np.array([[1, 0.2], [1, 0.9], [1, 0.4], [1, 0.0], [1, 1.0], [1, 0.3], [1, 0.6]])
V = np.array([[1, 1.0], [1, 0.0], [1, 1.0], [1, 0.0], [1, 1.0], [1, 0.0], [1, 0.5]])
THETA = np.array([0.8, 0.9, 0.2, -0.3])


def survival(name: str, t: mp.mpf, eta: mp.mpf, sigma: mp.mpf) -> mp.mpf:
    """As the laws are written in terms of t."""
    if t == 0:
        return mp.mpf(1)
    if name == "weibull":
        return mp.exp(-((t / mp.exp(eta)) ** (1 / sigma)))
    if name == "lognormal":
        return 1 - mp.ncdf((mp.log(t) - eta) / sigma)
    return 1 / (1 + (t / mp.exp(eta)) ** (1 / sigma))


def log_likelihood(name: str, theta: tuple[mp.mpf, ...], *, intervals: bool) -> mp.mpf:
    total = mp.mpf(0)
    sign = family_named(name).shape_sign
    for t, event, lower, x, v in zip(T, EVENT, LOWER, X, V, strict=True):
        eta, sigma = theta[0] * x[0] + theta[1] * x[1], mp.exp(sign * (theta[2] * v[0] + theta[3] * v[1]))
        if not event:
            total += mp.log(survival(name, mp.mpf(t), eta, sigma))
        elif intervals and lower < t:
            total += mp.log(survival(name, mp.mpf(lower), eta, sigma) - survival(name, mp.mpf(t), eta, sigma))
        else:
            total += mp.log(-mp.diff(lambda s: survival(name, s, eta, sigma), mp.mpf(t)))  # noqa: B023
    return total


def model(name: str, *, intervals: bool) -> LawLikelihood:
    rows, order = sorted_rows(T, EVENT, LOWER if intervals else None)
    return LawLikelihood(family_named(name), rows, X[order], V[order])


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("intervals", [False, True])
def test_value_gradient_and_hessian_are_those_of_the_definition(name: str, intervals: bool) -> None:
    found = model(name, intervals=intervals).at(THETA)
    with mp.workdps(40):

        def value(*theta: mp.mpf) -> mp.mpf:
            return log_likelihood(name, theta, intervals=intervals)

        at = tuple(mp.mpf(one) for one in THETA)
        assert found.value == pytest.approx(float(value(*at)), rel=1e-12)
        for i in range(4):
            order = tuple(int(k == i) for k in range(4))
            assert found.gradient[i] == pytest.approx(float(mp.diff(value, at, order)), rel=1e-9)
        for i, j in product(range(4), repeat=2):
            if i <= j:
                order = tuple(int(k == i) + int(k == j) for k in range(4))
                assert found.hessian[i, j] == pytest.approx(float(mp.diff(value, at, order)), rel=1e-8, abs=1e-10)
    assert found.hessian == pytest.approx(found.hessian.T)


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_of_rows_add_up_to_the_gradient(name: str) -> None:
    one = model(name, intervals=True)
    assert one.scores(THETA).sum(axis=0) == pytest.approx(one.at(THETA).gradient, rel=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_narrow_interval_is_the_density_times_its_width(name: str) -> None:
    """On both sides of where the density takes over; halving the width takes log 2 off."""
    values = []
    for width in (4e-6, 2e-6, 1e-6, 5e-7):
        rows, order = sorted_rows(T * np.exp(EVENT * width / 2), EVENT, T * np.exp(-width / 2))
        values.append(LawLikelihood(family_named(name), rows, X[order], V[order]).at(THETA))
    steps = -np.diff([one.value for one in values])
    assert steps == pytest.approx(EVENT.sum() * np.log(2), rel=1e-7)
    assert values[0].gradient == pytest.approx(values[-1].gradient, rel=1e-4)
    assert values[0].hessian == pytest.approx(values[-1].hessian, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("intervals", [False, True])
def test_the_climb_ends_at_the_same_place_wherever_it_begins(name: str, intervals: bool) -> None:
    rng = np.random.default_rng(4)
    t = np.exp(1 + rng.normal(size=60))
    t, lower = (np.ceil(t), np.ceil(t) - 1) if intervals else (t, None)
    rows, order = sorted_rows(t, (np.arange(60) % 3 > 0).astype(float), lower)
    x = np.stack([np.ones(60), rng.uniform(size=60)], axis=1)[order]
    one = LawLikelihood(family_named(name), rows, x, np.ones((60, 1)))
    starts = (starting_point(one), *(rng.uniform(-6, 6, (12, 3)) * [0.6, 0.6, 0.2]))
    ends = [maximise(one.at, start, longest=one.longest_step) for start in starts]
    assert all(end.converged for end in ends)
    assert np.stack([end.at for end in ends]) == pytest.approx(np.stack([ends[0].at] * 13), abs=1e-7)
    assert np.linalg.eigvalsh(ends[0].likelihood.hessian).max() < 0
