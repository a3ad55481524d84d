"""Assess survival from a ledger: how long until each model breaks, why, and at what cost.

Times come from the rows (Kaplan and Meier); a fitted law gives the effects of covariates, and only if it holds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from advrisk.assess.damage.clean import clean_shares
from advrisk.assess.survival.covariates import default_covariates, with_covariates
from advrisk.assess.survival.law import AUTO, TOLERANCE, Fitted, Law, Sentences, fitted_law, why_not_quoted
from advrisk.assess.survival.models import ModelSurvival, model_survival, own_covariates
from advrisk.assess.survival.money import CostLimits, Hardware, sizes_that_count
from advrisk.assess.survival.reading import read_durations
from advrisk.assess.survival.rows import COLUMNS, choice_text, fit_dict, survival_rows
from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, did_you_mean
from advrisk.core.plain import plain
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.core.traits import Norm
from advrisk.ledger import Ledger
from advrisk.risk.survival.calibration import Calibration
from advrisk.risk.survival.checks import as_names, check_units
from advrisk.risk.survival.choice import FamilyChoice, FamilyRow
from advrisk.risk.survival.cost import BROKEN_FACTOR
from advrisk.risk.survival.durations import Durations, NoDurationsError, Tally, WorkMeasure, common_end, model_curve
from advrisk.risk.survival.families import family_named
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.frames import Floats
from advrisk.risk.survival.kaplan_meier import KaplanMeier
from advrisk.risk.survival.paired import clean_accuracies, failure_rates, training_costs
from advrisk.risk.survival.pareto import Criterion, Standing, pareto_set

_COMPARED = 50  # times at which a law is compared with a curve


@dataclass(frozen=True, eq=False)
class SurvivalAssessment(Tabular):
    """Durations of all models, the law that explains them, and what breaking costs."""

    durations: Durations
    models: tuple[ModelSurvival, ...]  # the longest mean first
    covariates: tuple[str, ...]
    fit: SurvivalFit | None
    unfitted: str  # why there is no fit
    doubt: str  # why no number of the law is quoted; empty if it holds
    families: tuple[FamilyRow, ...]
    choice: FamilyChoice | None
    calibrations: tuple[Calibration, ...]  # at several times, the worst first
    pareto: tuple[Standing, ...]
    criteria: tuple[Criterion, ...]
    until: float  # limit of all means: as requested, but at most the shortest attack time of the models
    asked_until: float | None
    eps_max: float | None
    broken_factor: float
    hardware: Hardware | None
    level: float
    notes: tuple[str, ...] = ()

    columns: ClassVar[Columns] = COLUMNS

    @property
    def unit(self) -> str:
        return self.durations.unit

    def of(self, model: str) -> ModelSurvival:
        """One model."""
        by_model = {one.model: one for one in self.models}
        if model not in by_model:
            raise RiskError(f"no model called {model!r} was assessed; {did_you_mean(model, by_model)}")
        return by_model[model]

    @property
    def calibrated(self) -> Calibration | None:
        """The calibration with the largest error of the law."""
        return self.calibrations[0] if self.calibrations else None

    @property
    def law(self) -> SurvivalFit | None:
        """The fitted law if it holds, else None."""
        return None if self.doubt else self.fit

    def difference(self, first: str, second: str) -> Estimate | None:
        """The difference of two models' means, paired by sample; None if one has no curve."""
        one, other = self.of(first).curve, self.of(second).curve
        return None if one is None or other is None else one.mean_difference(other, self.until)

    def outlasts(self, first: str, second: str) -> bool:
        """Whether one model survives longer than another: the interval of the difference of their means is above 0."""
        return (difference := self.difference(first, second)) is not None and difference.low > 0

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        fields = {
            "measure": self.durations.measure,
            "unit": self.unit,
            "level": self.level,
            "until": self.until,
            "asked_until": self.asked_until,
            "arms": sorted(self.durations.arms),
            "not_fitted": self.durations.left_out,
            "models": self.models,
            "differences": self._differences(),
            "covariates": self.covariates,
            "shape_covariates": [] if self.fit is None else [one.name for one in self.fit.shape_coding.covariates],
            "fit": None if self.fit is None else fit_dict(self.fit),
            "unfitted": self.unfitted or None,
            "law_holds": self.law is not None,
            "law_doubt": self.doubt or None,
            "families": self.families,
            "choice": None if self.choice is None else choice_text(self.choice),
            "calibrations": self.calibrations,
            "pareto": self.pareto,
            "broken_factor": self.broken_factor,
            "hardware": self.hardware,
            "notes": self.notes,
        }
        return dict(plain(fields))

    def _differences(self) -> list[dict[str, Any]]:
        """The difference of means of each model and the next, paired by sample."""
        pairs = pairwise([one.model for one in self.models if one.curve is not None])
        differences = [(first, second, self.difference(first, second)) for first, second in pairs]
        return [{"longer": a, "shorter": b, **one.as_dict()} for a, b, one in differences if one is not None]

    def rows(self) -> list[Row]:
        """Every number with its topic, model, name and unit."""
        return list(survival_rows(self))


def assess_survival(
    ledger: Ledger,
    *,
    measure: WorkMeasure = "forward",
    covariates: Sequence[str] | None = None,
    shape_covariates: Sequence[str] = (),
    reference: Mapping[str, str] | None = None,
    units: Mapping[str, float | str] | None = None,
    family: str = AUTO,
    tolerance: float = TOLERANCE,
    norm: Norm | None = None,
    usual_norm: Norm | None = None,
    models: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    level: float = 0.95,
    until: float | None = None,
    eps_max: float | None = None,
    broken_factor: float = BROKEN_FACTOR,
    hardware: Hardware | None = None,
    seed: int = 0,
) -> SurvivalAssessment:
    """Assess survival: curves and means of the rows for every model, and a law of covariates.

    Without `covariates`, those that vary are used; if they cannot be fitted, the result has curves only, with the
    reason. Sizes in several norms are not comparable, so only the arms of one norm are fitted: `norm`, or `usual_norm`
    if it has arms. `reference` names the level with which other levels of a covariate are compared; `units` is the
    change of a number for which an effect is reported. A law that is off by more than `tolerance` on held-out samples,
    and by more than chance explains, is not quoted.
    """
    limits = {"until": until, "eps_max": eps_max, "broken_factor": broken_factor, "tolerance": tolerance}
    _check_arguments(family, level, limits)
    notes = Sentences()
    durations = read_durations(ledger, measure=measure, models=models, arms=arms)
    whole = _one_norm(durations, norm, None if arms or covariates is not None else usual_norm, notes)
    if not len(whole.columns["duration"]):
        raise NoDurationsError(
            f"no attempt has a duration in {whole.unit}: {_without_durations(whole)}; `advrisk status` shows why"
        )
    names = default_covariates(whole) if covariates is None else as_names(covariates)
    shape = as_names(shape_covariates)
    every = [*names, *(name for name in shape if name not in names)]
    if covariates is not None:
        check_units(units or {}, every)
    durations, left_out = with_covariates(whole, every)
    for note in (*left_out, *_on_rows(durations)):
        notes.add(note)
    if eps_max is not None and "eps" in every and not sizes_that_count(whole, eps_max).any():
        raise RiskError(f"no arm that is fitted has an eps above 0 and up to eps_max = {eps_max:g}")
    curves = {model: curve for model in whole.models if (curve := model_curve(whole, model, level)) is not None}
    limit = _limit(curves, until, whole.unit, notes)
    explicit = covariates is not None or bool(reference)
    law = Law(tuple(shape), family, level, limit, seed, explicit, reference or {}, units or {}, tolerance)
    fitted = fitted_law(durations, names, law, notes)
    doubt = _doubt(durations, fitted, law)
    limits_of_cost = CostLimits(limit, level, eps_max, broken_factor, hardware)
    clean = clean_shares(ledger, level=level)
    rows = []
    for model in whole.models:
        at = own_covariates(fitted, durations, model)
        quoted = fitted.fit if not doubt and model in fitted.models else None
        rows.append(model_survival(model, whole, curves.get(model), quoted, at, limits_of_cost, clean))
    criteria = _criteria(whole, level, notes)
    return SurvivalAssessment(
        durations=durations,
        models=tuple(sorted(rows, key=_lasting)),
        covariates=fitted.names if fitted.fit is not None else tuple(names),
        fit=fitted.fit,
        unfitted=fitted.why_not,
        doubt=doubt,
        families=fitted.families,
        choice=fitted.choice,
        calibrations=fitted.calibrations,
        pareto=pareto_set(whole.models, criteria) if criteria and len(whole.models) > 1 else (),
        criteria=criteria,
        until=limit,
        asked_until=until,
        eps_max=eps_max,
        broken_factor=broken_factor,
        hardware=hardware,
        level=level,
        notes=tuple(notes.sentences),
    )


def _limit(curves: Mapping[str, KaplanMeier], requested: float | None, unit: str, notes: Sentences) -> float:
    """The limit of all means: at most the shortest attack time of the models."""
    end = common_end(curves)
    if requested is None or requested <= end or all(curve.end >= requested for curve in curves.values()):
        return end if requested is None else requested
    first = min(curves, key=lambda model: curves[model].end)
    notes.add(f"Means are up to {end:g} {unit}, not {requested:g}: attacks on {first} gave up there.")
    return end


def _doubt(durations: Durations, fitted: Fitted, law: Law) -> str:
    """Why the law is not quoted; empty if it is."""
    if fitted.fit is None:
        return fitted.why_not
    curves = {}
    for model in sorted(fitted.models):
        if (observed := model_curve(durations, model, law.level)) is not None:
            at = own_covariates(fitted, durations, model)
            times = _some_times(observed.times[(observed.events > 0) & (observed.times <= law.until)])
            curves[model] = (fitted.fit.curve(times, at=at), observed)
    return why_not_quoted(fitted, durations, curves, law.tolerance)


def _some_times(times: Floats) -> Floats:
    """At most `_COMPARED` of the times."""
    indices = np.linspace(0, times.size - 1, min(times.size, _COMPARED)).round().astype(np.intp)
    return times[np.unique(indices)]


def _check_arguments(family: str, level: float, limits: Mapping[str, float | None]) -> None:
    """Check arguments before anything is read, so that a failing fit does not hide a mistake of the caller."""
    if family != AUTO:
        family_named(family)
    if not _is_number(level) or not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level!r}")
    for name, value in limits.items():
        if value is not None and (not _is_number(value) or not 0 < value < math.inf):
            raise RiskError(f"{name} must be a finite number above 0, found {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _criteria(durations: Durations, level: float, notes: Sentences) -> tuple[Criterion, ...]:
    """The criteria of the Pareto front that are available for all models."""
    if len(durations.models) < 2:
        return ()
    criteria = [clean_accuracies(durations, level), failure_rates(durations, level), training_costs(durations, level)]
    missing = [
        name
        for name, one in zip(("clean accuracy", "failure rate", "training time"), criteria, strict=True)
        if one is None
    ]
    if missing:
        notes.add(f"Not a criterion of the Pareto front, as some model lacks it: {', '.join(missing)}.")
    return tuple(one for one in criteria if one is not None)


def _one_norm(durations: Durations, norm: Norm | None, usual: Norm | None, notes: Sentences) -> Durations:
    """The rows of one norm, if one was named or sizes differ in several."""
    norms = {arm: row["norm"] for arm, row in durations.arms.items()}
    if norm is None:
        sized = [own for arm, own in norms.items() if durations.arms[arm]["eps"] is not None]
        if usual is None or len(set(sized)) < 2:
            return durations
        norm = usual if usual in sized else max(sorted(set(sized)), key=sized.count)
    if norm not in norms.values():
        available = sorted({str(own) for own in norms.values()})
        raise RiskError(f"no arm that can be fitted is in {norm}; there are arms in {', '.join(available)}")
    others = [arm for arm, own in norms.items() if own != norm]
    if others:
        notes.add(f"Only arms in {norm} count. Sizes in other norms are other numbers; left out: {', '.join(others)}.")
    return durations.of_arms([arm for arm in norms if arm not in others])


def _without_durations(durations: Durations) -> str:
    """`12 error, 3 already_wrong`: the outcomes of rows without a duration."""
    total = sum(durations.tallies.values(), Tally())
    return ", ".join(f"{n} {name}" for name, n in asdict(total).items() if n) or "there are no rows"


def _on_rows(durations: Durations) -> list[str]:
    """Caveats on the rows."""
    notes = []
    if durations.n_missing:
        notes.append(f"The run is not finished: {counted(durations.n_missing, 'row')} are missing.")
    if durations.weighted:
        notes.append("Samples count equally here, whatever their weights.")
    return notes


def _lasting(row: ModelSurvival) -> tuple[float, float, str]:
    """Sort key: the longest mean first, then the largest share that survives to the end."""
    if row.mean is None or row.curve is None:
        return math.inf, 0.0, row.model
    return -row.mean.value, -float(row.curve.survival[-1]), row.model
