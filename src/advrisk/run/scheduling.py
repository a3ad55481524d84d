"""Scheduling: about how much work a cell is, and an order of cells in which no worker waits long for the last one.

Cells come shard by shard, so that an interrupted run has whole samples to show. Only at the end does it matter which
come last: a long one that begins when all others are done keeps a single worker busy. So the last of the work, enough
to keep all workers busy for twice the longest cell, is taken longest first (Graham, "Bounds on multiprocessing timing
anomalies", 1969).
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
    """The cells in their order, the last of them the longest first; those that need others, after all of these.

    No more of them are held than are the last ones, if no others come.
    """
    last: deque[tuple[float, Cell]] = deque()
    held = longest = 0.0
    for cell in cells:
        amount = work(cell)
        last.append((amount, cell))
        held, longest = held + amount, max(longest, amount)
        while held - last[0][0] >= _ROUNDS * workers * longest:
            amount, first = last.popleft()
            held -= amount
            yield first
    yield from (cell for _, cell in sorted(last, key=lambda entry: (bool(entry[1].needs), -entry[0])))


def expected_work(bench: Workbench) -> Callable[[Cell], float]:
    """The passes of all samples of a cell at most; where they are not known, as many as the longest cell so far.

    A sample that falls early takes fewer, and a large model longer for each: this is an order, and no clock.
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
    """Passes of a sample at most; None where they are not known, or a detector would have to be asked first."""
    if cell.arm.kind == "attack" and bench.registries.attacks.get(cell.arm.family).traits.watches:
        return None
    try:
        return float(sum(most_passes(cell, bench))) if is_counted(cell.model, cell.arm, bench) else None
    except Exception:  # of a user's own attack: an order is not worth a run
        return None


def most_passes(cell: Cell, bench: Workbench) -> tuple[int, int]:
    """Forward and backward passes of each sample of a cell at most, those of the judge included."""
    forward, backward = arm_passes(cell.model, cell.arm, bench)
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


def arm_passes(model: str, arm: Arm, bench: Workbench) -> tuple[int, int]:
    """Forward and backward passes of an arm for each sample at most; 0 where they are not known."""
    passes = bench.registries.attacks.get(arm.family).traits.passes if arm.kind == "attack" else None
    if passes is None:
        return 0, 0
    given = {**arm.params, "watch": _watch(model, arm, bench)}
    forward, backward = passes(given, bench.material.models[model].n_classes)
    if bench.material.models[model].random:  # asked so often, and again where it looks like a success
        forward, backward = forward * max(arm.draws, CONFIRM_DRAWS), backward * arm.draws
    return (forward if arm.max_queries is None else min(forward, arm.max_queries)), backward
