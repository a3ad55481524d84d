"""Scheduling: the expected work of a cell, and an order of cells in which no worker waits long for the last one.

Cells come shard by shard, so that an interrupted run has whole samples to show. Only the end of the order matters: a
long cell that starts when all others are done keeps a single worker busy. So the last of the work, enough to keep all
workers busy for twice the longest cell, runs longest first (Graham, "Bounds on multiprocessing timing anomalies",
1969).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from advrisk.core.errors import RunError
from advrisk.core.traits import Watch, gives
from advrisk.engine.replies import CONFIRM_DRAWS
from advrisk.plan import Cell
from advrisk.run.judge import JUDGE_DRAWS
from advrisk.run.walk_back import LINE, TURNED, TURNS, walks_back
from advrisk.run.workbench import Workbench
from advrisk.study import Arm

_ROUNDS = 2


def longest_last_first(cells: Iterable[Cell], work: Callable[[Cell], float], *, workers: int) -> Iterator[Cell]:
    """The cells in their order, but the last ones longest first; those that need others come after all of these.

    Only the cells that may be the last ones are in memory.
    """
    last: deque[tuple[float, Cell]] = deque()
    pending = longest = 0.0
    for cell in cells:
        amount = work(cell)
        last.append((amount, cell))
        pending, longest = pending + amount, max(longest, amount)
        while pending - last[0][0] >= _ROUNDS * workers * longest:
            amount, first = last.popleft()
            pending -= amount
            yield first
    yield from (cell for _, cell in sorted(last, key=lambda entry: (bool(entry[1].needs), -entry[0])))


def expected_work(bench: Workbench) -> Callable[[Cell], float]:
    """An upper bound of the passes of a cell; for arms without one, that of the longest cell so far.

    Samples that are broken early take fewer passes, and large models longer for each: the result orders cells, it does
    not predict time.
    """
    passes_of: dict[tuple[str, str], float] = {}

    def of_sample(cell: Cell) -> float:
        pair = cell.model, cell.arm.id
        if pair not in passes_of:
            passes = _sample_passes(cell, bench)
            passes_of[pair] = max(passes_of.values(), default=1.0) if passes is None else passes
        return passes_of[pair]

    return lambda cell: of_sample(cell) * len(cell.shard.samples)


def _sample_passes(cell: Cell, bench: Workbench) -> float | None:
    """An upper bound of the passes of a sample; None if unknown, or if it depends on a detector."""
    if cell.arm.kind == "attack" and bench.registries.attacks.get(cell.arm.family).traits.watches:
        return None
    try:
        return float(sum(most_passes(cell, bench))) if is_counted(cell.model, cell.arm, bench) else None
    except Exception:  # of a user's own attack: an order is not worth a run
        return None


def most_passes(cell: Cell, bench: Workbench) -> tuple[int, int]:
    """Upper bounds of the forward and backward passes of each sample of a cell, with those of the judge."""
    forward, backward = arm_passes(cell.model, cell.arm, bench)
    return forward + _judge_passes(cell, bench), backward + (TURNS if _turns(cell.arm, bench) else 0)


def _judge_passes(cell: Cell, bench: Workbench) -> int:
    """An upper bound of the judge's forward passes: the kept point, in 8 bits, and the walk back."""
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
    """Whether an arm has an upper bound of its passes."""
    if arm.kind != "attack":
        return True
    traits = bench.registries.attacks.get(arm.family).traits
    return traits.passes is not None and (not traits.watches or _watch(model, arm, bench) is not None)


def _watch(model: str, arm: Arm, bench: Workbench) -> Watch | None:
    """The costs of the detector that an arm knows; None if it knows none, or one that has not learned yet."""
    try:
        suspicion = bench.suspicion(model, arm)
    except RunError:
        return None
    if suspicion is None:
        return None
    follows_model = gives(bench.material.models[model].capability, "gradients")
    return Watch(suspicion.passes, follows_model and suspicion.differentiable, follows_model)


def arm_passes(model: str, arm: Arm, bench: Workbench) -> tuple[int, int]:
    """Upper bounds of the forward and backward passes of an arm for each sample; 0 where unknown."""
    passes = bench.registries.attacks.get(arm.family).traits.passes if arm.kind == "attack" else None
    if passes is None:
        return 0, 0
    settings = {**arm.params, "watch": _watch(model, arm, bench)}
    forward, backward = passes(settings, bench.material.models[model].n_classes)
    if bench.material.models[model].random:  # several draws per point, and more to confirm a success
        forward, backward = forward * max(arm.draws, CONFIRM_DRAWS), backward * arm.draws
    return (forward if arm.max_queries is None else min(forward, arm.max_queries)), backward
