"""BIM: small steps along the gradient, from the clean input."""

from typing import Annotated

from annotated_types import Ge, Gt

from advrisk.core.traits import AttackTraits, Box
from advrisk.engine import Probe
from advrisk.parts.attacks.moves import clean_start
from advrisk.parts.attacks.pgd import ascend, step_length
from advrisk.parts.attacks.registry import attacks


@attacks.register(
    "bim",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        objective="ace",
        passes=lambda settings, _: (settings["steps"] + 1, settings["steps"]),
        use_when="a deterministic attack is wanted; PGD with its random start is usually stronger",
        box={
            "step_size": Box(
                0.01, 2.0, of_eps=True, usual=lambda settings, eps: step_length(eps, settings["steps"], None)
            )
        },
    ),
)
def bim(probe: Probe, *, steps: Annotated[int, Ge(1)] = 10, step_size: Annotated[float, Gt(0)] | None = None) -> None:
    """Basic iterative method (Kurakin et al. 2017, arXiv:1607.02533): PGD without a random start.

    `step_size` is a length in the arm's norm; by default 2.5·eps/steps, but no less than eps/10.
    """
    rows = probe.active()
    step = step_length(probe.eps, steps, step_size)
    ascend(probe, clean_start(probe, rows), rows, steps, step)
