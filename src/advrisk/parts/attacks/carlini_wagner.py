"""Carlini & Wagner: the smallest perturbation as an optimisation, with a search over the weight of success."""

from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge, Gt
from torch import Tensor

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Probe
from advrisk.parts.attacks.adam import Adam
from advrisk.parts.attacks.boundary import Nearest, shrink, step_across
from advrisk.parts.attacks.moves import n_others, per_row
from advrisk.parts.attacks.registry import attacks

_LAST_TRIES = 3  # passes of a final search between the nearest success and the clean input
_CHECKS = 10  # checks per search whether a sample still makes progress
_AMPLE, _LEAST, _MOST = 2.0, 1.5, 100.0  # c grows by twice what seems to be lacking, within limits
_CANDIDATES, _STEPS_FROM_CLEAN, _STEPS_FROM_NEAREST = 4, 15, 8  # of the refinement
_REFINING = _STEPS_FROM_CLEAN + _STEPS_FROM_NEAREST


@attacks.register(
    "carlini-wagner",
    traits=AttackTraits(
        needs="gradients",
        norms=("l2", "linf"),
        passes=lambda settings, classes: (
            settings["searches"] * settings["steps"] + _REFINING + 4 + _LAST_TRIES,
            settings["searches"] * settings["steps"] + _REFINING + n_others(_CANDIDATES, classes),
        ),
        use_when="a very small perturbation is worth many passes",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        box={"step_size": Box(1e-3, 1.0), "initial_const": Box(1e-4, 10.0)},
    ),
)
def carlini_wagner(
    probe: Probe,
    *,
    searches: Annotated[int, Ge(1)] = 9,
    steps: Annotated[int, Ge(1)] = 100,
    step_size: Annotated[float, Gt(0)] = 0.05,
    initial_const: Annotated[float, Gt(0)] = 0.01,
    abort_early: bool = True,
) -> None:
    """Carlini & Wagner (2017, arXiv:1608.04644), with Adam on x, clamped to the bounds.

    l2: minimise ‖x − x0‖² + c · max(−margin(x), 0); the search is for the smallest c that succeeds: larger by what
    the last point seems to lack until it does, halved in between afterwards.
    linf: minimise max(−margin(x), 0) within x0 ± τ; the search is for the smallest τ. (The paper has a
    penalty on what exceeds τ, and weighs it with a c of its own; a box needs no weight.)
    A sample leaves a search after a tenth of the steps without progress (`abort_early`), in linf also once it succeeds.
    The result is refined within a ball that shrinks below each success, once from the clean input, as the searches may
    have ended in a worse basin, and once from the nearest success.
    """
    search, nearest = _Search.over(probe, initial_const), Nearest(probe)
    for _ in range(searches):
        rows = probe.active()
        rows = rows[search.failed[rows] < search.most]
        if not len(rows):
            break
        descent = _Descent(probe, rows, search.now[rows], nearest)
        cost = descent.run(steps, step_size, abort_early=abort_early)
        search.narrow(rows, cost[rows], descent.lacking[rows])
    _refine(probe, nearest)


def _refine(probe: Probe, nearest: Nearest) -> None:
    """From the clean inputs towards the nearest class, then from the nearest successes, then on a straight line."""
    rows = probe.active()
    if not len(rows):
        return
    shrink(probe, nearest, step_across(probe, rows, _CANDIDATES), rows, _STEPS_FROM_CLEAN)
    rows = rows[probe.is_active(rows)]
    shrink(probe, nearest, nearest.point[rows], rows, _STEPS_FROM_NEAREST)
    nearest.close_in(_LAST_TRIES)


@dataclass
class _Search:
    """The search, for each sample, for the smallest cost (c, or τ) at which it still succeeds."""

    now: Tensor
    failed: Tensor
    succeeded: Tensor
    most: float

    @classmethod
    def over(cls, probe: Probe, initial_const: float) -> "_Search":
        def column(value: float) -> Tensor:
            return torch.full((len(probe.x0),), value, dtype=torch.float64, device=probe.x0.device)

        if probe.norm == "l2":
            return cls(column(initial_const), column(0.0), column(torch.inf), torch.inf)
        widest = float(((probe.space.high - probe.space.low) / probe.space.scale).max())
        most = widest if probe.task.eps is None else min(widest, probe.task.eps)
        return cls(column(most), column(-1.0), column(torch.inf), most)

    def narrow(self, rows: Tensor, cost: Tensor, lacking: Tensor) -> None:
        """Narrow the range by a success's `cost`, infinite without one; there, `lacking` times as much may suffice."""
        hit = cost.isfinite()
        self.failed[rows] = torch.where(hit, self.failed[rows], self.now[rows])
        self.succeeded[rows] = self.succeeded[rows].minimum(cost)
        low, high = self.failed[rows].clamp_min(0), self.succeeded[rows]
        self.now[rows] = torch.where(high.isinf(), self.now[rows] * lacking, (low + high) / 2).clamp_max(self.most)


class _Descent:
    """One run of Adam from the clean inputs."""

    def __init__(self, probe: Probe, rows: Tensor, cost: Tensor, nearest: Nearest) -> None:
        self.probe, self.rows, self.cost, self.nearest = probe, rows, cost, nearest
        self.x = probe.x0[rows]
        low, high = probe.space.low, probe.space.high
        if probe.norm == "linf":
            low, high = probe.space.linf_bounds(self.x, cost)
        self.low, self.high = low.expand_as(self.x), high.expand_as(self.x)
        self.lacking = torch.full((len(probe.x0),), _MOST, dtype=torch.float64, device=self.x.device)
        self.adam = Adam(self.x, one_scale=probe.norm == "l2")

    def run(self, steps: int, step_size: float, *, abort_early: bool) -> Tensor:
        """The cost of success for every sample of the shard; infinite without one."""
        took = torch.full((len(self.probe.x0),), torch.inf, dtype=torch.float64, device=self.x.device)
        check_every = max(1, steps // _CHECKS)
        best = torch.full((len(self.rows),), torch.inf, dtype=torch.float64, device=self.x.device)
        best_before = best
        for step in range(1, steps + 1):
            loss, hit, size = self._step(step_size * (1 - (step - 1) / steps))
            paid = self.cost if self.probe.norm == "l2" else size.double()
            took[self.rows[hit]] = took[self.rows[hit]].minimum(paid[hit])
            self._note_lacking(loss < best, loss, size)
            best = best.minimum(loss)
            going = self.probe.is_active(self.rows)
            if self.probe.norm == "linf":
                going &= ~hit
            if abort_early and step % check_every == 0:
                going &= best < 0.9999 * best_before
                best_before = best
            if not bool(going.all()):
                staying = going.nonzero().squeeze(1)
                best, best_before = best[staying], best_before[staying]
                self._keep(staying)
            if not len(self.rows):
                break
        return took

    def _step(self, step_size: float) -> tuple[Tensor, Tensor, Tensor]:
        """Query the current points, then move; return the loss there, whether they succeed, and their distance."""
        probe, rows = self.probe, self.rows
        x0 = probe.x0[rows]
        x = probe.space.project(self.x, x0)
        answered = probe.forward(x, rows)
        short = (-answered.heights("margin")).clamp_min(0)
        hit = self.nearest.note(x, rows, answered)
        weight = self.cost if probe.norm == "l2" else torch.ones_like(self.cost)
        slope = -per_row(weight, x) * answered.gradient("margin", wanted=~hit)
        distance = probe.space.distance(x, x0, probe.norm)
        loss = weight * short
        if probe.norm == "l2":
            slope += 2 * probe.space.difference(x, x0) / probe.space.scale
            loss = loss + distance.double().square()
        half = (self.high - self.low) / 2
        moved = self.x - step_size * half * self.adam.direction(slope * half)
        self.x = torch.clamp(moved, self.low, self.high)
        return loss, hit, distance

    def _note_lacking(self, better: Tensor, loss: Tensor, distance: Tensor) -> None:
        """At the best point 2δ = c·∇margin: to climb by what is short, δ and with it c must grow by short·c / 2δ²."""
        square = distance.double().square()
        growth = 1 + (loss - square) / (2 * square).clamp_min(1e-30)
        self.lacking[self.rows[better]] = (_AMPLE * growth[better]).clamp(_LEAST, _MOST)

    def _keep(self, staying: Tensor) -> None:
        self.rows, self.cost = self.rows[staying], self.cost[staying]
        self.low, self.high, self.x = self.low[staying], self.high[staying], self.x[staying]
        self.adam.keep(staying)
