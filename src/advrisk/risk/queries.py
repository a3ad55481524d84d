"""What a query meets: how often a model that answers at random errs at the points that attacks kept.

Whether an attack succeeded against such a model is decided by most of the judge's draws. In use it answers each query
by one draw: its robust accuracy is the share of *queries* that it answers correctly. At each sample the attacker
takes the worst point within eps, the clean input being one of them; which one that is, and how often it errs, come from
different draws (`indicators.draws`).

The walk back to the clean input says where most draws call a point a success, not how often a query errs there. So a
size that no attack had for its eps is refused, unless an attack looked for the smallest change.
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
TriedAttack = tuple[float | None, str | None]  # its eps and `keep`


def was_tried(size: float, attacks: Iterable[TriedAttack]) -> bool:
    """Whether an attack had this eps or none, or looked for the smallest change at least so far.

    An attack that may go as far as its eps does so, and says little of sizes in between.
    """
    return size == 0 or any(
        eps is None or math.isclose(eps, size, rel_tol=1e-9) or (keep == "smallest" and eps >= size)
        for eps, keep in attacks
    )


@dataclass(frozen=True, eq=False)
class QueryPoints:
    """The points that a random model was asked about, (points, samples): how far, and the shares of draws that err.

    `hit` is what the criterion of success says, `wrong` what the label does, a refused query being no correct answer.
    Each is a pair: over the first part of the draws, and over the rest. `distance` is infinite where there is no point.
    `attacks` are the eps and `keep` of each attack.
    """

    model: str
    distance: Floats
    hit: tuple[Floats, Floats]
    wrong: tuple[Floats, Floats]
    early_share: float
    attacks: tuple[TriedAttack, ...]

    def measured(self, eps: float) -> bool:
        """Whether an attack was made at this size, or one that looked for the smallest change up to it."""
        return was_tried(eps, self.attacks)

    def broken(self, eps: float) -> Floats:
        """The share of queries at each sample that an attacker within eps makes succeed."""
        return self._worst(self.hit, eps)

    def correct(self, eps: float) -> Floats:
        """The share of queries at each sample that are answered correctly under such an attacker."""
        return np.asarray(1 - self._worst(self.wrong, eps))

    def _worst(self, parts: tuple[Floats, Floats], eps: float) -> Floats:
        if not self.measured(eps):
            raise RiskError(
                f"{self.model} answers at random, and no attack had an eps of {size_text(eps)}: how often a query errs "
                "there is not measured; add an attack with that eps"
            )
        inside = self.distance <= eps
        early, late = (np.where(inside, part, -1.0) for part in parts)
        found = np.where(inside.any(axis=0), worst(early, late, self.early_share), 0.0)
        return np.asarray(np.clip(found, 0.0, 1.0))
