"""Indicators: how risky a model is in a deployment, and what drives that (Schwerdtner et al.).

`tensor` holds what every answer costs, `scenario` says how likely everything is, `tree` puts the two together: these
work on arrays. `evaluation` and `estimates` carry the means and their uncertainty, `comparison` ranks models.
"""

from advrisk.risk.indicators.matching import MissingArmsError
from advrisk.risk.indicators.scenario import Branch, NoBranchError, Scenario, Weight, what_if
from advrisk.risk.indicators.tensor import RiskTensor
from advrisk.risk.indicators.tree import Indicator, arm_risks, indicator_tree, risk, scenario_risk, uniform_scenario

__all__ = [
    "Branch",
    "Indicator",
    "MissingArmsError",
    "NoBranchError",
    "RiskTensor",
    "Scenario",
    "Weight",
    "arm_risks",
    "indicator_tree",
    "risk",
    "scenario_risk",
    "uniform_scenario",
    "what_if",
]
