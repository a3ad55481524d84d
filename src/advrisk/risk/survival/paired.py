"""Criteria of the Pareto front: values of every model and paired differences on the same samples."""

import math
from itertools import permutations

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.proportion import half_width, t_quantile
from advrisk.risk.survival.cost import rate_influence
from advrisk.risk.survival.durations import Durations
from advrisk.risk.survival.frames import Floats
from advrisk.risk.survival.pareto import Criterion

ACCURACY, FAILURES, TRAINING = "clean accuracy", "failures under attack", "training seconds"


def clean_accuracies(durations: Durations, level: float) -> Criterion | None:
    """Clean accuracy; differences use the samples that both models answered."""
    right = {model: durations.facts[model].right for model in durations.models}
    if any(found is None for found in right.values()):
        return None
    values = {model: float(np.mean(list((found or {}).values()))) for model, found in right.items()}
    differences = {}
    for a, b in permutations(durations.models, 2):
        own, other = right[a] or {}, right[b] or {}
        both = sorted(own.keys() & other.keys())
        if not both:
            return None
        gaps = np.array([float(own[sample]) - float(other[sample]) for sample in both])
        error = float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else 1.0
        half = half_width(error, len(gaps), level) if len(gaps) > 1 else math.inf
        value = float(gaps.mean())
        differences[a, b] = Estimate(value, value - half, value + half, level, len(gaps), "paired difference")
    return Criterion(ACCURACY, values, differences, more_is_better=True)


def failure_rates(durations: Durations, level: float) -> Criterion | None:
    """f_adv: failures over time spent, for each model; differences by the samples' influence on both."""
    found = {model: durations.by_sample(model) for model in durations.models}
    if any(not spent.sum() > 0 for _, spent in found.values()):
        return None
    values = {model: float(failures.sum() / spent.sum()) for model, (failures, spent) in found.items()}
    influence = {model: rate_influence(*both) for model, both in found.items()}
    differences = {
        (a, b): _difference(values[a] - values[b], influence[a] - influence[b], level)
        for a, b in permutations(durations.models, 2)
    }
    return Criterion(FAILURES, values, differences, more_is_better=False)


def training_costs(durations: Durations, level: float) -> Criterion | None:
    """Measured training seconds, an exact number for each model."""
    seconds = {model: durations.facts[model].train_s for model in durations.models}
    known = {model: value for model, value in seconds.items() if value is not None}
    if len(known) < len(seconds):
        return None
    differences = {}
    for a, b in permutations(durations.models, 2):
        gap = known[a] - known[b]
        differences[a, b] = Estimate(gap, gap, gap, level, 1, "as measured")
    return Criterion(TRAINING, known, differences, more_is_better=False)


def _difference(value: float, influence: Floats, level: float) -> Estimate:
    """Interval of a paired difference; infinite if no sample differs, as the spread is then unknown."""
    n = len(influence)
    spread = float(np.std(influence, ddof=1)) if n > 1 else 0.0
    half = float(t_quantile(n, level)) * spread / math.sqrt(n) if spread > 0 else math.inf
    return Estimate(value, value - half, value + half, level, n, "difference of ratios over samples, linearised")
