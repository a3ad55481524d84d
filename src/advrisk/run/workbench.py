"""The workbench: a study's data, models and detectors in one process, and caches that cells share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from advrisk.core.containment import Containment
from advrisk.core.registries import Registries
from advrisk.core.seeds import key
from advrisk.core.traits import DETECTOR
from advrisk.engine import Draw, Noise, Suspicion
from advrisk.engine.suspicion import measured
from advrisk.parts.data import Dataset
from advrisk.parts.detectors import Detector
from advrisk.plan import Cell
from advrisk.run.detectors.ready import known_suspicion
from advrisk.run.loading import Material, load_material
from advrisk.run.perturb import AttackedShard, load_target
from advrisk.run.pulse import OnShare
from advrisk.study import Arm, StudySpec

_TARGETS_REMEMBERED = 16
_CRAFTED_REMEMBERED = 4

Points = dict[str, NDArray[np.float32]]  # sample -> its kept point


@dataclass
class Workbench:
    """Everything a process needs to run the cells of one study."""

    study: StudySpec
    registries: Registries
    material: Material
    folder: Path
    run: str
    containment: Containment = field(default_factory=Containment)
    detectors: dict[str, Detector] = field(default_factory=dict)  # full name -> ready to score
    detector_names: dict[str, str] = field(default_factory=dict)  # full name -> its name in the study
    on_share: OnShare | None = None  # receives the progress of the cell that runs here
    crafted: dict[str, Points] = field(default_factory=dict)  # cell -> points for transfers, the latest few
    _targets: dict[tuple[str, str], AttackedShard] = field(default_factory=dict)
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
        """Load the data and the models of a study."""
        contained = Containment()
        material = load_material(study, registries, device=device, containment=contained, data=data, modules=modules)
        return cls(study, registries, material, folder, run, contained)

    def warm_up(self, cell: Cell) -> None:
        """Query a model once before any clock runs, as the first pass in a process is slower.

        A random model draws from streams of no cell. One with generators of its own (`unkeyed`) is not queried, as
        their draws belong to cells.
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
        with self.containment.around(model.name):
            model.ask_owner(x)
            if model.capability == "gradients":
                x.requires_grad_(True)
                torch.autograd.grad(model.ask(x).sum(), x)

    def target(self, cell: Cell) -> AttackedShard:
        """The samples of a cell, cached, as many arms in a row attack the same ones."""
        model, seed = self.material.models[cell.model], self.study.seed
        if model.random and (model.unkeyed or model.keyed is None):  # it draws from the cell's own seed
            return load_target(self.material, cell, self.study.success, seed=seed)
        pair = cell.model, cell.shard.id
        if pair not in self._targets:
            if len(self._targets) >= _TARGETS_REMEMBERED:
                del self._targets[next(iter(self._targets))]
            self._targets[pair] = load_target(self.material, cell, self.study.success, seed=seed)
        return self._targets[pair]

    def suspicion(self, model: str, arm: Arm) -> Suspicion | None:
        """The detector that an arm knows, with its measured passes per point; None for all other arms."""
        if arm.kind != "attack" or not self.registries.attacks.get(arm.family).traits.watches:
            return None
        detector = str(arm.params[DETECTOR])
        if (model, detector) not in self._suspicions:
            first = torch.from_numpy(self.material.data.x[:1]).to(self.material.models[model].device)
            suspicion = known_suspicion(detector, self.detectors[detector], self.registries)
            self._suspicions[model, detector] = measured(suspicion, self.material.models[model].original, first)
        return self._suspicions[model, detector]

    def remember(self, cell: Cell, points: Points) -> None:
        """Cache the points of a cell for cells that transfer them; drop the oldest."""
        if len(self.crafted) >= _CRAFTED_REMEMBERED:
            del self.crafted[next(iter(self.crafted))]
        self.crafted[cell.id] = points
