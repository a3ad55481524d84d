"""Choice of the family by held-out likelihood, and a comparison of all families."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.core.plain import InJson
from advrisk.core.sections import Unanswered
from advrisk.risk.survival.checks import checked_event
from advrisk.risk.survival.families import FAMILIES, family_named
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.fitting import fit_survival
from advrisk.risk.survival.frames import Columns, Floats, Frame, read_columns

_RARE = 10  # clusters with an event at a level; more are unlikely to fall into one fold


@dataclass(frozen=True)
class FamilyChoice:
    """The family with the greatest likelihood on held-out rows, and its margin."""

    family: str
    runner_up: str
    log_likelihoods: Mapping[str, float]  # of all rows, each by a fit without it
    margin: Estimate  # of the chosen family over the runner-up, summed over all rows
    standard_error: float
    n_clusters: int
    folds: int

    @property
    def decided(self) -> bool:
        """Whether the margin's interval lies above 0."""
        return self.margin.low > 0


def choose_family(
    frame: Frame,
    *,
    duration: str,
    event: str,
    covariates: Sequence[str],
    families: Sequence[str] = FAMILIES,
    shape_covariates: Sequence[str] = (),
    lower: str | None = None,
    cluster: str | None = None,
    reference: Mapping[str, str] | None = None,
    forbidden: Collection[str] = (),
    folds: int = 5,
    level: float = 0.95,
    rng: np.random.Generator,
) -> FamilyChoice:
    """Cross-validation that holds out whole clusters (say, samples): rows of one are alike, and would give it away.

    Clusters with an event are dealt out first, so that every fold has its share of them, and one after the other where
    they share a rare level of a covariate, so that two of them are never held out together. The margin's standard
    error is that of a sum over clusters.
    """
    for name in families:
        family_named(name)
    if len(set(families)) < 2:
        raise RiskError(f"a choice needs two families or more, found {', '.join(families) or 'none'}")
    named = [duration, event, *([lower] if lower else []), *([cluster] if cluster else [])]
    columns = read_columns(frame, [*named, *covariates, *shape_covariates])
    clusters = _clusters(columns, cluster)
    events = checked_event(columns, event)
    texts = [columns[name] for name in (*covariates, *shape_covariates) if columns[name].dtype.kind not in "biuf"]
    fold = _folds(clusters, events, folds, rng, _rarest(clusters, events, texts))
    found: dict[str, Floats] = {name: np.zeros(len(clusters)) for name in families}
    for held in range(folds):
        train = {name: values[fold != held] for name, values in columns.items()}
        test = {name: values[fold == held] for name, values in columns.items()}
        for name in families:
            try:
                fit = fit_survival(
                    train,
                    duration=duration,
                    event=event,
                    covariates=covariates,
                    family=name,
                    shape_covariates=shape_covariates,
                    lower=lower,
                    reference=reference,
                    forbidden=forbidden,
                )
                found[name][fold == held] = fit.row_log_likelihoods(test)
            except RiskError as error:
                raise RiskError(f"without fold {held + 1} of {folds}, {name}: {error}") from None
    return _choice(found, clusters, folds, level)


def _choice(found: Mapping[str, Floats], clusters: NDArray[np.intp], folds: int, level: float) -> FamilyChoice:
    from scipy.special import stdtrit

    totals = {name: float(values.sum()) for name, values in found.items()}
    first, second = sorted(totals, key=lambda name: -totals[name])[:2]
    ahead = np.bincount(clusters, weights=found[first] - found[second])
    n, value = len(ahead), float(ahead.sum())
    error = float(np.sqrt(n) * ahead.std(ddof=1))
    half = float(stdtrit(n - 1, (1 + level) / 2)) * error
    method = f"held-out log-likelihood, {folds} folds of {counted(n, 'cluster')}"
    margin = Estimate(value, value - half, value + half, level, n, method)
    return FamilyChoice(first, second, totals, margin, error, n, folds)


def _clusters(columns: Columns, cluster: str | None) -> NDArray[np.intp]:
    """Cluster indices that do not depend on the order of rows; without clusters, each row is one."""
    if cluster is not None:
        return np.unique(columns[cluster], return_inverse=True)[1]
    order = np.lexsort([np.unique(values, return_inverse=True)[1] for values in columns.values()])
    numbers = np.empty(len(order), dtype=np.intp)
    numbers[order] = np.arange(len(order))
    return numbers


def _rarest(clusters: NDArray[np.intp], event: Floats, texts: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """For each cluster, the index of the rarest level at which it has an event; 0 if none is rare."""
    n = int(clusters.max()) + 1
    rarest, fewest, number = np.zeros(n, dtype=np.intp), np.full(n, _RARE + 1), 0
    for values in texts:
        for level in np.unique(values):
            own = np.bincount(clusters, weights=event * (values == level), minlength=n) > 0
            number += 1
            rarer = own & (own.sum() < fewest)
            rarest[rarer], fewest[rarer] = number, own.sum()
    return rarest


def _folds(
    clusters: NDArray[np.intp], event: Floats, folds: int, rng: np.random.Generator, rarest: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The fold of each row."""
    with_event = np.bincount(clusters, weights=event) > 0
    if not 2 <= folds <= with_event.sum():
        raise RiskError(
            f"{counted(int(with_event.sum()), 'cluster')} with an event cannot be cut into {folds} folds; "
            "choose between 2 and as many as there are"
        )
    broken, held = rng.permutation(np.flatnonzero(with_event)), rng.permutation(np.flatnonzero(~with_event))
    dealt = np.concatenate([broken[np.argsort(rarest[broken], kind="stable")], held])
    fold = np.empty(len(dealt), dtype=np.intp)
    fold[dealt] = np.arange(len(dealt)) % folds
    return fold[clusters]


@dataclass(frozen=True)
class FamilyRow:
    """One family: its goodness of fit and its mean over all rows."""

    family: str
    chosen: bool
    log_likelihood: float
    aic: float
    bic: float
    concordance: float
    held_out: float | None  # log-likelihood of held-out samples
    behind: float | None  # difference to the best family
    mean: Estimate  # up to the limit
    endless_mean: Estimate
    fit: SurvivalFit = field(repr=False, compare=False)

    in_json: ClassVar[InJson] = {"fit": None, "fit.coefficients": "coefficients"}


def families_table(
    frame: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    chosen: str | None,
    until: float,
    rng: np.random.Generator,
) -> tuple[tuple[FamilyRow, ...], FamilyChoice | Unanswered]:
    """Every family that can be fitted; `chosen`, or the one of the greatest likelihood on samples held out.

    `frame` has a column `sample`: whole samples are held out, however few there are. Where that cannot be done AIC
    decides, and the second says why.
    """
    fits: dict[str, SurvivalFit] = {}
    refused: dict[str, RiskError] = {}
    for name in FAMILIES:
        try:
            fits[name] = fit_survival(frame, family=name, **options)
        except RiskError as error:
            refused[name] = error
    if not fits or chosen in refused:
        raise refused[chosen or FAMILIES[0]]
    choice: FamilyChoice | Unanswered
    try:
        how = {name: value for name, value in options.items() if name != "units"} | {"cluster": "sample"}
        choice = choose_family(frame, families=tuple(fits), rng=rng, **how)
    except RiskError as error:
        choice = Unanswered(str(error))
    by_aic = min(fits, key=lambda name: fits[name].aic)
    best = chosen or (by_aic if isinstance(choice, Unanswered) else choice.family)
    held_out = {} if isinstance(choice, Unanswered) else choice.log_likelihoods
    return tuple(_row(fits[name], name == best, held_out, until) for name in fits), choice


def _row(fit: SurvivalFit, chosen: bool, held_out: Mapping[str, float], until: float) -> FamilyRow:
    own = held_out.get(fit.family)
    return FamilyRow(
        family=fit.family,
        chosen=chosen,
        log_likelihood=fit.log_likelihood,
        aic=fit.aic,
        bic=fit.bic,
        concordance=fit.concordance,
        held_out=own,
        behind=None if own is None else max(held_out.values()) - own,
        mean=fit.mean(until=until),
        endless_mean=fit.mean(),
        fit=fit,
    )
