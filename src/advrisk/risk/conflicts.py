"""Conflicts: numbers that contradict an order by relative damage, which is then undecided.

Relative damage counts only which distance is greater, over all sizes in one sum. An attack at a fixed eps gives upper
bounds of distances, and many equal ones. So an order is decided only under two conditions. It must not depend on how
ties are counted, and robust accuracy, paired on the same samples, must not be decided for the other model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from advrisk.core.estimate import Estimate
from advrisk.core.numbers import size_text
from advrisk.risk.mean_share import difference_at_least, mean_difference

Floats = NDArray[np.float64]

_SIZES = 10  # sizes to compare over the range of measured distances
_RANGE = 0.9  # quantile of distances at which that range ends

# `ties`: the order depends on how ties are counted. `opposed`: robust accuracy at a size is decided for the other
# model. With attacks at fixed eps only, `unbacked`: it is decided at no size; `unmeasured`: it is measured at none.
ConflictKind = Literal["ties", "opposed", "unbacked", "unmeasured"]


class TieValues(NamedTuple):
    """Relative damage with ties counted as not greater (the paper's W), as half, and as greater."""

    greater: float
    half: float
    not_less: float


class Queries(Protocol):
    """Outcomes of single queries to a random model, for each sample (`queries.QueryPoints`)."""

    def measured(self, eps: float) -> bool: ...

    def broken(self, eps: float) -> Floats: ...

    def correct(self, eps: float) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Stated:
    """What a study states beside distances, and an order must not contradict.

    sizes: Robust accuracy must not contradict the order at any of them.
    untried: Sizes that no attack had as its eps.
    fixed_eps: No attack measured distances, so robust accuracy must back the order at one of the tried sizes.
    correct: By model, 1 for each sample with a correct clean answer (a share of draws for a random model). Without it,
        samples that are wrong clean have the distance 0.
    queries: For random models, the share of draws that stay correct within a size.
    """

    sizes: tuple[float, ...] = ()
    untried: tuple[float, ...] = ()
    fixed_eps: bool = False
    correct: Mapping[str, Floats] = field(default_factory=dict)
    targeted: bool = False
    written: Mapping[float, str] = field(default_factory=dict)  # size -> its spelling in the study
    queries: Mapping[str, "Queries"] = field(default_factory=dict)


@dataclass(frozen=True)
class Conflict:
    """A number that contradicts the order of two models by relative damage, or does not back it."""

    kind: ConflictKind
    lower: str
    higher: str
    tied: tuple[TieValues, TieValues]  # of `lower` and `higher`
    stated: Stated = field(repr=False, compare=False)
    eps: float | None = None  # the size at which robust accuracy was compared
    shares: tuple[float, float] | None = None  # robust accuracy there; for targeted attacks, attack success rate


@dataclass(frozen=True, eq=False)
class Order:
    """Two models, the one with less relative damage first, and the distances of both on the same samples."""

    lower: str
    higher: str
    tied: Mapping[str, TieValues]
    distances: Mapping[str, Floats]
    stated: Stated
    level: float

    def conflicts(self) -> tuple[Conflict, ...]:
        """Numbers that contradict the order or do not back it."""
        tied = self.tie_conflict()
        opposed = next((one for eps in self._sizes() if (one := self._opposed(eps))), None)
        return tuple(one for one in (tied, opposed or self._unsupported) if one)

    def obstacles(self) -> tuple[Conflict, ...]:
        """Conflicts that would remain even if more samples decided relative damage in this order.

        Robust accuracy that leans the same way is no obstacle: more samples may decide it, too (`gain_to_come`).
        """
        conflicts = self.conflicts()
        return () if conflicts and conflicts == (self._unsupported,) and self.gain_to_come else conflicts

    @cached_property
    def gain_to_come(self) -> Estimate | None:
        """The clearest undecided difference of robust accuracies that favours the order; None if none is needed."""
        if not self._unsupported:
            return None
        gains = [
            mean_difference(self._robust(self.lower, eps), self._robust(self.higher, eps), level=self.level)
            for eps in self._supporting()
        ]
        return max((one for one in gains if one.value > 0), key=lambda one: one.low, default=None)

    def tie_conflict(self) -> Conflict | None:
        """The conflict if counting ties as greater, or as half, does not keep the order."""
        below, above = self.tied[self.lower], self.tied[self.higher]
        return None if below.half < above.half and below.not_less < above.not_less else self._conflict("ties")

    def _sizes(self) -> list[float]:
        """The stated sizes and others in their range, since one sum over all sizes hides a crossing of two models.

        If attacks measured distances, these are ten sizes up to the 90 % quantile. Otherwise it is half of the largest
        stated size, because bounds from fixed-eps attacks are loose far below their eps.
        """
        sizes = self.stated.sizes
        if self.stated.fixed_eps:
            return [*sizes, *(size / 2 for size in sizes[-1:] if self._measured(size / 2))]
        both = np.concatenate([self.distances[self.lower], self.distances[self.higher]])
        attacked = both[(both > 0) & np.isfinite(both)]
        reach = float(np.quantile(attacked, _RANGE)) if attacked.size else 0.0
        within = dict.fromkeys(self._readable(reach * step / _SIZES) for step in range(1, _SIZES + 1))
        return [*sizes, *filter(self._measured, within)]

    def _readable(self, size: float) -> float:
        """Round a size to a multiple of 0.5/255 if the study uses these, else to two digits."""
        steps = round(2 * 255 * size) / 2
        if steps and any(size_text(own, self.stated.written).endswith("/255") for own in self.stated.sizes):
            return steps / 255
        return float(f"{size:.2g}")

    def _measured(self, eps: float) -> bool:
        """Whether robust accuracy at a size is measured for both models; for a random model it may not be."""
        both = (self.stated.queries.get(model) for model in (self.lower, self.higher))
        return all(points is None or points.measured(eps) for points in both)

    def _opposed(self, eps: float) -> Conflict | None:
        """The conflict if the paired difference at a size is decided for the other model."""
        return self._conflict("opposed", eps) if self._ahead(self.higher, self.lower, eps) else None

    @cached_property
    def _unsupported(self) -> Conflict | None:
        """The conflict if every attack had a fixed eps, and robust accuracy is decided for `lower` at none of them."""
        if not self.stated.fixed_eps:
            return None
        sizes = self._supporting()
        if not sizes:
            return self._conflict("unmeasured")
        backed = any(self._ahead(self.lower, self.higher, eps) for eps in sizes)
        return None if backed else self._conflict("unbacked", sizes[-1])

    def _conflict(self, kind: ConflictKind, eps: float | None = None) -> Conflict:
        tied = self.tied[self.lower], self.tied[self.higher]
        shares = None if eps is None else (self._share(self.lower, eps), self._share(self.higher, eps))
        return Conflict(kind, self.lower, self.higher, tied, self.stated, eps, shares)

    def _supporting(self) -> list[float]:
        """The stated sizes that an attack had as its eps; robust accuracy at others is a bound."""
        return [eps for eps in self.stated.sizes if eps not in self.stated.untried]

    def _share(self, model: str, eps: float) -> float:
        share = float(self._robust(model, eps).mean())
        return 1 - share if self.stated.targeted else share

    def _ahead(self, one: str, other: str, eps: float) -> bool:
        """Whether robust accuracy at a size is significantly better, by a p-value that agrees with the interval."""
        at_most_0 = difference_at_least(self._robust(other, eps), self._robust(one, eps), 0.0)
        return at_most_0 < (1 - self.level) / 2

    def _robust(self, model: str, eps: float) -> Floats:
        """Robust accuracy of each sample within a size; for targeted attacks, whether the target is not reached."""
        if points := self.stated.queries.get(model):
            return 1 - points.broken(eps) if self.stated.targeted else points.correct(eps)
        resisted = (self.distances[model] > eps).astype(np.float64)
        return resisted if self.stated.targeted else resisted * self.stated.correct.get(model, 1.0)
