"""AUROC and false-positive rate of one set of arms, with the replicates for intervals, averages and differences.

The jackknife and the bootstrap delete or draw whole samples: a clean input with all its perturbed versions. The AUROC
has its value without each sample; the false-positive rate has its values in resamples, which all sets of arms share. So
an average of sets has the same replicates as a set: deletion by deletion, and resample by resample.
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
    deleted: tuple[Floats, ...]  # AUROC without each sample; two arrays if clean and attacked samples are unrelated
    pairs: float  # disjoint pairs of a broken sample and another sample's clean score
    fpr: float
    resampled: Floats  # false-positive rate in every resample
    bounds: tuple[float, float]  # of the false-positive rate, from order statistics
    broken: Flags  # which samples some arm broke
    parts: tuple["ArmSetRates", ...] = ()  # of an average: its sets


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
    """Compute the rates of each set of arms from worst-case scores (nan where no arm succeeded).

    If `paired`, the i-th clean and the i-th worst-case score belong to one sample.
    """
    order = np.argsort(clean)
    sets = [Ranked.of(scores, clean[order]) for scores in worst]
    rates = resampled_rates(clean, sets, tpr=tpr, resamples=resamples, rng=rng, paired=paired)
    return [
        _measure(clean, order, scores, ranked, rate, tpr=tpr, level=level, paired=paired)
        for scores, ranked, rate in zip(worst, sets, rates, strict=True)
    ]


def _measure(
    clean: Floats,
    order: Integers,
    scores: Floats,
    ranked: Ranked,
    rates: Floats,
    *,
    tpr: float,
    level: float,
    paired: bool,
) -> ArmSetRates:
    value, deleted = _auroc(clean, order, scores, ranked, paired=paired)
    n, n_broken = clean.size, ranked.sample.size
    rate = (n - int(ranked.below[allowed_misses(n_broken, tpr)])) / n
    return ArmSetRates(
        n=n_broken,
        auroc=value,
        deleted=deleted,
        pairs=min(n_broken, n // 2 if paired else n),
        fpr=rate,
        resampled=np.where(np.isnan(rates), rate, rates),  # nan: a resample without a broken sample
        bounds=order_bounds(clean[order], ranked, rate, tpr=tpr, level=level),
        broken=~np.isnan(scores),
    )


def average(parts: Sequence[ArmSetRates]) -> ArmSetRates:
    """Mean of several sets with equal weights."""
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
    clean: Floats, order: Integers, scores: Floats, ranked: Ranked, *, paired: bool
) -> tuple[float, tuple[Floats, ...]]:
    """P(attacked > clean) + P(equal) / 2, and the same after each deletion: ratios of integers.

    Counts are doubled, so that pairs of equal scores count 1.
    """
    n, n_broken = clean.size, ranked.sample.size
    below = np.zeros(scores.size, dtype=np.int64)
    below[ranked.sample] = ranked.below + ranked.not_above
    sides = (np.searchsorted(ranked.score, clean[order], side=side) for side in ("left", "right"))
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


def _ratios(twice: Integers, n: int, n_broken: Integers | int, default: float) -> Floats:
    """Shares of pairs from doubled counts; the default if a deletion leaves no pair."""
    n_pairs = np.broadcast_to(np.asarray(2 * n * np.asarray(n_broken)), twice.shape)
    defined = n_pairs > 0
    return np.where(defined, twice / np.where(defined, n_pairs, 1), default)


def _harmonic_mean(values: Sequence[float]) -> float:
    return 0.0 if min(values) == 0 else len(values) / sum(1 / value for value in values)
