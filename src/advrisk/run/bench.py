"""The workbench: a study's material in one process, on which cells are carried out one by one."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import nn

from advrisk.core.registries import Registries
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_inputs
from advrisk.parts.data import Dataset
from advrisk.plan import Cell
from advrisk.run.judge import judge
from advrisk.run.loading import Material, load_material
from advrisk.run.perturb import Attempt, Target, load_target, perturb
from advrisk.run.rows import CellResult, failed_result, judged_result
from advrisk.study import StudySpec

_TARGETS_REMEMBERED = 16


@dataclass
class Workbench:
    """Everything a process needs to carry out cells of one study."""

    study: StudySpec
    registries: Registries
    material: Material
    folder: Path
    run: str
    _targets: dict[tuple[str, str], Target] = field(default_factory=dict)

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
        with torch.random.fork_rng(devices=()):  # a model that draws at random does so from the cell's own seed
            torch.manual_seed(int(cell.id[:15], 16))
            return self._carry_out(cell)

    def _carry_out(self, cell: Cell) -> CellResult:
        began, began_process = time.perf_counter(), time.process_time()
        try:
            target = self._target(cell)
            attempt = perturb(target, cell, self.registries, seed=self.study.seed, max_cell_s=self.study.max_cell_s)
            verdict = judge(target, attempt, cell.arm)
            self._keep_inputs(cell, attempt, [name == "success" for name in verdict.outcome])
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

    def _target(self, cell: Cell) -> Target:
        """The samples of a cell; many arms in a row attack the same ones."""
        if self.material.models[cell.model].random:  # what it says of clean inputs belongs to the cell, too
            return load_target(self.material, cell, self.study.success)
        place = cell.model, cell.shard.id
        if place not in self._targets:
            if len(self._targets) >= _TARGETS_REMEMBERED:
                del self._targets[next(iter(self._targets))]
            self._targets[place] = load_target(self.material, cell, self.study.success)
        return self._targets[place]

    def _keep_inputs(self, cell: Cell, attempt: Attempt, success: list[bool]) -> None:
        if self.study.keep_inputs == "none":
            return
        if not (clean := shard_inputs(self.folder, cell.shard.id)).exists():
            rows = [self.material.rows[name] for name in cell.shard.samples]
            write_inputs(clean, cell.shard.samples, self.material.data.x[rows])
        wanted = np.array(success) | (self.study.keep_inputs == "all")
        if wanted.any() and cell.arm.kind != "clean":
            samples = [name for name, want in zip(cell.shard.samples, wanted, strict=True) if want]
            perturbed = attempt.kept[torch.from_numpy(wanted)].cpu().numpy()
            write_inputs(cell_inputs(self.folder, cell.id), samples, perturbed)
