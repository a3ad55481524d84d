"""Survival: how long until a model breaks (Meyers et al.).

`fit_survival` fits accelerated-failure-time models, `choose_family` says which, `calibration` whether it holds,
`kaplan_meier` what the rows show without a model, and `cost_ratio` what breaking costs beside training: these work on
arrays and know no ledger.
"""

from advrisk.risk.survival.calibration import Calibration, calibration
from advrisk.risk.survival.choice import FamilyChoice, choose_family
from advrisk.risk.survival.cost import cost_ratio
from advrisk.risk.survival.families import FAMILIES, FamilyName
from advrisk.risk.survival.fit import Outcome, SurvivalFit
from advrisk.risk.survival.fitting import fit_survival
from advrisk.risk.survival.kaplan_meier import KaplanMeier, Plateau, kaplan_meier
from advrisk.risk.survival.records import AccelerationFactor, Coefficient, Curve, Effect, PartialEffects

__all__ = [
    "FAMILIES",
    "AccelerationFactor",
    "Calibration",
    "Coefficient",
    "Curve",
    "Effect",
    "FamilyChoice",
    "FamilyName",
    "KaplanMeier",
    "Outcome",
    "PartialEffects",
    "Plateau",
    "SurvivalFit",
    "calibration",
    "choose_family",
    "cost_ratio",
    "fit_survival",
    "kaplan_meier",
]
