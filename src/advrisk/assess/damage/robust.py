"""Robust accuracy at any size, and the sizes at which an attack was tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.evasion import Floats
from advrisk.risk.mean_share import mean_share
from advrisk.risk.queries import QueryPoints, TriedAttack, was_tried

_POINTS = 60  # on a smooth curve


@dataclass(frozen=True, eq=False)
class Robustness:
    """The data from which robust accuracy is computed.

    `correct` is, by model, 1 for each sample that is correct clean; `queries` belong to models that answer at random.
    """

    by_model: Mapping[str, Floats]
    level: float
    targeted: bool = False
    correct: Mapping[str, Floats] = field(default_factory=dict)
    queries: Mapping[str, QueryPoints] = field(default_factory=dict)
    attacks: tuple[TriedAttack, ...] = ()

    def broken(self, model: str, eps: float) -> Estimate:
        """The share of samples broken within eps; for a model that answers at random, of queries."""
        points = self.queries.get(model)
        shares = self.by_model[model] <= eps if points is None else points.broken(eps)
        return mean_share(shares, level=self.level)

    def robust(self, model: str, eps: float) -> Estimate:
        """The share of samples, or of queries to a model that answers at random, that stay correct within eps.

        Samples that are incorrect clean do not count as robust. Where `correct` lacks the model, their distance is 0
        anyway if the label is the criterion.
        """
        if points := self.queries.get(model):
            return mean_share(points.correct(eps), level=self.level)
        distances = self.by_model[model]
        return mean_share(self.correct.get(model, np.ones(len(distances))) * (distances > eps), level=self.level)

    def curve_sizes(self, thresholds: Sequence[float]) -> list[float]:
        """Sizes up to the largest distance at which an attack was tried: many if one minimised the distance."""
        distances = np.concatenate(list(self.by_model.values()))
        largest = float(max(distances[np.isfinite(distances)].max(initial=0.0), *thresholds, 0.0))
        tried = {eps for eps, _ in self.attacks if eps is not None} | set(thresholds)
        sizes = {*np.linspace(0, 1.02 * largest, _POINTS).tolist(), *(eps for eps in tried if eps <= 2 * largest)}
        random = [points for model, points in self.queries.items() if model in self.by_model]
        return sorted(
            size for size in sizes if was_tried(size, self.attacks) and all(points.measured(size) for points in random)
        )
