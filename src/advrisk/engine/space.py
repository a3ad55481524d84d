"""The set of valid inputs. Attacks move only through `Space.project`; `Space.valid` is part of success.

Distances are measured in units of `scale`; a category that changed counts one. Images are the
easy case: one pair of bounds, scale one, nothing immutable, integer or categorical.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from advrisk.engine.hyperplane import dual_length, step_to_hyperplane
from advrisk.engine.norms import length, project_ball_and_box, steepest
from advrisk.study import Norm

_ROUNDING = 2.0**-23  # twice the relative error of storing a number in float32
_ALMOST_ONE = 1 + 1e-5


@dataclass(frozen=True)
class Space:
    """Per-feature bounds and scale, and masks of features that cannot move freely (None: no such feature)."""

    low: Tensor
    high: Tensor
    scale: Tensor
    immutable: Tensor | None = None
    integer: Tensor | None = None
    category: Tensor | None = None

    @classmethod
    def box(cls, low: float, high: float) -> Self:
        """Every feature between the same two bounds."""
        return cls(torch.tensor(low), torch.tensor(high), torch.tensor(1.0))

    def to(self, device: torch.device | str) -> Self:
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: part.to(device) for name, part in parts.items() if part is not None})

    def difference(self, x: Tensor, x0: Tensor) -> Tensor:
        """How far each feature moved, in units of its scale; a changed category moved by one."""
        delta = self.in_units(x - x0)
        return delta if self.category is None else torch.where(self.category, (x != x0).to(x.dtype), delta)

    def in_units(self, delta: Tensor) -> Tensor:
        """Moves of features, measured in units of their scale."""
        return delta if self._unit_scale else delta / self.scale

    def distance(self, x: Tensor, x0: Tensor, norm: Norm) -> Tensor:
        """The length of the difference, for each row."""
        return length(self.difference(x, x0), norm)

    def project(
        self,
        x: Tensor,
        x0: Tensor,
        *,
        norm: Norm | None = None,
        eps: float | Tensor | None = None,
        room: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """The nearest allowed point: within the bounds and, if given, within eps of x0 (one number, or one per row).

        Integers are rounded towards x0, so they never leave the ball again. A category takes the
        nearest code; if the row then lies beyond eps, its categories are reset. `room` saves computing that of x0.
        """
        wanted = x
        if norm == "linf" and eps is not None and (box := self.linf_box(x0, eps)) is not None:
            return torch.clamp(x, *box)
        if norm is not None and eps is not None:
            delta = self._numeric(self.in_units(x - x0))
            delta = project_ball_and_box(delta, *(room or self.room(x0)), norm, eps)
            x = x0 + self._scaled(delta)
        x = torch.clamp(x, *self._bounds)
        return self._constrain(x, wanted, x0, norm, eps)

    def room(self, x0: Tensor) -> tuple[Tensor, Tensor]:
        """The distance that each feature of x0 can move down and up, in units of its scale."""
        return self.in_units(self.low - x0), self.in_units(self.high - x0)

    def linf_box(self, x0: Tensor, eps: float | Tensor) -> tuple[Tensor, Tensor] | None:
        """The bounds within eps of x0, if all points between them are allowed."""
        return self.linf_bounds(x0, eps) if self._free else None

    def climb(self, x: Tensor, slope: Tensor, norm: Norm, step: float) -> Tensor:
        """x moved by a step of that length along the direction in which the slope climbs fastest."""
        if norm == "l1":  # only few features move: not those at a bound
            slope = slope.masked_fill(torch.where(slope > 0, x >= self.high, x <= self.low), 0.0)
        if self._unit_scale:
            return steepest(slope, norm).mul_(step).add_(x)
        return x + step * self.scale * self.direction(slope, norm)

    def direction(self, slope: Tensor, norm: Norm) -> Tensor:
        """The direction of length one in which the slope climbs fastest, in units of the scale."""
        return steepest(self._scaled(slope), norm)

    def step_to(
        self, x: Tensor, slope: Tensor, gap: Tensor, norm: Norm, *, within: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """The shortest step from x with slope · step = gap, or as near to it as the bounds allow.

        `within` gives tighter bounds, such as those of `linf_bounds`.
        """
        low, high = (self.in_units(bound - x) for bound in within or (self.low, self.high))
        return self._scaled(step_to_hyperplane(self._numeric(self._scaled(slope)), gap, low, high, norm))

    def linf_bounds(self, x0: Tensor, eps: float | Tensor) -> tuple[Tensor, Tensor]:
        """The lowest and highest value of each feature within the bounds and within eps of x0."""
        if isinstance(eps, Tensor):
            eps = eps.to(x0.dtype).view(-1, *[1] * (x0.dim() - 1))
        reach = eps * self.scale
        return torch.maximum(x0 - reach, self.low), torch.minimum(x0 + reach, self.high)

    def steepness(self, slope: Tensor, norm: Norm) -> Tensor:
        """The gain of each row by a step of length one, without bounds."""
        return dual_length(self._numeric(self._scaled(slope)), norm)

    def valid(self, x: Tensor, x0: Tensor) -> Tensor:
        """Whether each row is an input that could exist (false for NaN)."""
        if self.holds(x):
            return torch.ones(len(x), dtype=torch.bool, device=x.device)
        ok = (x >= self.low) & (x <= self.high)
        if self.immutable is not None:
            ok &= ~self.immutable | (x == x0)
        for whole in (self.integer, self.category):
            if whole is not None:
                ok &= ~whole | (x == x.round())
        return ok.flatten(1).all(1)

    def holds(self, x: Tensor) -> bool:
        """Whether the bounds alone prove all these points valid: one quick check for the usual case."""
        return self._free and x.numel() > 0 and self._between(*torch.aminmax(x))

    def violation(self, x: Tensor, x0: Tensor) -> str:
        """The reason why one row is invalid, for a message."""
        if not torch.isfinite(x).all():
            return "a feature is not finite"
        beyond = torch.maximum(x - self.high, self.low - x).flatten()
        worst = int(beyond.argmax())
        if beyond[worst] > 0:
            low, high = (bound.expand_as(x).flatten()[worst] for bound in (self.low, self.high))
            return f"feature {worst} is {x.flatten()[worst]:.6g}, outside [{low:.6g}, {high:.6g}]"
        if self.immutable is not None and (self.immutable & (x != x0)).any():
            return f"immutable feature {int((self.immutable & (x != x0)).flatten().to(torch.uint8).argmax())} changed"
        return "an integer or category feature is not a whole number"

    def rounded_8bit(self, x: Tensor) -> Tensor:
        """The same inputs stored in 256 levels between the bounds, as image files do."""
        span = self.high - self.low
        level = torch.where(span > 0, (x - self.low) / span, 0.0)
        return self.low + (level * 255).round() / 255 * span

    @cached_property
    def unrounded(self) -> "Space":
        """The same space without whole numbers: for walks whose steps are shorter than one."""
        return self if self.integer is None else replace(self, integer=None)

    @cached_property
    def _unit_scale(self) -> bool:
        return self.scale.numel() == 1 and float(self.scale) == 1

    @cached_property
    def _bounds(self) -> tuple[Tensor, Tensor] | tuple[float, float]:
        """Numbers where there is one pair, as torch is much faster with them; else tensors."""
        one = self.low.numel() == self.high.numel() == 1
        return (float(self.low), float(self.high)) if one else (self.low, self.high)

    @property
    def _free(self) -> bool:
        return self.immutable is None and self.integer is None and self.category is None

    def _scaled(self, values: Tensor) -> Tensor:
        """Moves in units as moves of features; slopes in features as slopes per unit."""
        return values if self._unit_scale else values * self.scale

    def _between(self, lowest: Tensor, highest: Tensor) -> bool:
        """Whether all features may have all values between these two."""
        low, high = self._bounds
        return bool((lowest >= low).all()) and bool((highest <= high).all())

    def _numeric(self, delta: Tensor) -> Tensor:
        """The moves that share the eps-ball: not those of immutable features, nor of categories."""
        for fixed in (self.immutable, self.category):
            delta = delta if fixed is None else delta.masked_fill(fixed, 0.0)
        return delta

    def _constrain(
        self, x: Tensor, wanted: Tensor, x0: Tensor, norm: Norm | None, eps: float | Tensor | None
    ) -> Tensor:
        if self.integer is not None:
            x = torch.where(self.integer, x0 + _whole_steps(x - x0, x), x)
        if self.category is not None:
            code = torch.minimum(torch.maximum(wanted, self.low.ceil()), self.high.floor()).round()
            x = torch.where(self.category, code, x)
        if self.immutable is not None:
            x = torch.where(self.immutable, x0, x)
        if self.category is not None and norm is not None and eps is not None:
            beyond = self.distance(x, x0, norm) > eps * _ALMOST_ONE + stored_length(self, norm, x0.shape[1:])
            x = torch.where(beyond.view(-1, *[1] * (x.dim() - 1)) & self.category, x0, x)
        return x


def within_rounding(eps: float, space: Space, norm: Norm, shape: tuple[int, ...]) -> float:
    """The largest distance that equals eps up to rounding in float32."""
    return eps * _ALMOST_ONE + stored_length(space, norm, shape)


def stored_length(space: Space, norm: Norm, shape: tuple[int, ...]) -> float:
    """The most that storing an input in float32 can add to a distance.

    Each feature moves by up to half a unit in its last place; the sum depends on the norm, on the size of the features
    and on their number.
    """
    unit = torch.maximum(space.low.abs(), space.high.abs()).double() / space.scale * _ROUNDING
    return 0.0 if norm == "l0" else float(length(unit.expand(1, *shape), norm))


def _whole_steps(step: Tensor, x: Tensor) -> Tensor:
    """Steps cut to whole numbers; one that misses a whole number by rounding only counts as that number."""
    missing = step.abs() * 5e-6 + x.abs() * _ROUNDING
    return step.sign() * (step.abs() + missing).floor()
