"""An assessment of survival as plain values: rows of a table, mappings for JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.tables import ESTIMATE, Columns, Row
from advrisk.risk.survival.calibration import Calibration
from advrisk.risk.survival.choice import FamilyChoice
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.kaplan_meier import KaplanMeier

if TYPE_CHECKING:
    from advrisk.assess.survival.assessment import SurvivalAssessment
    from advrisk.assess.survival.models import ModelSurvival


COLUMNS: Columns = {**dict.fromkeys(("what", "model", "name", "unit"), "text"), **ESTIMATE}


def survival_rows(found: "SurvivalAssessment") -> Iterator[Row]:
    """What it is about, whose it is, its name, and the number with its interval."""
    for model in found.models:
        yield from _of_model(model, found.unit)
    if (law := found.law) is not None:
        yield from _of_law(law)
        for family in found.families:
            for one in family.fit.coefficients:
                name = f"{family.family} {one.part} {one.name}, whole range"
                yield _line("coefficient", "", name, one.scaled.estimate, "log time")
    for family in found.families:
        for name in ("log_likelihood", "aic", "bic", "concordance", "held_out"):
            yield _line("family", "", f"{family.family} {name}", getattr(family, name), "")
        for name in ("mean", "endless_mean") if found.law is not None else ():
            yield _line("family", "", f"{family.family} {name}", getattr(family, name), found.unit)
    for standing in found.pareto:
        yield _line("pareto", standing.model, "on the front", float(standing.on_front), "1: yes, 0: no")


def _of_law(law: SurvivalFit) -> Iterator[Row]:
    for one in law.coefficients:
        if one.covariate is not None:
            yield _line(
                "coefficient", "", f"{one.part} {one.name}, per {one.unit_text}", one.per_unit.estimate, "log time"
            )
    for factor in law.acceleration_factors():
        yield _line("acceleration factor", "", f"{factor.name}, whole range", factor.per_range, "times longer")
        name = f"{factor.name}, per {factor.unit_text}"
        yield _line("acceleration factor", "", name, factor.per_unit, "times longer")


def _of_model(one: "ModelSurvival", unit: str) -> Iterator[Row]:
    for name, n in one.tally.as_dict().items():
        yield _line("rows", one.model, name, float(n), "rows")
    for name in ("clean_accuracy", "clean_rejection"):
        yield _line("clean", one.model, name, getattr(one, name), "share of clean inputs")
    for name in ("mean", "median", "law_mean", "endless_mean"):
        yield _line("survival", one.model, name, getattr(one, name), unit)
    for time, hazard, density in one.hazard:
        yield _line("hazard", one.model, f"at {time:g}", hazard, f"failures per {unit} among those left")
        yield _line("density", one.model, f"at {time:g}", density, f"failures per {unit}")
    yield _line("rate", one.model, "f_ben", None if one.benign is None else one.benign.estimate, f"failures per {unit}")
    yield _line(
        "rate",
        one.model,
        "f_adv",
        None if one.adversarial is None else one.adversarial.estimate,
        f"failures per {unit}",
    )
    for name, rate in (("f_ben", one.benign), ("f_adv", one.adversarial)):
        for time in one.times:
            found = None if rate is None else rate.probability(time)
            yield _line("probability", one.model, f"{name} within {time:g}", found, f"of a failure, in {unit}")
    if one.cost is None:
        return
    yield _line("cost", one.model, "train_s", one.cost.train_s, "seconds")
    yield _line("cost", one.model, "break_s", one.cost.break_s, "seconds")
    for name in ("adversarial", "benign", "benign_rate", "extrapolated", "total"):
        yield _line("cost", one.model, f"{name} ratio", getattr(one.cost, name), "training over breaking")
    for attack, ratio in one.cost.by_attack.items():
        yield _line("cost", one.model, f"ratio under {attack}", ratio, "training over breaking")
    yield _line("cost", one.model, "break_cost", one.cost.break_cost, "the unit of the hardware's price")


def _line(what: str, model: str, name: str, found: Estimate | float | None, unit: str) -> Row:
    told = estimate_columns(found if isinstance(found, Estimate) else None)
    number = {} if isinstance(found, Estimate) else {"value": found}
    return {"what": what, "model": model, "name": name, "unit": unit, **told, **number}


def estimate_dict(estimate: Estimate | None) -> dict[str, Any] | None:
    """The fields of an estimate, or nothing."""
    return None if estimate is None else estimate.as_dict()


def curve_dict(curve: KaplanMeier) -> dict[str, list[float]]:
    """The steps of a curve."""
    names = ("times", "survival", "low", "high", "at_risk", "events")
    return {name: getattr(curve, name).tolist() for name in names}


def fit_dict(fit: SurvivalFit) -> dict[str, Any]:
    """A fit, and by what its covariates multiply times."""
    return {
        "family": fit.family,
        "n": fit.n,
        "n_events": fit.n_events,
        "n_clusters": fit.n_clusters,
        "doubt": fit.doubt or None,
        "coefficients": [one.as_dict() for one in fit.coefficients],
        "acceleration_factors": [
            {
                "name": one.name,
                "per_range": one.per_range.as_dict(),
                "per_unit": one.per_unit.as_dict(),
                "unit": one.unit,
                "unit_text": one.unit_text,
                "holds": one.holds,
            }
            for one in fit.acceleration_factors()
        ],
    }


def calibration_dict(found: Calibration) -> dict[str, Any]:
    """The curve of a calibration, and how far it is off."""
    curve = {name: getattr(found, name) for name in ("predicted", "observed", "low", "high")}
    indices = {name: getattr(found, name) for name in ("ici", "e50", "e90", "by_chance", "level")}
    told = {name: None if values is None else values.tolist() for name, values in curve.items()}
    return {"at_time": found.at_time, "n_events": found.n_events, **indices, **told}


def choice_text(found: FamilyChoice) -> str:
    """By how much a family is ahead, and whether that decides."""
    by = f"ahead of {found.runner_up} by {found.margin.value:.3g} (standard error {found.standard_error:.2g})"
    verdict = found.family if found.decided else f"undecided; {found.family}"
    return f"{verdict}: {by} in log-likelihood of what was held out"
