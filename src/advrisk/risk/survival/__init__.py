"""Survival: how long until a model breaks (Meyers et al.), as numbers from arrays.

`fit_survival` fits accelerated-failure-time models; these modules know no ledger.
"""

from advrisk.risk.survival.families import FAMILIES, FamilyName
from advrisk.risk.survival.fit import Outcome, SurvivalFit
from advrisk.risk.survival.fitting import fit_survival
from advrisk.risk.survival.records import AccelerationFactor, Coefficient, Curve, Effect, PartialEffects

__all__ = [
    "FAMILIES",
    "AccelerationFactor",
    "Coefficient",
    "Curve",
    "Effect",
    "FamilyName",
    "Outcome",
    "PartialEffects",
    "SurvivalFit",
    "fit_survival",
]
