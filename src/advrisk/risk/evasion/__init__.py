"""Evasion curves: the probability that a perturbation of a given size goes undetected."""

from advrisk.risk.evasion.bands import curve_band, half_detected
from advrisk.risk.evasion.bayesian import BayesianEvasion, fit_bayesian
from advrisk.risk.evasion.curve import (
    AverageEvasion,
    Evasion,
    EvasionCurve,
    Floats,
    FunctionEvasion,
    ThresholdEvasion,
    as_curve,
    average,
    checked_distances,
    checked_sizes,
    curves_of,
    paired_distances,
    threshold,
    values_of,
)
from advrisk.risk.evasion.difference import DifferenceTest, differs, tested_groups
from advrisk.risk.evasion.files import evasion_notes, read_evasion, write_evasion
from advrisk.risk.evasion.logistic import LogisticEvasion, fit_logistic
from advrisk.risk.evasion.monotone import MonotoneCurve, MonotoneEvasion, fit_monotone
from advrisk.risk.evasion.shape import ShapeTest, shape_test

__all__ = [
    "AverageEvasion",
    "BayesianEvasion",
    "DifferenceTest",
    "Evasion",
    "EvasionCurve",
    "Floats",
    "FunctionEvasion",
    "LogisticEvasion",
    "MonotoneCurve",
    "MonotoneEvasion",
    "ShapeTest",
    "ThresholdEvasion",
    "as_curve",
    "average",
    "checked_distances",
    "checked_sizes",
    "curve_band",
    "curves_of",
    "differs",
    "evasion_notes",
    "fit_bayesian",
    "fit_logistic",
    "fit_monotone",
    "half_detected",
    "paired_distances",
    "read_evasion",
    "shape_test",
    "tested_groups",
    "threshold",
    "values_of",
    "write_evasion",
]
