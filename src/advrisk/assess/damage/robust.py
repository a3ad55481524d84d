"""Robust accuracy at any size, and the sizes at which an attack tried to break a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.evasion import Floats
from advrisk.risk.mean_share import mean_share
from advrisk.risk.queries import QueryPoints, TriedAttack, was_tried

_POINTS = 60  # of a smooth curve


@dataclass(frozen=True, eq=False)
class Robustness:
    """What robust accuracy is computed from.

    `correct` holds, by model, 1 for each sample that is correct clean; `queries` are of models that answer at random.
    """

    by_model: Mapping[str, Floats]
    level: float
    targeted: bool = False
    correct: Mapping[str, Floats] = field(default_factory=dict)
    queries: Mapping[str, QueryPoints] = field(default_factory=dict)
    attacks: tuple[TriedAttack, ...] = ()

    def broken(self, model: str, eps: float) -> Estimate:
        """The share of samples broken within eps; of a model that answers at random, the share of queries."""
        points = self.queries.get(model)
        shares = self.by_model[model] <= eps if points is None else points.broken(eps)
        return mean_share(shares, level=self.level)

    def robust(self, model: str, eps: float) -> Estimate:
        """The share of samples, or of queries to a model that answers at random, that stay correct within eps.

        Of samples that are not broken, those that are correct clean, where that is known sample by sample: judged by
        the label, what is wrong clean has the distance 0.
        """
        if points := self.queries.get(model):
            return mean_share(points.correct(eps), level=self.level)
        found = self.by_model[model]
        return mean_share(self.correct.get(model, np.ones(len(found))) * (found > eps), level=self.level)

    def curve_sizes(self, thresholds: Sequence[float]) -> list[float]:
        """Sizes up to the largest distance at which an attack was tried: many if one looked for the smallest change."""
        found = np.concatenate(list(self.by_model.values()))
        largest = float(max(found[np.isfinite(found)].max(initial=0.0), *thresholds, 0.0))
        tried = {eps for eps, _ in self.attacks if eps is not None} | set(thresholds)
        sizes = {*np.linspace(0, 1.02 * largest, _POINTS).tolist(), *(eps for eps in tried if eps <= 2 * largest)}
        random = [points for model, points in self.queries.items() if model in self.by_model]
        return sorted(
            size for size in sizes if was_tried(size, self.attacks) and all(points.measured(size) for points in random)
        )
