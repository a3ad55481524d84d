"""All families beside each other on the same rows, and which of them is taken."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.risk.survival.choice import FamilyChoice, choose_family
from advrisk.risk.survival.families import FAMILIES
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.fitting import fit_survival


@dataclass(frozen=True)
class FamilyRow:
    """One family: how well it fits, and what it says of all rows together."""

    family: str
    chosen: bool
    log_likelihood: float
    aic: float
    bic: float
    concordance: float
    held_out: float | None  # log-likelihood of samples that the fit had not seen
    behind: float | None  # by how much that is less than the best
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
) -> tuple[tuple[FamilyRow, ...], FamilyChoice | str]:
    """Every family that can be fitted; `chosen`, or the one of the greatest likelihood on samples held out.

    `frame` has a column `sample`: whole samples are held out, however few there are. Where that cannot be done AIC
    decides, and the second is the reason.
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
    choice: FamilyChoice | str
    try:
        how = {name: value for name, value in options.items() if name != "units"} | {"cluster": "sample"}
        choice = choose_family(frame, families=tuple(fits), rng=rng, **how)
    except RiskError as error:
        choice = str(error)
    by_aic = min(fits, key=lambda name: fits[name].aic)
    best = chosen or (by_aic if isinstance(choice, str) else choice.family)
    held_out = {} if isinstance(choice, str) else choice.log_likelihoods
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
