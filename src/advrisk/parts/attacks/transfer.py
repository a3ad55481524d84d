"""Transfer: what breaks one model often breaks another (Szegedy et al. 2014; Papernot et al. 2016)."""

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.engine.norms import NORMS
from advrisk.parts.attacks.registry import attacks


@attacks.register(
    "transfer",
    traits=AttackTraits(
        needs="labels",
        norms=NORMS,
        passes=lambda _, __: (0, 0),
        use_when="an attacker has a model like yours and cannot ask yours: {attack: transfer, from: MODEL, arm: {…}}",
        needs_eps=False,
        random=True,
        accounting="none",
    ),
)
def transfer(probe: Probe) -> None:
    """Points that an arm crafted against another model (`from`), as they are: the target is asked nothing.

    Norm, eps and all else are given in `arm`.
    """
    if probe.task.crafted is None:
        raise ValueError("nothing was crafted for these samples to take over")
    rows = probe.active()
    probe.offer(probe.task.crafted[rows], rows)
