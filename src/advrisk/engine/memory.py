"""What the probe remembers of each sample: passes spent, the first success, and the point to keep."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from advrisk.engine.rows import one_of_each


@dataclass
class SpentBefore:
    """Forward and backward passes that each row had spent before its latest query.

    Queries may follow each other without a gradient between them: `n_backward_earlier` is the count before the latest
    query with fewer backward passes.
    """

    n_forward: Tensor
    n_backward: Tensor
    n_backward_earlier: Tensor

    def note(self, rows: Tensor, n_forward: Tensor, n_backward: Tensor) -> None:
        """Set the counts of these rows; a row that is repeated has the same counts each time."""
        had = self.n_backward.index_select(0, rows)
        earlier = torch.where(n_backward > had, had, self.n_backward_earlier.index_select(0, rows))
        self.n_forward.index_copy_(0, rows, n_forward)
        self.n_backward.index_copy_(0, rows, n_backward)
        self.n_backward_earlier.index_copy_(0, rows, earlier)


@dataclass
class Memory:
    """One entry per row of the shard. `n_forward_first` is -1 without a success.

    `n_confirm` of the forward passes only confirmed a success. They are spent, but the attack did not wait for them:
    neither first successes nor seconds count them. A first success came after `n_forward_before` of the others, those
    up to the query before the one that proposed it.

    `keep_best`: of two points, the successful one is kept, then the one of larger `merit`; a later point wins ties.
    `ascending` means that each sample proposed one point, in the order of the shard: the usual case.
    """

    kept: Tensor
    success: Tensor
    merit: Tensor
    n_forward: Tensor
    n_backward: Tensor
    n_confirm: Tensor
    n_forward_first: Tensor
    n_backward_first: Tensor
    n_forward_before: Tensor
    n_backward_before: Tensor
    before_query: SpentBefore
    first_s: Tensor
    spent_s: Tensor
    no_start: Tensor
    offered: Tensor  # the point was kept without a query
    n_rejected: Tensor  # queries that the model refused to answer
    failed: dict[int, str] = field(default_factory=dict)  # row -> what went wrong

    @classmethod
    def blank(cls, x0: Tensor) -> "Memory":
        """Before the first pass the clean input is kept."""

        def column(value: float, dtype: torch.dtype) -> Tensor:
            return torch.full((len(x0),), value, dtype=dtype, device=x0.device)

        return cls(
            kept=x0.clone(),
            success=column(False, torch.bool),
            merit=column(-torch.inf, torch.float64),
            n_forward=column(0, torch.int64),
            n_backward=column(0, torch.int64),
            n_confirm=column(0, torch.int64),
            n_forward_first=column(-1, torch.int64),
            n_backward_first=column(-1, torch.int64),
            n_forward_before=column(-1, torch.int64),
            n_backward_before=column(-1, torch.int64),
            before_query=SpentBefore(*(column(0, torch.int64) for _ in range(3))),
            first_s=column(torch.nan, torch.float32),
            spent_s=column(0, torch.float32),
            no_start=column(False, torch.bool),
            offered=column(False, torch.bool),
            n_rejected=column(0, torch.int64),
        )

    def spend(self, counter: Tensor, rows: Tensor, elapsed_s: float, *, passes: int = 1) -> None:
        """Count one pass (or more) for each row; the time is shared equally by the rows of the batch."""
        if len(rows):
            counter.index_add_(0, rows, torch.full_like(rows, passes))
            share = torch.full((len(rows),), elapsed_s / len(rows), dtype=torch.float32, device=rows.device)
            self.spent_s.index_add_(0, rows, share)

    def begin_query(self, rows: Tensor) -> None:
        """Record what these rows have spent before their next query."""
        self.before_query.note(rows, self._proposed(rows), self.n_backward.index_select(0, rows))

    def confirm(self, rows: Tensor) -> None:
        """Count a forward pass that only confirms."""
        for counter in (self.n_forward, self.n_confirm):
            counter.index_add_(0, rows, torch.ones_like(rows))

    def _proposed(self, rows: Tensor) -> Tensor:
        """The forward passes at points that the attack proposed."""
        return self.n_forward.index_select(0, rows) - self.n_confirm.index_select(0, rows)

    def note_first(self, rows: Tensor) -> None:
        """Record what these rows have spent if this success is their first."""
        new = rows[self.n_forward_first[rows] < 0]
        if not len(new):
            return
        self.n_forward_first[new] = self._proposed(new)
        self.n_backward_first[new] = self.n_backward[new]
        self.n_forward_before[new] = self.before_query.n_forward[new]
        self.n_backward_before[new] = self.before_query.n_backward_earlier[new]
        self.first_s[new] = self.spent_s[new]

    def share(self, n_forward: int, n_backward: int) -> None:
        """Spread these passes and those counted so far equally over all rows, rounded up; first successes are unset."""
        for counter, more in ((self.n_forward, n_forward), (self.n_backward, n_backward)):
            counter.fill_(-(-(int(counter.sum()) + more) // len(counter)))
        self.n_confirm.fill_(-(-int(self.n_confirm.sum()) // len(self.n_confirm)))
        for first in (self.n_forward_first, self.n_backward_first, self.n_forward_before, self.n_backward_before):
            first.fill_(-1)
        self.first_s.fill_(torch.nan)

    def keep_last(self, x: Tensor, rows: Tensor, success: Tensor, *, ascending: bool) -> None:
        """Keep each sample's latest point, whatever came of it."""
        if not ascending:
            order = one_of_each(rows)
            x, rows, success = x[order], rows[order], success[order]
        if len(rows) == len(self.kept):  # all of them, in order
            self.kept.copy_(x)
        else:
            self.kept.index_copy_(0, rows, x)
        self.success.index_copy_(0, rows, success)

    def keep_best(self, x: Tensor, rows: Tensor, success: Tensor, merit: Tensor, *, ascending: bool) -> None:
        """Keep each point that is no worse than what was kept for its sample."""
        had, merit_had = self.success.index_select(0, rows), self.merit.index_select(0, rows)
        better = torch.where(success == had, merit >= merit_had, success).nonzero().squeeze(1)
        if not len(better):
            return
        if not ascending:
            better = better[one_of_each(rows[better], merit[better], success[better])]
        if len(better) < len(rows):
            x, rows, success, merit = (part.index_select(0, better) for part in (x, rows, success, merit))
        for column, value in ((self.kept, x), (self.success, success), (self.merit, merit)):
            column.index_copy_(0, rows, value)
