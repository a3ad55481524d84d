"""FMN: within a ball that shrinks below each success and grows without one."""

from typing import Annotated

from annotated_types import Ge, Gt

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Probe
from advrisk.parts.attacks.boundary import Nearest, StepSchedule, shrink
from advrisk.parts.attacks.registry import attacks

_GIVE = (0.05, 0.0001)
_LAST_STEP = 0.01  # of the first


@attacks.register(
    "fmn",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1", "l0"),
        passes=lambda settings, _: (settings["steps"] + 2, settings["steps"]),
        use_when="the smallest perturbation is wanted, or the fewest changed features (l0)",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        box={"step_size": Box(0.01, 10.0)},
    ),
)
def fmn(probe: Probe, *, steps: Annotated[int, Ge(1)] = 100, step_size: Annotated[float, Gt(0)] = 1.0) -> None:
    """Fast minimum-norm attack (Pintor et al. 2021, arXiv:2102.12827).

    Steps along the slope of the margin, of length `step_size` in l2 at first and a hundredth of it at last, each
    projected into the ball and the bounds. The ball shrinks by 5 % at first and 0.01 % at last.
    """
    rows, nearest = probe.active(), Nearest(probe)
    schedule = StepSchedule(_GIVE, (step_size, _LAST_STEP * step_size), of_ball=False)
    shrink(probe, nearest, probe.x0[rows], rows, steps, schedule)
    nearest.close_in(0)
