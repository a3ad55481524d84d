"""The nearest success for few passes: one step across the nearest boundary, then a ball that shrinks."""

from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.engine.norms import random_in_ball
from advrisk.parts.attacks.boundary import FEW_STEPS, Nearest, StepSchedule, shrink, step_across
from advrisk.parts.attacks.moves import Candidates, chosen, n_others, per_row, random_inputs
from advrisk.parts.attacks.registry import attacks
from advrisk.parts.attacks.slide import slide

_LEAD_STEPS, _LEAD = 5, StepSchedule(give=(0.3, 0.1), stride=(0.5, 0.1))
_IN_L2 = StepSchedule(give=(0.4, 0.01), stride=(1.0, 0.05))
_RESCUES = 4  # random inputs to try for a sample without a success
_TRIES_INWARDS, _STEPS_AFTER_RESCUE = 5, 10
_STEPS_BESIDE = _LEAD_STEPS + _STEPS_AFTER_RESCUE
_LAST_TRIES = 3


def _passes(settings: Mapping[str, Any], classes: int) -> tuple[int, int]:
    steps, restarts = settings["steps"], settings["restarts"]
    beside = 5 + _RESCUES + _TRIES_INWARDS + _LAST_TRIES  # forward passes without a slope
    per_restart = 3 + _LAST_TRIES  # and those of a restart
    return (
        steps + _STEPS_BESIDE + beside + restarts * (steps + _LEAD_STEPS + per_restart),
        steps + _STEPS_BESIDE + n_others(settings["candidates"], classes) + restarts * (steps + _LEAD_STEPS),
    )


@attacks.register(
    "minimum-norm",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        passes=_passes,
        use_when="you ask how near a success is, for the fewest passes",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        random=True,
    ),
    version=2,
)
def minimum_norm(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(1)] = 22,
    candidates: Candidates = 4,
    restarts: Annotated[int, Ge(0)] = 0,
) -> None:
    """Our own schedule for minimal distances.

    DeepFool's first step goes just beyond the nearest of the linearised boundaries to some classes, by the shortest
    way in linf. In l2 and l1, a few steps search for a near success in linf first: on the tuning models, the result was
    nearer. Then follow `steps` steps. In linf and l2 they climb the margin within a ball around the clean input that
    shrinks below each success and grows without one; in l1 they solve the linearised problem within a box (`slide`).
    Samples without a success try random inputs; successes among these are drawn inwards and refined in the same way. At
    last comes a search on the straight line to the clean input.

    `restarts` repeats these steps from a random point, as far in linf as the nearest success; in l1, every other time
    from the nearest success itself. The nearest of all counts: more restarts never do worse.
    """
    rows = probe.active()
    if not len(rows):
        return
    x = step_across(probe, rows, candidates, "linf")
    if probe.norm == "linf":
        nearest = Nearest(probe)
        _refine(probe, nearest, x, rows, steps)
        rows = _try_random_inputs(probe, nearest)
        _refine(probe, nearest, nearest.point[rows], rows, _STEPS_AFTER_RESCUE)
    else:
        nearest = _lead(probe, x, rows)
        _try_random_inputs(probe, nearest)
        _refine(probe, nearest, x, rows, steps)
    nearest.close_in(_LAST_TRIES)
    for restart in range(restarts):
        _restart(probe, nearest, steps, from_nearest=probe.norm == "l1" and restart % 2 == 0)
    if restarts:
        nearest.close_in(0)  # where the last point counts, it is the nearest of all


def _lead(probe: Probe, x: Tensor, rows: Tensor) -> Nearest:
    """The nearest successes of a few steps in linf from x."""
    nearest = Nearest(probe, "linf")
    shrink(probe, nearest, x, rows, _LEAD_STEPS, _LEAD)
    return nearest.measured_in(probe.norm)


def _refine(probe: Probe, nearest: Nearest, x: Tensor, rows: Tensor, steps: int) -> None:
    """`steps` steps from the nearest success of each row, or from x where there is none."""
    x = chosen(nearest.distance[rows].isfinite(), nearest.point[rows], x)
    if probe.norm == "l1":
        slide(probe, nearest, x, rows, steps)
    else:
        shrink(probe, nearest, x, rows, steps, _IN_L2 if probe.norm == "l2" else FEW_STEPS)


def _restart(probe: Probe, nearest: Nearest, steps: int, *, from_nearest: bool) -> None:
    """Search once more, with a new ball; nearer successes replace those so far."""
    rows = probe.active()
    if not len(rows):
        return
    x = nearest.point[rows] if from_nearest else _point_as_far(probe, nearest, rows)
    again = Nearest(probe) if from_nearest or probe.norm == "linf" else _lead(probe, x, rows)
    _refine(probe, again, x, rows, steps)
    again.close_in(_LAST_TRIES)
    nearest.take(again)


def _point_as_far(probe: Probe, nearest: Nearest, rows: Tensor) -> Tensor:
    """Points drawn from the linf ball through the nearest success; from the whole box without a success."""
    x0, space = probe.x0[rows], probe.space
    reach = space.distance(nearest.point[rows], x0, "linf")
    jump = per_row(reach, x0) * random_in_ball(probe.noise, rows, tuple(x0.shape[1:]), "linf", 1.0)
    anywhere = random_inputs(probe, rows, corners=False)
    return chosen(nearest.distance[rows].isfinite(), space.project(x0 + jump * space.scale, x0), anywhere)


def _try_random_inputs(probe: Probe, nearest: Nearest) -> Tensor:
    """Try random inputs for rows without a success, draw successes inwards, and return their rows."""
    lost = _without_success(probe, nearest)
    for rescue in range(_RESCUES):
        rows = _without_success(probe, nearest)
        if not len(rows):
            break
        x = random_inputs(probe, rows, corners=rescue % 2 == 1)
        nearest.note(x, rows, probe.forward(x, rows, gradient=False))
    rows = lost[probe.is_active(lost) & nearest.distance[lost].isfinite()]
    nearest.close_in(_TRIES_INWARDS, rows)
    return rows


def _without_success(probe: Probe, nearest: Nearest) -> Tensor:
    rows = probe.active()
    return rows[nearest.distance[rows].isinf()]
