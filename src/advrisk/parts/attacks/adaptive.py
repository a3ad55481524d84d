"""Adaptive: PGD by an attacker who knows the detector and wants to evade it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from annotated_types import Ge, Gt, MultipleOf
from torch import Tensor

from advrisk.core.traits import AttackTraits, Watch, gives
from advrisk.engine import Pass, Probe
from advrisk.parts.attacks.moves import chosen, per_row, point_in_ball, positions
from advrisk.parts.attacks.nes import estimated
from advrisk.parts.attacks.pgd import step_length
from advrisk.parts.attacks.registry import attacks

_FACTOR = 1.3  # by which λ rises after a success and falls after a failure
_LEAST, _MOST = 1e-3, 1e3  # of λ: beyond, one of the two slopes alone decides


def _passes(settings: Mapping[str, Any], _: int) -> tuple[int, int]:
    watch: Watch = settings["watch"]
    moves = settings["restarts"] * settings["rounds"] * settings["steps"]
    n_points = (
        moves + settings["restarts"] * settings["rounds"] + (0 if watch.follows_score else moves * settings["samples"])
    )
    n_slopes = int(watch.follows_model) + (watch.passes + 1 if watch.follows_score else 0)
    return n_points * (1 + watch.passes), moves * n_slopes


@attacks.register(
    "adaptive",
    traits=AttackTraits(
        needs="scores",
        norms=("linf", "l2", "l1"),
        objective="ace",
        passes=_passes,
        use_when="an attacker may know your detector: how well it still works then ({…, detector: NAME})",
        keep="strongest",
        within_eps=False,
        random=True,
        watches=True,
    ),
)
def adaptive(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 40,
    rounds: Annotated[int, Ge(1)] = 3,
    restarts: Annotated[int, Ge(1)] = 1,
    step_size: Annotated[float, Gt(0)] | None = None,
    samples: Annotated[int, Ge(2), MultipleOf(2)] = 50,
    sigma: Annotated[float, Gt(0)] = 0.01,
) -> None:
    """PGD on objective − λ·score, with a λ of its own for each sample (Carlini & Wagner 2017, arXiv:1705.07263).

    x ← project(x + step · steepest(∇J/‖∇J‖ − λ ∇s/‖∇s‖)): J is the objective, s the detector's score, and λ counts in
    units of the ratio of their slopes. Until a sample is broken λ is 0; then it rises by a factor after each point that
    succeeds, and falls by it after each that does not, so that x stays where success is about to be lost and the score
    sinks. Every round begins at the least suspicious success (at a random point, if there is none) with long steps,
    which shorten in its second half. Restarts forget earlier successes.
    A slope that torch cannot compute is estimated as in NES, from `samples` points x ± σu around x.
    """
    for _ in range(restarts):
        search = _Search.blank(probe)
        for _ in range(rounds):
            rows = probe.active()
            x = search.start(probe, rows)
            for step in range(steps):
                if not len(rows):
                    return
                answered = probe.forward(x, rows)
                weight = search.note(x, rows, answered)
                slope = _Slopes(probe, x, rows, answered, samples // 2, sigma).balanced(weight)
                x = probe.climb(x, rows, slope, step_length(probe.eps, steps, step_size) * _shortened(step / steps))
                left = probe.active()
                if len(left) < len(rows):
                    x, rows = x[positions(left, rows)], left
            search.note(x, rows, probe.forward(x, rows, gradient=False))


def _shortened(share: float) -> float:
    """Of a round's step length: all of it in the first half, then ever less."""
    return min(1.0, 2 * (1 - share))


@dataclass
class _Search:
    """The least suspicious success of each sample so far, and how much its score weighs now (λ)."""

    x: Tensor
    score: Tensor
    weight: Tensor

    @classmethod
    def blank(cls, probe: Probe) -> "_Search":
        def column(value: float) -> Tensor:
            return torch.full((len(probe.x0),), value, dtype=torch.float64, device=probe.x0.device)

        return cls(probe.x0.clone(), column(torch.inf), column(1.0))

    def start(self, probe: Probe, rows: Tensor) -> Tensor:
        """Where a round begins."""
        anywhere = point_in_ball(probe, rows, probe.eps)
        return probe.project(chosen(self.score[rows].isfinite(), self.x[rows], anywhere), rows)

    def note(self, x: Tensor, rows: Tensor, answered: Pass) -> Tensor:
        """Remember what was found; the weight of each row's score for the next step."""
        hit = answered.met
        score = torch.where(hit, answered.suspicion, torch.inf)
        better = score < self.score[rows]
        self.x[rows[better]], self.score[rows[better]] = x[better], score[better]
        broken = self.score[rows].isfinite()
        factor = torch.where(hit, _FACTOR, torch.where(broken, 1 / _FACTOR, 1.0))
        self.weight[rows] = (self.weight[rows] * factor).clamp(_LEAST, _MOST)
        return torch.where(broken, self.weight[rows], 0.0)


@dataclass(frozen=True)
class _Slopes:
    """The slopes of objective and score at some points: computed by torch, or estimated where it cannot."""

    probe: Probe
    x: Tensor
    rows: Tensor
    answered: Pass
    pairs: int
    sigma: float

    def balanced(self, weight: Tensor) -> Tensor:
        """∇J/‖∇J‖ − λ ∇s/‖∇s‖, shrunk by 1 + λ."""
        wanted = weight > 0
        objective, score = self._of_both(wanted)
        share = weight / (1 + weight)
        return self._unit(objective, 1 - share) - self._unit(score, share)

    def _of_both(self, wanted: Tensor) -> tuple[Tensor, Tensor]:
        suspicion = self.probe.task.suspicion
        if suspicion is None:
            raise ValueError("this attack needs a detector to know")
        if not gives(self.probe.model.capability, "gradients"):
            objective, score = self._estimated(torch.ones_like(wanted))
            return objective, score
        if not suspicion.differentiable:
            return self.answered.gradient(), self._estimated(wanted)[1]
        objective = self.answered.gradient(retain=True)
        return objective, self.answered.suspicion_gradient(wanted=wanted)

    def _estimated(self, wanted: Tensor) -> tuple[Tensor, Tensor]:
        """Estimated slopes at the wanted points; zero elsewhere."""
        indices = wanted.nonzero().squeeze(1)
        slopes = torch.zeros_like(self.x), torch.zeros_like(self.x)
        if len(indices):
            around = estimated(
                self.probe, self.x[indices], self.rows[indices], self.pairs, self.sigma, (Pass.heights, _suspicion)
            )
            for whole, part in zip(slopes, around, strict=True):
                whole.index_copy_(0, indices, part)
        return slopes

    def _unit(self, slope: Tensor, times: Tensor) -> Tensor:
        """A slope scaled so that a step of length one gains `times`; a slope of zero stays zero."""
        flat = slope.flatten(1)
        tall = flat.abs().amax(1).clamp_min(torch.finfo(flat.dtype).tiny)  # sums of very small slopes would vanish
        slope = slope / per_row(tall, slope)
        steep = self.probe.space.steepness(slope, self.probe.norm)
        return slope * per_row(torch.where(steep > 0, times / steep, 0.0), slope)


def _suspicion(answered: Pass) -> Tensor:
    return answered.suspicion
