"""A fitted model of survival times: coefficients, survival, quantiles, means.

Meyers et al., "A Systematic Approach to Robustness Modelling": accelerated failure time, log T = x beta + sigma W.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import did_you_mean
from advrisk.risk.survival.checks import checked_duration, checked_event, checked_lower, few_events
from advrisk.risk.survival.coding import Coding, NumberCovariate
from advrisk.risk.survival.families import FamilyName
from advrisk.risk.survival.frames import Columns, Floats, Frame, read_columns
from advrisk.risk.survival.likelihood import LawLikelihood, cure_p_value, predictors, row_terms, sorted_rows
from advrisk.risk.survival.prediction import (
    LOG,
    LOG_LOG,
    Law,
    Predicted,
    Transform,
    below,
    concordance,
    density_at,
    interval,
    mean_time,
    mean_until,
    survival_at,
    time_at,
)
from advrisk.risk.survival.records import AccelerationFactor, Coefficient, Curve, LawPart, PartialEffects

EXTRAPOLATED = "extrapolated beyond"
CURE_ALPHA = 0.05  # level of the test for a cured fraction
_TIED = 10  # digits of log medians; predictions that agree in them are ties


@dataclass(frozen=True)
class Outcome:
    """Names of the columns with the outcome of each row."""

    duration: str
    event: str
    lower: str | None = None
    cluster: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.duration, self.event, self.lower, self.cluster) if name is not None)


@dataclass(frozen=True, eq=False)
class SurvivalFit:
    """log T = x beta + sigma W, fitted by maximum likelihood; `at` below is in the units of the frame.

    Where `at` names some covariates, they have these values in every row, and what is predicted is the mean over the
    rows with all else as it is there; without `at`, the mean over the rows as they are.
    """

    family: FamilyName
    outcome: Outcome
    n: int
    n_events: int
    n_clusters: int | None  # None: rows count as independent
    level: float
    log_likelihood: float
    iterations: int
    coefficients: tuple[Coefficient, ...]
    longest: float  # duration in the rows; beyond it a mean is extrapolated
    scale_coding: Coding = field(repr=False)
    shape_coding: Coding = field(repr=False)
    _model: LawLikelihood = field(repr=False)  # rows sorted by kind
    _theta: Floats = field(repr=False)  # of the coded columns
    _covariance: Floats = field(repr=False)
    _clusters: NDArray[np.intp] | None = field(repr=False)  # of the model's rows
    interval_quantile: float = field(repr=False)  # half width of an interval in standard errors

    @property
    def n_coefficients(self) -> int:
        return len(self._theta)

    @property
    def coefficient_covariance(self) -> Floats:
        """Covariance of the coefficients of the coded columns, scale before shape."""
        return self._covariance

    def moved(self, place: int, step: float) -> "SurvivalFit":
        """The same law with one coefficient moved by a step, for numerical slopes of predictions."""
        return replace(self, _theta=self._theta + step * (np.arange(self.n_coefficients) == place))

    @property
    def doubt(self) -> str:
        """A note if there are few events for the number of coefficients, else empty."""
        return few_events(self.n_events, self.n_coefficients)

    @property
    def aic(self) -> float:
        """2 k - 2 ln L."""
        return 2 * self.n_coefficients - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """k ln n - 2 ln L, with k all coefficients and n the rows."""
        return self.n_coefficients * float(np.log(self.n)) - 2 * self.log_likelihood

    @cached_property
    def concordance(self) -> float:
        """Concordance: how often the row with the longer predicted median survives longer."""
        eta, u = self._model.predictors(self._theta)
        median = eta + np.exp(u) * float(self._model.family.quantile(np.array([0.5]))[0])
        rows = self._model.rows
        event = np.ones(self.n)
        event[rows.censored] = 0
        return concordance(rows.log_t, np.round(median, _TIED), event)

    def coefficient(self, name: str, *, part: LawPart = "scale") -> Coefficient:
        """The coefficient of that name."""
        known = {one.name: one for one in self.coefficients if one.part == part}
        if name not in known:
            raise RiskError(f"the fit has no {part} coefficient {name!r}; {did_you_mean(name, known)}")
        return known[name]

    def survival(self, time: float, *, at: Mapping[str, Any] | None = None) -> Estimate:
        """The share that survives past a time."""
        _check_time(time, least=0.0)
        if time == 0:
            return self._estimate(1.0, 1.0, 1.0, "nothing fails before it is tried")
        return self._averaged(survival_at(time), at, LOG_LOG, f"survival at {time:g}")

    def density(self, time: float, *, at: Mapping[str, Any] | None = None) -> Estimate:
        """f(t) = h(t) S(t): failures per unit of time at a time, as a share of all rows at the start."""
        _check_time(time, least=0.0, above=True)
        return self._averaged(density_at(time), at, LOG, f"density at {time:g}")

    def hazard(self, time: float, *, at: Mapping[str, Any] | None = None) -> Estimate:
        """Meyers et al., Eq. 3: h(t) = f(t)/S(t), failures in each unit of time among those that are left.

        Over several rows f and S are means over the rows: those that fail early leave the others behind, so this is the
        rate of the whole, not the mean of the rows' rates. S(t) = exp(-integral of h up to t), the paper's Eq. 4.
        """
        _check_time(time, least=0.0, above=True)
        (f, f_slope, n), (s, s_slope, _) = (self._mean_of(law(time), at) for law in (density_at, survival_at))
        over = "" if n == 1 else f", of {n} rows together"
        what = f"hazard at {time:g}{over}"
        if not (f > 0 and s > 0):
            return self._estimate(0.0, 0.0, np.inf, f"{what}: beyond what numbers hold")
        slope = (f_slope - f / s * s_slope) / s
        low, high = interval(f / s, self._error(slope), self.interval_quantile, LOG)
        return self._estimate(f / s, low, high, what)

    @cached_property
    def cure_p_value(self) -> float:
        """p-value of "all rows eventually fail", as the law assumes; small if a share never does."""
        return cure_p_value(self._model, self._theta, self._clusters)

    def quantile(self, share: float, *, at: Mapping[str, Any] | None = None) -> Estimate:
        """The time by which this share has failed: over several rows, the mean of each row's time.

        Where it lies beyond the longest duration in the rows, the method says so. Refused where some rows never fail
        (`cure_p_value`): the law then stretches the times of all rows to make room for those.
        """
        if not isinstance(share, int | float | np.number) or not 0 < share < 1:
            raise RiskError(f"a quantile needs a share between 0 and 1, found {share}")
        if self.cure_p_value < CURE_ALPHA:
            raise RiskError(
                f"more rows survive than a {self.family} law allows, under which all eventually fail (p = "
                f"{self.cure_p_value:.2g}), so its quantiles are not valid; use "
                "kaplan_meier(durations, event).median() on the rows in question"
            )
        found = self._averaged(time_at(1 - share), at, LOG, f"time by which a share of {share:g} has failed")
        return replace(found, method=f"{found.method}{self._beyond(found.value, None)}")

    def median(self, *, at: Mapping[str, Any] | None = None) -> Estimate:
        """The time by which half have failed: over several rows, the mean of each row's time."""
        return self.quantile(0.5, at=at)

    def mean(
        self, *, at: Mapping[str, Any] | None = None, until: float | None = None, seen: float | None = None
    ) -> Estimate:
        """The mean time E[min(T, until)]; without `until`, E[T] of the law that was fitted, which is extrapolated.

        The method says so; also where `until` lies beyond `seen`, by default the longest duration in the rows (say, for
        how long the rows were watched that `at` is about), and where there is no mean: a log-logistic law with b <= 1.
        """
        if until is not None:
            _check_time(until, least=0.0, above=True)
            what = f"mean time up to {until:g}{self._beyond(until, seen)}"
            return self._averaged(mean_until(until), at, below(until), what)
        least = self.mean(at=at, until=self.longest)  # E[T] is no less than that
        if self._without_mean(at, 0.0):
            why = "infinite, as a log-logistic law with b <= 1 has no mean; low is that of the restricted mean"
            return self._estimate(np.inf, least.low, np.inf, f"mean time, extrapolated: {why} up to {self.longest:g}")
        found = self._averaged(mean_time, at, LOG, f"mean time, {EXTRAPOLATED} {self.longest:g}")
        low = max(found.low, min(least.low, found.value))
        if self._without_mean(at, self.interval_quantile):
            why = "; high is infinite, as b <= 1, without a mean, is not excluded"
            return self._estimate(found.value, low, np.inf, found.method + why, ready=True)
        return self._estimate(found.value, low, found.high, found.method, ready=True)

    def curve(self, times: Sequence[float] | Floats, *, at: Mapping[str, Any] | None = None) -> Curve:
        """Survival at many times, with a pointwise band."""
        found = [self.survival(float(time), at=at) for time in times]
        values, low, high = (np.array([getattr(one, name) for one in found]) for name in ("value", "low", "high"))
        return Curve(np.asarray(times, dtype=np.float64), values, low, high, self.level)

    def partial_effects(
        self,
        covariate: str,
        values: Sequence[float | str],
        times: Sequence[float] | Floats,
        *,
        at: Mapping[str, Any] | None = None,
    ) -> PartialEffects:
        """Survival curves with one value of a covariate for all rows, and other covariates unchanged or as in `at`."""
        curves = tuple(self.curve(times, at={**(at or {}), covariate: value}) for value in values)
        return PartialEffects(covariate, tuple(values), curves)

    def acceleration_factors(self) -> tuple[AccelerationFactor, ...]:
        """exp(beta) of each covariate: the factor on survival times of its whole range, or of one useful unit."""
        changing = {one.name for one in self.shape_coding.covariates}
        where = "where 63 % have failed" if self.family == "weibull" else "at the median"
        return tuple(
            AccelerationFactor(
                one.name,
                _exponential(one.scaled.estimate),
                _exponential(one.per_unit.estimate),
                one.unit,
                one.unit_text,
                where if one.covariate in changing else "at every quantile",
            )
            for one in self.coefficients
            if one.part == "scale" and one.covariate is not None
        )

    def contrast(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> Estimate:
        """Difference of log times between two settings, with all other covariates equal."""
        if changing := sorted({one.name for one in self.shape_coding.covariates} & (first.keys() | second.keys())):
            raise RiskError(f"no one factor tells two laws of different shape apart; {changing[0]} moves the shape")
        (x, _), (y, _) = self._rows_at(first), self._rows_at(second)
        slope = x.mean(axis=0) - y.mean(axis=0)
        k = len(slope)
        value = float(slope @ self._theta[:k])
        half = self.interval_quantile * math.sqrt(max(float(slope @ self._covariance[:k, :k] @ slope), 0.0))
        return self._estimate(value, value - half, value + half, "difference of log times")

    def outside(self, at: Mapping[str, Any]) -> tuple[str, ...]:
        """Covariates whose value lies outside the range of the rows, so that predictions are extrapolated."""
        self._check_at(at)
        known = {one.name: one for one in (*self.scale_coding.covariates, *self.shape_coding.covariates)}
        for name, value in at.items():
            known[name].coded_value(value)  # refuses what is no number, or no level
        return tuple(
            name
            for name, value in at.items()
            if isinstance(one := known[name], NumberCovariate) and not one.low <= float(value) <= one.high
        )

    def row_log_likelihoods(self, frame: Frame) -> Floats:
        """The log-likelihood of each row of a frame, such as ones that were held out, in its order."""
        names = self.outcome
        columns = read_columns(frame, [*names.columns, *self.covariates])
        duration, event = checked_duration(columns, names.duration), checked_event(columns, names.event)
        lower = checked_lower(columns, names.lower, duration, event) if names.lower else None
        rows, order = sorted_rows(duration, event, lower)
        eta, u = self.predictors(columns)
        values = np.empty(len(order))
        values[order] = row_terms(self._model.family, rows, eta[order], u[order]).value
        return values

    def predictors(self, columns: Columns) -> tuple[Floats, Floats]:
        """eta = x beta and u = log sigma for each row of these columns."""
        x, v = self.scale_coding.matrix(columns), self.shape_coding.matrix(columns)
        return predictors(self._model.family, self._theta, x, v)

    @property
    def covariates(self) -> tuple[str, ...]:
        """The columns that a frame must have beside the outcome."""
        return tuple(one.name for one in (*self.scale_coding.covariates, *self.shape_coding.covariates))

    def _beyond(self, time: float, seen: float | None) -> str:
        """A note if a time exceeds the longest duration, else empty."""
        end = self.longest if seen is None else seen
        return f", {EXTRAPOLATED} {end:g}" if time > end * (1 + 1e-12) else ""

    def _check_at(self, at: Mapping[str, Any]) -> None:
        for name in at:
            if name not in self.covariates:
                raise RiskError(f"the fit has no covariate {name!r}; {did_you_mean(name, self.covariates)}")

    def _rows_at(self, at: Mapping[str, Any] | None) -> tuple[Floats, Floats]:
        """The design of all rows with these values; of one row, if that says everything."""
        given = at or {}
        self._check_at(given)
        x, v = self._model.x, self._model.v
        if set(self.covariates) <= set(given):
            x, v = x[:1], v[:1]
        return self.scale_coding.replaced(x, given), self.shape_coding.replaced(v, given)

    def _averaged(self, law: Law, at: Mapping[str, Any] | None, scale: Transform, what: str) -> Estimate:
        value, slope, n = self._mean_of(law, at)
        over = "" if n == 1 else f", mean over {n} rows"
        if not np.isfinite(value) or not 0 < value < (1 if scale is LOG_LOG else np.inf):
            return self._estimate(
                value, 0.0, 1.0 if scale is LOG_LOG else np.inf, f"{what}{over}: beyond what numbers hold"
            )
        low, high = interval(value, self._error(slope), self.interval_quantile, scale)
        return self._estimate(value, low, high, f"{what}{over}")

    def _mean_of(self, law: Law, at: Mapping[str, Any] | None) -> tuple[float, Floats, int]:
        """The mean of a prediction over the rows, its slopes in the coefficients, and the number of rows."""
        x, v = self._rows_at(at)
        family = self._model.family
        found: Predicted = law(family, *predictors(family, self._theta, x, v))
        slope = np.concatenate([found.eta @ x, family.shape_sign * (found.u @ v)]) / len(x)
        return float(found.value.mean()), slope, len(x)

    def _error(self, slope: Floats) -> float:
        """Delta-method standard error from slopes in the coefficients."""
        return math.sqrt(max(float(slope @ self._covariance @ slope), 0.0))

    def _without_mean(self, at: Mapping[str, Any] | None, quantiles: float) -> bool:
        """Whether some row's sigma, so many standard errors up, is 1 or more in a log-logistic law."""
        if self.family != "loglogistic":
            return False
        x, v = self._rows_at(at)
        _, u = predictors(self._model.family, self._theta, x, v)
        own = self._covariance[x.shape[1] :, x.shape[1] :]
        return bool((u + quantiles * np.sqrt(np.einsum("ij,jk,ik->i", v, own, v)) >= 0).any())

    def _estimate(self, value: float, low: float, high: float, what: str, *, ready: bool = False) -> Estimate:
        method = what if ready else f"{self.family} AFT, {what}; {self._errors}"
        return Estimate(value, low, high, self.level, self.n, method)

    @property
    def _errors(self) -> str:
        return "delta method" if self.n_clusters is None else f"delta method, errors by {self.n_clusters} clusters"


def is_extrapolated(estimate: Estimate | None) -> bool:
    """Whether a time, or a prediction from it, lies beyond the observed durations."""
    return estimate is not None and EXTRAPOLATED in estimate.method


def _exponential(estimate: Estimate) -> Estimate:
    with np.errstate(over="ignore"):
        value, low, high = np.exp([estimate.value, estimate.low, estimate.high]).tolist()
    return Estimate(value, low, high, estimate.level, estimate.n, estimate.method)


def _check_time(time: float, *, least: float, above: bool = False) -> None:
    if not isinstance(time, int | float | np.number):
        raise RiskError(f"a time must be a number, found {time!r}")
    if not np.isfinite(time) or time < least or (above and time == least):
        raise RiskError(f"a time must be a finite number {'above' if above else 'of at least'} {least:g}, found {time}")
