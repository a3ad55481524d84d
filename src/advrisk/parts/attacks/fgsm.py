"""FGSM: one step along the gradient."""

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.parts.attacks.moves import clean_start, positions
from advrisk.parts.attacks.registry import attacks


@attacks.register(
    "fgsm",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        objective="ace",
        passes=lambda *_: (2, 1),
        use_when="two passes must do for a first test; a model that it breaks is very weak, another may still be",
    ),
)
def fgsm(probe: Probe) -> None:
    """Fast gradient method (Goodfellow et al. 2015, arXiv:1412.6572): x + eps · steepest(∇J(x))."""
    rows = probe.active()
    slope = probe.forward(clean_start(probe, rows), rows).gradient()
    left = probe.active()
    slope, rows = slope[positions(left, rows)], left
    probe.forward(probe.climb(probe.x0[rows], rows, slope, probe.eps), rows, gradient=False)
