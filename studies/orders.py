"""Orders of models by risk, and what turns them round: the size that is asked about, the sample, the other models.

Everything here works on distances by model, paired by sample, as `Run.damage().distances.by_model` holds them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.numbers import size_text
from advrisk.risk.convergence import DAMAGE, MEAN, SMALLEST
from advrisk.risk.damage import (
    compare_damage,
    detector_free_damage,
    minimal_perturbation_size,
    resampled_damage,
    success_ratio,
)
from advrisk.risk.evasion import Evasion, paired_distances

Floats = NDArray[np.float64]
ByModel = Mapping[str, Floats]
MOST_MODELS = 12  # of which all subsets are still tried within a minute


@dataclass(frozen=True)
class Paired:
    """Two models at one size: their success ratios, the samples that only one of them loses, and an exact p-value."""

    eps: float
    ratios: tuple[float, float]
    only: tuple[int, int]
    p_value: float


@dataclass(frozen=True)
class Disagreement:
    """`first` has fewer samples broken than `second` at the smaller size, and more at the larger one."""

    first: str
    second: str
    small: Paired
    large: Paired
    p_value: float  # of both together, corrected for the number of pairs


@dataclass(frozen=True)
class Swap:
    """`lower` has less relative damage than `higher` among all models, and more once `dropped` are left out."""

    dropped: tuple[str, ...]
    lower: str
    higher: str
    before: Estimate  # damage of `lower` minus that of `higher`
    after: Estimate


@dataclass(frozen=True)
class Agreement:
    """How many pairs of models all samples tell apart, and the share of these that drawn ones put in the same order."""

    n_pairs: int
    shares: tuple[float, ...]  # nan without such pairs


@dataclass(frozen=True)
class Smallest:
    """The two smallest sizes of a model, and its rank by the first and, once its nearest sample is left out, the next.

    `next` is None if only one sample has a size."""

    value: float
    next: float | None
    rank: int
    rank_without: int | None


def paired_at(distances: ByModel, first: str, second: str, eps: float) -> Paired:
    """McNemar's test, exact: given how many samples only one of two models loses, either is as likely to."""
    from scipy.stats import binomtest

    a, b = (np.asarray(distances[model]) <= eps for model in (first, second))
    only = int((a & ~b).sum()), int((b & ~a).sum())
    p_value = float(binomtest(only[0], sum(only)).pvalue) if sum(only) else 1.0
    return Paired(eps, (float(a.mean()), float(b.mean())), only, p_value)


def disagreements(distances: ByModel, *, small: float, large: float) -> list[Disagreement]:
    """Pairs of models that success ratios at two sizes put into opposite orders, the surest first.

    Opposite orders are more than noise if *both* are: so the larger of the two p-values counts. All pairs were
    looked through; Holm's correction allows for that.
    """
    _check_sizes(small, large)
    found = []
    for one, other in combinations(distances, 2):
        first, second = sorted((one, other), key=lambda name: success_ratio(distances[name], small)[()])
        at = paired_at(distances, first, second, small), paired_at(distances, first, second, large)
        if at[0].ratios[0] < at[0].ratios[1] and at[1].ratios[0] > at[1].ratios[1]:
            found.append((first, second, *at))
    found.sort(key=lambda row: max(row[2].p_value, row[3].p_value))
    n_pairs = len(distances) * (len(distances) - 1) // 2
    corrected = holm([max(row[2].p_value, row[3].p_value) for row in found], n_pairs)
    return [Disagreement(*row, p_value) for row, p_value in zip(found, corrected, strict=True)]


def holm(p_values: Sequence[float], n_tests: int) -> list[float]:
    """Holm's correction of ascending p-values, the smallest of `n_tests`."""
    corrected: list[float] = []
    for place, p_value in enumerate(p_values):
        corrected.append(min(1.0, max([(n_tests - place) * p_value, *corrected[-1:]])))
    return corrected


def swaps(distances: ByModel, *, rng: np.random.Generator) -> list[Swap]:
    """How the order of two models by relative damage is turned round by leaving out others, of all sets of others.

    For each pair that can be turned: the smallest set that does it, and the one after which the difference is largest.
    """
    models = tuple(distances)
    if len(models) > MOST_MODELS:
        raise RiskError(f"all subsets of {len(models)} models are too many; compare at most {MOST_MODELS}")
    before = detector_free_damage(distances, resamples=1, rng=rng)
    found: dict[tuple[str, str], list[Swap]] = {}
    for dropped in _subsets(models):
        kept = {model: values for model, values in distances.items() if model not in dropped}
        after = detector_free_damage(kept, resamples=1, rng=rng)
        for lower, higher in _ordered(before.estimates, kept):
            if after.estimates[lower].value > after.estimates[higher].value:
                differences = before.difference(lower, higher), after.difference(lower, higher)
                found.setdefault((lower, higher), []).append(Swap(dropped, lower, higher, *differences))
    return [swap for ways in found.values() for swap in _fewest_and_largest(ways)]


def _fewest_and_largest(ways: Sequence[Swap]) -> list[Swap]:
    """Of the ways to turn a pair round, ordered by how many models are left out."""
    largest = max(ways, key=lambda swap: swap.after.value)
    return [ways[0]] if largest is ways[0] else [ways[0], largest]


def votes(distances: ByModel, lower: str, higher: str) -> dict[str, float]:
    """How each compared model takes part in the difference of relative damage of two of them.

    P_j = #{(i, k, l): d_kl > d_ji} / (I^2 J) is also the mean over all compared distances d_kl of the share of model
    j's samples broken *below* d_kl: every model votes with its own distances for sizes at which success is counted.
    """
    a, b = (np.sort(distances[model]) for model in (lower, higher))
    return {
        model: float(np.mean(np.searchsorted(a, sizes) - np.searchsorted(b, sizes)) / a.size)
        for model, sizes in distances.items()
    }


def left_out(distances: ByModel, *, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """Relative damage of the others when each model in turn is left out: left-out model -> model -> damage."""
    found = {}
    for dropped in distances if len(distances) > 2 else ():
        kept = {model: values for model, values in distances.items() if model != dropped}
        estimates = detector_free_damage(kept, resamples=1, rng=rng).estimates
        found[dropped] = {model: estimate.value for model, estimate in estimates.items()}
    return found


def largest_change(distances: ByModel, evasion: Evasion, *, rng: np.random.Generator) -> float:
    """How far damage under a given curve moves at most when any one of the other models is left out."""
    full = compare_damage(distances, evasion, rng=rng).estimates
    changes = [0.0]
    for dropped in distances if len(distances) > 1 else ():
        kept = {model: values for model, values in distances.items() if model != dropped}
        rest = compare_damage(kept, evasion, rng=rng).estimates
        changes += [abs(rest[model].value - full[model].value) for model in kept]
    return max(changes)


def smallest_sizes(distances: ByModel) -> dict[str, Smallest]:
    """What minimal sizes rest on. Models without a size (nothing, or nothing right, was broken) are left out."""
    sizes = {model: np.sort(found[(found > 0) & np.isfinite(found)]) for model, found in distances.items()}
    sizes = {model: found for model, found in sizes.items() if found.size}
    least = {model: minimal_perturbation_size(distances[model]).value for model in sizes}
    return {
        model: Smallest(
            least[model],
            float(found[1]) if found.size > 1 else None,
            ranks(least)[model],
            ranks(least | {model: float(found[1])})[model] if found.size > 1 else None,
        )
        for model, found in sizes.items()
    }


def ranks(values: Mapping[str, float]) -> dict[str, int]:
    """1 for the largest value, the hardest to break; equal values share the better rank."""
    return {model: 1 + sum(other > value for other in values.values()) for model, value in values.items()}


def same_order(
    distances: ByModel, *, counts: Sequence[int], thresholds: Sequence[float], resamples: int, rng: np.random.Generator
) -> dict[str, Agreement]:
    """By measure: the share of pairs that n drawn samples order as all samples do, for each n of `counts`.

    Samples are drawn with replacement. A pair that the drawn samples do not tell apart counts half; pairs that all
    samples together do not tell apart are left out.
    """
    _, matrix = paired_distances(distances)
    n = matrix.shape[1]
    drawn = rng.integers(n, size=(resamples, max(counts)))
    everything = np.arange(n)[None]
    measures: dict[str, Callable[[NDArray[np.int64], int], Floats]] = {
        f"attack success rate at {size_text(eps)}": lambda rows, m, eps=eps: (matrix <= eps)[:, rows[:, :m]].mean(2)
        for eps in thresholds
    }
    measures[SMALLEST] = lambda rows, m: _sizes(matrix[:, rows[:, :m]], np.nanmin)
    measures[MEAN] = lambda rows, m: _sizes(matrix[:, rows[:, :m]], np.nanmean)
    measures[DAMAGE] = lambda rows, m: resampled_damage(matrix, rows[:, :m], np.array([m]))[:, :, 0]
    found = {}
    for name, measure in measures.items():
        full = measure(everything, n)[:, 0]
        pairs = [pair for pair in combinations(range(len(full)), 2) if np.abs(np.diff(full[list(pair)])) > 0]
        found[name] = Agreement(len(pairs), tuple(_share(measure(drawn, m), full, pairs) for m in counts))
    return found


def _share(drawn: Floats, full: Floats, pairs: Sequence[tuple[int, int]]) -> float:
    """Values (models, resamples) against those of all samples: the share of pairs in the same order."""
    signs = [np.nan_to_num(np.sign(drawn[i] - drawn[j])) * np.sign(full[i] - full[j]) for i, j in pairs]
    return float((1 + np.mean(signs)) / 2) if pairs else math.nan


def _sizes(drawn: Floats, of: Callable[..., Floats]) -> Floats:
    """Smallest or mean over 0 < d < inf of (models, resamples, samples), NaN where there is none."""
    sized = np.where((drawn > 0) & np.isfinite(drawn), drawn, np.nan)
    values = np.full(sized.shape[:2], np.nan)
    some = np.isfinite(sized).any(axis=2)
    values[some] = of(sized[some], axis=1)
    return values


def _subsets(models: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """What can be left out so that two models or more remain, the fewest first."""
    for size in range(1, len(models) - 1):
        yield from combinations(models, size)


def _ordered(estimates: Mapping[str, Estimate], kept: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for one, other in combinations(kept, 2):
        if estimates[one].value != estimates[other].value:
            lower, higher = sorted((one, other), key=lambda model: estimates[model].value)
            yield lower, higher


def _check_sizes(small: float, large: float) -> None:
    if not 0 <= small < large:
        raise RiskError(f"two sizes, the smaller first, are needed to compare orders; found {small} and {large}")
