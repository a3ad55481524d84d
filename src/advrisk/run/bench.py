"""The workbench: a study's material in one process, on which cells are carried out one by one."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from advrisk.core.errors import RunError
from advrisk.core.registries import Registries
from advrisk.core.seeds import key
from advrisk.core.traits import DETECTOR
from advrisk.engine import Draw, Noise, Suspicion
from advrisk.engine.suspicion import measured
from advrisk.engine.threads import one_thread
from advrisk.ledger.inputs import (
    cell_inputs,
    crafted_inputs,
    example_inputs,
    read_inputs,
    shard_inputs,
    write_bounds,
    write_inputs,
)
from advrisk.parts.data import Dataset
from advrisk.parts.detectors import Detector
from advrisk.plan import Cell
from advrisk.run.detectors import known_suspicion
from advrisk.run.judge import Verdict, judge
from advrisk.run.loading import Material, load_material
from advrisk.run.perturb import Attempt, Crafted, Settled, Target, judge_keys, load_target, perturb
from advrisk.run.rows import CellResult, failed_result, judged_result, nothing_to_transfer
from advrisk.study import Arm, StudySpec

_TARGETS_REMEMBERED = 16
_CRAFTED_REMEMBERED = 4

Points = dict[str, NDArray[np.float32]]  # sample -> the point that was kept for it


@dataclass
class Workbench:
    """Everything a process needs to carry out cells of one study."""

    study: StudySpec
    registries: Registries
    material: Material
    folder: Path
    run: str
    detectors: dict[str, Detector] = field(default_factory=dict)  # full name -> ready to score
    detector_names: dict[str, str] = field(default_factory=dict)  # full name -> what the study calls it
    _targets: dict[tuple[str, str], Target] = field(default_factory=dict)
    _crafted: dict[str, Points] = field(default_factory=dict)
    _suspicions: dict[tuple[str, str], Suspicion] = field(default_factory=dict)
    _warm: set[str] = field(default_factory=set)

    @classmethod
    def set_up(
        cls,
        study: StudySpec,
        registries: Registries,
        *,
        folder: Path,
        run: str,
        device: str,
        data: Dataset | None = None,
        modules: Mapping[str, nn.Module] | None = None,
    ) -> "Workbench":
        """Load the material and lay it out."""
        material = load_material(study, registries, device=device, data=data, modules=modules)
        return cls(study, registries, material, folder, run)

    def carry_out(self, cell: Cell) -> CellResult:
        """Perturb, judge, and report rows. Whatever goes wrong becomes rows, too."""
        try:
            self._warm_up(cell)
            began, began_process = time.perf_counter(), time.process_time()
            target, attempt, verdict = self._judged(cell)
            self._keep_inputs(cell, attempt, verdict)
        except Exception as error:  # the cell boundary
            message = f"{type(error).__name__}: {error}"
            return failed_result(cell, run=self.run, criterion=self.study.criterion, outcome="error", message=message)
        return judged_result(
            cell,
            target,
            attempt,
            verdict,
            run=self.run,
            criterion=self.study.criterion,
            wall_s=time.perf_counter() - began,
            process_s=time.process_time() - began_process,
        )

    def _warm_up(self, cell: Cell) -> None:
        """Ask a model once before any clock runs: its first pass in a process sets things up that later ones find.

        One that draws at random does so from streams of no cell. Where it has generators of its own (`unkeyed`), it is
        not asked: what these draw belongs to cells.
        """
        model = self.material.models[cell.model]
        if model.name in self._warm or (model.random and (model.keyed is None or model.unkeyed)):
            return
        self._warm.add(model.name)
        n = len(cell.shard.samples)
        model = model.drawn(
            Draw(Noise([key("warm-up", row) for row in range(n)], device=model.device), torch.arange(n))
        )
        rows = [self.material.rows[name] for name in cell.shard.samples]
        x = torch.from_numpy(self.material.data.x[rows]).to(model.device)
        model.ask_owner(x)
        if model.capability == "gradients":
            x.requires_grad_(True)
            torch.autograd.grad(model.ask(x).sum(), x)

    def _judged(self, cell: Cell) -> tuple[Target, Attempt, Verdict]:
        crafted = self._take_over(cell)
        with torch.random.fork_rng(devices=()):  # a model that draws at random does so from the cell's own seed
            torch.manual_seed(int(cell.id[:15], 16))
            target = self.target(cell)
            attempt = perturb(
                target,
                cell,
                self.registries,
                seed=self.study.seed,
                max_cell_s=None
                if cell.is_example
                else self.study.max_cell_s,  # a clock must not decide what is learned
                crafted=crafted,
                suspicion=self.suspicion(cell.model, cell.arm),
            )
            # Also of clean inputs the draws are new: those that chose what is already wrong err there too often.
            chance = Noise(judge_keys(self.study.seed, cell), device=target.x0.device)
            return target, attempt, judge(target, attempt, cell.arm, chance)

    def suspicion(self, model: str, arm: Arm) -> Suspicion | None:
        """The detector that an arm knows, and what it costs to ask it about a point; None for all other arms."""
        if arm.kind != "attack" or not self.registries.attacks.get(arm.family).traits.watches:
            return None
        place = model, str(arm.params[DETECTOR])
        if place not in self._suspicions:
            first = torch.from_numpy(self.material.data.x[:1]).to(self.material.models[model].device)
            known = known_suspicion(place[1], self.detectors[place[1]], self.registries)
            self._suspicions[place] = measured(known, self.material.models[model].original, first)
        return self._suspicions[place]

    def _take_over(self, cell: Cell) -> Crafted | None:
        """What the cell that this one needs has crafted; None for a cell that crafts its own points."""
        if not cell.needs:
            return None
        (need,) = cell.needs
        points = self.points_of(need)
        rows = [self.material.rows[name] for name in cell.shard.samples]
        x = self.material.data.x[rows]
        missing: dict[int, Settled] = {}
        for row, name in enumerate(cell.shard.samples):
            if np.isnan(points[name]).any():
                missing[row] = "error", nothing_to_transfer(need)
            elif np.array_equal(points[name], x[row]):
                missing[row] = "resisted", f"{need.arm.shown} left this sample of {need.model} as it was"
            else:
                x[row] = points[name]
        return Crafted(torch.from_numpy(x).to(self.material.models[cell.model].device), missing)

    def points_of(self, cell: Cell) -> Points:
        """What a cell crafted: remembered, read, or, where it was not kept, crafted again from the same seeds."""
        if cell.id not in self._crafted:
            path = crafted_inputs(self.folder, cell.id)
            points = read_inputs(path) if path.is_file() else {}
            if points.keys() != set(cell.shard.samples):  # it was deleted, say
                _, attempt, verdict = self._judged(cell)
                self._keep_crafted(cell, attempt, verdict)
            else:
                self._remember(cell, points)
        return self._crafted[cell.id]

    def crafted_again(self, cell: Cell) -> Points:
        """The successes of a cell that was run before, from the same seeds."""
        with one_thread():
            _, attempt, verdict = self._judged(cell)
        return _successes(cell, attempt, verdict)

    def examples_of(self, cell: Cell) -> Points:
        """The successes of a cell that detectors learn from: read, or crafted. One sample that fails ends it."""
        path = example_inputs(self.folder, cell.model, cell.id)
        if path.is_file():
            return read_inputs(path)
        _, attempt, verdict = self._judged(cell)
        for sample, outcome, message in zip(cell.shard.samples, verdict.outcome, verdict.message, strict=True):
            if outcome in ("error", "timeout"):
                raise RunError(f"{cell.arm.id}, which detectors learn from, failed on sample {sample}: {message}")
        points = _successes(cell, attempt, verdict)
        if self.study.keep_inputs != "none":
            shape = (0, *self.material.data.x.shape[1:])
            write_inputs(path, list(points), np.stack([*points.values()]) if points else np.empty(shape, np.float32))
        return points

    def _keep_crafted(self, cell: Cell, attempt: Attempt, verdict: Verdict) -> None:
        """Keep the points of all samples for the cells that take them over; NaN where the arm failed."""
        kept = attempt.kept.cpu().numpy().copy()
        kept[[outcome in ("error", "timeout") for outcome in verdict.outcome]] = np.nan
        self._remember(cell, dict(zip(cell.shard.samples, kept, strict=True)))
        if self.study.keep_inputs != "none":
            write_inputs(crafted_inputs(self.folder, cell.id), cell.shard.samples, kept)

    def _remember(self, cell: Cell, points: Points) -> None:
        if len(self._crafted) >= _CRAFTED_REMEMBERED:
            del self._crafted[next(iter(self._crafted))]
        self._crafted[cell.id] = points

    def target(self, cell: Cell) -> Target:
        """The samples of a cell; many arms in a row attack the same ones."""
        model, seed = self.material.models[cell.model], self.study.seed
        if model.random and (model.unkeyed or model.keyed is None):  # it draws from the cell's own seed
            return load_target(self.material, cell, self.study.success, seed=seed)
        place = cell.model, cell.shard.id
        if place not in self._targets:
            if len(self._targets) >= _TARGETS_REMEMBERED:
                del self._targets[next(iter(self._targets))]
            self._targets[place] = load_target(self.material, cell, self.study.success, seed=seed)
        return self._targets[place]

    def _keep_inputs(self, cell: Cell, attempt: Attempt, verdict: Verdict) -> None:
        if cell.is_needed:
            self._keep_crafted(cell, attempt, verdict)
        if self.study.keep_inputs == "none" or not cell.keeps_inputs:
            return
        if not (clean := shard_inputs(self.folder, cell.shard.id)).exists():
            rows, space = [self.material.rows[name] for name in cell.shard.samples], self.material.space
            write_bounds(self.folder, space.low.cpu().numpy(), space.high.cpu().numpy())
            write_inputs(clean, cell.shard.samples, self.material.data.x[rows])
        wanted = np.array([name == "success" for name in verdict.outcome]) | (self.study.keep_inputs == "all")
        if wanted.any() and cell.arm.kind != "clean":
            samples = [name for name, want in zip(cell.shard.samples, wanted, strict=True) if want]
            perturbed = attempt.kept[torch.from_numpy(wanted)].cpu().numpy()
            write_inputs(cell_inputs(self.folder, cell.id), samples, perturbed)


def _successes(cell: Cell, attempt: Attempt, verdict: Verdict) -> Points:
    points = zip(cell.shard.samples, attempt.kept.cpu().numpy(), verdict.outcome, strict=True)
    return {sample: point for sample, point, outcome in points if outcome == "success"}
