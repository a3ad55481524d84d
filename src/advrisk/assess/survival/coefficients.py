"""Tables of the fitted laws: the comparison of each factor, and the coefficients of all laws."""

from dataclasses import dataclass, replace

from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import Estimate
from advrisk.risk.survival.coding import NumberCovariate
from advrisk.risk.survival.families import family_named
from advrisk.risk.survival.fit import SurvivalFit


def factor_names(assessment: SurvivalAssessment) -> dict[str, str]:
    """Factor -> the comparison that it makes."""
    names: dict[str, str] = {}
    for one in assessment.fit.scale_coding.covariates if assessment.fit is not None else ():
        if isinstance(one, NumberCovariate):
            names[one.name] = f"{one.name}, {one.high:.4g} against {one.low:.4g}"
        else:
            names |= {f"{one.name}={level}": f"{one.name} {level}, against {one.reference}" for level in one.others}
    return names


def family_name(family: str) -> str:
    """The display name of a family, such as `log-logistic`."""
    return {"weibull": "Weibull", "lognormal": "log-normal", "loglogistic": "log-logistic"}[family]


@dataclass(frozen=True)
class LawRow:
    """One coefficient in every law: its name, and the laws' estimates in the order of `families`."""

    name: str
    effects: tuple[Estimate | None, ...]


def coefficient_table(assessment: SurvivalAssessment) -> list[LawRow]:
    """Coefficients of all laws side by side (the paper's Fig. 1); empty if the chosen law does not hold.

    On the log scale of time, over each covariate's whole range; the shape is log sigma in all three, so a larger spread
    of times has a larger value.
    """
    if assessment.law is None:
        return []
    names = factor_names(assessment)
    by_family = [_log_effects(one.fit) for one in assessment.families]
    rows = []
    for part, name in by_family[0]:
        label = "intercept" if part == "scale" and name == "intercept" else names.get(name, name)
        label = label if part == "scale" else "log sigma" if name == "intercept" else f"log sigma: {label}"
        rows.append(LawRow(label, tuple(own.get((part, name)) for own in by_family)))
    return rows


def _log_effects(fit: SurvivalFit) -> dict[tuple[str, str], Estimate]:
    sign = family_named(fit.family).shape_sign  # rho and b are 1/sigma
    effects: dict[tuple[str, str], Estimate] = {}
    for one in fit.coefficients:
        own = one.scaled.estimate
        flipped = one.part == "shape" and sign < 0
        effects[one.part, one.name] = replace(own, value=-own.value, low=-own.high, high=-own.low) if flipped else own
    return effects
