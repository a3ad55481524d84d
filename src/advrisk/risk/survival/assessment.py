"""The question of survival, answered from a ledger: how long until each model breaks, why, and at what cost?"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, did_you_mean
from advrisk.core.plain import plain
from advrisk.core.seeds import generator
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.core.traits import Norm
from advrisk.ledger import Ledger
from advrisk.risk.clean import CleanShares, clean_shares
from advrisk.risk.survival.calibration import Calibration
from advrisk.risk.survival.checks import FEWEST_CLUSTERS, as_names
from advrisk.risk.survival.choice import FamilyChoice
from advrisk.risk.survival.cost import BROKEN_FACTOR, Rate, benign_rate, failure_rate
from advrisk.risk.survival.covariates import default_covariates, of_model, with_covariates
from advrisk.risk.survival.durations import COUNTED, Durations, Facts, Measure, NoDurationsError, Tally
from advrisk.risk.survival.families import family_named
from advrisk.risk.survival.families_table import FamilyRow, families_table
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.held_out import calibrated_on_half
from advrisk.risk.survival.kaplan_meier import KaplanMeier, kaplan_meier
from advrisk.risk.survival.money import Hardware, ModelCost, model_cost
from advrisk.risk.survival.paired import clean_accuracies, failure_rates, training_costs
from advrisk.risk.survival.pareto import Criterion, Standing, pareto_set
from advrisk.risk.survival.reading import read_durations
from advrisk.risk.survival.telling import COLUMNS, calibration_dict, curve_dict, estimate_dict, fit_dict, survival_rows

AUTO = "auto"


@dataclass(frozen=True)
class ModelSurvival:
    """One model: what became of its rows, how long it lasts, and how often it fails."""

    model: str
    tally: Tally
    facts: Facts
    curve: KaplanMeier | None  # None where it has no row with a duration
    seen: float | None  # for how long every attack on it was watched; None: all its attempts succeeded
    clean_accuracy: Estimate | None
    clean_rejection: Estimate | None  # None also where no model ever refuses anything
    at: Mapping[str, Any]  # the covariates that are its own
    mean: Estimate | None  # up to the limit, by the fit; the next two, too
    endless_mean: Estimate | None
    median: Estimate | None
    benign: Rate | None  # failures of clean inputs
    adversarial: Rate | None  # failures under attack
    cost: ModelCost | None
    times: tuple[float, ...]  # over which rates are told as probabilities: one unit, and the limit

    def as_dict(self) -> dict[str, Any]:
        facts = self.facts
        return {
            "model": self.model,
            "rows": self.tally.as_dict(),
            "seen": self.seen,
            "clean_accuracy": estimate_dict(self.clean_accuracy),
            "clean_rejection": estimate_dict(self.clean_rejection),
            "clean_rejected": facts.n_clean_rejected,
            "inference_s": facts.inference_s,
            "at": dict(self.at),
            "plateau": None if self.curve is None or self.curve.plateau is None else self.curve.plateau.message,
            "kaplan_meier": None if self.curve is None else curve_dict(self.curve),
            **{name: estimate_dict(getattr(self, name)) for name in ("mean", "endless_mean", "median")},
            "f_ben": None if self.benign is None else self.benign.as_dict(self.times),
            "f_adv": None if self.adversarial is None else self.adversarial.as_dict(self.times),
            "cost": None if self.cost is None else self.cost.as_dict(),
        }


@dataclass(frozen=True, eq=False)
class SurvivalAssessment(Tabular):
    """Durations of all models, the fit that explains them, and what breaking costs."""

    durations: Durations
    models: tuple[ModelSurvival, ...]  # the longest mean first
    covariates: tuple[str, ...]
    fit: SurvivalFit | None
    unfitted: str  # why there is no fit
    families: tuple[FamilyRow, ...]
    choice: FamilyChoice | None
    calibrated: Calibration | None
    pareto: tuple[Standing, ...]
    criteria: tuple[Criterion, ...]
    until: float
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
        known = {one.model: one for one in self.models}
        if model not in known:
            raise RiskError(f"no model called {model!r} was assessed; {did_you_mean(model, known)}")
        return known[model]

    def outlasts(self, first: str, second: str) -> bool:
        """Whether the fit shows that one model lasts longer than another: the interval of their ratio is above 1."""
        one, other = self.of(first), self.of(second)
        if self.fit is None or one.mean is None or other.mean is None or not one.at:
            return False
        return self.fit.contrast(one.at, other.at).low > 0

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        told = {
            "measure": self.durations.measure,
            "unit": self.unit,
            "level": self.level,
            "until": self.until,
            "arms": sorted(self.durations.arms),
            "not_fitted": dict(self.durations.left_out),
            "models": [one.as_dict() for one in self.models],
            "covariates": list(self.covariates),
            "shape_covariates": [] if self.fit is None else [one.name for one in self.fit.shape_coding.covariates],
            "fit": None if self.fit is None else fit_dict(self.fit),
            "unfitted": self.unfitted or None,
            "families": [one.as_dict() for one in self.families],
            "choice": None if self.choice is None else self.choice.message,
            "calibration": None if self.calibrated is None else calibration_dict(self.calibrated),
            "pareto": [one.as_dict() for one in self.pareto],
            "broken_factor": self.broken_factor,
            "hardware": None if self.hardware is None else vars(self.hardware),
            "notes": list(self.notes),
        }
        return dict(plain(told))

    def rows(self) -> list[Row]:
        """Every number with what it is about, whose it is, and its unit."""
        return list(survival_rows(self))


@dataclass
class _Notes:
    said: list[str] = field(default_factory=list)

    def add(self, note: str) -> None:
        if note and note not in self.said:
            self.said.append(note)


def assess_survival(
    ledger: Ledger,
    *,
    measure: Measure = "forward",
    covariates: Sequence[str] | None = None,
    shape_covariates: Sequence[str] = (),
    family: str = AUTO,
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
    """Read durations, fit them, and tell what that means for every model.

    Without `covariates`, those that differ are taken, and where they cannot be fitted the curves stand alone, with the
    reason. Sizes in several norms are no one number, so that only the arms of one norm are fitted then: of `norm`, or
    of `usual_norm` where there are some.
    """
    _check_arguments(family, level, until, eps_max, broken_factor)
    notes = _Notes()
    durations = read_durations(ledger, measure=measure, models=models, arms=arms)
    durations = _one_norm(durations, norm, None if arms or covariates is not None else usual_norm, notes)
    whole = durations
    if not len(durations.columns["duration"]):
        raise NoDurationsError(
            f"no attempt has a duration in {durations.unit}: {_without_durations(whole)}; `advrisk status` tells why"
        )
    names = default_covariates(durations) if covariates is None else as_names(covariates)
    shape = as_names(shape_covariates)
    durations, left_out = with_covariates(durations, [*names, *(name for name in shape if name not in names)])
    for note in (*left_out, *_on_rows(durations)):
        notes.add(note)
    limit = float(durations.columns["duration"].max()) if until is None else until
    if eps_max is not None and "eps" not in (*names, *shape):
        notes.add("eps is no covariate, so eps_max limits nothing.")
    elif eps_max is not None and not any(0 < eps <= eps_max for eps in set(durations.columns["eps"].tolist())):
        raise RiskError(f"no arm that is fitted has an eps above 0 and up to eps_max = {eps_max:g}")
    fitted = _fitted(durations, names, _Law(tuple(shape), family, level, limit, seed, covariates is not None), notes)
    limits = {"until": limit, "eps_max": eps_max, "factor": broken_factor, "hardware": hardware}
    clean = clean_shares(ledger, level=level)
    rows = tuple(_model(model, whole, durations, fitted, limits, level, clean) for model in whole.models)
    criteria = _criteria(whole, level, notes)
    return SurvivalAssessment(
        durations=durations,
        models=tuple(sorted(rows, key=_lasting)),
        covariates=fitted.names if fitted.fit is not None else tuple(names),
        fit=fitted.fit,
        unfitted=fitted.why_not,
        families=fitted.families,
        choice=fitted.choice,
        calibrated=fitted.calibrated,
        pareto=pareto_set(whole.models, criteria) if criteria and len(whole.models) > 1 else (),
        criteria=criteria,
        until=limit,
        eps_max=eps_max,
        broken_factor=broken_factor,
        hardware=hardware,
        level=level,
        notes=tuple(notes.said),
    )


def _check_arguments(
    family: str, level: float, until: float | None, eps_max: float | None, broken_factor: float
) -> None:
    """Before anything is read, so that no fit that fails hides a mistake of the caller."""
    if family != AUTO:
        family_named(family)
    if not _is_number(level) or not 0 < level < 1:
        raise RiskError(f"level must lie between 0 and 1, found {level!r}")
    for name, value in (("until", until), ("eps_max", eps_max), ("broken_factor", broken_factor)):
        if value is not None and (not _is_number(value) or not 0 < value < math.inf):
            raise RiskError(f"{name} must be a finite number above 0, found {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


@dataclass(frozen=True)
class _Law:
    """Which law is to be fitted, and how."""

    shape: tuple[str, ...]  # covariates of the shape
    family: str
    level: float
    until: float
    seed: int
    asked: bool  # whether the covariates were named


@dataclass(frozen=True, eq=False)
class _Fitted:
    fit: SurvivalFit | None = None
    families: tuple[FamilyRow, ...] = ()
    choice: FamilyChoice | None = None
    calibrated: Calibration | None = None
    names: tuple[str, ...] = ()  # of the covariates
    models: frozenset[str] = frozenset()  # that are in the rows: one that nobody broke may not be
    why_not: str = ""


def _fitted(durations: Durations, names: Sequence[str], law: _Law, notes: _Notes) -> _Fitted:
    """The fit of the chosen family, and all families beside it; or why there is none.

    Covariates that nobody asked for are dropped from the last one on until the rest can be fitted.
    """
    durations, kept = _breakable(durations, names, notes)
    law = replace(law, shape=tuple(name for name in law.shape if name in kept or name not in names))
    first: RiskError | None = None
    for n in range(len(kept), -1, -1):
        try:
            found = _fitted_with(durations, kept[:n], law, notes)
        except RiskError as error:
            if law.asked or law.shape:
                raise
            first = first or error
            continue
        if first is not None:
            notes.add(f"Not among the covariates: {', '.join(kept[n:])}. With it, {first}.")
        return found
    return _Fitted(why_not=str(first))


def _fitted_with(durations: Durations, names: Sequence[str], law: _Law, notes: _Notes) -> _Fitted:
    frame, options = _frame(durations, names, law.level, notes)
    frame |= {name: durations.columns[name] for name in law.shape}
    options |= {"shape_covariates": list(law.shape)}
    families, choice = families_table(
        frame,
        options,
        chosen=None if law.family == AUTO else law.family,
        until=law.until,
        rng=generator("survival", law.seed),
    )
    fit = next(one.fit for one in families if one.chosen)
    if isinstance(choice, str) and law.family == AUTO:
        notes.add(f"The family is chosen by AIC, as samples could not be held out: {choice}.")
    checked, why_not = calibrated_on_half(frame, options, fit.family, generator("calibration", law.seed))
    notes.add(why_not)
    for note in _on_models(durations, names):
        notes.add(note)
    models = frozenset(durations.columns["model"].tolist())
    decided = None if isinstance(choice, str) else choice
    return _Fitted(fit, families, decided, checked, tuple(names), models)


def _on_models(durations: Durations, names: Sequence[str]) -> Iterator[str]:
    """Covariates that are one value for each model: samples say nothing of what another such model would do."""
    columns = durations.columns
    models = np.unique(columns["model"])
    own = [
        name
        for name in names
        if name != "model" and all(len(np.unique(columns[name][columns["model"] == one])) == 1 for one in models)
    ]
    if own and len(models) > 1:
        yield (
            f"{', '.join(own)}: one value for each of {counted(len(models), 'model')}. The interval and the p-value "
            "know of samples only, not of how models differ otherwise: they hold for these models, not for others."
        )


def _breakable(durations: Durations, names: Sequence[str], notes: _Notes) -> tuple[Durations, list[str]]:
    """Without the models that nobody broke, where the model is a covariate: their effect would be infinite."""
    columns = durations.columns
    never = [model for model in durations.models if not columns["event"][columns["model"] == model].any()]
    if "model" not in names or not never or len(never) == len(durations.models):
        return durations, list(names)
    notes.add(f"Not in the fit, as no attack broke any of its samples: {', '.join(never)}.")
    alone = len(never) == len(durations.models) - 1
    kept = durations.kept(np.asarray(~np.isin(columns["model"], never), dtype=np.bool_))
    return kept, [name for name in names if not (alone and name == "model")]


def _frame(
    durations: Durations, names: Sequence[str], level: float, notes: _Notes
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows to fit, and how."""
    columns = durations.columns
    options: dict[str, Any] = {"duration": "duration", "event": "event", "covariates": list(names), "level": level}
    if durations.measure in COUNTED:
        options["lower"] = "lower"
    if (n := len(set(columns["sample"]))) >= FEWEST_CLUSTERS:
        options["cluster"] = "sample"
    else:
        notes.add(
            f"Rows count as independent, as {counted(n, 'sample')} are too few for errors by sample "
            f"({FEWEST_CLUSTERS} are needed): the fit's intervals are too narrow where samples recur."
        )
    wanted = ("duration", "event", "sample", *names, *([options["lower"]] if "lower" in options else []))
    return {name: columns[name] for name in dict.fromkeys(wanted)}, options


def _model(
    model: str,
    whole: Durations,
    durations: Durations,
    fitted: _Fitted,
    limits: Mapping[str, Any],
    level: float,
    clean: CleanShares,
) -> ModelSurvival:
    """Curve, tally and rates are of all its rows; means and costs of those that the covariates explain."""
    rows = whole.of_model(model)
    facts = whole.facts[model]
    at = of_model(durations, model, fitted.names if fitted.fit is None else fitted.fit.covariates)
    predicted = fitted.fit if model in fitted.models else None
    seen = _seen(durations, model)
    end = math.inf if seen is None else seen
    cost = None if predicted is None else model_cost(model, durations, predicted, at, seen=end, **limits)
    return ModelSurvival(
        model=model,
        tally=whole.tallies[model],
        facts=facts,
        curve=_curve({name: column[rows] for name, column in whole.columns.items()}, level) if rows.any() else None,
        seen=seen,
        clean_accuracy=clean.accuracy.get(model),
        clean_rejection=clean.rejection.get(model),
        at=at,
        mean=None if predicted is None else predicted.mean(at=at, until=limits["until"], seen=end),
        endless_mean=None if predicted is None else predicted.mean(at=at),
        median=None if predicted is None else predicted.median(at=at, seen=end),
        benign=_benign(whole, facts, level),
        adversarial=_adversarial(whole, model, level),
        cost=cost,
        times=tuple(dict.fromkeys((1.0, float(limits["until"])))),
    )


def _seen(durations: Durations, model: str) -> float | None:
    """For how long its attempts were watched: the longest of the attack that ended first; None if nothing held."""
    rows, columns = durations.of_model(model), durations.columns
    held = rows & ~columns["event"].astype(np.bool_)
    arms = set(columns["arm"][held].tolist())
    return min((float(columns["duration"][rows & (columns["arm"] == arm)].max()) for arm in arms), default=None)


def _curve(columns: Mapping[str, Any], level: float) -> KaplanMeier:
    """The curve of a model's rows, up to where the first of its attacks gave up.

    Beyond, only the longer attacks go on, and what they do says nothing of those that ended. Rows of one sample depend
    on each other.
    """
    duration, event, samples = columns["duration"], columns["event"].astype(np.bool_), columns["sample"]
    held = [duration[(columns["arm"] == arm) & ~event] for arm in np.unique(columns["arm"])]
    end = min((float(times.max()) for times in held if times.size), default=float(duration.max()))
    cluster = samples if len(np.unique(samples)) > 1 else None
    return kaplan_meier(np.minimum(duration, end), event & (duration <= end), cluster=cluster, level=level)


def _benign(durations: Durations, facts: Facts, level: float) -> Rate | None:
    """Clean inputs follow each other: one forward pass apart, or so many seconds. A refusal is no failure."""
    time = {"forward": 1.0, "seconds": facts.inference_s}.get(durations.measure)
    if not facts.right or not time:
        return None
    return benign_rate(list(facts.wrong.values()), time, unit=durations.unit, level=level)


def _adversarial(durations: Durations, model: str, level: float) -> Rate | None:
    failures, spent = durations.by_sample(model)
    return failure_rate(failures, spent, unit=durations.unit, level=level) if spent.sum() > 0 else None


def _criteria(durations: Durations, level: float, notes: _Notes) -> tuple[Criterion, ...]:
    """What models are compared by: what is known of all of them."""
    if len(durations.models) < 2:
        return ()
    found = [clean_accuracies(durations, level), failure_rates(durations, level), training_costs(durations, level)]
    missing = [
        name
        for name, one in zip(("clean accuracy", "failure rate", "training time"), found, strict=True)
        if one is None
    ]
    if missing:
        notes.add(f"Not among what models are compared by, as some model has none: {', '.join(missing)}.")
    return tuple(one for one in found if one is not None)


def _one_norm(durations: Durations, norm: Norm | None, usual: Norm | None, notes: _Notes) -> Durations:
    """The rows of one norm, where one was named or sizes differ in several."""
    norms = {arm: row["norm"] for arm, row in durations.arms.items()}
    if norm is None:
        sized = [own for arm, own in norms.items() if durations.arms[arm]["eps"] is not None]
        if usual is None or len(set(sized)) < 2:
            return durations
        norm = usual if usual in sized else max(sorted(set(sized)), key=sized.count)
    if norm not in norms.values():
        known = sorted({str(own) for own in norms.values()})
        raise RiskError(f"no arm that can be fitted is in {norm}; there are arms in {', '.join(known)}")
    others = [arm for arm, own in norms.items() if own != norm]
    if others:
        notes.add(f"Only arms in {norm} count. Sizes in other norms are other numbers; left out: {', '.join(others)}.")
    return durations.of_arms([arm for arm in norms if arm not in others])


def _without_durations(durations: Durations) -> str:
    """`12 error, 3 already_wrong`: what became of rows of which none could be fitted."""
    total = sum(durations.tallies.values(), Tally())
    return ", ".join(f"{n} {name}" for name, n in asdict(total).items() if n) or "there are no rows"


def _on_rows(durations: Durations) -> list[str]:
    """What a reader must know of the rows."""
    notes = []
    if durations.n_missing:
        notes.append(f"The run is not finished: {counted(durations.n_missing, 'row')} are missing.")
    if durations.weighted:
        notes.append("Samples count alike here, whatever their weights.")
    return notes


def _lasting(row: ModelSurvival) -> tuple[bool, float, str]:
    """The one that lasts longest first; those that nobody broke before all others."""
    if row.mean is not None:
        return True, -row.mean.value, row.model
    held = 0.0 if row.curve is None else -float(row.curve.survival[-1])
    return False, held, row.model
