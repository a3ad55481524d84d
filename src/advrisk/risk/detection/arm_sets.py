"""AUROC and false-positive rate of one set of arms, with what their intervals, averages and differences need.

Whole samples are deleted or drawn, a sample being its clean input and all that arms made of it. The AUROC carries its
value after the deletion of each sample; the false-positive rate its values in resamples, the same ones for every set
of arms. So an average of sets is measured like a set: deletion by deletion, and resample by resample.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.risk.detection.resampling import Ranked, order_bounds, resampled_rates
from advrisk.risk.detection.roc import Flags, Floats, Integers, allowed_misses


@dataclass(frozen=True, eq=False)
class ArmSetRates:
    """One set of arms, or an average of several."""

    n: int  # samples that some arm broke
    auroc: float
    deleted: tuple[Floats, ...]  # AUROC without each sample; where clean and others are unrelated, of each apart
    pairs: float  # disjoint pairs of a broken sample and another's clean score: what a perfect record rests on
    fpr: float
    resampled: Floats  # false-positive rate in every resample
    bounds: tuple[float, float]  # of the false-positive rate, from order statistics
    broken: Flags  # which samples some arm broke
    parts: tuple["ArmSetRates", ...] = ()  # of an average: what it was made of


def arm_set_rates(
    clean: Floats,
    worst: Sequence[Floats],
    *,
    tpr: float,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    paired: bool = True,
) -> list[ArmSetRates]:
    """For each set of arms, given the worst-case scores of its samples (nan where no arm succeeded).

    `paired`: the i-th clean and the i-th worst-case score belong to one sample, and go together.
    """
    order = np.argsort(clean)
    sets = [Ranked.of(scores, clean[order]) for scores in worst]
    rates = resampled_rates(clean, sets, tpr=tpr, resamples=resamples, rng=rng, paired=paired)
    return [
        _measure(clean, order, scores, one, rate, tpr=tpr, level=level, paired=paired)
        for scores, one, rate in zip(worst, sets, rates, strict=True)
    ]


def _measure(
    clean: Floats,
    order: Integers,
    scores: Floats,
    found: Ranked,
    rates: Floats,
    *,
    tpr: float,
    level: float,
    paired: bool,
) -> ArmSetRates:
    value, deleted = _auroc(clean, order, scores, found, paired=paired)
    n, n_broken = clean.size, found.sample.size
    rate = (n - int(found.below[allowed_misses(n_broken, tpr)])) / n
    return ArmSetRates(
        n=n_broken,
        auroc=value,
        deleted=deleted,
        pairs=min(n_broken, n // 2 if paired else n),
        fpr=rate,
        resampled=np.where(np.isnan(rates), rate, rates),  # in a resample that no arm broke nothing is learned
        bounds=order_bounds(clean[order], found, rate, tpr=tpr, level=level),
        broken=~np.isnan(scores),
    )


def average(parts: Sequence[ArmSetRates]) -> ArmSetRates:
    """The mean of several sets, each of the same weight."""
    if not parts:
        raise RiskError("there is nothing to average")
    broken = np.any([part.broken for part in parts], axis=0)
    return ArmSetRates(
        n=int(broken.sum()),
        auroc=float(np.mean([part.auroc for part in parts])),
        deleted=tuple(np.mean(arrays, axis=0) for arrays in zip(*(part.deleted for part in parts), strict=True)),
        pairs=_harmonic_mean([part.pairs for part in parts]),
        fpr=float(np.mean([part.fpr for part in parts])),
        resampled=np.mean([part.resampled for part in parts], axis=0),
        bounds=(
            float(np.mean([part.bounds[0] for part in parts])),
            float(np.mean([part.bounds[1] for part in parts])),
        ),
        broken=broken,
        parts=tuple(parts),
    )


def _auroc(
    clean: Floats, order: Integers, scores: Floats, found: Ranked, *, paired: bool
) -> tuple[float, tuple[Floats, ...]]:
    """P(attacked > clean) + P(equal) / 2, and the same after each deletion: ratios of whole numbers.

    Pairs are counted twice, and those of equal scores once.
    """
    n, n_broken = clean.size, found.sample.size
    below = np.zeros(scores.size, dtype=np.int64)
    below[found.sample] = found.below + found.not_above
    sides = (np.searchsorted(found.score, clean[order], side=side) for side in ("left", "right"))
    above = np.empty(n, dtype=np.int64)
    above[order] = 2 * n_broken - sum(sides)
    total = int(below.sum())
    value = total / (2 * n * n_broken)
    broken = ~np.isnan(scores)
    if not paired:
        return value, (
            _ratios(total - above, n - 1, n_broken, value),
            _ratios(total - below[broken], n, n_broken - 1, value),
        )
    own = np.where(broken, 2 * (scores > clean) + (scores == clean), 0)
    return value, (_ratios(total - below - above + own, n - 1, n_broken - broken, value),)


def _ratios(twice: Integers, n: int, n_broken: Integers | int, otherwise: float) -> Floats:
    """Where nothing is left after a deletion, it tells nothing."""
    n_pairs = np.broadcast_to(np.asarray(2 * n * np.asarray(n_broken)), twice.shape)
    known = n_pairs > 0
    return np.where(known, twice / np.where(known, n_pairs, 1), otherwise)


def _harmonic_mean(values: Sequence[float]) -> float:
    return 0.0 if min(values) == 0 else len(values) / sum(1 / value for value in values)
