"""The order of cells in which nobody waits long for the last one.

Cells come shard by shard, so that an interrupted run has whole samples to show. Only at the end does it matter which
come last: a long one that is begun when all others are done keeps a single worker busy. So the last of the work, enough
to keep all workers busy for twice the longest cell, is taken longest first (Graham, "Bounds on multiprocessing timing
anomalies", 1969).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from advrisk.plan import Cell
from advrisk.run.bench import Workbench
from advrisk.run.passes import is_counted, most_passes

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
    """The passes of all samples of a cell at most; of one of which nobody knows them, as many as the longest known.

    A sample that falls early takes fewer, and a large model longer for each: this is an order, and no clock.
    """
    known: dict[tuple[str, str], float] = {}

    def of_sample(cell: Cell) -> float:
        place = cell.model, cell.arm.id
        if place not in known:
            passes = _known_passes(cell, bench)
            known[place] = max(known.values(), default=1.0) if passes is None else passes
        return known[place]

    return lambda cell: of_sample(cell) * len(cell.shard.samples)


def _known_passes(cell: Cell, bench: Workbench) -> float | None:
    """Passes of a sample at most; None where nobody knows them, or a detector would have to be asked first."""
    if cell.arm.kind == "attack" and bench.registries.attacks.get(cell.arm.family).traits.watches:
        return None
    try:
        return float(sum(most_passes(cell, bench))) if is_counted(cell.model, cell.arm, bench) else None
    except Exception:  # of what somebody's own attack says: an order is not worth a run
        return None
