"""Covariates as numbers: text as one column for each level but one, numbers from 0 to 1 over their range.

What is fitted are these columns; `natural` takes coefficients back to the units of the frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean
from advrisk.core.numbers import parse_number
from advrisk.risk.survival.frames import Columns, Floats, numbers

_FEW_WHOLE = 100  # up to this range of whole numbers, effects are reported per 1


@dataclass(frozen=True)
class NumberCovariate:
    """A number x, coded as (x - low)/(high - low)."""

    name: str
    low: float
    high: float
    unit: float = 1.0  # effects are reported for this difference and for the whole range
    unit_text: str = "1"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def ranges(self) -> tuple[float, ...]:
        """Number of natural units of a coded 1."""
        return (self.high - self.low,)

    @property
    def origins(self) -> tuple[float, ...]:
        """The natural value that is coded 0."""
        return (self.low,)

    def coded(self, values: np.ndarray) -> Floats:
        return np.asarray((values - self.low) / (self.high - self.low))[:, None]

    def coded_value(self, value: Any) -> Floats:
        """Code one value."""
        if isinstance(value, str) or not np.isscalar(value) or not np.isfinite(float(value)):  # type: ignore[arg-type]
            raise RiskError(f"covariate {self.name!r} is a number; found {value!r}")
        return self.coded(np.array([float(value)]))  # type: ignore[arg-type]


@dataclass(frozen=True)
class TextCovariate:
    """Text, coded as one column of 0 and 1 for each level but the reference."""

    name: str
    levels: tuple[str, ...]
    reference: str

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(level for level in self.levels if level != self.reference)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={level}" for level in self.others)

    @property
    def ranges(self) -> tuple[float, ...]:
        return (1.0,) * len(self.others)

    @property
    def origins(self) -> tuple[float, ...]:
        return (0.0,) * len(self.others)

    def coded(self, values: np.ndarray) -> Floats:
        unknown = sorted(set(values.tolist()) - set(self.levels))
        if unknown:
            raise RiskError(
                f"covariate {self.name!r}: {unknown[0]!r} is not among the levels that were fitted; "
                f"{did_you_mean(unknown[0], self.levels)}"
            )
        return np.asarray(values[:, None] == np.array(self.others)[None], dtype=np.float64)

    def coded_value(self, value: Any) -> Floats:
        return self.coded(np.array([str(value)]))


Covariate = NumberCovariate | TextCovariate


@dataclass(frozen=True)
class Coding:
    """The covariates of one part, scale or shape, in the order of their coefficients; an intercept comes first."""

    covariates: tuple[Covariate, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("intercept", *(name for one in self.covariates for name in one.columns))

    def matrix(self, columns: Columns) -> Floats:
        """The design matrix of these rows."""
        n = len(next(iter(columns.values())))
        matrix, place = np.ones((n, len(self.columns)), order="F"), 1
        for one in self.covariates:
            matrix[:, place : place + len(one.columns)] = one.coded(columns[one.name])
            place += len(one.columns)
        return matrix

    def natural(self) -> Floats:
        """The matrix that takes coefficients of the coded columns to those of natural units."""
        ranges = np.array([1.0, *(value for one in self.covariates for value in one.ranges)])
        origins = np.array([0.0, *(value for one in self.covariates for value in one.origins)])
        change = np.diag(1 / ranges)
        change[0] -= origins / ranges
        change[0, 0] = 1.0
        return change

    def replaced(self, matrix: Floats, at: Mapping[str, Any]) -> Floats:
        """A copy of the design matrix in which these covariates have one value for all rows."""
        if not any(one.name in at for one in self.covariates):
            return matrix
        replaced, place = matrix.copy(order="K"), 1
        for one in self.covariates:
            if one.name in at:
                replaced[:, place : place + len(one.columns)] = one.coded_value(at[one.name])
            place += len(one.columns)
        return replaced


def coding_of(
    columns: Columns, names: Sequence[str], reference: Mapping[str, str], units: Mapping[str, float | str]
) -> Coding:
    """The coding of these columns of a frame; constant ones are refused."""
    return Coding(tuple(_covariate(columns, name, reference, units) for name in names))


def useful_unit(values: Floats, given: float | str | None) -> tuple[float, str]:
    """Unit of an effect and its name: the stated one, 1 for small whole numbers, else one standard deviation."""
    if given is not None:
        return parse_number(given), str(given) if isinstance(given, str) else f"{given:g}"
    if (values == np.round(values)).all() and values.max() - values.min() <= _FEW_WHOLE:
        return 1.0, "1"
    return (sd := float(np.std(values))), f"{sd:.3g}, one standard deviation"


def _covariate(
    columns: Columns, name: str, reference: Mapping[str, str], units: Mapping[str, float | str]
) -> Covariate:
    if columns[name].dtype.kind == "f":
        if name in reference:
            raise RiskError(f"reference of {name!r}: it is a number, and only text has a reference level; leave it out")
        values = numbers(columns, name, "a covariate")
        low, high = float(values.min()), float(values.max())
        if low == high:
            raise RiskError(
                f"covariate {name!r} is {low:g} in every row, so nothing can be learned of it; leave it out"
            )
        return NumberCovariate(name, low, high, *useful_unit(values, units.get(name)))
    if name in units:
        raise RiskError(f"unit of {name!r}: it is text, and only numbers have a unit; leave it out")
    levels = tuple(np.unique(columns[name]).tolist())
    if len(levels) == 1:
        raise RiskError(
            f"covariate {name!r} is {levels[0]!r} in every row, so nothing can be learned of it; leave it out"
        )
    first = str(reference.get(name, levels[0]))
    if first not in levels:
        raise RiskError(f"reference of {name!r}: {first!r} does not occur; {did_you_mean(first, levels)}")
    return TextCovariate(name, levels, first)
