"""Fitting: from a frame to a `SurvivalFit`, by Newton's method on plain arrays."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.survival import checks
from advrisk.risk.survival.coding import Coding, Covariate, TextCovariate, coding_of
from advrisk.risk.survival.families import Family, family_named
from advrisk.risk.survival.fit import Outcome, SurvivalFit
from advrisk.risk.survival.frames import Columns, Floats, Frame, read_columns
from advrisk.risk.survival.likelihood import LawLikelihood, sorted_rows
from advrisk.risk.survival.newton import Maximum, maximise
from advrisk.risk.survival.records import Coefficient, LawPart, effect

_HUGE_ERROR = 100.0  # of a coefficient over its covariate's whole range: exp(100) times as long
_HUGE_SPREAD = 1000.0


def fit_survival(
    frame: Frame,
    *,
    duration: str,
    event: str,
    covariates: Sequence[str],
    family: str,
    shape_covariates: Sequence[str] = (),
    lower: str | None = None,
    cluster: str | None = None,
    reference: Mapping[str, str] | None = None,
    units: Mapping[str, float | str] | None = None,
    forbidden: Collection[str] = (),
    level: float = 0.95,
) -> SurvivalFit:
    """Meyers et al.: log T = x beta + sigma W by maximum likelihood; a positive coefficient means longer survival.

    `family` is weibull, lognormal or loglogistic. `event` is 1 where the event was seen and 0 where the row is censored
    at `duration`. With `lower`, an event lies in (lower, duration]: a pass count k stands for (k - 1, k]. `covariates`
    move the scale, `shape_covariates` the shape; text is coded by level against its `reference`, by default the first
    by sort order. `units` says for how much of a number an effect is reported beside that of its whole range: by
    default for 1 of small whole numbers, else for one standard deviation. With `cluster`, standard errors allow for
    rows of one cluster (say, sample) to be alike. `forbidden` names covariates that are known to
    be computed from the outcome.
    """
    law, outcome = family_named(family), Outcome(duration, event, lower, cluster)
    checks.check_level(level)
    covariates, shape_covariates = checks.as_names(covariates), checks.as_names(shape_covariates)
    checks.check_reference(reference or {}, [*covariates, *shape_covariates])
    checks.check_units(units or {}, [*covariates, *shape_covariates])
    for given in (covariates, shape_covariates):
        checks.check_names(list(given), outcome.columns[: 3 if lower else 2], forbidden)
    columns = read_columns(frame, [*outcome.columns, *covariates, *shape_covariates])
    how = (reference or {}, units or {})
    model, codings, columns = _prepared(columns, outcome, law, (covariates, shape_covariates), how)
    found = maximise(model.at, starting_point(model), longest=model.longest_step)
    refuse_divergence(model, found, codings[0])
    return described(model, found, outcome, codings, level, _clusters(columns, cluster), columns[duration].max())


def _prepared(
    columns: Columns,
    outcome: Outcome,
    law: Family,
    names: tuple[Sequence[str], Sequence[str]],
    how: tuple[Mapping[str, str], Mapping[str, float | str]],
) -> tuple[LawLikelihood, tuple[Coding, Coding], Columns]:
    """The checked model, its codings, and the columns in the order of the model's rows: by kind, then by time."""
    times, events = checks.checked_duration(columns, outcome.duration), checks.checked_event(columns, outcome.event)
    if outcome.lower:
        checks.checked_lower(columns, outcome.lower, times, events)
    scale, shape = (coding_of(columns, given, *how) for given in names)
    checks.check_outcome(outcome.duration, times, events, len(scale.columns) + len(shape.columns))
    by_time = np.argsort(times, kind="stable")
    checks.check_copies(columns, list(dict.fromkeys([*names[0], *names[1]])), times, events, by_time)
    rows, order = sorted_rows(times, events, columns[outcome.lower] if outcome.lower else None, by_time)
    columns = {name: values[order] for name, values in columns.items()}
    model = LawLikelihood(law, rows, scale.matrix(columns), shape.matrix(columns))
    checks.check_collinear(model.x, scale)
    checks.check_collinear(model.v, shape)
    checks.check_separated(model, scale, columns)
    return model, (scale, shape), columns


def starting_point(model: LawLikelihood) -> Floats:
    """Least squares of the log durations, censored or not."""
    start = np.zeros(model.n_scale + model.v.shape[1])
    log_t = model.rows.log_t
    gram = model.x.T @ model.x
    beta = np.linalg.solve(gram, model.x.T @ log_t)
    spread = max(float(np.std(log_t - model.x @ beta)), 1e-3)
    u = np.log(spread) - model.family.log_std
    start[: model.n_scale] = beta
    start[0] -= np.exp(u) * model.family.centre
    start[model.n_scale] = model.family.shape_sign * u
    return start


def _clusters(columns: Columns, cluster: str | None) -> NDArray[np.intp] | None:
    return None if cluster is None else checks.clusters_of(columns, cluster)


def covariance(model: LawLikelihood, found: Maximum, clusters: NDArray[np.intp] | None) -> Floats:
    """The inverse of the observed information; by cluster, with the spread of the clusters' scores between two of them.

    The factor G/(G - 1) allows for the scores adding up to 0.
    """
    inverse = np.linalg.inv(-found.likelihood.hessian)
    if clusters is None:
        return np.asarray((inverse + inverse.T) / 2)
    scores = model.scores(found.at)
    n = int(clusters.max()) + 1
    sums = np.stack([np.bincount(clusters, weights=column, minlength=n) for column in scores.T], axis=1)
    return np.asarray(inverse @ (sums.T @ sums) @ inverse * n / (n - 1))


def described(
    model: LawLikelihood,
    found: Maximum,
    outcome: Outcome,
    codings: tuple[Coding, Coding],
    level: float,
    clusters: NDArray[np.intp] | None,
    longest: float,
) -> SurvivalFit:
    """The record of a fit."""
    from scipy.special import ndtri, stdtrit

    n_clusters = None if clusters is None else int(clusters.max()) + 1
    degrees = np.inf if n_clusters is None else n_clusters - 1.0
    quantile = float(ndtri((1 + level) / 2) if n_clusters is None else stdtrit(degrees, (1 + level) / 2))
    spread = covariance(model, found, clusters)
    rows = model.rows
    return SurvivalFit(
        family=model.family.name,
        outcome=outcome,
        n=len(rows.log_t),
        n_events=len(rows.log_t) - rows.n_censored,
        n_clusters=n_clusters,
        level=level,
        log_likelihood=found.likelihood.value,
        iterations=found.iterations,
        coefficients=_coefficients(model, found.at, spread, codings, (level, quantile, degrees)),
        longest=float(longest),
        scale_coding=codings[0],
        shape_coding=codings[1],
        _model=model,
        _theta=found.at,
        _covariance=spread,
        _clusters=clusters,
        interval_quantile=quantile,
    )


def _coefficients(
    model: LawLikelihood,
    theta: Floats,
    spread: Floats,
    codings: tuple[Coding, Coding],
    certainty: tuple[float, float, float],
) -> tuple[Coefficient, ...]:
    """Both parts, in coded and in natural units."""
    level, quantile, degrees = certainty
    n, k = len(model.rows.log_t), model.n_scale
    method = f"{model.family.name} AFT, {'maximum likelihood' if np.isinf(degrees) else 'errors by cluster'}"
    entries = []
    parts: tuple[tuple[LawPart, slice, Coding], ...] = (
        ("scale", slice(0, k), codings[0]),
        ("shape", slice(k, len(theta)), codings[1]),
    )
    for part, place, coding in parts:
        change = coding.natural()
        pair = ((theta[place], spread[place, place]), (change @ theta[place], change @ spread[place, place] @ change.T))
        scaled, natural = (
            [
                effect(float(v), float(e), quantile=quantile, degrees=degrees, level=level, n=n, method=method)
                for v, e in zip(values, np.sqrt(np.maximum(np.diag(variance), 0.0)), strict=True)  # rounding below 0
            ]
            for values, variance in pair
        )
        owners = [(None, None, 1.0, "1"), *(_owner(one) for one in coding.covariates for _ in one.columns)]
        entries += [
            Coefficient(name, part, *owner, s, u)
            for name, owner, s, u in zip(coding.columns, owners, scaled, natural, strict=True)
        ]
    return tuple(entries)


def _owner(covariate: Covariate) -> tuple[str, str | None, float, str]:
    """The covariate of a coefficient: its name, its reference, and the unit of its effect."""
    if isinstance(covariate, TextCovariate):
        return covariate.name, covariate.reference, 1.0, "1"
    return covariate.name, None, covariate.unit, covariate.unit_text


def refuse_divergence(model: LawLikelihood, found: Maximum, coding: Coding) -> None:
    """Raise an error that names the direction along which the likelihood is unbounded, if any."""
    if not _suspicious(found):
        return
    way = growing_direction(model)
    if way is not None and way[-1] > 1e-6:
        raise RiskError(
            "the covariates predict every duration exactly, so there is no spread to fit; leave out covariates, or "
            "gather more rows"
        )
    if way is not None:
        owner = ["", *(one.name for one in coding.covariates for _ in one.columns)]
        named = dict.fromkeys(owner[i] for i in range(1, len(owner)) if abs(way[i]) > 1e-6)
        raise RiskError(
            f"{' and '.join(map(repr, named))} together separate rows without an event from those with one, so the "
            "effects have no finite estimate; leave one out, or leave out the separated rows"
        )
    _, u = model.predictors(found.at)
    if np.exp(u).max() > _HUGE_SPREAD:
        raise RiskError(
            f"the spread of the log durations diverges in the {model.family.name} fit (sigma = {np.exp(u).max():.3g}): "
            "events come at once or not at all; compare shares that fail instead of times"
        )
    if not found.converged:
        raise RiskError(
            f"the {model.family.name} fit did not converge in {found.iterations} steps; leave out covariates of the "
            "scale or of the shape"
        )


def growing_direction(model: LawLikelihood) -> Floats | None:
    """A direction of (beta/sigma, 1/sigma) along which the likelihood is unbounded; None if there is none.

    This holds for a constant shape.
    """
    from scipy.optimize import linprog

    rows = model.rows
    moves = np.hstack([-model.x, rows.log_t[:, None]])  # of z
    late = moves[rows.intervals]
    low = np.hstack([-model.x[rows.intervals], rows.log_lower[:, None]])[np.isfinite(rows.log_lower)]
    falling = np.vstack([moves[rows.censored], low, -late])  # each at most 0
    fixed = moves[rows.exact]
    bounds = [(-1, 1)] * model.n_scale + [(0, 1)]
    goal = falling.sum(axis=0) - np.eye(model.n_scale + 1)[-1]
    found = linprog(
        goal,
        A_ub=falling if len(falling) else None,
        b_ub=np.zeros(len(falling)) if len(falling) else None,
        A_eq=fixed if len(fixed) else None,
        b_eq=np.zeros(len(fixed)) if len(fixed) else None,
        bounds=bounds,
    )
    return np.asarray(found.x) if found.status == 0 and found.fun < -1e-6 else None


def _suspicious(found: Maximum) -> bool:
    if not found.converged:
        return True
    try:
        spread = np.diag(np.linalg.inv(-found.likelihood.hessian))
    except np.linalg.LinAlgError:
        return True
    return bool((spread < 0).any() or spread.max() > _HUGE_ERROR**2)
