"""Attacks propose, the probe remembers.

An attack is a short function that proposes points through a `Probe`. The probe asks the model,
counts forward and backward passes per sample, notices each sample's first success, keeps the point
the arm asks for, and refuses points outside the space. So no attack re-runs a forward to check
itself, tracks its own best, or can forget a success.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from advrisk.core.errors import ModelError
from advrisk.core.traits import gives
from advrisk.engine.clock import now
from advrisk.engine.goal import Goal
from advrisk.engine.memory import Memory
from advrisk.engine.model import Model
from advrisk.engine.noise import Noise
from advrisk.engine.replies import CONFIRM_DRAWS, CONFIRM_SHARE, Replies, ask_points, failing_scores
from advrisk.engine.rows import occurrence
from advrisk.engine.space import within_rounding
from advrisk.engine.suspicion import ScoredPoints, scored, steady
from advrisk.engine.task import Around, Task
from advrisk.engine.trust import Trace, Trust
from advrisk.study import Norm


class OutOfTimeError(Exception):
    """The cell's time is up; what is not finished becomes `timeout` rows."""


class Probe:
    """The only access of an attack to a model.

    `noise` holds the random numbers of the attack, `chance` those of a model that answers at random: one stream per
    sample, so that neither depends on other samples.
    """

    def __init__(self, model: Model, task: Task, noise: Noise, chance: Noise | None = None) -> None:
        self.model, self.task, self.noise, self.chance = model, task, noise, chance
        self.x0, self.goal, self.space = task.x0, task.goal, task.space
        self.memory = Memory.blank(task.x0)
        self._trace = Trace()
        self._reach = float("inf")
        if task.eps is not None and task.norm is not None:
            self._reach = within_rounding(task.eps, task.space, task.norm, tuple(task.x0.shape[1:]))
        self._last_around: Around | None = None
        self._projected: tuple[Tensor, int, Tensor, int] | None = None
        self._draws = task.draws if model.random else 1
        self._cost = self._draws + (0 if task.suspicion is None else task.suspicion.passes)  # forward passes of a point
        unaffordable = task.max_queries is not None and task.max_queries < self._cost
        self._done = torch.full((len(task.x0),), unaffordable, dtype=torch.bool, device=task.x0.device)

    @property
    def norm(self) -> Norm:
        """The arm's norm."""
        if self.task.norm is None:
            raise ValueError("this arm has no norm")
        return self.task.norm

    @property
    def eps(self) -> float:
        """The arm's size limit."""
        if self.task.eps is None:
            raise ValueError("this arm has no eps")
        return self.task.eps

    def active(self) -> Tensor:
        """Row numbers of the samples still to be attacked."""
        return (~self._done).nonzero().squeeze(1)

    def is_active(self, rows: Tensor) -> Tensor:
        """Whether each of these rows belongs to a sample that is still to be attacked."""
        return ~self._done.index_select(0, rows)

    @property
    def trust(self) -> Trust:
        """Signs that the attack did not work properly."""
        trust = self._trace.trust(smallest=self.task.keep == "smallest", no_start=self.memory.no_start)
        return replace(trust, not_increasing=None) if self.task.eps == 0 else trust  # there is nowhere to climb

    def project(self, x: Tensor, rows: Tensor) -> Tensor:
        """The nearest points that the space and the arm's eps allow."""
        around = self._around(rows)
        if around.box is not None:
            x = torch.clamp(x, *around.box)
        else:
            room = None if self.task.eps is None else around.room
            x = self.space.project(x, around.x0, norm=self.task.norm, eps=self.task.eps, room=room)
        self._projected = x, x._version, rows, rows._version  # `forward` need not check it again
        return x

    def climb(self, x: Tensor, rows: Tensor, slope: Tensor, step: float) -> Tensor:
        """A step of that length up the slope, projected back."""
        return self.project(self.space.climb(x, slope, self.norm, step), rows)

    def forward(self, x: Tensor, rows: Tensor, *, gradient: bool = True, wanted: Tensor | None = None) -> "Pass":
        """Query the scores of proposed points; `rows` names their samples and may repeat.

        No query is made for a sample that is finished, is beyond its `max_queries`, or whose point lies
        outside the space, nor for rows that `wanted`, if any, does not mark. Such a row answers like a
        failure, with a zero gradient. A pass with `gradient=False` is cheaper, but has no gradient.
        """
        if time.monotonic() > self.task.deadline:
            raise OutOfTimeError
        projected = self._was_projected(x, rows)
        if not projected:
            self._fail_outside(x, rows)
        queryable = self._queryable(rows)
        if wanted is not None:
            queryable &= wanted
        queried = queryable.nonzero().squeeze(1)
        whole = len(queried) == len(rows)
        points = (x if whole else x.index_select(0, queried)).detach()
        gradient = gradient and gives(self.model.capability, "gradients")
        rows_queried = rows if whole else rows.index_select(0, queried)
        goal = self.goal.of(rows_queried)
        replies, height, suspected = None, None, None
        began = now(self.x0)
        with torch.set_grad_enabled(gradient):
            points.requires_grad_(gradient)
            if len(points):
                replies = self._ask(points, rows_queried, goal)
                height = replies.height(self.task.objective, goal)
                if self.task.suspicion is not None:
                    suspected = scored(self.task.suspicion, self.model, points, replies.first_unmasked)
        self.memory.begin_query(rows_queried)
        passes = self._draws if suspected is None else self._draws + suspected.n_forward
        self.memory.spend(self.memory.n_forward, rows_queried, now(self.x0) - began, passes=passes)
        if replies is not None:
            near = None if projected else self._near(points.detach(), rows_queried)
            ascending = self._around(rows).ascending
            score = None if suspected is None else suspected.score.detach()
            self._notice(points.detach(), rows_queried, goal, replies, height, near, score, ascending=ascending)
        if self.task.pulse is not None:
            self.task.pulse(self.memory.n_forward, self._done)
        return Pass(self, rows, queried, points, goal, replies, height, suspected)

    def labels(self, x: Tensor, rows: Tensor) -> Tensor:
        """Query the predicted classes of proposed points: all that a label-only attack sees."""
        return self.forward(x, rows, gradient=False).labels

    def offer(self, x: Tensor, rows: Tensor) -> None:
        """Keep points without a query: the judge decides whether they succeed."""
        self.memory.kept[rows] = x
        self.memory.offered[rows] = True
        self._done[rows] = True

    def no_start(self, rows: Tensor) -> None:
        """Give up samples for which the attack found no starting point; the ledger records this."""
        self._done[rows] = True
        self.memory.no_start[rows] = True
        self.memory.no_start[list(self.memory.failed)] = False  # an error explains these

    def fail(self, row: int, message: str) -> None:
        """End a sample with an error."""
        self.memory.failed.setdefault(row, message)
        self._done[row] = True

    def count_together(self, n_forward: int, n_backward: int) -> None:
        """Count passes that the attack made for all samples together, without this probe.

        Each sample gets an equal part of all passes. First successes and the attack's progress remain unknown.
        """
        self.memory.share(n_forward, n_backward)
        self._trace = Trace()

    def _ask(self, points: Tensor, rows: Tensor, goal: Goal, draws: int | None = None) -> Replies:
        """Query points, as often as the arm demands, and count refusals."""
        replies = ask_points(
            self.model,
            points,
            rows,
            self.chance,
            draws=draws or self._draws,
            blind=None if self.task.sees_through else goal,
            clear=self.task.keep == "smallest",  # such points lie at the boundary
        )
        if (n_rejected := replies.n_rejected) is not None:
            self.memory.n_rejected.index_add_(0, rows, n_rejected)
        return replies

    def _queryable(self, rows: Tensor) -> Tensor:
        queryable, left = self.is_active(rows), self._left(rows, self._cost)
        return queryable if left is None else queryable & left

    def _left(self, rows: Tensor, cost: int) -> Tensor | None:
        """Whether each point can still be queried at `cost` forward passes; None where all can."""
        if self.task.max_queries is not None:
            left = self.task.max_queries - self.memory.n_forward.index_select(0, rows)
            if len(rows) and int(left.min()) < len(rows) * cost:  # else enough even if all rows are of one sample
                return (occurrence(rows) + 1) * cost <= left
        return None

    def _was_projected(self, x: Tensor, rows: Tensor) -> bool:
        """Whether these are the points that `project` returned last: they lie in the space and within eps."""
        last = self._projected
        if last is None or last[0] is not x or last[2] is not rows:
            return False
        return last[1::2] == (x._version, rows._version)

    def _fail_outside(self, x: Tensor, rows: Tensor) -> None:
        """End samples whose proposed point left the space (or eps, where promised) with an error."""
        around = self._around(rows)
        if around.box is not None and self.task.within_eps and torch.equal(torch.clamp(x, *around.box), x):
            return  # one quick check for the usual case
        if not self.space.holds(x):
            valid = self.space.valid(x, around.x0)
            for point in (~valid & ~self._done[rows]).nonzero().flatten().tolist():
                violation = self.space.violation(x[point], around.x0[point])
                self.fail(int(rows[point]), f"the attack left the space: {violation}")
        if self.task.within_eps and self.task.eps is not None:
            distance = self.space.distance(x, around.x0, self.norm)
            for point in ((distance > self._reach) & ~self._done[rows]).nonzero().flatten().tolist():
                self.fail(int(rows[point]), f"the attack left eps: {distance[point]:.7g} > {self.eps:.7g}")

    def _around(self, rows: Tensor) -> Around:
        """The clean inputs of these rows and the bounds around them; kept for the next call."""
        around = self._last_around
        if around is None or around.rows is not rows or around.version != rows._version:
            around = Around(self.task, rows, rows._version)
            self._last_around = around
        return around

    def _notice(
        self,
        x: Tensor,
        rows: Tensor,
        goal: Goal,
        replies: Replies,
        height: Tensor | None,
        near: Tensor | None,
        score: Tensor | None,
        *,
        ascending: bool,
    ) -> None:
        """Record errors and first successes, and keep the best points."""
        success = replies.met(goal)
        if near is not None:
            success &= near
        answer = replies.answer.detach()
        if height is not None and not math.isfinite(float(answer.sum())):  # a quick check: a sum may also overflow
            finite = torch.isfinite(answer).all(1)
            success &= finite
            for point in (~finite).nonzero().flatten().tolist():
                self.fail(int(rows[point]), "the model answered with a number that is not finite")
        if score is not None and not math.isfinite(float(score.sum())):
            success = success & self._finite_scores(rows, score)
        if self.model.random and bool(success.any()):
            success = self._confirmed(x, rows, goal, success, replies)
        merit = self._merit(x, rows, height, success, score)
        if bool(success.any()):
            self.memory.note_first(rows[success])
            if self.task.keep == "first":
                self._done[rows[success]] = True
        if near is not None and not bool(near.all()):  # points beyond eps are never kept
            x, rows, success, merit = x[near], rows[near], success[near], merit[near]
        traced = merit if height is not None else merit.masked_fill(~success, torch.nan)
        self._trace.note(rows, traced.float(), success)
        if self.task.keep == "last":
            self.memory.keep_last(x, rows, success, ascending=ascending)
        else:
            self.memory.keep_best(x, rows, success, merit, ascending=ascending)
        if self.task.max_queries is not None:
            self._done |= self.memory.n_forward + self._cost > self.task.max_queries

    def _finite_scores(self, rows: Tensor, score: Tensor) -> Tensor:
        """Which scores are finite; samples with others end with an error."""
        finite = torch.isfinite(score)
        for point in (~finite).nonzero().flatten().tolist():
            self.fail(int(rows[point]), "the detector answered with a number that is not finite")
        return finite

    def _confirmed(self, x: Tensor, rows: Tensor, goal: Goal, success: Tensor, replies: Replies) -> Tensor:
        """Of the successes on a model that answers at random, those that hold in nearly all of some more draws.

        Each such point is queried again until that is decided. These passes are counted apart, as the attack already
        had the point. One lucky draw is no success, nor is a point that runs out of queries before it is decided. The
        judge checks the last point (`keep: last`) anyway: there only the first success is confirmed.
        """
        hits, draws = replies.hits(goal), replies.n
        most, confirmed = max(CONFIRM_DRAWS, draws), success.clone()
        needed = math.ceil(CONFIRM_SHARE * most)
        if self.task.keep == "last":
            success = success & (self.memory.n_forward_first.index_select(0, rows) < 0)
        while len(open_ := (success & (hits < needed) & (hits + most - draws >= needed)).nonzero().squeeze(1)):
            whose = rows.index_select(0, open_)
            if (left := self._left(whose, 1)) is not None:
                confirmed[open_[~left]] = False
                success[open_[~left]] = False
                open_, whose = open_[left], whose[left]
            if len(open_):
                with torch.no_grad():
                    again = self._ask(x.index_select(0, open_), whose, goal.of(open_), draws=1)
                self.memory.confirm(whose)
                hits.index_add_(0, open_, again.hits(goal.of(open_)))
            draws += 1
        return torch.where(success, hits >= needed, confirmed)

    def _near(self, x: Tensor, rows: Tensor) -> Tensor | None:
        """Whether each point lies within eps; None where no check is needed."""
        if self.task.eps is None or self.task.within_eps:
            return None
        return self.space.distance(x, self.x0[rows], self.norm) <= self._reach

    def _merit(self, x: Tensor, rows: Tensor, height: Tensor | None, success: Tensor, score: Tensor | None) -> Tensor:
        """The rank of each point among the successes, or among the failures, of its sample."""
        if height is None:
            merit = torch.zeros(len(rows), dtype=torch.float64, device=x.device)
        else:
            merit = height.detach().float().nan_to_num(nan=-torch.inf).double()
        if self.task.keep == "smallest":
            points = success.nonzero().squeeze(1)
            clean = self.x0.index_select(0, rows.index_select(0, points))
            merit[points] = -self.space.distance(x.index_select(0, points), clean, self.norm).float().double()
        elif score is not None:
            merit = torch.where(success, -steady(score), merit)
        return merit


class Pass:
    """The answers to one batch of proposed points: one forward, each backward counted.

    The graph is freed by the first gradient unless `retain=True` asks to keep it for another.
    """

    def __init__(
        self,
        probe: Probe,
        rows: Tensor,
        queried: Tensor,
        points: Tensor,
        goal: Goal,
        replies: Replies | None,
        height: Tensor | None,
        suspected: ScoredPoints | None,
    ) -> None:
        self._probe, self._rows, self._queried = probe, rows, queried
        self._points, self._goal, self._replies, self._height = points, goal, replies, height
        self._answer = None if replies is None else replies.answer
        self._suspected = suspected
        self._other_height: tuple[str | None, Tensor | None, Tensor] | None = None

    @property
    def scores(self) -> Tensor:
        """Logits (or log-probabilities, from a score model) of every row."""
        if self._probe.model.capability == "labels":
            raise ModelError(f"{self._probe.model.name} gives labels only")
        return self._filled(self._answer, self._failing_scores)

    @property
    def labels(self) -> Tensor:
        """The predicted class of every row."""
        labels = None if self._replies is None else self._replies.labels
        return self._filled(labels, lambda: self._probe.goal.reference[self._rows])

    @property
    def met(self) -> Tensor:
        """Whether each row meets the goal at any distance; near a boundary, by more than rounding could undo."""
        met = None if self._replies is None else self._replies.met(self._goal)
        return self._filled(met, lambda: torch.zeros_like(self._rows, dtype=torch.bool))

    def heights(self, objective: str | None = None, *, target: Tensor | None = None) -> Tensor:
        """The value of an objective (by default the arm's own) at every row; −∞ where a row was not queried.

        `target` holds a class for every row to climb towards, whatever the arm's goal is.
        """
        height = self._climbed(objective, target)
        if height is not None:
            height = height.detach().float().double()  # the last digits depend on a row's place in the batch
        return self._filled(height, lambda: torch.full_like(self._rows, -torch.inf, dtype=torch.float64))

    def gradient(
        self,
        objective: str | None = None,
        *,
        target: Tensor | None = None,
        wanted: Tensor | None = None,
        retain: bool = False,
    ) -> Tensor:
        """The gradient of `heights` with respect to every feature, for every row; zero for immutable features.

        `wanted` marks the rows whose gradient will be used: the others get zeros and count no backward pass.
        """
        height = self._climbed(objective, target)
        return self._backward(height, self._chosen(wanted), retain=retain)

    @property
    def suspicion(self) -> Tensor:
        """The detector's score of every row; infinite where a row was not queried."""
        if self._probe.task.suspicion is None:
            raise ValueError("this arm knows no detector")
        score = None if self._suspected is None else steady(self._suspected.score.detach())
        return self._filled(score, lambda: torch.full_like(self._rows, torch.inf, dtype=torch.float64))

    def suspicion_gradient(self, *, wanted: Tensor | None = None, retain: bool = False) -> Tensor:
        """The gradient of the detector's score for every row; `wanted` as in `gradient`."""
        if self._suspected is None:
            return self._backward(None, self._chosen(wanted), retain=retain, passes=0)
        score, passes = self._suspected.score, self._suspected.n_backward
        if not score.requires_grad:
            raise ModelError("torch cannot differentiate this detector's score")
        return self._backward(score, self._chosen(wanted), retain=retain, passes=passes)

    def _climbed(self, objective: str | None, target: Tensor | None) -> Tensor | None:
        own = self._probe.task.objective
        if self._replies is None or (target is None and objective in (None, own)):
            return self._height
        last = self._other_height
        if last is None or last[0] != objective or last[1] is not target:  # `heights` and `gradient` share the value
            goal = self._goal if target is None else self._goal.towards(target[self._queried])
            height = self._replies.height(objective or own, goal)
            if height is None:
                raise ModelError(f"{self._probe.model.name} gives labels only")
            last = objective, target, height
            self._other_height = last
        return last[2]

    def gradients(
        self, classes: Tensor, *, over: Tensor | None = None, wanted: Tensor | None = None, retain: bool = False
    ) -> Tensor:
        """The gradients of the scores of several classes, (rows, k, features): k backward passes.

        `classes` holds k class numbers for every row, chosen after seeing the scores; with `over`, a class for
        every row, the gradients are those of the leads over that class. `wanted` as in `gradient`.
        """
        base = self._score(over)
        chosen = self._chosen(wanted)
        slopes = []
        for index, column in enumerate(classes.unbind(1)):
            score = self._score(column)
            lead = score if score is None or base is None else score - base
            slopes.append(self._backward(lead, chosen, retain=retain or index + 1 < classes.shape[1]))
        return torch.stack(slopes, 1)

    def _score(self, classes: Tensor | None) -> Tensor | None:
        """One score of each queried row."""
        if self._answer is None or classes is None:
            return None
        return self._answer.gather(1, classes[self._queried][:, None]).squeeze(1)

    def _chosen(self, wanted: Tensor | None) -> Tensor | None:
        """Of the queried rows, those whose gradient is wanted; None for all."""
        return None if wanted is None or bool(wanted.all()) else wanted[self._queried]

    def _backward(
        self, heights: Tensor | None, chosen: Tensor | None, *, retain: bool, passes: int | None = None
    ) -> Tensor:
        """The gradients of one number per queried row; zero for rows that were not queried or not chosen."""
        if heights is None or (chosen is not None and not bool(chosen.any())):
            return torch.zeros_like(self._probe.x0[self._rows])
        if not self._points.requires_grad:
            raise ModelError(f"{self._probe.model.name}: this pass was made without gradients")
        rows = self._rows.index_select(0, self._queried)
        began = now(self._points)
        total = heights.sum() if chosen is None else heights[chosen].sum()  # its slope holds every row's own
        (slope,) = torch.autograd.grad(total, self._points, retain_graph=retain)
        memory = self._probe.memory
        whose = rows if chosen is None else rows[chosen]
        passes = self._probe._draws if passes is None else passes
        memory.spend(memory.n_backward, whose, now(self._points) - began, passes=passes)
        immutable = self._probe.space.immutable
        slope = slope if immutable is None else slope.masked_fill(immutable, 0.0)
        self._probe._trace.note_slope(slope if chosen is None else slope[chosen])
        return self._filled(slope, lambda: torch.zeros_like(self._probe.x0[self._rows]))

    def _failing_scores(self) -> Tensor:
        return failing_scores(self._probe.goal.reference[self._rows], self._probe.model.n_classes)

    def _filled(self, values: Tensor | None, stand_in: Callable[[], Tensor]) -> Tensor:
        """The values of all rows; those that were not queried get a stand-in."""
        if values is not None and len(values) == len(self._rows):
            return values.detach()
        filled = stand_in()
        if values is not None:
            filled.index_copy_(0, self._queried, values.detach())
        return filled
