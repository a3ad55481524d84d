"""Indicators: the risk of a model in a deployment, and its drivers (Schwerdtner et al.).

`tensor` stores the loss of every answer, `scenario` the likelihood of every branch, and `tree` combines the two.
`evaluation` and `estimates` compute means and their uncertainty; `comparison` ranks models.
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
