"""A posterior on a grid that finds its own place.

The grid is moved, widened and narrowed until next to no mass lies at its edges and little of it is
empty. The likelihood alone enters, so it does not matter how the sizes that were asked about were
chosen, be it one after another in the light of earlier answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.risk.evasion.curve import Floats

Places = NDArray[np.intp]

EDGE_MASS = 1e-6  # what may lie at an edge at the end
_ROUNDS = 60
_MARGIN = 2  # cells to keep beyond those that hold mass
_EMPTY = 0.01  # a cell with less than this share of EDGE_MASS is empty
_FULL = 0.6  # share of an axis that must hold mass


@dataclass(frozen=True)
class Axis:
    """A parameter between `low` and `high`, in cells of equal width; it exists between `least` and `most` only.

    Once its place is found, each cell is cut into `fine` ones. With `atom`, the value `least` has a prior
    probability of its own and its own cell, the first one.
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
        """The width of each cell times the prior's share of the part it belongs to."""
        if self.low == self.high:  # one value, which is given
            return np.zeros(self.cells)
        cells = np.full(self.cells, np.log(self.width * (1 - self.atom)))
        return np.asarray(np.insert(cells, 0, np.log(self.atom)) if self.atom else cells)

    def moved(self, mass: Floats) -> "Axis":
        """The axis that fits this mass better: wider where an edge holds some, narrower where cells are empty."""
        mass = mass[1:] if self.atom else mass
        half = (self.high - self.low) / 2
        low = max(self.low - half, self.least) if mass[0] > EDGE_MASS else self.low
        high = min(self.high + half, self.most) if mass[-1] > EDGE_MASS else self.high
        held = np.flatnonzero(mass > EDGE_MASS * _EMPTY)
        if (low, high) != (self.low, self.high) or not held.size:  # of no size if all mass lies in the atom
            return replace(self, low=low, high=high)
        first, last = max(int(held[0]) - _MARGIN, 0), min(int(held[-1]) + 1 + _MARGIN, self.cells)
        return replace(self, low=self.low + self.width * first, high=self.low + self.width * last)

    def fits(self, better: "Axis") -> bool:
        """Whether `better`, which was made from this axis, is hardly narrower and nowhere beyond it."""
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
        """Points (n, axes), anywhere in the cells that were drawn."""
        ends = np.cumsum(self.mass.ravel())
        cells = np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), ends.size - 1)
        columns = []
        for axis, place in zip(self.axes, np.unravel_index(cells, self.mass.shape), strict=True):
            shift = (rng.random(n) - 0.5) * axis.width
            columns.append(axis.values()[place] + np.where((place == 0) & (axis.atom > 0), 0.0, shift))
        return np.stack(columns, axis=1)

    def nodes(self, n: int) -> tuple[Floats, tuple[Places, ...]]:
        """Points (n, axes) of equal mass that stand for the posterior, and their cells' places on each axis.

        They are the same every time.
        Points of a low-discrepancy sequence are carried over axis by axis, each given those before it (Rosenblatt
        1952, "Remarks on a multivariate transformation"); within a cell the mass is spread evenly.
        """
        even = even_points(n, len(self.axes))
        places: tuple[Places, ...] = ()
        columns = []
        for number, axis in enumerate(self.axes):
            rows = self.marginal(*range(number + 1))[places] if places else self.marginal(0)[None]
            place, inside = _inverse(np.broadcast_to(rows, (n, rows.shape[-1])), even[:, number])
            shift = np.where((place == 0) & (axis.atom > 0), 0.0, (inside - 0.5) * axis.width)
            columns.append(axis.values()[place] + shift)
            places = (*places, place)
        return np.stack(columns, axis=1), places


def even_points(n: int, dimensions: int) -> Floats:
    """Points (n, dimensions) that fill the unit cube evenly.

    Multiples of powers of the root of x^(d+1) = x + 1, the golden ratio for d = 1, less their whole parts.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + np.arange(1, n + 1)[:, None] * steps) % 1.0)


def _inverse(mass: Floats, at: Floats) -> tuple[Places, Floats]:
    """For each row of masses, the cell in which its cumulative sum passes a share of the whole, and where in it."""
    ends = np.cumsum(mass, axis=1)
    wanted = at * ends[:, -1]
    place = np.minimum((ends <= wanted[:, None]).sum(axis=1), mass.shape[1] - 1)
    rows = np.arange(len(place))
    own = mass[rows, place]
    before = ends[rows, place] - own
    inside = np.divide(wanted - before, own, out=np.full(len(place), 0.5), where=own > 0)
    return place, np.clip(inside, 0.0, 1.0)


def posterior(log_density: Callable[..., Floats], axes: Sequence[Axis]) -> Posterior:
    """The posterior of a density that takes one array per axis, shaped to be combined, and need not be normalised."""
    current = tuple(axes)
    for _ in range(_ROUNDS):
        grid = _on_grid(log_density, current)
        better = tuple(axis.moved(grid.marginal(place)) for place, axis in enumerate(current))
        if all(axis.fits(new) for axis, new in zip(current, better, strict=True)):
            return _on_grid(log_density, tuple(replace(axis, cells=axis.fine * axis.cells) for axis in current))
        current = better
    raise RiskError(
        "the answers leave the curve so open that no grid holds its posterior; ask more widely spread sizes"
    )


def _on_grid(log_density: Callable[..., Floats], axes: tuple[Axis, ...]) -> Posterior:
    values = np.ix_(*[axis.values() for axis in axes])
    log_mass = log_density(*values)
    for measure in np.ix_(*[axis.log_measure() for axis in axes]):
        log_mass = log_mass + measure
    mass = np.exp(log_mass - log_mass.max())
    return Posterior(axes, mass / mass.sum())
