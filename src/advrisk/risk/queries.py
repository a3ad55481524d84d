"""Robust accuracy of a random model: how often single queries err at the points that attacks kept.

The judge decides the success of an attack by the majority of its draws. In use, the model answers each query by one
draw: its robust accuracy is the share of *queries* that it answers correctly. At each sample the attacker takes the
worst point within eps, including the clean input. The choice of that point and its error rate come from different draws
(`indicators.draws`).

The walk back to the clean input finds where most draws succeed, not how often a query errs there. So a size that no
attack had as its eps is refused, unless an attack minimised the distance.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.numbers import size_text
from advrisk.risk.indicators.draws import worst

Floats = NDArray[np.float64]
TriedAttack = tuple[float | None, str | None]  # eps and `keep`


def was_tried(size: float, attacks: Iterable[TriedAttack]) -> bool:
    """Whether an attack had this eps or none, or minimised the distance up to at least this size.

    An attack at a fixed eps uses all of it, and gives little information about smaller sizes.
    """
    return size == 0 or any(
        eps is None or math.isclose(eps, size, rel_tol=1e-9) or (keep == "smallest" and eps >= size)
        for eps, keep in attacks
    )


@dataclass(frozen=True, eq=False)
class QueryPoints:
    """Points at which a random model was queried, (points, samples), with their distances and error rates.

    `hit` and `wrong` are pairs of shares of draws, over the early and the late draws. `distance` is infinite where
    there is no point.
    """

    model: str
    distance: Floats
    hit: tuple[Floats, Floats]  # draws that meet the criterion of success
    wrong: tuple[Floats, Floats]  # draws without a correct answer, refusals included
    early_share: float
    attacks: tuple[TriedAttack, ...]

    def measured(self, eps: float) -> bool:
        """Whether an attack measured this size (`was_tried`)."""
        return was_tried(eps, self.attacks)

    def broken(self, eps: float) -> Floats:
        """Share of queries at each sample that succeed for an attacker within eps."""
        return self._worst(self.hit, eps)

    def correct(self, eps: float) -> Floats:
        """Share of queries at each sample with a correct answer under an attacker within eps."""
        return np.asarray(1 - self._worst(self.wrong, eps))

    def _worst(self, parts: tuple[Floats, Floats], eps: float) -> Floats:
        if not self.measured(eps):
            raise RiskError(
                f"{self.model} answers at random, and no attack had an eps of {size_text(eps)}, so robust accuracy is "
                "not measured there; add an attack with that eps"
            )
        inside = self.distance <= eps
        early, late = (np.where(inside, part, -1.0) for part in parts)
        error_rate = np.where(inside.any(axis=0), worst(early, late, self.early_share), 0.0)
        return np.asarray(np.clip(error_rate, 0.0, 1.0))
