"""Observed against predicted: of rows that a fit gives some probability to fail by a time, how many do?

Austin, Harrell and van Klaveren (2020): the integrated calibration index, ICI, is the mean difference between predicted
and smoothed observed probabilities; E50 and E90 are its median and 90th percentile.

The smoothing is that of Crowson, Atkinson and Therneau (2016). Up to the time, a row should see as many events as the
cumulative hazard H that the fit gives it, so the events are Poisson around H exp(g), where g is a curve in log H(time):
a natural cubic spline. A fit that is right has g = 0, wherever rows are censored. Then the observed probability is
1 - exp(-H(time) exp(g)).

A right law shows an ICI above 0, too: g is bent by chance, from the rows here and from those that H was fitted to. So
an interval of ICI around what was found would not hold 0, and none is given; beside it stands what chance alone makes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import counted
from advrisk.risk.survival.checks import FEWEST_CLUSTERS, checked_duration, checked_event, checked_lower
from advrisk.risk.survival.families import family_named
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.fitting import fit_survival
from advrisk.risk.survival.frames import Floats, Frame, read_columns
from advrisk.risk.survival.likelihood import Likelihood
from advrisk.risk.survival.newton import maximise

_KNOTS = (0.05, 0.35, 0.65, 0.95)  # Harrell's, as quantiles
_FEWEST = 10  # events by the time at least
_FOR_A_CURVE = 40
_POINTS = 100
_DRAWS = 2000  # of calibration curves under the null hypothesis
_STEP = 1e-5  # in a coefficient of the fit
SHARES = (0.25, 0.5, 0.75)  # quantiles of the event times at which a law is calibrated


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibration curve and its distance from the diagonal."""

    at_time: float
    predicted: Floats  # probability to fail by then, rising
    observed: Floats
    low: Floats | None  # pointwise; None where nothing is known of the errors
    high: Floats | None
    ici: float
    e50: float
    e90: float
    by_chance: float | None  # quantile of the ICI under a correct law, at `level`
    level: float
    n_events: int  # by then

    def without_errors(self) -> "Calibration":
        """The same without the values that need the dependence between rows."""
        return replace(self, low=None, high=None, by_chance=None)


def calibration(fit: SurvivalFit, frame: Frame, at_time: float) -> Calibration:
    """How well a fit's probabilities to fail by a time hold in these rows, which it must not have seen.

    Errors are those of these rows (or clusters), by their own contributions, and of the fit's coefficients.
    """
    rows = _counted(fit, frame, at_time)
    basis = _basis(np.log(rows.hazard), int(rows.seen.sum()))
    bend, spread = _poisson(basis, rows, _slopes(fit, frame, at_time), fit)
    predicted, raised = -np.expm1(-rows.hazard), rows.hazard * np.exp(basis @ bend)
    observed = -np.expm1(-raised)
    slopes = (raised * np.exp(-raised))[:, None] * basis
    errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, spread, slopes), 0.0))
    far = np.abs(observed - predicted)
    shown = _shown(predicted)
    half = float(_t_quantile(_degrees(fit, rows), fit.level)) * errors[shown]
    return Calibration(
        at_time=at_time,
        predicted=predicted[shown],
        observed=observed[shown],
        low=np.maximum(observed[shown] - half, 0),
        high=np.minimum(observed[shown] + half, 1),
        ici=float(far.mean()),
        e50=float(np.quantile(far, 0.5)),
        e90=float(np.quantile(far, 0.9)),
        by_chance=_by_chance(rows.hazard, basis, spread, _degrees(fit, rows), fit.level),
        level=fit.level,
        n_events=int(rows.seen.sum()),
    )


class _Counted(NamedTuple):
    """Rows up to the time."""

    seen: Floats  # 1 if the event came by then
    expected: Floats  # predicted events while the row was observed
    hazard: Floats  # the same over the whole time
    clusters: NDArray[np.intp]


def _counted(fit: SurvivalFit, frame: Frame, at_time: float) -> _Counted:
    names = fit.outcome
    if not np.isfinite(at_time) or at_time <= 0:
        raise RiskError(f"a time to calibrate at must be a finite number above 0, found {at_time}")
    columns = read_columns(frame, [*names.columns, *fit.covariates])
    duration, event = checked_duration(columns, names.duration), checked_event(columns, names.event)
    lower = checked_lower(columns, names.lower, duration, event) if names.lower else duration
    eta, u = fit.predictors(columns)
    seen = (event > 0) & (duration <= at_time)
    if seen.sum() < _FEWEST or at_time > duration.max():
        raise RiskError(
            f"calibration at {at_time:g} needs {_FEWEST} events by then, and rows that were watched for as long; found "
            f"{counted(int(seen.sum()), 'event')}, and {duration.max():g} as the longest duration; choose another time"
        )
    lower = np.where(event > 0, lower, duration)
    watched = np.where(seen, duration, np.minimum(lower, at_time))
    start, end = (_hazard(fit, times, eta, u) for times in (np.where(seen, lower, watched), watched))
    expected = start + 1 - 1 / _exprel(end - start)
    clusters = np.unique(columns[names.cluster], return_inverse=True)[1] if names.cluster else np.arange(len(event))
    return _Counted(seen.astype(np.float64), expected, _hazard(fit, np.full_like(eta, at_time), eta, u), clusters)


def _hazard(fit: SurvivalFit, times: Floats, eta: Floats, u: Floats) -> Floats:
    """The cumulative hazard -log S; 0 at time 0."""
    with np.errstate(divide="ignore"):
        z = np.maximum((np.log(times) - eta) * np.exp(-u), -1e3)
    return np.asarray(-family_named(fit.family).log_survival(z).value)


def _exprel(width: Floats) -> Floats:
    """(exp(w) - 1)/w; 1 - 1/that is the mean of an exponential variable truncated at w."""
    from scipy.special import exprel

    return np.asarray(exprel(np.minimum(width, 700.0)))


def _basis(x: Floats, n_events: int) -> Floats:
    """1, x, and a natural cubic spline (Harrell's form) if there are events and values enough for one."""
    columns = [np.ones_like(x)]
    low, high = float(x.min()), float(x.max())
    if high - low > 1e-9:
        columns.append((x - low) / (high - low))
        knots = np.unique(np.quantile(columns[1], _KNOTS))
        if n_events >= _FOR_A_CURVE and knots.size == len(_KNOTS) and np.diff(knots).min() > 1e-6:
            columns += _spline(columns[1], knots)
    return np.stack(columns, axis=1)


def _spline(x: Floats, knots: Floats) -> list[Floats]:
    last, before = knots[-1], knots[-2]

    def cube(knot: float) -> Floats:
        return np.asarray(np.maximum(x - knot, 0.0) ** 3)

    return [
        (cube(knot) - cube(before) * (last - knot) / (last - before) + cube(last) * (before - knot) / (last - before))
        / (last - knots[0]) ** 2
        for knot in knots[:-2]
    ]


def _poisson(basis: Floats, rows: _Counted, slopes: Floats, fit: SurvivalFit) -> tuple[Floats, Floats]:
    """Coefficients of g by Newton's method, and their covariance: by cluster (the sandwich), and by the fit's own."""
    at = np.zeros(basis.shape[1])

    def likelihood(at: Floats) -> Likelihood:
        rate = rows.expected * np.exp(basis @ at)
        value = float(rows.seen @ (basis @ at) - rate.sum())
        return Likelihood(value, basis.T @ (rows.seen - rate), -(basis * rate[:, None]).T @ basis)

    found = maximise(likelihood, at)
    if not found.converged:
        raise RiskError("the calibration curve did not converge: too few events at some predicted probabilities")
    factor = np.exp(basis @ found.at)
    rest = (rows.seen - rows.expected * factor)[:, None] * basis
    sums = np.stack([np.bincount(rows.clusters, weights=column) for column in rest.T], axis=1)
    inverse = np.linalg.inv(-found.likelihood.hessian)
    moved = inverse @ (basis * factor[:, None]).T @ slopes  # by how much the fit's coefficients bend g
    n = len(sums)
    own = inverse @ (sums.T @ sums) @ inverse * n / (n - 1)
    return found.at, np.asarray(own + moved @ fit.coefficient_covariance @ moved.T)


def _slopes(fit: SurvivalFit, frame: Frame, at_time: float) -> Floats:
    """Slopes of the expected events in the fit's coefficients, (rows, coefficients)."""

    def expected(place: int, step: float) -> Floats:
        return _counted(fit.moved(place, step), frame, at_time).expected

    places = range(fit.n_coefficients)
    return np.stack([(expected(one, _STEP) - expected(one, -_STEP)) / (2 * _STEP) for one in places], axis=1)


def _degrees(fit: SurvivalFit, rows: _Counted) -> float:
    """Degrees of freedom: those of the smaller number of clusters; infinite for independent rows."""
    return np.inf if fit.n_clusters is None else float(min(fit.n_clusters, rows.clusters.max() + 1) - 1)


def _t_quantile(degrees: float, level: float) -> float:
    from scipy.special import ndtri, stdtrit

    return float(ndtri((1 + level) / 2) if np.isinf(degrees) else stdtrit(degrees, (1 + level) / 2))


def _by_chance(hazard: Floats, basis: Floats, spread: Floats, degrees: float, level: float) -> float:
    """Quantile of the ICI under the null hypothesis: curves g that are normal around 0, or t with those degrees."""
    rng = np.random.default_rng(0)  # a fixed seed makes the quantile deterministic
    some = np.argsort(hazard)[np.linspace(0, hazard.size - 1, min(hazard.size, _POINTS)).round().astype(np.intp)]
    values, vectors = np.linalg.eigh(spread)
    draws = rng.normal(size=(_DRAWS, values.size)) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    if not np.isinf(degrees):
        draws *= np.sqrt(degrees / rng.chisquare(degrees, size=(_DRAWS, 1)))
    with np.errstate(over="ignore"):
        bent = np.exp(-hazard[some] * np.exp(draws @ basis[some].T))
    return float(np.quantile(np.abs(bent - np.exp(-hazard[some])).mean(axis=1), level))


def _shown(predicted: Floats) -> NDArray[np.intp]:
    """Rows in the order of the prediction, one for each value, and no more than a curve needs."""
    first = np.unique(predicted, return_index=True)[1]
    return first[np.unique(np.linspace(0, first.size - 1, min(first.size, _POINTS)).round().astype(np.intp))]


def calibrated_on_half(
    frame: Mapping[str, Any], options: Mapping[str, Any], family: str, rng: np.random.Generator
) -> tuple[tuple[Calibration, ...], str]:
    """The calibrations at the quartiles of the times of events, the worst first; or none, and why.

    A law may be right about the middle and wrong about the rest, so that one time is not enough. What chance explains
    is that of all of them together: each at the level 1 - (1 - level)/3.

    `frame` has a column `sample`: whole samples are in one half or the other, however few there are. Errors allow for
    rows of a sample to be alike; where a half has too few samples for that, the calibration has none.
    """
    groups, event = np.asarray(frame["sample"]), np.asarray(frame["event"], dtype=np.bool_)
    names = np.unique(groups)
    first = np.isin(groups, rng.permutation(names)[: len(names) // 2])
    recurring = len(names) < len(groups)
    clustered = recurring and len(names) // 2 >= FEWEST_CLUSTERS
    how = {name: value for name, value in options.items() if name != "cluster"}
    how |= {"cluster": "sample"} if clustered else {}
    how |= {"level": 1 - (1 - how["level"]) / len(SHARES)}
    found, refused = [], ""
    try:
        half = fit_survival({name: column[first] for name, column in frame.items()}, family=family, **how)
    except RiskError as error:
        return (), str(error)
    for time in np.unique(np.quantile(frame["duration"][event], SHARES, method="inverted_cdf")):
        try:
            found.append(calibration(half, {name: column[~first] for name, column in frame.items()}, float(time)))
        except RiskError as error:
            refused = str(error)
    if not found:
        return (), refused
    checked = found if clustered or not recurring else [one.without_errors() for one in found]
    return tuple(sorted(checked, key=_badness, reverse=True)), ""


def _badness(one: Calibration) -> float:
    """Calibration error, relative to the null quantile if that is available."""
    return one.ici / one.by_chance if one.by_chance else one.ici
