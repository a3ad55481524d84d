"""A posterior on an adaptive grid.

The grid is moved, widened and narrowed until almost no mass lies at its edges and few cells are empty. Only the
likelihood enters, so the sizes may depend on earlier answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.evasion.curve import Floats

Indices = NDArray[np.intp]

EDGE_MASS = 1e-6  # mass allowed at an edge
_ROUNDS = 60
_MARGIN = 2  # empty cells to keep beyond those with mass
_EMPTY = 0.01  # a cell with less than this share of EDGE_MASS is empty
_FULL = 0.6  # share of an axis that must have mass


@dataclass(frozen=True)
class Axis:
    """A parameter between `low` and `high`, in cells of equal width; its domain is from `least` to `most`.

    Once the grid is located, each cell is divided into `fine` ones. With `atom`, the value `least` has that prior
    probability and the first cell.
    """

    low: float
    high: float
    cells: int
    least: float = -np.inf
    most: float = np.inf
    atom: float = 0.0
    fine: int = 1

    @property
    def width(self) -> float:
        return (self.high - self.low) / self.cells

    def values(self) -> Floats:
        middles = self.low + self.width * (np.arange(self.cells) + 0.5)
        return np.asarray(np.insert(middles, 0, self.least) if self.atom else middles)

    def log_measure(self) -> Floats:
        """Log of each cell's width times the prior's share of its part, atom or continuum."""
        if self.low == self.high:  # a fixed value
            return np.zeros(self.cells)
        cells = np.full(self.cells, np.log(self.width * (1 - self.atom)))
        return np.asarray(np.insert(cells, 0, np.log(self.atom)) if self.atom else cells)

    def moved(self, mass: Floats) -> "Axis":
        """An axis that fits this mass better: wider at an edge with mass, narrower where cells are empty."""
        mass = mass[1:] if self.atom else mass
        half = (self.high - self.low) / 2
        low = max(self.low - half, self.least) if mass[0] > EDGE_MASS else self.low
        high = min(self.high + half, self.most) if mass[-1] > EDGE_MASS else self.high
        filled = np.flatnonzero(mass > EDGE_MASS * _EMPTY)
        if (low, high) != (self.low, self.high) or not filled.size:  # none if all mass lies in the atom
            return replace(self, low=low, high=high)
        first, last = max(int(filled[0]) - _MARGIN, 0), min(int(filled[-1]) + 1 + _MARGIN, self.cells)
        return replace(self, low=self.low + self.width * first, high=self.low + self.width * last)

    def fits(self, better: "Axis") -> bool:
        """Whether `better`, derived from this axis, lies within it and is hardly narrower."""
        inside = better.low >= self.low and better.high <= self.high
        return inside and better.high - better.low >= _FULL * (self.high - self.low)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The probability of each cell of a grid."""

    axes: tuple[Axis, ...]
    mass: Floats  # one dimension per axis

    def marginal(self, *axes: int) -> Floats:
        others = tuple(axis for axis in range(len(self.axes)) if axis not in axes)
        return np.asarray(self.mass.sum(axis=others))

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """Points (n, axes), uniform within the drawn cells."""
        ends = np.cumsum(self.mass.ravel())
        cells = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), ends.size - 1)
        columns = []
        for axis, cell in zip(self.axes, np.unravel_index(cells, self.mass.shape), strict=True):
            shift = (rng.random(n) - 0.5) * axis.width
            columns.append(axis.values()[cell] + np.where((cell == 0) & (axis.atom > 0), 0.0, shift))
        return np.stack(columns, axis=1)

    def nodes(self, n: int) -> tuple[Floats, tuple[Indices, ...]]:
        """Points (n, axes) of equal mass that represent the posterior, and the indices of their cells on each axis.

        The points are deterministic: the Rosenblatt transform (1952, "Remarks on a multivariate transformation") of a
        low-discrepancy sequence, with uniform mass within a cell.
        """
        even = even_points(n, len(self.axes))
        cells: tuple[Indices, ...] = ()
        columns = []
        for number, axis in enumerate(self.axes):
            rows = self.marginal(*range(number + 1))[cells] if cells else self.marginal(0)[None]
            cell, inside = _inverse(np.broadcast_to(rows, (n, rows.shape[-1])), even[:, number])
            shift = np.where((cell == 0) & (axis.atom > 0), 0.0, (inside - 0.5) * axis.width)
            columns.append(axis.values()[cell] + shift)
            cells = (*cells, cell)
        return np.stack(columns, axis=1), cells


def even_points(n: int, dimensions: int) -> Floats:
    """Low-discrepancy points (n, dimensions) in the unit cube.

    Fractional parts of multiples of powers of the root of x^(d+1) = x + 1, the golden ratio for d = 1.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + np.arange(1, n + 1)[:, None] * steps) % 1.0)


def _inverse(mass: Floats, at: Floats) -> tuple[Indices, Floats]:
    """For each row of masses, the cell of a quantile, and its relative position within the cell."""
    ends = np.cumsum(mass, axis=1)
    target = at * ends[:, -1]
    cell = np.minimum((ends <= target[:, None]).sum(axis=1), mass.shape[1] - 1)
    rows = np.arange(len(cell))
    own = mass[rows, cell]
    before = ends[rows, cell] - own
    inside = np.divide(target - before, own, out=np.full(len(cell), 0.5), where=own > 0)
    return cell, np.clip(inside, 0.0, 1.0)


def posterior(log_density: Callable[..., Floats], axes: Sequence[Axis]) -> Posterior:
    """Posterior of an unnormalised log density that takes one broadcastable array per axis."""
    current = tuple(axes)
    for _ in range(_ROUNDS):
        grid = _on_grid(log_density, current)
        better = tuple(axis.moved(grid.marginal(number)) for number, axis in enumerate(current))
        if all(axis.fits(new) for axis, new in zip(current, better, strict=True)):
            return _on_grid(log_density, tuple(replace(axis, cells=axis.fine * axis.cells) for axis in current))
        current = better
    raise RiskError(
        "the answers determine the curve too little for a posterior on a grid; ask about more widely spread sizes"
    )


def _on_grid(log_density: Callable[..., Floats], axes: tuple[Axis, ...]) -> Posterior:
    values = np.ix_(*[axis.values() for axis in axes])
    log_mass = log_density(*values)
    for measure in np.ix_(*[axis.log_measure() for axis in axes]):
        log_mass = log_mass + measure
    mass = np.exp(log_mass - log_mass.max())
    return Posterior(axes, mass / mass.sum())
