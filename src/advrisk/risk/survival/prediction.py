"""Survival, quantiles and means of a fit as functions of eta and u = log sigma, with their slopes.

A fit averages them over rows; what it says of their uncertainty is the delta method, on a scale on which they are
nearly normal: the log for times, log(-log) for survival. How well predictions rank the rows is their concordance.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.survival.families import Family
from advrisk.risk.survival.frames import Floats

_STEP = 1e-5  # in u: the slope's error is its square
Integers = NDArray[np.int32]


class Predicted(NamedTuple):
    """One number for each row, and its slopes in eta and u."""

    value: Floats
    eta: Floats
    u: Floats


Law = Callable[[Family, Floats, Floats], Predicted]


def survival_at(time: float) -> Law:
    """S(t)."""

    def law(family: Family, eta: Floats, u: Floats) -> Predicted:
        rate = np.exp(-u)
        if time == 0:
            return Predicted(np.ones_like(eta), np.zeros_like(eta), np.zeros_like(eta))
        z = (np.log(time) - eta) * rate
        with np.errstate(over="ignore"):
            value, density = np.exp(family.log_survival(z).value), np.exp(family.log_density(z).value)
        return Predicted(value, density * rate, density * np.where(density > 0, z, 0.0))

    return law


def density_at(time: float) -> Law:
    """f(t) = -dS/dt = g(z)/(sigma t), with g the density of W and z = (ln t - eta)/sigma."""

    def law(family: Family, eta: Floats, u: Floats) -> Predicted:
        rate = np.exp(-u)
        z = (np.log(time) - eta) * rate
        log = family.log_density(z)
        with np.errstate(over="ignore"):
            value = np.exp(log.value) * rate / time
        slope = np.where(value > 0, log.first, 0.0)  # far out the slope has no end, and the density is 0
        return Predicted(value, -value * slope * rate, -value * (slope * np.where(value > 0, z, 0.0) + 1))

    return law


def time_at(survival: float) -> Law:
    """The time at which S falls to this share."""

    def law(family: Family, eta: Floats, u: Floats) -> Predicted:
        w = float(family.quantile(np.array([survival]))[0])
        value = np.exp(eta + np.exp(u) * w)
        return Predicted(value, value, value * w * np.exp(u))

    return law


def mean_time(family: Family, eta: Floats, u: Floats) -> Predicted:
    """E[T], the integral of S; inf where there is none."""
    log_mean, slope = family.log_mean(np.exp(u))
    value = np.exp(eta + log_mean)
    return Predicted(value, value, value * slope)


def mean_until(time: float) -> Law:
    """E[min(T, t)], the integral of S up to t.

    It is exp(eta) times a function of t exp(-eta), so its slope in eta is itself less t S(t); that in
    u is a difference.
    """

    def mean(family: Family, eta: Floats, u: Floats) -> Floats:
        sigma = np.exp(u)
        return np.asarray(time * family.restricted(sigma, (np.log(time) - eta) / sigma))

    def law(family: Family, eta: Floats, u: Floats) -> Predicted:
        value = mean(family, eta, u)
        left = survival_at(time)(family, eta, u).value
        slope = (mean(family, eta, u + _STEP) - mean(family, eta, u - _STEP)) / (2 * _STEP)
        return Predicted(value, value - time * left, slope)

    return law


class Transform(NamedTuple):
    """A scale on which an estimate is nearly normal: its value, its slope, and the way back."""

    to: Callable[[float], float]
    slope: Callable[[float], float]
    back: Callable[[Floats], Floats]


LOG = Transform(lambda value: float(np.log(value)), lambda value: 1 / value, lambda scaled: np.asarray(np.exp(scaled)))
LOG_LOG = Transform(
    lambda value: float(np.log(-np.log(value))),
    lambda value: float(1 / (value * np.log(value))),
    lambda scaled: np.asarray(np.exp(-np.exp(scaled))),
)


def below(limit: float) -> Transform:
    """Log-odds scale of values between 0 and a limit, so that intervals stay inside."""
    most = limit * (1 - 1e-12)  # where nothing fails in time, rounding may reach the limit

    def to(value: float) -> float:
        return float(np.log(min(value, most) / (limit - min(value, most))))

    def slope(value: float) -> float:
        return limit / (min(value, most) * (limit - min(value, most)))

    return Transform(to, slope, lambda scaled: np.asarray(limit / (1 + np.exp(-scaled))))


def interval(value: float, error: float, quantile: float, scale: Transform) -> tuple[float, float]:
    """Interval that is symmetric on that scale, transformed back."""
    with np.errstate(over="ignore"):
        ends = scale.back(scale.to(value) + quantile * error * abs(scale.slope(value)) * np.array([-1.0, 1.0]))
    return min(float(ends.min()), value), max(float(ends.max()), value)


def concordance(duration: Floats, predicted: Floats, event: Floats) -> float:
    """Over all pairs in which one row has an event and the other certainly lasted longer; equal predictions count half.

    Two rows with an event at the same time are no pair; one that is censored then lasted longer than one whose event
    was seen then (as lifelines has it). 0.5 says that the covariates do not order the times.
    """
    order = np.argsort(duration, kind="stable")
    times, happened = duration[order], event[order] > 0
    before = _events_before(times, happened)
    pairs = int(before.sum())
    if not pairs:
        raise RiskError("no two rows can be compared: no row certainly lasts longer than one with an event")
    predicted = predicted[order]
    by_value = np.argsort(predicted)
    ranks = np.empty(len(times), dtype=np.int32)
    ranks[by_value] = np.cumsum(np.diff(predicted[by_value], prepend=-np.inf) > 0)  # equal values have the same rank
    less, equal = counts_before(ranks[happened], before[by_value], ranks[by_value])
    return (int(less.sum()) + int(equal.sum()) / 2) / pairs


def counts_before(values: Integers, ends: Integers, wanted: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each query, how many of values[:end] are less than the wanted one, and how many equal it.

    Values are sorted by one bit after the other, from the highest (a wavelet matrix); each query follows its range.
    It is quickest if queries are sorted by what they want: neighbours look at the same places then.
    """
    low, high = np.zeros_like(ends), ends
    less = np.zeros(len(ends), dtype=np.int64)
    zeros_before = np.zeros(len(values) + 1, dtype=np.int32)
    for bit in reversed(range(int(max(values.max(), wanted.max(), 1)).bit_length())):
        ones = (values >> bit) & 1 == 1
        np.cumsum(~ones, out=zeros_before[1:])
        asked = (wanted >> bit) & 1 == 1
        low_zeros, high_zeros = zeros_before.take(low), zeros_before.take(high)
        less += (high_zeros - low_zeros) * asked
        low = np.where(asked, zeros_before[-1] + low - low_zeros, low_zeros)
        high = np.where(asked, zeros_before[-1] + high - high_zeros, high_zeros)
        values = np.concatenate([values[~ones], values[ones]])
    return less, (high - low).astype(np.int64)


def _events_before(times: Floats, happened: NDArray[np.bool_]) -> Integers:
    """How many events each row, sorted by time, outlived: earlier ones and, if it is censored, those of its time."""
    up_to = np.concatenate([[0], np.cumsum(happened)]).astype(np.int32)
    new = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    lengths = np.diff(np.append(new, len(times)))
    return np.where(happened, np.repeat(up_to[new], lengths), np.repeat(up_to[new + lengths], lengths))
