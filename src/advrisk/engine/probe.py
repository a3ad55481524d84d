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
from advrisk.engine.heard import CONFIRM_DRAWS, CONFIRM_SHARE, Heard, failing_scores, heard
from advrisk.engine.memory import Memory
from advrisk.engine.model import Model
from advrisk.engine.noise import Noise
from advrisk.engine.rows import occurrence
from advrisk.engine.space import within_rounding
from advrisk.engine.suspicion import Scored, scored, steady
from advrisk.engine.task import Around, Task
from advrisk.engine.trust import Trace, Trust
from advrisk.study import Norm


class OutOfTimeError(Exception):
    """The cell's time is up; what is not finished becomes `timeout` rows."""


class Probe:
    """The only door between an attack and a model.

    `noise` are the random numbers of the attack, `chance` those of a model that answers at random: one stream for each
    sample, so that neither depends on what else is attacked.
    """

    def __init__(self, model: Model, task: Task, noise: Noise, chance: Noise | None = None) -> None:
        self.model, self.task, self.noise, self.chance = model, task, noise, chance
        self.x0, self.goal, self.space = task.x0, task.goal, task.space
        self.memory = Memory.blank(task.x0)
        self._trace = Trace()
        self._reach = float("inf")
        if task.eps is not None and task.norm is not None:
            self._reach = within_rounding(task.eps, task.space, task.norm, tuple(task.x0.shape[1:]))
        self._remembered: Around | None = None
        self._projected: tuple[Tensor, int, Tensor, int] | None = None
        self._draws = task.draws if model.random else 1
        self._cost = self._draws + (0 if task.suspicion is None else task.suspicion.passes)  # forward passes of a point
        too_dear = task.max_queries is not None and task.max_queries < self._cost
        self._done = torch.full((len(task.x0),), too_dear, dtype=torch.bool, device=task.x0.device)

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
        """Signs that the attack did not do what it should."""
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
        self._projected = x, x._version, rows, rows._version  # `forward` need not look at it again
        return x

    def climb(self, x: Tensor, rows: Tensor, slope: Tensor, step: float) -> Tensor:
        """A step of that length up the slope, projected back."""
        return self.project(self.space.climb(x, slope, self.norm, step), rows)

    def forward(self, x: Tensor, rows: Tensor, *, gradient: bool = True, wanted: Tensor | None = None) -> "Pass":
        """Ask for the scores of proposed points; `rows` says whose they are and may repeat.

        What must not be asked is not: a sample that is finished, is beyond its `max_queries`, or whose
        point lies outside the space; nor what `wanted`, if given, does not mark. Such a row answers like a
        failure, with a zero gradient. Say `gradient=False` when no gradient will be wanted: the pass is then
        cheaper.
        """
        if time.monotonic() > self.task.deadline:
            raise OutOfTimeError
        projected = self._was_projected(x, rows)
        if not projected:
            self._fail_outside(x, rows)
        askable = self._askable(rows)
        if wanted is not None:
            askable &= wanted
        asked = askable.nonzero().squeeze(1)
        whole = len(asked) == len(rows)
        points = (x if whole else x.index_select(0, asked)).detach()
        gradient = gradient and gives(self.model.capability, "gradients")
        rows_asked = rows if whole else rows.index_select(0, asked)
        goal = self.goal.of(rows_asked)
        known, height, suspected = None, None, None
        began = now(self.x0)
        with torch.set_grad_enabled(gradient):
            points.requires_grad_(gradient)
            if len(points):
                known = self._hear(points, rows_asked, goal)
                height = known.height(self.task.objective, goal)
                if self.task.suspicion is not None:
                    suspected = scored(self.task.suspicion, self.model, points, known.said)
        self.memory.begin_query(rows_asked)
        passes = self._draws if suspected is None else self._draws + suspected.n_forward
        self.memory.spend(self.memory.n_forward, rows_asked, now(self.x0) - began, passes=passes)
        if known is not None:
            near = None if projected else self._near(points.detach(), rows_asked)
            ascending = self._around(rows).ascending
            score = None if suspected is None else suspected.score.detach()
            self._notice(points.detach(), rows_asked, goal, known, height, near, score, ascending=ascending)
        if self.task.pulse is not None:
            self.task.pulse(self.memory.n_forward, self._done)
        return Pass(self, rows, asked, points, goal, known, height, suspected)

    def labels(self, x: Tensor, rows: Tensor) -> Tensor:
        """Ask for the predicted classes of proposed points: all that a label-only attack sees."""
        return self.forward(x, rows, gradient=False).labels

    def offer(self, x: Tensor, rows: Tensor) -> None:
        """Keep points without asking the model about them: whether they succeed, only the judge will see."""
        self.memory.kept[rows] = x
        self.memory.offered[rows] = True
        self._done[rows] = True

    def no_start(self, rows: Tensor) -> None:
        """Give up samples for which the attack found no point to begin from; their rows will say so."""
        self._done[rows] = True
        self.memory.no_start[rows] = True
        self.memory.no_start[list(self.memory.failed)] = False  # what went wrong there is known

    def fail(self, row: int, message: str) -> None:
        """End a sample with an error."""
        self.memory.failed.setdefault(row, message)
        self._done[row] = True

    def count_together(self, n_forward: int, n_backward: int) -> None:
        """Passes that the model was asked for without this probe, on behalf of all samples.

        Each gets an equal part of all passes. When it was first broken, and how the attack went on, is not known.
        """
        self.memory.share(n_forward, n_backward)
        self._trace = Trace()

    def _hear(self, points: Tensor, rows: Tensor, goal: Goal, draws: int | None = None) -> Heard:
        """Ask the model about points, as often as the arm says; what it refuses to answer is counted."""
        known = heard(
            self.model,
            points,
            rows,
            self.chance,
            draws=draws or self._draws,
            blind=None if self.task.sees_through else goal,
            clear=self.task.keep == "smallest",  # such points lie at the boundary
        )
        if (n_rejected := known.n_rejected) is not None:
            self.memory.n_rejected.index_add_(0, rows, n_rejected)
        return known

    def _askable(self, rows: Tensor) -> Tensor:
        askable, left = self.is_active(rows), self._left(rows, self._cost)
        return askable if left is None else askable & left

    def _left(self, rows: Tensor, cost: int) -> Tensor | None:
        """Whether each point can still be asked about, at so many forward passes; None where all can."""
        if self.task.max_queries is not None:
            left = self.task.max_queries - self.memory.n_forward.index_select(0, rows)
            if len(rows) and int(left.min()) < len(rows) * cost:  # else there are enough, whoever they belong to
                return (occurrence(rows) + 1) * cost <= left
        return None

    def _was_projected(self, x: Tensor, rows: Tensor) -> bool:
        """Whether these are the points that `project` gave last: they lie in the space and within eps."""
        known = self._projected
        if known is None or known[0] is not x or known[2] is not rows:
            return False
        return known[1::2] == (x._version, rows._version)

    def _fail_outside(self, x: Tensor, rows: Tensor) -> None:
        """A sample whose proposed point left the space (or eps, where promised) ends with an error."""
        around = self._around(rows)
        if around.box is not None and self.task.within_eps and torch.equal(torch.clamp(x, *around.box), x):
            return  # the usual case in one look
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
        """The clean inputs of these rows and the bounds around them; remembered for the next call."""
        known = self._remembered
        if known is None or known.rows is not rows or known.version != rows._version:
            known = Around(self.task, rows, rows._version)
            self._remembered = known
        return known

    def _notice(
        self,
        x: Tensor,
        rows: Tensor,
        goal: Goal,
        known: Heard,
        height: Tensor | None,
        near: Tensor | None,
        score: Tensor | None,
        *,
        ascending: bool,
    ) -> None:
        """Look at answers: what went wrong, what succeeded for the first time, what to keep."""
        success = known.met(goal)
        if near is not None:
            success &= near
        answer = known.answer.detach()
        if height is not None and not math.isfinite(float(answer.sum())):  # a quick look: a sum may also overflow
            told = torch.isfinite(answer).all(1)
            success &= told
            for point in (~told).nonzero().flatten().tolist():
                self.fail(int(rows[point]), "the model answered with a number that is not finite")
        if score is not None and not math.isfinite(float(score.sum())):
            success = success & self._told_scores(rows, score)
        if self.model.random and bool(success.any()):
            success = self._confirmed(x, rows, goal, success, known)
        merit = self._merit(x, rows, height, success, score)
        if bool(success.any()):
            self.memory.note_first(rows[success])
            if self.task.keep == "first":
                self._done[rows[success]] = True
        if near is not None and not bool(near.all()):  # what lies beyond eps is not kept, whatever came of it
            x, rows, success, merit = x[near], rows[near], success[near], merit[near]
        told = merit if height is not None else merit.masked_fill(~success, torch.nan)
        self._trace.note(rows, told.float(), success)
        if self.task.keep == "last":
            self.memory.keep_last(x, rows, success, ascending=ascending)
        else:
            self.memory.keep_best(x, rows, success, merit, ascending=ascending)
        if self.task.max_queries is not None:
            self._done |= self.memory.n_forward + self._cost > self.task.max_queries

    def _told_scores(self, rows: Tensor, score: Tensor) -> Tensor:
        """Which scores are finite; a sample with another ends with an error."""
        told = torch.isfinite(score)
        for point in (~told).nonzero().flatten().tolist():
            self.fail(int(rows[point]), "the detector answered with a number that is not finite")
        return told

    def _confirmed(self, x: Tensor, rows: Tensor, goal: Goal, success: Tensor, known: Heard) -> Tensor:
        """Of the successes seen on a model that answers at random, those that hold in nearly all of some more draws.

        The point is asked about again, each time counted (apart: the attack had found the point by then), until that
        is decided: one lucky draw is no success, and neither is one of which nobody knows because no queries are left.
        The last of all points (`keep: last`) is judged anyway: there only the first success is looked at.
        """
        hits, draws = known.hits(goal), known.n
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
                    again = self._hear(x.index_select(0, open_), whose, goal.of(open_), draws=1)
                self.memory.confirm(whose)
                hits.index_add_(0, open_, again.hits(goal.of(open_)))
            draws += 1
        return torch.where(success, hits >= needed, confirmed)

    def _near(self, x: Tensor, rows: Tensor) -> Tensor | None:
        """Whether each point lies within eps; None where that goes without saying."""
        if self.task.eps is None or self.task.within_eps:
            return None
        return self.space.distance(x, self.x0[rows], self.norm) <= self._reach

    def _merit(self, x: Tensor, rows: Tensor, height: Tensor | None, success: Tensor, score: Tensor | None) -> Tensor:
        """How much each point is wanted among the successes, or among the failures, of its sample."""
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
        asked: Tensor,
        points: Tensor,
        goal: Goal,
        known: Heard | None,
        height: Tensor | None,
        suspected: Scored | None,
    ) -> None:
        self._probe, self._rows, self._asked = probe, rows, asked
        self._points, self._goal, self._known, self._height = points, goal, known, height
        self._answer = None if known is None else known.answer
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
        labels = None if self._known is None else self._known.labels
        return self._filled(labels, lambda: self._probe.goal.reference[self._rows])

    @property
    def met(self) -> Tensor:
        """Whether each row meets the goal, however far it is; at a boundary, by more than rounding could undo."""
        met = None if self._known is None else self._known.met(self._goal)
        return self._filled(met, lambda: torch.zeros_like(self._rows, dtype=torch.bool))

    def heights(self, objective: str | None = None, *, target: Tensor | None = None) -> Tensor:
        """The value of an objective (the arm's own, if none is named) at every row; −∞ where a row was not asked.

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
        """The slope of what `heights` gives in every feature, for every row; zero where a feature is immutable.

        `wanted` marks the rows whose slope will be used: the others get zeros, and no backward pass is counted for
        them.
        """
        height = self._climbed(objective, target)
        return self._backward(height, self._chosen(wanted), retain=retain)

    @property
    def suspicion(self) -> Tensor:
        """The detector's score of every row; infinite where a row was not asked."""
        if self._probe.task.suspicion is None:
            raise ValueError("this arm knows no detector")
        score = None if self._suspected is None else steady(self._suspected.score.detach())
        return self._filled(score, lambda: torch.full_like(self._rows, torch.inf, dtype=torch.float64))

    def suspicion_gradient(self, *, wanted: Tensor | None = None, retain: bool = False) -> Tensor:
        """The slope of the detector's score in every feature, for every row; `wanted` as in `gradient`."""
        known = self._suspected
        score = None if known is None else self._followed(known.score)
        return self._backward(
            score, self._chosen(wanted), retain=retain, passes=0 if known is None else known.n_backward
        )

    def _followed(self, score: Tensor) -> Tensor:
        if not score.requires_grad:
            raise ModelError("torch cannot follow this detector's score back to the point")
        return score

    def _climbed(self, objective: str | None, target: Tensor | None) -> Tensor | None:
        own = self._probe.task.objective
        if self._known is None or (target is None and objective in (None, own)):
            return self._height
        known = self._other_height
        if known is None or known[0] != objective or known[1] is not target:  # `heights` and `gradient` want the same
            goal = self._goal if target is None else self._goal.towards(target[self._asked])
            height = self._known.height(objective or own, goal)
            if height is None:
                raise ModelError(f"{self._probe.model.name} gives labels only")
            known = objective, target, height
            self._other_height = known
        return known[2]

    def gradients(
        self, classes: Tensor, *, over: Tensor | None = None, wanted: Tensor | None = None, retain: bool = False
    ) -> Tensor:
        """The slopes of the scores of several classes, (rows, k, features): k backward passes.

        `classes` holds k class numbers for every row, chosen after seeing the scores; with `over`, a class for
        every row, the slopes are those of the leads over that class. `wanted` as in `gradient`.
        """
        base = self._score(over)
        chosen = self._chosen(wanted)
        slopes = []
        for place, column in enumerate(classes.unbind(1)):
            score = self._score(column)
            lead = score if score is None or base is None else score - base
            slopes.append(self._backward(lead, chosen, retain=retain or place + 1 < classes.shape[1]))
        return torch.stack(slopes, 1)

    def _score(self, classes: Tensor | None) -> Tensor | None:
        """One score of each row that was asked."""
        if self._answer is None or classes is None:
            return None
        return self._answer.gather(1, classes[self._asked][:, None]).squeeze(1)

    def _chosen(self, wanted: Tensor | None) -> Tensor | None:
        """Of the rows that were asked, those whose slope is wanted; None for all."""
        return None if wanted is None or bool(wanted.all()) else wanted[self._asked]

    def _backward(
        self, heights: Tensor | None, chosen: Tensor | None, *, retain: bool, passes: int | None = None
    ) -> Tensor:
        """The slopes of numbers that belong to the rows asked; zero for rows that are not asked or not chosen."""
        if heights is None or (chosen is not None and not bool(chosen.any())):
            return torch.zeros_like(self._probe.x0[self._rows])
        if not self._points.requires_grad:
            raise ModelError(f"{self._probe.model.name}: this pass was asked without gradients")
        rows = self._rows.index_select(0, self._asked)
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

    def _filled(self, asked: Tensor | None, stand_in: Callable[[], Tensor]) -> Tensor:
        """The answers of all rows; those that were not asked get a stand-in."""
        if asked is not None and len(asked) == len(self._rows):
            return asked.detach()
        filled = stand_in()
        if asked is not None:
            filled.index_copy_(0, self._asked, asked.detach())
        return filled
