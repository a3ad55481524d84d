"""FGSM: one step along the gradient."""

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.engine.norms import steepest
from advrisk.parts.attacks.registry import attacks


@attacks.register(
    "fgsm",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        objective="ace",
        passes=lambda _: (2, 1),
        use_when="a first look in two passes; a model it breaks is very weak, one it does not may still be",
    ),
)
def fgsm(probe: Probe) -> None:
    """Fast gradient method (Goodfellow et al. 2015, arXiv:1412.6572): x + eps · steepest(∇J(x))."""
    rows = probe.active()
    slope = probe.forward(probe.x0, rows).gradient(probe.task.objective)
    rows, slope = probe.active(), slope[probe.active()]
    x = probe.x0[rows] + probe.eps * probe.space.scale * steepest(slope * probe.space.scale, probe.norm)
    probe.forward(probe.project(x, rows), rows, gradient=False)
