"""Which arms earn their passes: each arm's distances against the envelope, the smallest that any arm found.

Optimality is measured as AttackBench does (Cinà et al. 2024, arXiv:2404.19460). The robust accuracy of arm a at ε is
the share of samples that it did not break within ε, ρ_a(ε) = #{i: d_i > ε} / n; ρ* is that of the envelope, ρ_0 the
clean accuracy, which is what an attack that never succeeds leaves. Then

    ξ_a = 1 − ∫ (ρ_a − ρ*) dε / ∫ (ρ_0 − ρ*) dε,    both from 0 to ε0.

The area under a curve of steps is a sum, n ∫ ρ_a dε = Σ_i min(d_i, ε0), so that over the samples with d*_i > 0

    ξ_a = Σ_i (ε0 − min(d_i, ε0)) / Σ_i (ε0 − min(d*_i, ε0)).

Where this differs from the paper:
- ε0 is there the ε at which the envelope reaches zero. Where samples resist every arm there is none; here it is the
  largest finite distance of the envelope, which is the same thing where all are broken.
- The authors' program joins the steps by straight lines; here the area is exact.
- Where nothing is broken, or everything at one and the same distance, both areas are empty: ξ is undefined (None).
- The envelope is that of the run's own arms, and ε0 with it. So ξ compares these arms with each other; the same arm
  among other arms has another ξ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-6  # distances that differ by less, relatively, are equal

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ArmOptimality:
    """What one arm (or all arms of a family) found of one model, or of all models together.

    Of all models, shares and passes are means and counts are sums. `nearest` and `only` count samples that were broken
    by attack, not those that were wrong from the start.
    """

    name: str
    broken: float  # share of samples, with those that were wrong from the start
    passes: float | None  # forward and backward per sample, the judge's not counted; None where nobody counted
    optimality: float | None
    nearest: int  # samples of which it found the smallest distance, alone or with others
    only: int  # samples whose smallest distance would grow without it
    lost: float | None  # how much optimality all arms together would lose without it
    flags: tuple[str, ...] = ()


def optimality(distances: Array, envelope: Array) -> float | None:
    """ξ of one arm against the envelope of all; see the top of this file."""
    broken = envelope[(envelope > 0) & (envelope < np.inf)]
    if not broken.size or np.ptp(broken) <= ROUNDING * broken.max():
        return None
    reach, right = broken.max(), envelope > 0
    gained = reach - np.minimum(distances[right], reach)
    possible = reach - np.minimum(envelope[right], reach)
    return float(gained.sum() / possible.sum())


def spare_arms(distance: Array, passes: Array) -> NDArray[np.bool_]:
    """Arms that can all go at once without changing a smallest distance, of (models, arms, samples).

    They are tried one by one, those with the most passes first. Where two arms found the same, one of them stays.
    """
    envelope = distance.min(1)
    spare = np.zeros(distance.shape[1], dtype=bool)
    if not ((envelope > 0) & (envelope < np.inf)).any():
        return spare  # nothing was broken: that says nothing about any arm
    for place in np.argsort(-np.nan_to_num(passes.mean(0)), kind="stable"):
        spare[place] = True
        if not _same(distance[:, ~spare].min(1, initial=np.inf), envelope).all():
            spare[place] = False
    return spare


def without_each(distances: Array) -> Array:
    """The envelope without each arm in turn, of (arms, samples)."""
    if len(distances) == 1:
        return np.full(distances.shape, np.inf)
    smallest, second = np.partition(distances, 1, axis=0)[:2]
    without: Array = np.where(distances == smallest, second, smallest)  # of two that tie, second is smallest
    return without


def _same(distance: Array, envelope: Array) -> NDArray[np.bool_]:
    return distance <= envelope * (1 + ROUNDING)


def compared_arms(
    distance: Array,
    passes: Array,
    names: Sequence[str],
    models: Sequence[str],
    flags: Mapping[tuple[str, str], tuple[str, ...]],
) -> list[list[ArmOptimality]]:
    """For each model, a row for each of the names."""
    return [
        [
            _row(name, arm, without, of_model.min(0), passes[m, a], flags.get((model, name), ()))
            for a, (name, arm, without) in enumerate(zip(names, of_model, without_each(of_model), strict=True))
        ]
        for m, (model, of_model) in enumerate(zip(models, distance, strict=True))
    ]


def _row(
    name: str, arm: Array, without: Array, envelope: Array, passes: float, flags: tuple[str, ...]
) -> ArmOptimality:
    attacked = (envelope > 0) & (envelope < np.inf)
    left = optimality(without, envelope)
    return ArmOptimality(
        name=name,
        broken=float(np.isfinite(arm).mean()),
        passes=None if np.isnan(passes) else float(passes),
        optimality=optimality(arm, envelope),
        nearest=int((_same(arm, envelope) & attacked).sum()),
        only=int((~_same(without, envelope) & attacked).sum()),
        lost=None if left is None else 1 - left,
        flags=flags,
    )


def mean_of_models(by_model: Sequence[Sequence[ArmOptimality]]) -> tuple[ArmOptimality, ...]:
    """The rows of all models in one: means of shares, sums of counts, every flag."""
    return tuple(
        ArmOptimality(
            name=rows[0].name,
            broken=float(np.mean([row.broken for row in rows])),
            passes=_mean([row.passes for row in rows]),
            optimality=_mean([row.optimality for row in rows]),
            nearest=sum(row.nearest for row in rows),
            only=sum(row.only for row in rows),
            lost=_mean([row.lost for row in rows]),
            flags=tuple(dict.fromkeys(flag for row in rows for flag in row.flags)),
        )
        for rows in zip(*by_model, strict=True)
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Over the models of which it is known; AttackBench's global optimality."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def most_useful_first(rows: Sequence[ArmOptimality], spare: NDArray[np.bool_]) -> list[int]:
    """Spare arms last; otherwise by optimality, and of equal ones the cheaper first."""

    def key(place: int) -> tuple[bool, float, int, float]:
        row = rows[place]
        return bool(spare[place]), -(row.optimality or 0.0), -row.only, row.passes or 0.0

    return sorted(range(len(rows)), key=key)
