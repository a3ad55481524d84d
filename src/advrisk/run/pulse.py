"""How far a cell is while its attack runs."""

import time
from collections.abc import Callable

from torch import Tensor

OnShare = Callable[[str, float], None]  # a cell's id, and how many of its samples are done; a part of one counts, too

EVERY_S = 0.5


def ignore_share(cell: str, n_done: float) -> None:
    """Report nothing."""


class Pulse:
    """Reports now and then how many samples of a cell are done.

    A sample is done once the attack has finished with it; before, the share of its passes counts, where it is known how
    many it takes at most.
    """

    def __init__(self, cell: str, report: OnShare, *, most_passes: float) -> None:
        self._cell, self._report, self._most = cell, report, most_passes
        self._due = time.monotonic() + EVERY_S

    def __call__(self, n_forward: Tensor, done: Tensor, n_settled: int) -> None:
        """After a pass: the passes of each sample, which are done, and how many more of the cell need no attack."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + EVERY_S
        shares = done.double()
        if self._most > 0:
            shares = shares.maximum((n_forward.double() / self._most).clamp(max=1))
        self._report(self._cell, n_settled + float(shares.sum()))
