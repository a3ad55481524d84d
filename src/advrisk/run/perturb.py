"""Arms at work on a shard of samples. The judge verifies their claims next."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from advrisk.core.containment import exits_as_errors
from advrisk.core.flags import NO_START_MESSAGE
from advrisk.core.registries import Registries
from advrisk.core.seeds import key
from advrisk.core.traits import DETECTOR, Accounting, AttackTraits, Capability, gives
from advrisk.engine import Goal, Model, Noise, OutOfTimeError, Probe, Space, Suspicion, Task, Trust, predicted
from advrisk.engine.clock import now
from advrisk.engine.objectives import NEUTRAL
from advrisk.ledger import Outcome
from advrisk.plan import Cell
from advrisk.run.loading import Material
from advrisk.run.pulse import Pulse
from advrisk.run.redrawing import finite, redrawn
from advrisk.study import Arm, Success, TargetSpec

FIRSTS = ("n_forward_first", "n_backward_first", "n_forward_before", "n_backward_before")  # absent without a success
COUNTS = ("n_forward", "n_backward", "n_rejected", "n_confirm", *FIRSTS)
Settled = tuple[Outcome, str]  # an outcome that needs no judgement, and a message


@dataclass(frozen=True)
class AttackedShard:
    """A shard's samples in memory, with the model's answers to the clean inputs.

    `clean_prediction` is the predicted class, refusals aside; of a model that answers at random, the most frequent one.
    `is_reference`: success is judged against it, so a clean input is never incorrect.
    """

    model: Model
    space: Space
    x0: Tensor
    label: Tensor
    clean_answer: Tensor
    clean_prediction: Tensor
    clean_rejected: Tensor
    goal: Goal
    is_reference: bool = False
    inference_s: float | None = None  # seconds that a clean pass took, for each sample

    @property
    def is_image(self) -> bool:
        return self.x0.dim() == 4

    def settled(self) -> dict[int, Settled]:
        """Samples without an attack: their goal is already met, or cannot be met, or the clean answer is not finite.

        A refused input is not incorrect: an attack can still cause an incorrect answer.
        """
        wrong = (self.goal.met(self.clean_prediction) & ~self.clean_rejected).nonzero().flatten().tolist()
        settled: dict[int, Settled] = dict.fromkeys(wrong, ("already_wrong", ""))
        if self.goal.target is not None:
            own = (self.goal.target == self.goal.reference).nonzero().flatten().tolist()
            settled |= dict.fromkeys(own, ("resisted", "the target is the sample's own class"))
        for row in (~finite(self.clean_answer)).nonzero().flatten().tolist():
            settled[row] = "error", "the model answered the clean input with a number that is not finite"
        return settled


@dataclass(frozen=True)
class Crafted:
    """The points of a transfer, one per sample of the shard, and the outcomes of samples that have none."""

    x: Tensor
    missing: dict[int, Settled]


@dataclass
class Attempt:
    """The result of an arm, one entry per sample of the shard.

    `settled` has the outcomes of samples that need no judgement; the judge decides the others by their points.
    """

    kept: Tensor
    claimed: Tensor | None = None  # successes by the arm's own queries; None where it made none
    counts: dict[str, Tensor] = field(default_factory=dict)  # n_forward, …, -1 where there is none
    first_s: Tensor | None = None
    spent_s: Tensor | None = None  # None for passes counted per batch
    settled: dict[int, Settled] = field(default_factory=dict)
    trust: Trust = field(default_factory=Trust)
    accounting: Accounting = "sample"
    needs: Capability = "labels"  # the capability that the arm needs
    cut_short: bool = False  # the arm threw or ran out of time: its points may not be its best
    not_crafted: bool = False  # a transfer had no points for some samples


def load_target(material: Material, cell: Cell, success: Success, *, seed: int) -> AttackedShard:
    """The samples of a cell with the model's answers to the clean inputs.

    A model's random numbers depend on the samples, not on the arm: all arms see the same clean answers.
    """
    model = material.models[cell.model]
    rows = np.array([material.rows[name] for name in cell.shard.samples])
    x0 = torch.from_numpy(material.data.x[rows]).to(model.device)
    label = torch.from_numpy(material.data.y[rows]).to(model.device)
    chance = Noise(clean_keys(seed, cell), device=model.device)
    return target_of(model, material.space, x0, label, success, chance)


def target_of(
    model: Model, space: Space, x0: Tensor, label: Tensor, success: Success, chance: Noise | None = None
) -> AttackedShard:
    """Samples with the model's answers to the clean inputs; `chance` has the streams of a random model."""
    began = now(x0)
    replies = redrawn(model, x0, torch.arange(len(x0), device=x0.device), chance)
    inference_s = (now(x0) - began) / len(x0) / replies.n
    goal = goal_of(success, label, model, replies.answer, most_frequent=replies.most_frequent)
    rejected = replies.rejection_rate > 0.5
    is_reference = success == "prediction"  # in few draws, perhaps, but in more than any other class
    prediction = replies.most_frequent if is_reference else replies.prediction(goal)
    return AttackedShard(model, space, x0, label, replies.answer, prediction, rejected, goal, is_reference, inference_s)


def goal_of(
    success: Success, label: Tensor, model: Model, clean_answer: Tensor, *, most_frequent: Tensor | None = None
) -> Goal:
    """The goal of a study's `success` for these samples; `most_frequent` has the classes of a random model."""
    clean = clean_answer if gives(model.capability, "scores") else None
    if success == "prediction":
        return Goal(predicted(model, clean_answer) if most_frequent is None else most_frequent, clean=clean)
    if isinstance(success, TargetSpec):
        return Goal(label, _targets(success, label, model, clean_answer), clean)
    return Goal(label, clean=clean)


def _targets(success: TargetSpec, label: Tensor, model: Model, clean_answer: Tensor) -> Tensor:
    if success.target == "next":
        return (label + 1) % model.n_classes
    if success.target == "least-likely":
        return clean_answer.scatter(1, label[:, None], torch.inf).argmin(1)
    if isinstance(success.target, dict):
        return torch.tensor([success.target[int(own)] for own in label], device=label.device)
    return torch.full_like(label, int(success.target))


def perturb(
    target: AttackedShard,
    cell: Cell,
    registries: Registries,
    *,
    seed: int,
    max_cell_s: float | None,
    crafted: Crafted | None = None,
    suspicion: Suspicion | None = None,
    pulse: Pulse | None = None,
) -> Attempt:
    """Run the cell's arm on its shard; `crafted` has the points of a transfer, `suspicion` the detector it knows.

    `pulse` reports the progress of the attack.
    """
    keys = _cell_keys("noise", seed, cell)
    if cell.arm.kind == "attack":
        streams = keys, _cell_keys("chance", seed, cell)
        return _attack(target, cell, registries, streams, max_cell_s, crafted, suspicion, pulse)
    x = target.x0
    if cell.arm.kind == "corruption":
        corrupt: Callable[..., Tensor] = registries.corruptions.get(cell.arm.family).function
        every = torch.arange(len(x))
        x = corrupt(x.clone(), Noise(keys, device=x.device), every, target.space, **cell.arm.params)
        x = target.space.project(x, target.x0)
    return Attempt(kept=x)


def judge_keys(seed: int, cell: Cell) -> list[int]:
    """The keys of the judge's own draws."""
    return _cell_keys("judge", seed, cell)


def clean_keys(seed: int, cell: Cell) -> list[int]:
    """The keys of the draws about clean inputs: the same for all arms."""
    return [key("clean", seed, sample) for sample in cell.shard.samples]


def _cell_keys(word: str, seed: int, cell: Cell) -> list[int]:
    """One key per sample of a cell: its random numbers do not depend on the shard."""
    return [key(word, seed, cell.arm.id, sample, cell.repeat) for sample in cell.shard.samples]


def _attack(
    target: AttackedShard,
    cell: Cell,
    registries: Registries,
    streams: tuple[list[int], list[int]],
    max_cell_s: float | None,
    crafted: Crafted | None,
    suspicion: Suspicion | None,
    pulse: Pulse | None,
) -> Attempt:
    """Attack the samples that the model classifies correctly; the others are settled."""
    part = registries.attacks.get(cell.arm.family)
    needs = part.traits.resolved(cell.arm.params, cell.arm.norm, cell.arm.eps).needs
    attempt = Attempt(target.x0.clone(), settled=target.settled(), accounting=part.traits.accounting, needs=needs)
    settings = dict(cell.arm.params)
    if part.traits.watches:
        settings.pop(DETECTOR, None)  # passed as `suspicion`
    if crafted is not None:
        attempt.not_crafted = not crafted.missing.keys() <= attempt.settled.keys()
        attempt.settled = crafted.missing | attempt.settled
        settings = {}  # the arm's own name the origin of the points
    rows = torch.tensor([row for row in range(len(target.x0)) if row not in attempt.settled], dtype=torch.int64)
    rows = rows.to(target.x0.device)
    deadline = time.monotonic() + (max_cell_s or float("inf"))
    options: dict[str, Any] = {"crafted": crafted, "suspicion": suspicion, "pulse": pulse}
    probe = _probe(target, rows, cell.arm, part.traits, streams, deadline=deadline, **options)
    unfinished = _too_dear(cell.arm, suspicion, draws=cell.arm.draws if target.model.random else 1)
    if len(rows) and unfinished is None:
        try:
            with exits_as_errors(cell.model):
                part.function(probe, **settings)
        except OutOfTimeError:
            unfinished = "timeout", f"not finished after {max_cell_s:g} s"
        except Exception as error:  # the cell boundary: an arm that throws gives error rows
            unfinished = "error", f"{type(error).__name__}: {error}"
    _collect(attempt, probe, rows, unfinished)
    if part.traits.exhaustive and cell.arm.max_queries is None:
        attempt.trust = replace(attempt.trust, still_gaining=None)
    return attempt


def _too_dear(arm: Arm, suspicion: Suspicion | None, *, draws: int) -> Settled | None:
    """The error of an arm whose detector takes more passes per point than `max_queries`; None if it does not."""
    if suspicion is None or arm.max_queries is None or arm.max_queries >= draws + suspicion.passes:
        return None
    taken = f"a point takes {draws + suspicion.passes} passes with {suspicion.name}"
    return "error", f"{taken}, but max_queries is {arm.max_queries}; allow more"


def _probe(
    target: AttackedShard,
    rows: Tensor,
    arm: Arm,
    traits: AttackTraits,
    streams: tuple[list[int], list[int]],
    *,
    deadline: float,
    crafted: Crafted | None,
    suspicion: Suspicion | None,
    pulse: Pulse | None,
) -> Probe:
    task = Task(
        x0=target.x0[rows],
        goal=target.goal.of(rows),
        space=target.space,
        norm=arm.norm,
        eps=arm.eps,
        objective=arm.objective or NEUTRAL,
        keep=arm.keep,
        max_queries=arm.max_queries,
        within_eps=traits.stays_within_eps(arm.norm),
        deadline=deadline,
        crafted=None if crafted is None else crafted.x[rows],
        suspicion=suspicion,
        draws=arm.draws,
        pulse=None if pulse is None else partial(pulse, n_settled=len(target.x0) - len(rows)),
        sees_through=traits.resolved(arm.params, arm.norm, arm.eps).needs == "gradients",
    )
    noise, chance = (Noise([keys[row] for row in rows.tolist()], device=target.x0.device) for keys in streams)
    # Other libraries' attacks end at the boundary, where an optimised copy may differ by rounding.
    model = target.model.original if traits.accounting == "batch" else target.model
    return Probe(model, task, noise, chance)


def _collect(attempt: Attempt, probe: Probe, rows: Tensor, unfinished: Settled | None) -> None:
    """Copy the probe's memory into the attempt, for the whole shard."""
    memory = probe.memory
    attempt.kept[rows], attempt.trust = memory.kept, probe.trust
    if not bool(memory.offered.any()):
        attempt.claimed = torch.zeros(len(attempt.kept), dtype=torch.bool, device=rows.device)
        attempt.claimed[rows] = memory.success
    for name in COUNTS:
        absent = -1 if name in FIRSTS else 0
        column = torch.full((len(attempt.kept),), absent, device=rows.device)
        column[rows] = getattr(memory, name)
        attempt.counts[name] = column
    attempt.first_s = torch.full((len(attempt.kept),), torch.nan, device=rows.device)
    attempt.first_s[rows] = memory.first_s
    if attempt.accounting == "sample":
        attempt.spent_s = torch.zeros(len(attempt.kept), device=rows.device)
        attempt.spent_s[rows] = memory.spent_s
    for row, message in memory.failed.items():
        attempt.settled[int(rows[row])] = "error", message
    for row in memory.no_start.nonzero().flatten().tolist():  # points without a start are no result
        attempt.kept[rows[row]] = probe.x0[row]
        attempt.settled.setdefault(int(rows[row]), ("resisted", NO_START_MESSAGE))
    untried = (memory.n_forward == 0) & ~memory.offered
    for row in untried.nonzero().flatten().tolist():
        attempt.settled.setdefault(int(rows[row]), unfinished or ("error", "the attack asked the model nothing"))
    if unfinished is not None:  # samples that are already broken stay broken
        attempt.cut_short = True
        for row in (~memory.success & ~memory.offered).nonzero().flatten().tolist():
            attempt.settled.setdefault(int(rows[row]), unfinished)
