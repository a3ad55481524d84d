"""How many passes a cell takes at most, as far as anybody knows before it runs."""

from advrisk.core.errors import RunError
from advrisk.core.traits import Watch, gives
from advrisk.engine.heard import CONFIRM_DRAWS
from advrisk.plan import Cell
from advrisk.run.bench import Workbench
from advrisk.run.judge import JUDGE_DRAWS
from advrisk.run.walk_back import LINE, TURNED, TURNS, walks_back
from advrisk.study import Arm


def most_passes(cell: Cell, bench: Workbench) -> tuple[int, int]:
    """Forward and backward passes of each sample of a cell at most, those of the judge included."""
    forward, backward = _arm_passes(cell.model, cell.arm, bench)
    return forward + _judge_passes(cell, bench), backward + (TURNS if _turns(cell.arm, bench) else 0)


def _judge_passes(cell: Cell, bench: Workbench) -> int:
    """The judge's forward passes at most: the kept point, in 8 bits, and the walk back."""
    draws = JUDGE_DRAWS if bench.material.models[cell.model].random else 1
    if cell.arm.kind != "attack":
        return draws
    if not walks_back(cell.arm):
        return 2 * draws
    return (2 + LINE) * draws + (TURNS * (1 + TURNED * draws) if _turns(cell.arm, bench) else 0)


def _turns(arm: Arm, bench: Workbench) -> bool:
    """Whether the walk back uses gradients."""
    if not walks_back(arm) or arm.norm == "l0":
        return False
    traits = bench.registries.attacks.get(arm.family).traits
    return traits.resolved(arm.params, arm.norm, arm.eps).needs == "gradients"


def is_counted(model: str, arm: Arm, bench: Workbench) -> bool:
    """Whether it is known how many passes an arm takes at most."""
    if arm.kind != "attack":
        return True
    traits = bench.registries.attacks.get(arm.family).traits
    return traits.passes is not None and (not traits.watches or _watch(model, arm, bench) is not None)


def _watch(model: str, arm: Arm, bench: Workbench) -> Watch | None:
    """What is known of the detector that an arm knows; None where it has none, or one that has yet to learn."""
    try:
        suspicion = bench.suspicion(model, arm)
    except RunError:
        return None
    if suspicion is None:
        return None
    follows_model = gives(bench.material.models[model].capability, "gradients")
    return Watch(suspicion.passes, follows_model and suspicion.differentiable, follows_model)


def _arm_passes(model: str, arm: Arm, bench: Workbench) -> tuple[int, int]:
    passes = bench.registries.attacks.get(arm.family).traits.passes if arm.kind == "attack" else None
    if passes is None:
        return 0, 0
    given = {**arm.params, "watch": _watch(model, arm, bench)}
    forward, backward = passes(given, bench.material.models[model].n_classes)
    if bench.material.models[model].random:  # asked so often, and again where it looks like a success
        forward, backward = forward * max(arm.draws, CONFIRM_DRAWS), backward * arm.draws
    return (forward if arm.max_queries is None else min(forward, arm.max_queries)), backward
