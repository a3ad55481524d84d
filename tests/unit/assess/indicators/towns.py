"""Models whose arms go wrong as often as a test says, in a town that is wet at times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.risk.indicators import RiskTensor, Scenario
from advrisk.risk.indicators.comparison import ScenarioResult, compare_models
from advrisk.risk.indicators.tree import arm_risks

NASTY = '<script>alert("x")</script>'
ARMS = ("clean", "rain-1", "rain-2", "rain-10", "fog-1", "pgd-8")
KIND = ("clean", *["corruption"] * 4, "attack")
TOWN = {
    "wet": {"weight": 0.3, "of": {"rain": 0.8, "fog": 0.2}},
    "evil": {"weight": 0.01, "arms": ["pgd-*"]},
}
PERCENT = (0.0, 1.0)


def tensor(model: str, harm: float, *, n: int = 300, scale: float = 1.0) -> RiskTensor:
    """A model whose arms go wrong as often as `harm` says."""
    rng = np.random.default_rng(3)
    odds = harm * np.array([0.05, 0.1, 0.3, 0.5, 0.2, 0.9])
    values = (rng.random((n, len(ARMS))) < odds).astype(float) * scale
    return RiskTensor.from_arrays(
        values,
        arms=ARMS,
        kind=KIND,
        family=["", "rain", "rain", "rain", "fog", "pgd"],
        cause=["", *["weather"] * 4, ""],
        losses=["cost"],
        label=np.arange(n) % 2,
        strata={"light": np.where(np.arange(n) % 3 == 0, "night", "day").tolist()},
        ranges={"cost": (0.0, scale)},
        model=model,
    )


def result_of(harms: Mapping[str, float], *, scale: float = 1.0, n: int = 300) -> ScenarioResult:
    tensors = {model: tensor(model, harm, scale=scale, n=n) for model, harm in harms.items()}
    return compare_models(tensors, Scenario.from_mapping("town", TOWN), loss="cost")


def assessment(
    harms: Mapping[str, float], *, scale: float = 1.0, towns: Mapping[str, Mapping[str, Any]] | None = None
) -> IndicatorAssessment:
    """Every town under the loss `cost`."""
    tensors = {model: tensor(model, harm, scale=scale) for model, harm in harms.items()}
    results = [
        compare_models(tensors, Scenario.from_mapping(name, town), loss="cost")
        for name, town in (towns or {"town": TOWN}).items()
    ]
    arms = {"cost": {model: arm_risks(one) for model, one in tensors.items()}}
    return IndicatorAssessment(tuple(results), arms, (), {}, 0.95, ("A note.",), None)
