"""APGD: projected gradient steps that set their own length."""

import math
from dataclasses import dataclass, fields, replace
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.engine.norms import equal_moves
from advrisk.parts.attacks.moves import chosen, n_others, per_row, point_in_ball, towards_classes
from advrisk.parts.attacks.registry import attacks

_MOMENTUM = 0.75
_ENOUGH = 0.75  # the share of steps that must rise, or the step is halved
# l1: the first share of moved features, the share of steps between two checks of it, the factor by which it and the
# step shrink, and the divisor of eps for the shortest step.
_L1_SHARE, _L1_CHECK, _L1_REDUCE, _L1_SHORTEST = 0.2, 0.04, 1.5, 10
_L1_STAGES = (0.3, 0.3)  # the shares of steps within 3·eps and 2·eps


@attacks.register(
    "apgd",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        objective="ace",
        passes=lambda settings, _: (
            settings["restarts"] * (settings["steps"] + 1),
            settings["restarts"] * settings["steps"],
        ),
        use_when="one strong gradient attack at a fixed eps is wanted; with objective dlr where logits are scaled up",
        within_eps=("linf", "l2"),
        random=True,
    ),
    version=2,
)
def apgd(probe: Probe, *, steps: Annotated[int, Ge(2)] = 100, restarts: Annotated[int, Ge(1)] = 1) -> None:
    """Auto-PGD (Croce & Hein 2020, arXiv:2003.01690; in l1: Croce & Hein 2021, arXiv:2103.01208).

    x ← project(x + ¾(z − x) + ¼(x − x_before)), z = project(x + η · steepest(∇J)), with η = 2·eps at first. At
    checkpoints that come ever closer, a sample whose objective rose too seldom goes back to its best point with half
    the step. In l1 there is no momentum, steps move only the features with the largest slopes (how many follows from
    how many the best point changed), and the limit is 3·eps at first, then 2·eps, then eps.
    """
    for _ in range(restarts):
        climb(probe, Aim(probe.active()), steps)


@attacks.register(
    "apgd-t",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        objective="dlr",
        passes=lambda settings, classes: (
            1 + n_others(settings["targets"], classes) * (settings["steps"] + 1),
            n_others(settings["targets"], classes) * settings["steps"],
        ),
        use_when="APGD finds no success: this one tries the likeliest wrong classes one by one",
        within_eps=("linf", "l2"),
        random=True,
        aims=True,
    ),
    version=3,
)
def apgd_t(probe: Probe, *, steps: Annotated[int, Ge(2)] = 100, targets: Annotated[int, Ge(1)] = 9) -> None:
    """Targeted Auto-PGD (Croce & Hein 2020, arXiv:2003.01690): APGD towards the best wrong class, then all others."""
    for rows, towards in towards_classes(probe, targets):
        climb(probe, Aim(rows, towards), steps)


@dataclass(frozen=True)
class Aim:
    """Rows, which may repeat, a target class for each, and an objective (by default the arm's)."""

    rows: Tensor
    towards: Tensor | None = None
    objective: str | None = None

    def of(self, staying: Tensor) -> "Aim":
        return Aim(self.rows[staying], None if self.towards is None else self.towards[staying], self.objective)


def climb(probe: Probe, aim: Aim, steps: int) -> None:
    """One run from a random point for each row."""
    if not len(aim.rows):
        return
    if probe.norm == "l1":
        _climb_in_stages(probe, _far_start(probe, aim.rows), aim, steps)
        return
    state = _State.start(point_in_ball(probe, aim.rows, probe.eps), aim, step=2 * probe.eps)
    marks = checkpoints(steps)
    for step in range(steps + 1):
        state = _ask(probe, state, last=step == steps)
        if not len(state.rows) or step == steps:
            return
        if step in marks:
            state = _halve(state, step - max((mark for mark in marks if mark < step), default=0))
        x, stride = state.x, per_row(state.step, state.x) * probe.space.scale
        z = probe.project(torch.addcmul(x, stride, probe.space.direction(state.slope, probe.norm)), state.rows)
        if step:
            drawn = torch.lerp(x, z, _MOMENTUM).add_(x - state.x_before, alpha=1 - _MOMENTUM)
            z = probe.project(drawn, state.rows)
        state = replace(state, x=z, x_before=x)


def _far_start(probe: Probe, rows: Tensor) -> Tensor:
    """In l1: far outside the ball, onto which projection leaves few features changed; so few move at first, too."""
    x0 = probe.x0[rows]
    return x0 + probe.noise.normal(rows, tuple(x0.shape[1:])) * probe.space.scale


def _climb_in_stages(probe: Probe, x: Tensor, aim: Aim, steps: int) -> None:
    """In l1: first within three and two times eps, whose best points are good starts within eps itself."""
    shares = [int(share * steps) for share in _L1_STAGES]
    left = steps
    for factor, share in zip((3, 2), shares, strict=True):
        if len(aim.rows):
            limit = factor * probe.eps
            x = probe.space.project(x, probe.x0[aim.rows], norm="l1", eps=limit)
            x, aim = _climb_l1(probe, x, aim, share - 1, limit)
            left -= share
    if len(aim.rows):
        x = probe.project(x, aim.rows)
        _climb_l1(probe, x, aim, left, probe.eps)


def _climb_l1(probe: Probe, x: Tensor, aim: Aim, steps: int, eps: float) -> tuple[Tensor, Aim]:
    """APGD whose steps move a share of the features that adapts to the best point; returns the best points."""
    state = _State.start(x, aim, step=eps)
    n_features = x[0].numel()
    changed = probe.space.distance(x, probe.x0[aim.rows], "l0").double()
    share = (changed / n_features / _L1_REDUCE).clamp_max(_L1_SHARE)
    every = max(1, int(_L1_CHECK * steps))
    for step in range(steps + 1):
        answered = _ask(probe, state, last=step == steps)
        if len(answered.rows) < len(state.rows):
            staying = probe.is_active(state.rows)
            share, changed = share[staying], changed[staying]
        state = answered
        if not len(state.rows) or step == steps:
            break
        if step and step % every == 0:
            before, changed = changed, probe.space.distance(state.x_best, probe.x0[state.rows], "l0").double()
            sparser = changed < 0.95 * before
            share = changed / n_features / _L1_REDUCE
            shorter = (state.step / _L1_REDUCE).clamp_min(eps / _L1_SHORTEST)
            state = replace(_back_to_best(state, sparser), step=torch.where(sparser, eps, shorter))
        direction = _sparse(state.slope * probe.space.scale, share)
        moved = state.x + per_row(state.step, x) * probe.space.scale * direction
        state = replace(state, x=probe.space.project(moved, probe.x0[state.rows], norm="l1", eps=eps))
    return state.x_best, state.aim


def _sparse(slope: Tensor, share: Tensor) -> Tensor:
    """Equal moves, of length one in l1 together, of that share of a row's features with the largest slope."""
    flat = slope.flatten(1)
    count = (share * flat.shape[1]).long().clamp(1, flat.shape[1])
    ranked = flat.abs().topk(int(count.max()), dim=1).values
    return equal_moves(flat, ranked.gather(1, count[:, None] - 1)).view_as(slope)


def checkpoints(steps: int) -> list[int]:
    """The steps after which the step length is reconsidered: at 22 %, then ever closer."""
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    return sorted({math.ceil(share * steps) for share in shares[1:]})


@dataclass(frozen=True)
class _State:
    """One entry per row that is still climbing."""

    aim: Aim
    x: Tensor
    x_before: Tensor
    slope: Tensor
    height: Tensor
    x_best: Tensor
    slope_best: Tensor
    height_best: Tensor
    n_rises: Tensor  # since the last checkpoint
    step: Tensor
    halved: Tensor  # at the last checkpoint
    height_then: Tensor  # the best at the last checkpoint

    @classmethod
    def start(cls, x: Tensor, aim: Aim, *, step: float) -> "_State":
        def column(value: float, dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.full((len(x),), value, dtype=dtype, device=x.device)

        low = column(-torch.inf)
        return cls(
            aim=aim,
            x=x,
            x_before=x,
            slope=torch.zeros_like(x),
            height=low,
            x_best=x,
            slope_best=torch.zeros_like(x),
            height_best=low,
            n_rises=column(-1),  # the first height is above none
            step=column(step),
            halved=column(True, torch.bool),
            height_then=low,
        )

    @property
    def rows(self) -> Tensor:
        return self.aim.rows

    def of(self, staying: Tensor) -> "_State":
        columns = {field.name: getattr(self, field.name)[staying] for field in fields(self) if field.name != "aim"}
        return _State(aim=self.aim.of(staying), **columns)


def _ask(probe: Probe, state: _State, *, last: bool) -> _State:
    """Query the current points and drop finished rows. The last points need no slope, as no step follows."""
    objective, target = state.aim.objective, state.aim.towards
    answered = probe.forward(state.x, state.rows, gradient=not last)
    height = answered.heights(objective, target=target)
    slope = state.slope if last else answered.gradient(objective, target=target)
    better = height > state.height_best
    state = replace(
        state,
        slope=slope,
        height=height,
        n_rises=state.n_rises + (height > state.height),
        x_best=chosen(better, state.x, state.x_best),
        slope_best=state.slope_best if last else chosen(better, slope, state.slope_best),
        height_best=torch.where(better, height, state.height_best),
    )
    staying = probe.is_active(state.rows)
    return state if bool(staying.all()) else state.of(staying.nonzero().squeeze(1))


def _back_to_best(state: _State, back: Tensor) -> _State:
    """The state with the marked rows back at their best points."""
    return replace(
        state,
        x=chosen(~back, state.x, state.x_best),
        slope=chosen(~back, state.slope, state.slope_best),
        height=torch.where(back, state.height_best, state.height),
    )


def _halve(state: _State, n_steps: int) -> _State:
    """The state after a checkpoint: rows that rose too seldom are back at their best points with half the step."""
    stuck = ~state.halved & (state.height_best <= state.height_then)
    halve = (state.n_rises < _ENOUGH * n_steps) | stuck
    return replace(
        _back_to_best(state, halve),
        step=torch.where(halve, state.step / 2, state.step),
        halved=halve,
        height_then=state.height_best,
        n_rises=torch.zeros_like(state.n_rises),
    )
