"""Every number of an assessment of survival as one line, for CSV."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from advrisk.core.estimate import Estimate

if TYPE_CHECKING:
    from advrisk.risk.survival.assessment import ModelSurvival, SurvivalAssessment


def flat_lines(found: "SurvivalAssessment") -> Iterator[dict[str, Any]]:
    """What it is about, whose it is, its name, and the number with its interval."""
    for model in found.models:
        yield from _of_model(model, found.unit)
    if found.fit is not None:
        for one in found.fit.coefficients:
            yield _line("coefficient", "", f"{one.part} {one.name}, whole range", one.scaled.estimate, "log time")
            yield _line("coefficient", "", f"{one.part} {one.name}, one unit", one.natural.estimate, "log time")
        for factor in found.fit.acceleration_factors():
            yield _line("acceleration factor", "", f"{factor.name}, whole range", factor.per_range, "times longer")
            yield _line("acceleration factor", "", f"{factor.name}, one unit", factor.per_unit, "times longer")
    for family in found.families:
        for name in ("log_likelihood", "aic", "bic", "concordance", "held_out"):
            yield _line("family", "", f"{family.family} {name}", getattr(family, name), "")
        for name in ("mean", "endless_mean", "median"):
            yield _line("family", "", f"{family.family} {name}", getattr(family, name), found.unit)
    for standing in found.pareto:
        yield _line("pareto", standing.model, "on the front", float(standing.on_front), "1: yes, 0: no")


def _of_model(one: "ModelSurvival", unit: str) -> Iterator[dict[str, Any]]:
    for name, n in one.tally.as_dict().items():
        yield _line("rows", one.model, name, float(n), "rows")
    for name in ("mean", "endless_mean", "median"):
        yield _line("survival", one.model, name, getattr(one, name), unit)
    yield _line("rate", one.model, "f_ben", one.benign and one.benign.estimate, f"failures per {unit}")
    yield _line("rate", one.model, "f_adv", one.adversarial and one.adversarial.estimate, f"failures per {unit}")
    if one.cost is None:
        return
    yield _line("cost", one.model, "train_s", one.cost.train_s, "seconds")
    yield _line("cost", one.model, "break_s", one.cost.break_s, "seconds")
    for name in ("adversarial", "benign", "extrapolated", "total"):
        yield _line("cost", one.model, f"{name} ratio", getattr(one.cost, name), "training over breaking")
    yield _line("cost", one.model, "break_cost", one.cost.break_cost, "the unit of the hardware's price")


def _line(what: str, model: str, name: str, found: Estimate | float | None, unit: str) -> dict[str, Any]:
    line: dict[str, Any] = {"what": what, "model": model, "name": name, "unit": unit}
    if isinstance(found, Estimate):
        ends = {"value": found.value, "low": found.low, "high": found.high}
        return line | ends | {"level": found.level, "n": found.n, "method": found.method}
    return line | {"value": found, "low": None, "high": None, "level": None, "n": None, "method": None}
