"""Attacks propose, the probe remembers.

An attack is a short function that proposes points through a `Probe`. The probe asks the model,
counts forward and backward passes per sample, notices each sample's first success, keeps the point
the arm asks for, and refuses points outside the space. So no attack re-runs a forward to check
itself, tracks its own best, or can forget a success.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from advrisk.core.errors import ModelError
from advrisk.core.traits import gives
from advrisk.engine import objectives
from advrisk.engine.memory import Memory
from advrisk.engine.model import Model, predicted
from advrisk.engine.noise import Noise
from advrisk.engine.space import Space, within_rounding
from advrisk.study import Keep, Norm

# An unasked row answers with this lead for the class it should lose: an attack sees a failure.
_UNASKED_LEAD = 50.0


class OutOfTimeError(Exception):
    """The cell's time is up; what is not finished becomes `timeout` rows."""


@dataclass(frozen=True)
class Task:
    """What an attack is to achieve against one shard of samples.

    `reference` is the class each sample must lose: its label, or the model's own clean prediction.
    `within_eps` says that the attack promised never to propose a point beyond eps.
    """

    x0: Tensor
    reference: Tensor
    space: Space
    norm: Norm | None
    eps: float | None
    objective: str = "ace"
    keep: Keep = "first"
    max_queries: int | None = None
    within_eps: bool = True
    deadline: float = float("inf")  # on time.monotonic's clock


class Probe:
    """The only door between an attack and a model."""

    def __init__(self, model: Model, task: Task, noise: Noise) -> None:
        self.model, self.task, self.noise = model, task, noise
        self.x0, self.reference, self.space = task.x0, task.reference, task.space
        self.memory = Memory.blank(task.x0)
        self._reach = float("inf")
        if task.eps is not None and task.norm is not None:
            self._reach = within_rounding(task.eps, task.space, task.norm, tuple(task.x0.shape[1:]))
        self._remembered: tuple[Tensor, int, Tensor, tuple[Tensor, Tensor] | None] | None = None
        self._done = torch.zeros(len(task.x0), dtype=torch.bool, device=task.x0.device)

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

    def project(self, x: Tensor, rows: Tensor) -> Tensor:
        """The nearest points that the space and the arm's eps allow."""
        x0, box = self._around(rows)
        if box is not None:
            return torch.clamp(x, *box)
        return self.space.project(x, x0, norm=self.task.norm, eps=self.task.eps)

    def climb(self, x: Tensor, rows: Tensor, slope: Tensor, step: float) -> Tensor:
        """A step of that length up the slope, projected back."""
        return self.project(self.space.climb(x, slope, self.norm, step), rows)

    def forward(self, x: Tensor, rows: Tensor, *, gradient: bool = True) -> "Pass":
        """Ask for the scores of proposed points; `rows` says whose they are and may repeat.

        What must not be asked is not: a sample that is finished, is beyond its `max_queries`, or whose
        point lies outside the space. Such a row answers like a failure, with a zero gradient. Say
        `gradient=False` when no gradient will be wanted: the pass is then cheaper.
        """
        if time.monotonic() > self.task.deadline:
            raise OutOfTimeError
        asked = self._askable(x, rows)
        whole = bool(asked.all())
        points = (x if whole else x[asked]).detach()
        gradient = gradient and gives(self.model.capability, "gradients")
        began = _now(self.x0)
        with torch.set_grad_enabled(gradient):
            points.requires_grad_(gradient)
            answer = self.model.ask(points) if len(points) else None
        rows_asked = rows if whole else rows[asked]
        self.memory.spend(self.memory.n_forward, rows_asked, _now(self.x0) - began)
        if answer is not None:
            self._notice(points.detach(), rows_asked, answer.detach())
        return Pass(self, rows, asked, points, answer)

    def labels(self, x: Tensor, rows: Tensor) -> Tensor:
        """Ask for the predicted classes of proposed points: all that a label-only attack sees."""
        return self.forward(x, rows, gradient=False).labels

    def _askable(self, x: Tensor, rows: Tensor) -> Tensor:
        self._fail_outside(x, rows)
        asked = ~self._done[rows]
        if self.task.max_queries is not None:
            left = self.task.max_queries - self.memory.n_forward[rows]
            asked &= _occurrence(rows) < left
        return asked

    def _fail_outside(self, x: Tensor, rows: Tensor) -> None:
        """A sample whose proposed point left the space (or eps, where promised) ends with an error."""
        x0, box = self._around(rows)
        if box is not None and self.task.within_eps and torch.equal(torch.clamp(x, *box), x):
            return  # the usual case in one look
        valid = self.space.valid(x, x0)
        if not bool(valid.all()):
            for point in (~valid & ~self._done[rows]).nonzero().flatten().tolist():
                violation = self.space.violation(x[point], x0[point])
                self._fail(int(rows[point]), f"the attack left the space: {violation}")
        if self.task.within_eps and self.task.eps is not None:
            distance = self.space.distance(x, x0, self.norm)
            for point in ((distance > self._reach) & ~self._done[rows]).nonzero().flatten().tolist():
                self._fail(int(rows[point]), f"the attack left eps: {distance[point]:.7g} > {self.eps:.7g}")

    def _around(self, rows: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """The clean inputs of these rows and, for linf, the box around them; remembered for the next call."""
        known = self._remembered
        if known is None or known[0] is not rows or known[1] != rows._version:  # the version tells of writing in place
            x0 = self.x0[rows]
            linf = self.task.norm == "linf" and self.task.eps is not None
            known = rows, rows._version, x0, self.space.linf_box(x0, self.eps) if linf else None
            self._remembered = known
        return known[2], known[3]

    def _fail(self, row: int, message: str) -> None:
        self.memory.failed.setdefault(row, message)
        self._done[row] = True

    def _notice(self, x: Tensor, rows: Tensor, answer: Tensor) -> None:
        """Look at answers: what went wrong, what succeeded for the first time, what to keep."""
        success = self._successes(x, rows, answer)
        if answer.is_floating_point() and not bool(torch.isfinite(answer).all()):
            told = torch.isfinite(answer).all(1)
            success &= told
            for point in (~told).nonzero().flatten().tolist():
                self._fail(int(rows[point]), "the model answered with a number that is not finite")
        self.memory.note_first(rows[success])
        if self.task.keep == "last":
            self.memory.keep_last(x, rows, success)
        else:
            self.memory.keep_best(x, rows, success, self._merit(x, rows, answer, success))
        if self.task.keep == "first":
            self._done[rows[success]] = True
        if self.task.max_queries is not None:
            self._done |= self.memory.n_forward >= self.task.max_queries

    def _successes(self, x: Tensor, rows: Tensor, answer: Tensor) -> Tensor:
        success = predicted(self.model, answer) != self.reference[rows]
        if self.task.eps is not None and not self.task.within_eps:  # distances only where they matter
            points = success.nonzero().squeeze(1)
            distance = self.space.distance(x[points], self.x0[rows[points]], self.norm)
            success[points] = distance <= self._reach
        return success

    def _merit(self, x: Tensor, rows: Tensor, answer: Tensor, success: Tensor) -> Tensor:
        """How much each point is wanted among the successes, or among the failures, of its sample."""
        merit = torch.zeros(len(rows), device=x.device)
        if answer.is_floating_point():
            merit += (
                objectives.value(self.task.objective, answer, self.reference[rows]).float().nan_to_num(nan=-torch.inf)
            )
        if self.task.keep == "smallest":
            points = success.nonzero().squeeze(1)
            merit[points] = -self.space.distance(x[points], self.x0[rows[points]], self.norm)
        return merit


class Pass:
    """The answers to one batch of proposed points: one forward, each backward counted.

    The graph is freed by the first gradient unless `retain=True` asks to keep it for another.
    """

    def __init__(self, probe: Probe, rows: Tensor, asked: Tensor, points: Tensor, answer: Tensor | None) -> None:
        self._probe, self._rows, self._asked, self._points, self._answer = probe, rows, asked, points, answer

    @property
    def scores(self) -> Tensor:
        """Logits (or log-probabilities, from a score model) of every row."""
        if self._probe.model.capability == "labels":
            raise ModelError(f"{self._probe.model.name} gives labels only")
        return self._filled(self._answer, self._failing_scores)

    @property
    def labels(self) -> Tensor:
        """The predicted class of every row."""
        answer = None if self._answer is None else predicted(self._probe.model, self._answer.detach())
        return self._filled(answer, lambda: self._probe.reference[self._rows])

    def gradient(self, objective: str, *, retain: bool = False) -> Tensor:
        """The slope of the objective in every feature, for every row; zero where a feature is immutable."""
        if self._answer is None:
            return self._flat()
        reference = self._probe.reference[self._rows[self._asked]]
        return self._backward(objectives.value(objective, self._answer, reference).sum(), retain=retain)

    def gradients(self, classes: Tensor, *, retain: bool = False) -> Tensor:
        """The slopes of the scores of several classes, (rows, k, features): k backward passes.

        `classes` holds k class numbers for every row, chosen after seeing the scores.
        """
        columns = classes[self._asked].unbind(1)
        if self._answer is None:
            return self._flat().unsqueeze(1).repeat_interleave(len(columns), 1)
        slopes = [
            self._backward(self._answer.gather(1, column[:, None]).sum(), retain=retain or position + 1 < len(columns))
            for position, column in enumerate(columns)
        ]
        return torch.stack(slopes, 1)

    def _backward(self, total: Tensor, *, retain: bool) -> Tensor:
        if not self._points.requires_grad:
            raise ModelError(f"{self._probe.model.name}: this pass was asked without gradients")
        began = _now(self._points)
        (slope,) = torch.autograd.grad(total, self._points, retain_graph=retain)
        memory = self._probe.memory
        memory.spend(memory.n_backward, self._rows[self._asked], _now(self._points) - began)
        if self._probe.space.immutable is not None:
            slope = slope.masked_fill(self._probe.space.immutable, 0.0)
        return self._filled(slope, self._flat)

    def _flat(self) -> Tensor:
        return torch.zeros_like(self._probe.x0[self._rows])

    def _failing_scores(self) -> Tensor:
        reference = self._probe.reference[self._rows]
        scores = torch.full((len(reference), self._probe.model.n_classes), -_UNASKED_LEAD, device=reference.device)
        return scores.scatter(1, reference[:, None], 0.0)

    def _filled(self, asked: Tensor | None, stand_in: Callable[[], Tensor]) -> Tensor:
        """The answers of all rows; those that were not asked get a stand-in."""
        if asked is not None and len(asked) == len(self._rows):
            return asked.detach()
        filled = stand_in()
        if asked is not None:
            filled[self._asked] = asked.detach()
        return filled


def _now(of: Tensor) -> float:
    """The time at which the device has done what it was asked to do."""
    if of.device.type != "cpu":
        torch.accelerator.synchronize(of.device)
    return time.perf_counter()


def _occurrence(rows: Tensor) -> Tensor:
    """For each entry, how many equal entries stand before it."""
    order = rows.argsort(stable=True)
    ranked = rows[order]
    position = torch.arange(len(rows), device=rows.device)
    first = torch.searchsorted(ranked, ranked)
    result = torch.empty_like(position)
    result[order] = position - first
    return result
