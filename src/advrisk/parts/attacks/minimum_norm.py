"""The nearest success for few passes: one step across the nearest boundary, then a ball that shrinks."""

from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.parts.attacks.boundary import Nearest, shrink, step_across
from advrisk.parts.attacks.moves import Candidates, n_others, random_inputs
from advrisk.parts.attacks.registry import attacks

_RESCUES = 4  # random inputs that a sample without a success is compared with
_TRIES_INWARDS, _STEPS_AFTER_RESCUE = 5, 10
_LAST_TRIES = 3


@attacks.register(
    "minimum-norm",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2"),
        passes=lambda given, classes: (
            given["steps"] + 2 + _RESCUES + 1 + _TRIES_INWARDS + _STEPS_AFTER_RESCUE + 1 + 1 + _LAST_TRIES,
            given["steps"] + n_others(given["candidates"], classes) + _STEPS_AFTER_RESCUE,
        ),
        use_when="how far the nearest success is, for the fewest passes",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        random=True,
    ),
)
def minimum_norm(probe: Probe, *, steps: Annotated[int, Ge(1)] = 22, candidates: Candidates = 4) -> None:
    """Our own schedule for minimal distances.

    DeepFool's first step goes just beyond the nearest of the linearised boundaries to some classes. From there,
    `steps` steps climb the margin within a ball around the clean input that shrinks below each success and grows
    without one. A sample that none of them broke is compared with random inputs; what succeeds is drawn inwards and
    refined alike. At last, a search on the straight line to the clean input.
    """
    nearest, rows = Nearest(probe), probe.active()
    if not len(rows):
        return
    shrink(probe, nearest, step_across(probe, rows, candidates), rows, steps)
    _rescue(probe, nearest)
    nearest.close_in(_LAST_TRIES)


def _rescue(probe: Probe, nearest: Nearest) -> None:
    """Where slopes lead nowhere, an input of another class may still be found by chance."""
    lost = _without_success(probe, nearest)
    for place in range(_RESCUES):
        rows = _without_success(probe, nearest)
        if not len(rows):
            break
        x = random_inputs(probe, rows, corners=place % 2 == 1)
        nearest.note(x, rows, probe.forward(x, rows, gradient=False))
    rows = lost[torch.isin(lost, probe.active()) & nearest.distance[lost].isfinite()]
    if len(rows):
        nearest.close_in(_TRIES_INWARDS, rows)
        shrink(probe, nearest, nearest.point[rows], rows, _STEPS_AFTER_RESCUE)


def _without_success(probe: Probe, nearest: Nearest) -> Tensor:
    rows = probe.active()
    return rows[nearest.distance[rows].isinf()]
