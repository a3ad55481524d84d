"""An assessment of survival as plain values: rows of a table, mappings for JSON."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from advrisk.core.estimate import Estimate, estimate_columns
from advrisk.core.plain import plain_fields
from advrisk.core.tables import ESTIMATE, Columns, Row
from advrisk.risk.survival.choice import FamilyChoice
from advrisk.risk.survival.fit import SurvivalFit

if TYPE_CHECKING:
    from advrisk.assess.survival.assessment import SurvivalAssessment
    from advrisk.assess.survival.models import ModelSurvival


COLUMNS: Columns = {**dict.fromkeys(("what", "model", "name", "unit"), "text"), **ESTIMATE}


def survival_rows(assessment: "SurvivalAssessment") -> Iterator[Row]:
    """Rows of topic, model, name, and the number with its interval."""
    for model in assessment.models:
        yield from _of_model(model, assessment.unit)
    if (law := assessment.law) is not None:
        yield from _of_law(law)
        for family in assessment.families:
            for one in family.fit.coefficients:
                name = f"{family.family} {one.part} {one.name}, whole range"
                yield _line("coefficient", "", name, one.scaled.estimate, "log time")
    for family in assessment.families:
        for name in ("log_likelihood", "aic", "bic", "concordance", "held_out"):
            yield _line("family", "", f"{family.family} {name}", getattr(family, name), "")
        for name in ("mean", "endless_mean") if assessment.law is not None else ():
            yield _line("family", "", f"{family.family} {name}", getattr(family, name), assessment.unit)
    for standing in assessment.pareto:
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
    for name, n in plain_fields(one.tally).items():
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
            probability = None if rate is None else rate.probability(time)
            yield _line("probability", one.model, f"{name} within {time:g}", probability, f"of a failure, in {unit}")
    if one.cost is None:
        return
    yield _line("cost", one.model, "train_s", one.cost.train_s, "seconds")
    yield _line("cost", one.model, "break_s", one.cost.break_s, "seconds")
    for name in ("adversarial", "benign", "benign_rate", "extrapolated", "total"):
        yield _line("cost", one.model, f"{name} ratio", getattr(one.cost, name), "training over breaking")
    for attack, ratio in one.cost.by_attack.items():
        yield _line("cost", one.model, f"ratio under {attack}", ratio, "training over breaking")
    yield _line("cost", one.model, "break_cost", one.cost.break_cost, "the unit of the hardware's price")


def _line(what: str, model: str, name: str, value: Estimate | float | None, unit: str) -> Row:
    columns = estimate_columns(value if isinstance(value, Estimate) else None)
    number = {} if isinstance(value, Estimate) else {"value": value}
    return {"what": what, "model": model, "name": name, "unit": unit, **columns, **number}


def fit_dict(fit: SurvivalFit) -> dict[str, Any]:
    """A fit with its acceleration factors."""
    names = ("family", "n", "n_events", "n_clusters", "coefficients")
    fields = {name: getattr(fit, name) for name in names}
    return fields | {"doubt": fit.doubt or None, "acceleration_factors": fit.acceleration_factors()}


def choice_text(choice: FamilyChoice) -> str:
    """The margin of the chosen family, and whether it decides."""
    by = f"ahead of {choice.runner_up} by {choice.margin.value:.3g} (standard error {choice.standard_error:.2g})"
    verdict = choice.family if choice.decided else f"undecided; {choice.family}"
    return f"{verdict}: {by} in log-likelihood of what was held out"
