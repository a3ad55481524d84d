"""Transfer: adversarial inputs of one model often break another (Szegedy et al. 2014; Papernot et al. 2016)."""

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
        use_when="an attacker has a model like yours and cannot query yours: {attack: transfer, from: MODEL, arm: {…}}",
        needs_eps=False,
        random=True,
        accounting="none",
    ),
)
def transfer(probe: Probe) -> None:
    """Points that an arm crafted against another model (`from`), unchanged: the target gets no query.

    Set norm, eps and everything else in `arm`.
    """
    if probe.task.crafted is None:
        raise ValueError("no points were crafted for these samples")
    rows = probe.active()
    probe.offer(probe.task.crafted[rows], rows)
