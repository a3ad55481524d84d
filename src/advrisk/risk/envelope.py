"""Optimality of arms: the distances of each arm against the envelope, the smallest distance over all arms.

Optimality is that of AttackBench (Cinà et al. 2024, arXiv:2404.19460). The robust accuracy of arm a at ε is the share
of samples that it did not break within ε, ρ_a(ε) = #{i: d_i > ε} / n; ρ* is that of the envelope, and ρ_0 the clean
accuracy, which remains under an attack that never succeeds. Then

    ξ_a = 1 − ∫ (ρ_a − ρ*) dε / ∫ (ρ_0 − ρ*) dε,    both from 0 to ε0.

The area under a step function is a sum, n ∫ ρ_a dε = Σ_i min(d_i, ε0), so that over the samples with d*_i > 0

    ξ_a = Σ_i (ε0 − min(d_i, ε0)) / Σ_i (ε0 − min(d*_i, ε0)).

Differences from the paper:
- In the paper, ε0 is the ε at which the envelope reaches zero. If samples resist every arm there is none; here it is
  the largest finite distance of the envelope, which is the same if all samples are broken.
- The authors' program interpolates the steps linearly; here the area is exact.
- If no sample is broken, or all at the same distance, both areas are zero and ξ is undefined (None).
- The run's own arms determine the envelope and ε0. So ξ compares these arms with each other; the same arm among other
  arms has another ξ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-6  # relative tolerance of equal distances

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ArmOptimality:
    """Results of one arm (or all arms of a family) on one model, or on all models together.

    For all models, shares and passes are means and counts are sums. `nearest` and `only` count samples that an attack
    broke, not those that are wrong clean.
    """

    name: str
    broken: float  # share of samples, including those that are wrong clean
    passes: float | None  # forward and backward per sample, without the judge's; None if not counted
    optimality: float | None
    nearest: int  # samples where this arm came closest, alone or with others
    only: int  # samples where no other arm did as well
    lost: float | None  # optimality that all arms together would lose without it
    flags: tuple[str, ...] = ()


def optimality(distances: Array, envelope: Array) -> float | None:
    """ξ of one arm against the envelope of all arms."""
    broken = envelope[(envelope > 0) & (envelope < np.inf)]
    if not broken.size or np.ptp(broken) <= ROUNDING * broken.max():
        return None
    reach, correct = broken.max(), envelope > 0
    gained = reach - np.minimum(distances[correct], reach)
    possible = reach - np.minimum(envelope[correct], reach)
    return float(gained.sum() / possible.sum())


def spare_arms(distance: Array, passes: Array) -> NDArray[np.bool_]:
    """Arms that can be removed together without changing a smallest distance, from (models, arms, samples).

    Arms with the most passes are tried first. If two arms have the same distances, one of them stays.
    """
    envelope = distance.min(1)
    spare = np.zeros(distance.shape[1], dtype=bool)
    if not ((envelope > 0) & (envelope < np.inf)).any():
        return spare  # without a broken sample, arms cannot be compared
    for arm in np.argsort(-np.nan_to_num(passes.mean(0)), kind="stable"):
        spare[arm] = True
        if not _same(distance[:, ~spare].min(1, initial=np.inf), envelope).all():
            spare[arm] = False
    return spare


def without_each(distances: Array) -> Array:
    """Envelope without each arm in turn, from (arms, samples)."""
    if len(distances) == 1:
        return np.full(distances.shape, np.inf)
    smallest, second = np.partition(distances, 1, axis=0)[:2]
    without: Array = np.where(distances == smallest, second, smallest)  # if two arms tie, second equals smallest
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
    """For each model, one row per arm."""
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
    remaining = optimality(without, envelope)
    return ArmOptimality(
        name=name,
        broken=float(np.isfinite(arm).mean()),
        passes=None if np.isnan(passes) else float(passes),
        optimality=optimality(arm, envelope),
        nearest=int((_same(arm, envelope) & attacked).sum()),
        only=int((~_same(without, envelope) & attacked).sum()),
        lost=None if remaining is None else 1 - remaining,
        flags=flags,
    )


def mean_of_models(by_model: Sequence[Sequence[ArmOptimality]]) -> tuple[ArmOptimality, ...]:
    """Combine the rows of all models: means of shares, sums of counts, all flags."""
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
    """Mean over the models that have a value; AttackBench's global optimality."""
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def most_useful_first(rows: Sequence[ArmOptimality], spare: NDArray[np.bool_]) -> list[int]:
    """Indices of the arms, spare ones last, by optimality; with equal optimality, the cheaper arm first."""

    def key(index: int) -> tuple[bool, float, int, float]:
        row = rows[index]
        return bool(spare[index]), -(row.optimality or 0.0), -row.only, row.passes or 0.0

    return sorted(range(len(rows)), key=key)
