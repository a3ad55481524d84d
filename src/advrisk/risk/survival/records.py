"""Results of a fit for each covariate."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.risk.survival.frames import Floats

LawPart = Literal["scale", "shape"]


@dataclass(frozen=True)
class Effect:
    """A coefficient in one unit, with standard error, interval and p-value."""

    estimate: Estimate
    standard_error: float
    z: float
    p_value: float


@dataclass(frozen=True)
class Coefficient:
    """Of the scale: positive = longer survival. Of the shape: of log rho, log sigma or log b."""

    name: str  # `intercept`, the covariate, or `covariate=level` against the covariate's reference
    part: LawPart
    covariate: str | None  # None for an intercept
    reference: str | None  # the reference level of text
    unit: float  # of a number: the difference for `per_unit`
    unit_text: str  # the same in words: `1/255`
    scaled: Effect  # for the covariate's whole range, from its least value to its greatest
    natural: Effect  # for 1 in the frame's units

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("covariate", "scaled", "natural")),
        "scaled.estimate": "per_range",
        "per_unit.estimate": "per_unit",
        "scaled.standard_error": "standard_error",
        "scaled.p_value": "p_value",
    }

    @property
    def per_unit(self) -> Effect:
        """The effect of one useful unit."""
        own, by = self.natural.estimate, self.unit
        estimate = replace(own, value=own.value * by, low=own.low * by, high=own.high * by)
        return Effect(estimate, self.natural.standard_error * by, self.natural.z, self.natural.p_value)


@dataclass(frozen=True)
class AccelerationFactor:
    """Factor on survival times; below 1, survival is shorter."""

    name: str
    per_range: Estimate
    per_unit: Estimate
    unit: float  # of a number: the difference for `per_unit`
    unit_text: str
    holds: str  # `at every quantile`, or where, if the covariate changes the shape too


@dataclass(frozen=True, eq=False)
class Curve:
    """A survival curve with a band that holds at each time by itself."""

    times: Floats
    survival: Floats
    low: Floats
    high: Floats
    level: float


@dataclass(frozen=True, eq=False)
class PartialEffects:
    """A curve for each value of one covariate, all else as in the rows."""

    covariate: str
    values: tuple[float | str, ...]
    curves: tuple[Curve, ...]


def effect(value: float, error: float, *, quantile: float, degrees: float, level: float, n: int, method: str) -> Effect:
    """A coefficient with a symmetric interval; p is two-sided, of the t law where `degrees` is finite."""
    from scipy.special import ndtr, stdtr

    z = value / error if error > 0 else float(np.copysign(np.inf, value))
    tail = float(ndtr(-abs(z))) if np.isinf(degrees) else float(stdtr(degrees, -abs(z)))
    estimate = Estimate(value, value - quantile * error, value + quantile * error, level, n, method)
    return Effect(estimate, error, z, 2 * tail)
