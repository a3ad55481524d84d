"""Protocols of evasion curves, simple curves, and checks of sizes and distances."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, overload, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from advrisk.core.errors import RiskError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CURVES = 8192  # curves that represent the uncertainty of a curve with quadrature nodes
_DRAWN = 2048  # draws that represent it otherwise


class Evasion(Protocol):
    """Psi(size): the probability of *not* being detected; non-increasing, and 0 at inf.

    Any callable with this signature works, including a user's function. A failed attack has size inf and does no
    damage, so Psi(inf) = 0 for every detector.
    """

    def __call__(self, sizes: ArrayLike, /) -> Floats: ...


@runtime_checkable
class EvasionCurve(Protocol):
    """An evasion with a measure of its uncertainty, as every curve of this package."""

    def __call__(self, sizes: ArrayLike, /) -> Floats: ...

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:
        """`n` curves drawn from its uncertainty; the curve itself if it has none."""

    def extrapolated(self, sizes: ArrayLike) -> Flags:
        """Which finite sizes lie outside the range of the answers."""


@runtime_checkable
class Quadrature(Protocol):
    """A curve whose uncertainty is represented by the same curves every time."""

    def nodes(self, n: int) -> Sequence[Evasion]:
        """At most `n` curves of equal probability."""


def curves_of(curve: EvasionCurve, n: int = CURVES) -> Sequence[Evasion]:
    """Curves that represent the uncertainty of a curve in every band and limit; the curve alone if it has none.

    They do not depend on a caller's random numbers, so the same answers give the same limits everywhere.
    """
    if isinstance(curve, Quadrature):
        return curve.nodes(n)
    drawn = curve.draws(min(n, _DRAWN), np.random.default_rng(0))
    return drawn[:1] if drawn[0] is curve else drawn


class Certain:
    """A curve without uncertainty."""

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        raise NotImplementedError

    def draws(self, n: int, rng: np.random.Generator) -> Sequence[Evasion]:  # noqa: ARG002
        return [self] * n

    def extrapolated(self, sizes: ArrayLike) -> Flags:
        return np.zeros(checked_sizes(sizes, "sizes").shape, dtype=np.bool_)


@dataclass(frozen=True)
class FunctionEvasion(Certain):
    """A user's function, with a check of its values at every call."""

    function: Callable[[Floats], ArrayLike]

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        finite = np.isfinite(array)
        values = np.zeros(array.shape)
        returned = np.asarray(self.function(array[finite]), dtype=np.float64)
        values[finite] = _checked_values(array[finite], returned)
        return values


@dataclass(frozen=True, eq=False)
class Curves(Sequence[Evasion]):
    """Curves of one family with vectorised evaluation."""

    parameters: Floats  # (curves, parameters)
    one: Callable[[Floats], Evasion]  # the curve of one row
    many: Callable[[Floats, Floats], Floats]  # parameters and finite sizes -> values (curves, sizes)

    def __len__(self) -> int:
        return len(self.parameters)

    @overload
    def __getitem__(self, index: int) -> Evasion: ...

    @overload
    def __getitem__(self, index: slice) -> "Curves": ...

    def __getitem__(self, index: int | slice) -> "Evasion | Curves":
        if isinstance(index, slice):
            return Curves(self.parameters[index], self.one, self.many)
        return self.one(self.parameters[index])


def values_of(curves: Sequence[Evasion], sizes: Floats) -> Floats:
    """Values of every curve at every size, (curves, sizes)."""
    if not isinstance(curves, Curves):
        return np.stack([curve(sizes) for curve in curves])
    finite = np.isfinite(sizes)
    values = np.zeros((len(curves), sizes.size))
    values[:, finite] = curves.many(curves.parameters, sizes[finite])
    return values


def as_curve(evasion: Evasion) -> EvasionCurve:
    """The evasion itself, or a user's function as a curve without uncertainty."""
    if isinstance(evasion, EvasionCurve):
        return evasion
    if not callable(evasion):
        raise RiskError(f"an evasion is a function of sizes, found {type(evasion).__name__}")
    return FunctionEvasion(evasion)


def outside(sizes: ArrayLike, answered: Floats) -> Flags:
    """Which finite sizes lie outside the range of the answered ones."""
    array = checked_sizes(sizes, "sizes")
    return np.asarray(((array < answered.min()) | (array > answered.max())) & np.isfinite(array))


def paired_distances(distances_by_model: Mapping[str, ArrayLike]) -> tuple[tuple[str, ...], Floats]:
    """The models' names and their distances as one (models, samples) array."""
    if not distances_by_model:
        raise RiskError("found no model; give the distances of at least one")
    rows = {model: checked_distances(values, f"model {model!r}") for model, values in distances_by_model.items()}
    first, *others = rows
    for model in others:
        if rows[model].size != rows[first].size:
            raise RiskError(
                f"model {model!r} has {rows[model].size} distances and model {first!r} has {rows[first].size}; "
                "models are compared on the same samples in the same order"
            )
    return tuple(rows), np.stack(list(rows.values()))


def checked_distances(values: ArrayLike, what: str) -> Floats:
    """One distance per sample, at least one sample."""
    array = checked_sizes(values, what)
    if array.ndim != 1:
        raise RiskError(f"{what}: one distance per sample is needed, found an array of shape {array.shape}")
    if array.size == 0:
        raise RiskError(f"{what}: there is no distance; attack at least one sample")
    return array


def checked_sizes(values: ArrayLike, what: str) -> Floats:
    """An array of any shape with numbers of at least 0, including inf but not nan."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RiskError(f"{what}: numbers are needed ({error})") from None
    wrong = ~(array >= 0)
    if wrong.any():
        index = tuple(int(axis) for axis in np.argwhere(wrong)[0])
        where = f" at index {', '.join(map(str, index))}" if index else ""
        raise RiskError(f"{what}: found {array[index]}{where}; a size is at least 0, and inf where no arm succeeded")
    return array


def _checked_values(sizes: Floats, values: Floats) -> Floats:
    if values.shape != sizes.shape:
        raise RiskError(
            f"the evasion function returned shape {values.shape} for sizes of shape {sizes.shape}; "
            "it must take an array and give a probability for each size"
        )
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise RiskError(
            f"the evasion function gives {values[first]} at size {sizes[first]}; a probability is in [0, 1]"
        )
    order = np.argsort(sizes, kind="stable")
    rising = np.flatnonzero(np.diff(values[order]) > 1e-9)
    if rising.size:
        small, large = order[rising[0]], order[rising[0] + 1]
        raise RiskError(
            f"the evasion function rises, from {values[small]} at size {sizes[small]} to {values[large]} at size "
            f"{sizes[large]}; it is the probability of going *un*detected and must not increase with size"
        )
    return values


@dataclass(frozen=True, eq=False)
class AverageEvasion(Certain):
    """Psi_avg: the share of the compared models' distances that are strictly greater."""

    models: tuple[str, ...]
    distances: Floats  # of all models together, ascending

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        not_greater = np.searchsorted(self.distances, checked_sizes(sizes, "sizes"), side="right")
        return np.asarray((self.distances.size - not_greater) / self.distances.size, dtype=np.float64)


@dataclass(frozen=True)
class ThresholdEvasion(Certain):
    """Psi of a detector that detects every perturbation greater than `tau` and no other."""

    tau: float

    def __call__(self, sizes: ArrayLike, /) -> Floats:
        array = checked_sizes(sizes, "sizes")
        return np.asarray((array <= self.tau) & (array < np.inf), dtype=np.float64)


def average(distances_by_model: Mapping[str, ArrayLike]) -> AverageEvasion:
    """Klemenc & Trittenbach, "Selecting Models based on the Risk of Damage Caused by Adversarial Attacks".

    Psi_avg(tau) = 1 - (1/J) sum_j ASR_j(tau): without a detector, the probability of going undetected is the share of
    the compared models' distances that are *strictly greater*. (The paper's Algorithm 2 does not define the count at
    ties; its definition of W(tau) does.)
    """
    models, matrix = paired_distances(distances_by_model)
    return average_of(models, matrix)


def average_of(models: tuple[str, ...], distances: Floats) -> AverageEvasion:
    """Psi_avg of checked distances."""
    pooled = np.sort(distances, axis=None)
    pooled.setflags(write=False)
    return AverageEvasion(models, pooled)


def threshold(tau: float) -> ThresholdEvasion:
    """Psi(size) = 1 for size <= tau, else 0; damage under it is the success ratio at tau."""
    return ThresholdEvasion(float(checked_sizes(tau, "tau")))
