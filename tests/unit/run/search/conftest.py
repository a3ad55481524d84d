"""A search whose surface is known: sample i breaks if its number lies below what a setting reaches.

The model names the larger of two features; a sample is (a, 0) with a in (0, 1), of class 0. The attack `hill` moves
the second feature to reach(size), which is 1 at size 0.01 and falls off on both sides by ratios.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
import torch
from annotated_types import Ge, Gt
from torch import nn

from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits, Box
from advrisk.ledger import Ledger, SegmentWriter
from advrisk.parts import REGISTRIES
from advrisk.run.cell import run_cell
from advrisk.run.certifying import certify
from advrisk.run.dispatch import Dispatcher
from advrisk.run.executors.local import InProcess
from advrisk.run.finished import unfinished_cells
from advrisk.run.planning import outline_study, plan_study, refuse_impossible
from advrisk.run.progress import Progress
from advrisk.run.recording import record_question
from advrisk.run.workbench import Workbench
from advrisk.study import study_from


def reach(size: float, tilt: float = 0.5) -> float:
    """1 at size 0.01 and tilt 0.5, less everywhere else."""
    return math.exp(-((math.log10(size) + 2) ** 2) - 4 * (tilt - 0.5) ** 2)


def with_hill() -> Registries:
    attacks: Registry[AttackTraits] = Registry("attacks")
    traits = AttackTraits("labels", ("linf",), lambda *_: (1, 0), "tests", box={"size": Box(1e-4, 1.0)})

    @attacks.register("hill", traits=traits)
    def hill(
        probe: Any,
        *,
        size: Annotated[float, Gt(0)] = 0.1,
        tilt: float = 0.5,
        steps: Annotated[int, Ge(1)] = 1,
        sound_below: float = 9.0,
    ) -> None:
        if size >= sound_below:
            raise RuntimeError("too large a size")
        rows = probe.active()
        x = probe.x0[rows].clone()
        x[:, 1] = reach(size, tilt)
        if len(rows):
            probe.forward(probe.project(x, rows), rows, gradient=False)

    return replace(REGISTRIES, attacks=attacks)


@dataclass(frozen=True)
class Hill:
    """Runs studies of the hill in a folder."""

    folder: Path
    data: Path
    registries: Registries

    def study(self, *searches: dict[str, Any], **changes: Any) -> dict[str, Any]:
        data = {
            "source": "npz",
            "path": str(self.data),
            "bounds": [-10, 10],
            "classes": 2,
            "evaluate": 4,
            "tune": 36,
            "calibrate": 12,
        }
        return {
            "name": "hill",
            "data": data | changes.pop("data", {}),
            "models": {"larger": {"source": "object", "expect_accuracy": 0}},
            "shard": 12,
            "arms": [{"attack": "hill", "norm": "linf", "eps": 2, "size": 0.03}],
            "search": [{"attack": "hill", "norm": "linf", "eps": 2} | search for search in searches],
            "assess": {"certificate": {}},
        } | changes

    def run(
        self,
        content: dict[str, Any],
        name: str = "run",
        on_progress: Callable[[Progress], None] = lambda _: None,
        deadline: float = math.inf,
    ) -> Path:
        """The main path, with the hill among the attacks."""
        linear = nn.Linear(2, 2)
        linear.load_state_dict({"weight": torch.eye(2), "bias": torch.zeros(2)})
        study, folder = study_from(content), self.folder / name
        bench = Workbench.set_up(
            study, self.registries, folder=folder, run="run", device="cpu", modules={"larger": linear}
        )
        outline = outline_study(bench)
        refuse_impossible(outline, bench)
        ledger = Ledger.open(folder, create=True)
        plan = plan_study(outline, ledger, bench)
        record_question(study, ledger, plan, bench)
        missing = unfinished_cells(plan, ledger)
        progress = Progress(n_cells=len(missing), n_skipped=0)
        with SegmentWriter(ledger) as writer, InProcess(run_cell, bench) as executor:
            dispatcher = Dispatcher(executor, writer, deadline, on_progress, progress)
            dispatcher.dispatch(missing)
            certify(bench, plan, ledger, dispatcher, retry_errors=False)
        return folder


@pytest.fixture
def hill(tmp_path: Path) -> Hill:
    numbers = (np.arange(100, dtype=np.float32) + 0.5) / 100
    x = np.stack([numbers, np.zeros(100, dtype=np.float32)], axis=1)
    path = tmp_path / "hill.npz"
    np.savez(path, x=x, y=np.zeros(100, dtype=np.int64))
    return Hill(tmp_path, path, with_hill())
