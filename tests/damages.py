"""Damage of made-up models, for tests of what is said of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from advrisk.assess.damage.assessment import DamageAssessment, assess_distances
from advrisk.assess.damage.distances import Distances
from advrisk.risk.conflicts import Stated
from advrisk.risk.proportion import proportion
from advrisk.study import DamageSpec

EPS = 8 / 255
N = 100


def assessed(
    broken: Mapping[str, int], wrong: Mapping[str, int], *, eps: Sequence[float] = (EPS,), **more: Any
) -> DamageAssessment:
    """Of 100 samples of each model, the first `wrong` are incorrect clean, the next `broken` fall evenly up to eps and
    the others twice as far."""
    by_model, correct = {}, {}
    for model, n in broken.items():
        found = np.full(N, 2 * EPS)
        found[wrong[model] : wrong[model] + n] = EPS * np.arange(1, n + 1) / (n + 1)
        found[: wrong[model]] = 0
        by_model[model], correct[model] = found, (np.arange(N) >= wrong[model]).astype(np.float64)
    distances = Distances("linf", ("pgd",), tuple(map(str, range(N))), N, by_model, 0, 0)
    return assess_distances(
        distances,
        DamageSpec(),
        thresholds=tuple(eps),
        accuracy={model: proportion(N - n, N) for model, n in wrong.items()},
        stated=Stated(tuple(eps), correct=correct),
        rng=np.random.default_rng(0),
        **more,
    )


TRADE_OFF = {"broken": {"std": 92, "adv": 30}, "wrong": {"std": 8, "adv": 20}}
OPEN = {"broken": {"std": 92, "adv": 50}, "wrong": {"std": 8, "adv": 30}}
BETTER = {"broken": {"std": 92, "adv": 50}, "wrong": {"std": 8, "adv": 8}}
