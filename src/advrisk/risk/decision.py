"""Pairwise comparison of damage, and how many more samples would probably decide a pair."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol, runtime_checkable

from advrisk.core.errors import RiskError
from advrisk.core.estimate import Estimate
from advrisk.core.names import did_you_mean
from advrisk.risk.conflicts import Conflict, Order

_MOST = 10**12  # samples; larger answers are of no practical use


class Comparison(Protocol):
    """What relative damage and damage under an evasion curve have in common."""

    @property
    def models(self) -> tuple[str, ...]: ...

    @property
    def n(self) -> int: ...

    @property
    def level(self) -> float: ...

    @property
    def estimates(self) -> Mapping[str, Estimate]: ...

    @property
    def clean_error(self) -> Mapping[str, float]: ...

    @property
    def probability_best(self) -> Mapping[str, float]: ...

    def difference(self, a: str, b: str) -> Estimate: ...

    def undecided(self, a: str, b: str) -> bool: ...

    def standard_errors(self, a: str, b: str) -> tuple[float, float]: ...


@runtime_checkable
class Contradictable(Protocol):
    """A comparison that other numbers may contradict, unlike one by a scenario or curve that the user stated."""

    def order(self, lower: str, higher: str) -> Order: ...


@dataclass(frozen=True)
class Pair:
    """Two models, the one with less damage first, and their paired difference."""

    lower: str
    higher: str
    difference: Estimate  # damage of `higher` minus damage of `lower`, paired
    undecided: bool
    more_samples: int | None  # that would probably decide; None if no number of samples would
    conflicts: tuple[str, ...] = ()  # numbers that contradict the order or do not back it; they make it undecided
    obstacles: tuple[str, ...] = ()  # for a pair whose interval contains 0: conflicts that more samples do not solve


def index_of(model: str, models: tuple[str, ...]) -> int:
    """Index of a compared model, or a RiskError that suggests the nearest name."""
    if model not in models:
        raise RiskError(f"no model {model!r} was compared; {did_you_mean(model, models)}")
    return models.index(model)


def ahead_of(model: str, pairs: Sequence[Pair]) -> list[str]:
    """Models whose damage is decided to be less than that of `model`."""
    return [pair.lower for pair in pairs if pair.higher == model and not pair.undecided]


def undecided_with(model: str, pairs: Sequence[Pair]) -> list[str]:
    """Models whose comparison with `model` is undecided."""
    own = [pair for pair in pairs if pair.undecided and model in (pair.lower, pair.higher)]
    return [pair.lower if pair.higher == model else pair.higher for pair in own]


def decided_pairs(
    comparison: Comparison, *, text: Callable[[Conflict], str] = lambda conflict: conflict.kind
) -> tuple[Pair, ...]:
    """All pairs of the compared models, in the order of their damage; `text` describes a conflict."""
    order = sorted(comparison.models, key=lambda model: comparison.estimates[model].value)
    return tuple(_pair(comparison, lower, higher, text) for lower, higher in combinations(order, 2))


def _pair(comparison: Comparison, lower: str, higher: str, text: Callable[[Conflict], str]) -> Pair:
    difference = comparison.difference(higher, lower)
    contains_zero = _contains_zero(difference)
    order = comparison.order(lower, higher) if isinstance(comparison, Contradictable) and difference.value else None
    if not contains_zero:
        conflicts = tuple(map(text, order.conflicts())) if order else ()
        return Pair(lower, higher, difference, bool(conflicts), None if conflicts else 0, conflicts)
    obstacles = tuple(map(text, order.obstacles())) if order else ()
    more = None if obstacles else _more_samples(comparison, difference, comparison.standard_errors(higher, lower))
    if more is not None and order and (gain := order.gain_to_come):
        support = _more_samples(comparison, gain, (_standard_error(gain), 0.0))
        more = None if support is None else max(more, support)
    return Pair(lower, higher, difference, undecided=True, more_samples=more, obstacles=obstacles)


def _standard_error(estimate: Estimate) -> float:
    """Standard error of a normal interval of the same width."""
    from scipy.special import ndtri

    return (estimate.high - estimate.low) / (2 * float(ndtri((1 + estimate.level) / 2)))


def _contains_zero(difference: Estimate) -> bool:
    return difference.low <= 0 <= difference.high


def samples_to_decide(comparison: Comparison, a: str, b: str, *, power: float = 0.8) -> int | None:
    """Number of additional samples with which the interval of the difference excludes 0 with probability `power`.

    0 if the pair is decided. None if no number of samples suffices: the models did not differ, or the error of the
    curve is too large (then more answers help).

    The observed difference and spread are taken for the true ones. With N samples, spread s, error f of the curve and
    normal quantiles z, N solves |difference| = z_level sqrt(s^2/N + f^2) + 1/N + z_power s/sqrt(N). Here 1/N is the
    weight of one sample, by which every interval is wider. The difference itself is uncertain near 0, so N is an order
    of magnitude.
    """
    if not 0 < power < 1:
        raise RiskError(f"power must lie between 0 and 1, found {power}")
    difference = comparison.difference(a, b)
    if not _contains_zero(difference):
        return 0
    return _more_samples(comparison, difference, comparison.standard_errors(a, b), power=power)


def _more_samples(
    comparison: Comparison, difference: Estimate, errors: tuple[float, float], *, power: float = 0.8
) -> int | None:
    from scipy.special import ndtri

    distance, (of_samples, of_curve) = abs(difference.value), errors
    spread = of_samples * math.sqrt(comparison.n)
    z_level, z_power = float(ndtri((1 + comparison.level) / 2)), float(ndtri(power))

    def decided(n: int) -> bool:
        error = math.hypot(spread / math.sqrt(n), of_curve)
        return distance >= z_level * error + 1 / n + z_power * spread / math.sqrt(n)

    return None if distance == 0 else samples_needed(decided, comparison.n)


def samples_needed(decided: Callable[[int], bool], n: int, *, most: int = _MOST) -> int | None:
    """The fewest samples in addition to n that decide; None if not even `most` do."""
    if not decided(most):
        return None
    low, high = n, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high - n
