"""Feature search: which few features must change, and how little, from labels alone. Made for tables."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.traits import AttackTraits, Norm
from advrisk.engine import Probe
from advrisk.engine.rows import occurrence
from advrisk.parts.attacks.moves import samples_at_once
from advrisk.parts.attacks.registry import attacks

_PUT_BACK, _DRAW_IN, _SWAP = range(3)  # the task of a sample
_FINEST = 2.0**-10  # of a sample's distance: values are drawn in no finer than that
_AFAR = 0.3  # the share of tries that begin anew, with many features
_SHORTER = 0.99  # of the distance there is: how far a swap may reach

_Count = Annotated[int, Ge(1)]


@attacks.register(
    "feature-search",
    traits=AttackTraits(
        needs="labels",
        norms=("l0", "l1"),
        passes=lambda settings, _: (settings["queries"] + 1, 0),
        use_when="the inputs are a table, or the model is made of steps, as trees are, and it gives labels only",
        keep="smallest",
        within_eps=False,
        needs_eps=False,
        random=True,
    ),
)
def feature_search(probe: Probe, *, queries: _Count = 1000, tries: _Count = 10) -> None:
    """Search over features instead of along a boundary: no slopes, no steps that whole numbers would swallow.

    It starts where random values in 1, 2, 4, … features succeed (`tries` draws of each number of features). Then
    features are put back to their clean values, in groups that double after a success and halve after a failure, until
    none can be put back alone; in l1 the values left are drawn in by bisection, one feature at a time, until nothing
    moves. The queries that are left try swaps (some of the changed features, and random values in others, that together
    would be a smaller change) and begin anew from many features, in l1 all within a random distance. A sample for which
    no random values succeed is given up.
    """
    search = _Search(probe, queries, tries)
    search.start()
    while search.step():
        pass
    if probe.task.keep == "last":  # the last try may have failed
        rows = probe.active()
        search.settle(rows)
        probe.labels(search.best[rows].view_as(probe.x0[rows]), rows)


@dataclass(frozen=True)
class _Proposal:
    """Points to query, (points, features), their rows, whether they are worth a query, and a callback for answers."""

    points: Tensor
    rows: Tensor
    wanted: Tensor
    learn: Callable[[Tensor], None]


class _Columns:
    """The allowed values of each feature, flattened whatever the shape of an input."""

    def __init__(self, probe: Probe) -> None:
        space, shape = probe.space, probe.x0.shape[1:]

        def line(part: Tensor | None) -> Tensor:
            none = torch.zeros((), dtype=torch.bool, device=probe.x0.device)
            return (none if part is None else part).expand(shape).flatten()

        self.low, self.high, self.scale = line(space.low), line(space.high), line(space.scale)
        self.category = line(space.category)
        self.whole = line(space.integer) | self.category
        several = torch.where(self.whole, self.high.floor() > self.low.ceil(), self.high > self.low)
        self.free = several & ~line(space.immutable)

    def least(self, norm: Norm) -> float:
        """The smallest possible change; in l1, 0 where a feature is continuous."""
        if norm == "l0" or not bool(self.free.any()):
            return 1.0
        unit = torch.where(self.category, 1.0, torch.where(self.whole, 1 / self.scale, 0.0))
        return float(unit[self.free].min())

    def drawn(self, share: Tensor, x0: Tensor, reach: Tensor) -> Tensor:
        """Other values than the clean ones, no farther than `reach` units away, by shares drawn from [0, 1).

        Where whole numbers and categories have no other value within reach, the clean ones.
        """
        low, high = torch.maximum(self.low, x0 - reach * self.scale), torch.minimum(self.high, x0 + reach * self.scale)
        value = torch.minimum(low + share * (high - low), high)
        if not bool(self.whole.any()):
            return value
        narrow = ~self.category
        low, high = torch.where(narrow, low, self.low).ceil(), torch.where(narrow, high, self.high).floor()
        other = low + (share * (high - low)).floor().clamp_max(high - low - 1)
        other = other + (other >= x0)  # one of the values but the clean one
        none = (high <= low) | (self.category & (reach < 1))
        return torch.where(self.whole, torch.where(none, x0, other), value)


class _Search:
    """One entry per row of the shard: its smallest success so far, and its current task.

    All samples advance together, each at its own task: a step queries one batch of their proposals. A sample's proposal
    depends on that sample alone.
    """

    def __init__(self, probe: Probe, queries: int, tries: int) -> None:
        self.probe, self.tries, self.columns = probe, tries, _Columns(probe)
        self.least = self.columns.least(probe.norm)
        self.x0 = probe.x0.flatten(1)
        self.x, self.best = self.x0.clone(), self.x0.clone()
        self.order = torch.zeros_like(self.x0, dtype=torch.int64)  # in which features are tried
        self.limit = probe.memory.n_forward + queries
        blank = torch.zeros_like(probe.memory.n_forward)
        self.task, self.rounds_left = blank.clone(), blank + queries
        self.offset, self.size, self.span, self.settled = (blank.clone() for _ in range(4))
        self.started, self.moved, self.begun = blank.bool(), blank.bool(), blank.bool()
        self.inner, self.finest = self.x0.new_zeros(len(blank)), self.x0.new_zeros(len(blank))
        self.least_distance = self.x0.new_full((len(blank),), torch.inf)

    def start(self) -> None:
        """Find a success of few features for every row, the fewest first; rows that never succeed are given up."""
        n_free = int(self.columns.free.sum())
        sizes = [2**power for power in range(max(0, n_free - 1).bit_length())] + [n_free] * (n_free > 0)
        for _, size in product(range(int(self.rounds_left.max())), sizes):
            rows = self._going(self.probe.active())
            rows = rows[~self.started[rows]]
            if not len(rows):
                break
            for some in torch.split(rows, samples_at_once(self.probe, self.tries)):
                points = self._random_values(some, size, n_free)
                self._ask(_Proposal(*self._apart(points, some), partial(self._take_nearest, some, points)))
        self.probe.no_start((~self.started).nonzero().squeeze(1))

    def step(self) -> bool:
        """Query the next proposal of every row; False if no row is left."""
        rows = self._unfinished()
        if not len(rows):
            return False
        at = [rows[self.task[rows] == task] for task in (_PUT_BACK, _DRAW_IN, _SWAP)]
        at[_SWAP] = at[_SWAP][: samples_at_once(self.probe, self.tries)]  # the others wait for their turn
        proposing = (self._putting_back, self._drawing_in, self._swapping)
        self._ask(*(propose(some) for propose, some in zip(proposing, at, strict=True) if len(some)))
        return True

    def _ask(self, *proposals: _Proposal) -> None:
        """Query one batch for all proposals, without points that are unwanted or beyond the query limit."""
        points = torch.cat([part.points for part in proposals])
        rows = torch.cat([part.rows for part in proposals])
        wanted = torch.cat([part.wanted for part in proposals]).nonzero().squeeze(1)
        wanted = wanted[occurrence(rows[wanted]) < (self.limit - self.probe.memory.n_forward)[rows[wanted]]]
        met = torch.zeros_like(rows, dtype=torch.bool)
        queried = points[wanted].view(-1, *self.probe.x0.shape[1:])
        met[wanted] = self.probe.forward(queried, rows[wanted], gradient=False).met
        for part, its in zip(proposals, torch.split(met, [len(part.rows) for part in proposals]), strict=True):
            part.learn(its)

    def _going(self, rows: Tensor) -> Tensor:
        return rows[self.probe.memory.n_forward[rows] < self.limit[rows]]

    def _unfinished(self) -> Tensor:
        """The rows with queries left whose change can still shrink."""
        rows = self._going(self.probe.active())
        done = (self.rounds_left[rows] == 0) | (self.least_distance[rows] <= self.least * (1 + 1e-6))
        return rows[~(done & (self.task[rows] == _SWAP))]

    def _distance(self, points: Tensor, rows: Tensor) -> Tensor:
        x0 = self.probe.x0[rows]
        return self.probe.space.distance(points.view_as(x0), x0, self.probe.norm)

    def _apart(self, points: Tensor, rows: Tensor, below: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Points of several tries, their rows, and whether to query them: changed, but by less than `below`."""
        each = rows.repeat_interleave(points.shape[1])
        flat = points.flatten(0, 1)
        distance = self._distance(flat, each)
        return flat, each, (distance > 0) & (distance < (torch.inf if below is None else below))

    def _take_nearest(self, rows: Tensor, points: Tensor, met: Tensor) -> None:
        """Continue from the nearest success among several tries of each row, if there is one."""
        met = met.view(points.shape[:2])
        distance = self._distance(points.flatten(0, 1), rows.repeat_interleave(points.shape[1])).view_as(met)
        nearest = distance.masked_fill(~met, torch.inf).argmin(1)
        hit = met.any(1).nonzero().squeeze(1)
        if not len(hit):
            return
        rows = rows[hit]
        self.x[rows] = points[hit, nearest[hit]]
        self.started[rows] = True
        self._begin(_PUT_BACK, rows)
        self.moved[rows] = True
        self.size[rows] = ((self.x[rows] != self.x0[rows]).sum(1) // 2).clamp_min(1)

    def _begin(self, task: int, rows: Tensor) -> None:
        self.task[rows] = task
        if task == _SWAP:
            self.settle(rows)
            return
        self.order[rows] = self.probe.noise.uniform(rows, (self.x0.shape[1],)).argsort(dim=1, stable=True)
        self.offset[rows], self.size[rows], self.span[rows], self.settled[rows] = 0, 1, 0, 0
        self.moved[rows] = self.begun[rows] = False
        self.finest[rows] = _FINEST * self._distance(self.x[rows], rows).to(self.finest.dtype)

    def settle(self, rows: Tensor) -> None:
        """Keep the current success if it is the best so far, and continue from the best."""
        better = self._distance(self.x[rows], rows) < self.least_distance[rows]
        new, old = rows[better], rows[~better]
        self.best[new], self.least_distance[new] = self.x[new], self._distance(self.x[new], new)
        self.x[old] = self.best[old]

    def _random_values(self, rows: Tensor, size: int, n_free: int) -> Tensor:
        """The clean inputs with random values in `size` features; different features in every try if possible."""
        n_features = self.x0.shape[1]
        lot = self.probe.noise.uniform(rows, (n_features,)).masked_fill(~self.columns.free, 2.0)
        rank = lot.argsort(dim=1, stable=True).argsort(dim=1)[:, None]
        first = size * torch.arange(self.tries, device=rows.device)[:, None]
        inside = ((rank - first) % n_free < size) & self.columns.free
        x0 = self.x0[rows][:, None]
        return torch.where(inside, self._drawn(rows, x0, x0.new_tensor(torch.inf)), x0)

    def _drawn(self, rows: Tensor, x0: Tensor, reach: Tensor) -> Tensor:
        """Random values for all features in each try; in every other one, numbers go as far as they may.

        How many of these go up is drawn for each try: from none to all of them.
        """
        share = self.probe.noise.uniform(rows, (self.tries, x0.shape[-1]))
        rising = self.probe.noise.uniform(rows, (self.tries, 1))
        far = torch.where(self.columns.category, share, (share < rising).to(share.dtype))
        share[:, 1::2] = far[:, 1::2]
        return self.columns.drawn(share, x0, reach)

    def _changed(self, rows: Tensor) -> Tensor:
        """Which features have changed, in the order in which they are tried."""
        return (self.x[rows] != self.x0[rows]).gather(1, self.order[rows])

    def _putting_back(self, rows: Tensor) -> _Proposal:
        """The next few of the changed features at their clean values."""
        changed = self._changed(rows)
        rank, first = changed.cumsum(1), self.offset[rows][:, None]
        group = changed & (rank > first) & (rank <= first + self.size[rows][:, None])
        back = torch.zeros_like(group).scatter(1, self.order[rows], group)
        points = torch.where(back, self.x0[rows], self.x[rows])
        return _Proposal(points, rows, changed.sum(1) > 1, partial(self._learn_put_back, rows, points))

    def _learn_put_back(self, rows: Tensor, points: Tensor, met: Tensor) -> None:
        """Larger groups after successes; after a failure halves, down to the single feature that is needed."""
        self.x[rows[met]] = points[met]
        size, needed = self.size[rows], ~met & (self.size[rows] == 1)
        count = (self.x[rows] != self.x0[rows]).sum(1)
        settled = torch.where(met, 0, self.settled[rows] + needed)
        offset = self.offset[rows] + needed
        offset = torch.where(offset < count, offset, 0)
        span = torch.where(met, (self.span[rows] - size).clamp_min(0), torch.where(needed, 0, size))
        self.span[rows] = span  # among so many features one is needed: half of them come next
        size = torch.where(span > 0, (span + 1) // 2, torch.where(met, 2 * size, 1))
        self.size[rows] = torch.minimum(size, torch.minimum(count - offset, count - 1)).clamp_min(1)
        self.offset[rows], self.settled[rows] = offset, settled
        self.moved[rows] |= met
        self._advance(rows[(settled >= count) | (count < 2)], _DRAW_IN if self.probe.norm == "l1" else _SWAP)

    def _advance(self, rows: Tensor, task: int) -> None:
        """The next task where something moved in this one, else swaps."""
        moved = self.moved[rows]
        for next_task, some in ((task, rows[moved]), (_SWAP, rows[~moved])):
            if len(some):
                self._begin(next_task, some)

    def _drawing_in(self, rows: Tensor) -> _Proposal:
        """One changed number of each row nearer to its clean value: by a notch at first, then halfway."""
        numeric = self._changed(rows) & ~self.columns.category[self.order[rows]]
        here = numeric & (numeric.cumsum(1) == self.offset[rows][:, None] + 1)
        feature = self.order[rows].gather(1, here.to(torch.uint8).argmax(1, keepdim=True))
        now, clean = (part[rows].gather(1, feature).squeeze(1) for part in (self.x, self.x0))
        whole, notch = self.columns.whole[feature[:, 0]], self.finest[rows] * self.columns.scale[feature[:, 0]]
        notch = torch.where(whole, 1.0, notch)
        inner = torch.where(self.begun[rows], self.inner[rows], clean)
        halfway = torch.where(whole, inner + ((now - inner) / 2).trunc(), (inner + now) / 2)
        tried = torch.where(self.begun[rows], halfway, now + (clean - now).sign() * notch)
        wanted = here.any(1) & ((now - inner).abs() > notch) & (tried != now) & (tried != inner)
        points = self.x[rows].scatter(1, feature, tried[:, None])
        learn = partial(self._learn_drawn_in, rows, points, torch.stack([inner, tried]), wanted, numeric.sum(1))
        return _Proposal(points, rows, wanted, learn)

    def _learn_drawn_in(
        self, rows: Tensor, points: Tensor, inner: Tensor, wanted: Tensor, count: Tensor, met: Tensor
    ) -> None:
        """Bisect between the last failure (`inner`: if met, if not) and the success; then the next feature."""
        self.x[rows[met]] = points[met]
        self.inner[rows] = torch.where(met, inner[0], inner[1])
        begun = self.begun[rows]
        over = ~wanted | ~(begun | met)
        settled = torch.where(begun, 1, self.settled[rows] + 1)  # the others may move again if this one did
        self.settled[rows] = torch.where(over, settled, self.settled[rows])
        offset = self.offset[rows] + over
        self.offset[rows] = torch.where(offset < count, offset, 0)
        self.begun[rows] = ~over
        self.moved[rows] |= met
        self._advance(rows[self.settled[rows] >= count], _PUT_BACK)

    def _swapping(self, rows: Tensor) -> _Proposal:
        """Some of the changed features, and random values in others, that together are a smaller change; or afar."""
        self.rounds_left[rows] -= 1
        x, x0, least = self.x[rows][:, None], self.x0[rows][:, None], self.least_distance[rows][:, None]
        lots = self.probe.noise.uniform(rows, (2, self.tries, x.shape[-1]))
        chance = self.probe.noise.uniform(rows, (4, self.tries))
        afar = chance[:, 0] < _AFAR
        n_stay, n_new = self._counts(rows, chance, afar)
        stays = _lowest(lots[:, 0].masked_fill(x == x0, torch.inf), n_stay)
        new = _lowest(lots[:, 1].masked_fill(stays | ~self.columns.free, torch.inf), n_new)
        base = torch.where(stays, x, x0)
        reach = torch.full_like(chance[:, 0], torch.inf)
        if self.probe.norm == "l1":
            spent = self._distance(base.flatten(0, 1), rows.repeat_interleave(self.tries)).view_as(reach)
            reach = torch.where(afar, chance[:, 3] * least, _SHORTER * (least - spent) / n_new)
        points = torch.where(new, self._drawn(rows, x0, reach[..., None]), base)
        below = torch.where(afar, torch.inf, least).flatten()
        return _Proposal(*self._apart(points, rows, below), partial(self._take_nearest, rows, points))

    def _counts(self, rows: Tensor, chance: Tensor, afar: Tensor) -> tuple[Tensor, Tensor]:
        """How many changed features stay and how many others change in each try, (rows, tries) each.

        In l0 one fewer together than there are; in l1 as many at most. Afar none stay, and 2, 4, 8, … others change.
        """
        count = (self.x[rows] != self.x0[rows]).sum(1)[:, None]
        n_free = int(self.columns.free.sum())
        many = 2 ** (1 + (chance[:, 2] * n_free.bit_length()).long())
        if self.probe.norm == "l0":
            n_stay = (chance[:, 1] * (count - 1)).long()
            n_new = count - 1 - n_stay
        else:
            n_stay = (chance[:, 1] * count).long()
            n_new = 1 + (chance[:, 2] * (count - n_stay)).long()
        return torch.where(afar, 0, n_stay), torch.where(afar, many.clamp_max(n_free), n_new)


def _lowest(lots: Tensor, count: Tensor) -> Tensor:
    """Marks the entries with the `count` lowest finite numbers of each line."""
    most = max(1, min(int(count.max()), lots.shape[-1]))
    ranked = lots.topk(most, largest=False).values
    last = ranked.gather(-1, (count.clamp(1, most) - 1)[..., None])
    return (lots <= last) & lots.isfinite() & (count > 0)[..., None]
