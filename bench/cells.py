"""The cells of a small study, run in this process on one thread, and what is needed to compare them."""

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from advrisk import Study
from advrisk.engine import Model
from advrisk.ledger import Ledger, Storage
from advrisk.parts import REGISTRIES
from advrisk.plan import Cell, Plan
from advrisk.run.cell import run_cell
from advrisk.run.options import DEFAULTS
from advrisk.run.perturb import AttackedShard, Attempt, load_target, perturb
from advrisk.run.planning import outline_study, plan_study
from advrisk.run.preparation import load_bench
from advrisk.run.rows import CellResult
from advrisk.run.workbench import Workbench

DIGITS = {"source": "mnist-5k"}
SMALL_CNN = {"source": "demo", "name": "pgd-trained"}


@dataclass(frozen=True)
class Shop:
    """A study that is set up, and its attack cells."""

    bench: Workbench
    cells: list[Cell]
    plan: Plan

    @property
    def model(self) -> Model:
        """The model as the runner asks it."""
        return self.bench.material.models["model"]

    def module(self, *, frozen: bool) -> nn.Module:
        """The model as its owner holds it: nothing made quicker."""
        spec = self.bench.study.models["model"]
        source = REGISTRIES.models.get(spec.source)
        return copy.deepcopy(source.function(**source.bind(spec.params)).module).requires_grad_(not frozen)

    def run_cell(self, cell: Cell) -> CellResult:
        """All that the runner does with a cell: attack, judge, make rows."""
        result = run_cell(cell, self.bench)
        assert not result.n_errors, result.messages
        return result

    def run_cell_anew(self, cell: Cell) -> CellResult:
        """The same, with the clean pass, which the runner asks for once for all arms of a shard."""
        return replace(self, bench=replace(self.bench, _targets={})).run_cell(cell)

    def attack(self, cell: Cell) -> tuple[AttackedShard, Attempt]:
        """The attack alone, through the probe: the clean pass and what the arm does, without judge and rows."""
        study = self.bench.study
        target = load_target(self.bench.material, cell, study.success, seed=study.seed)
        return target, perturb(target, cell, REGISTRIES, seed=study.seed, max_cell_s=None)

    def samples(self, cell: Cell) -> tuple[Tensor, Tensor]:
        """The inputs of a cell, and the classes that an attack is to change."""
        study = self.bench.study
        target = load_target(self.bench.material, cell, study.success, seed=study.seed)
        return target.x0, target.goal.reference

    def counted(self, work: Callable[["Shop"], object]) -> tuple[int, int]:
        """Rows that really go forward and backward through the module for some work, as other libraries' are counted.

        The ledger leaves out rows that share a backward pass without needing it, and those that pad a small batch.
        """
        counter = Counted(self.model.answer)
        work(self._with(replace(self.model, answer=counter)))
        return counter.n_forward, counter.n_backward

    def run_cell_on(self, model: Model, cell: Cell) -> None:
        """The same cell with another model in place of the study's, such as one that counts."""
        self._with(model).run_cell(cell)

    def _with(self, model: Model) -> "Shop":
        material = replace(self.bench.material, models={"model": model})
        return replace(self, bench=replace(self.bench, material=material, _targets={}, _warm={model.name}))


def here(models: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, dict[str, str]], dict[str, nn.Module]]:
    """Models of a study as objects of this process, so that a run starts no workers, which would take seconds."""
    modules = {}
    for name, spec in models.items():
        source = REGISTRIES.models.get(spec["source"])
        params = {key: value for key, value in spec.items() if key != "source"}
        modules[name] = source.function(**source.bind(params)).module
    return {name: {"source": "object"} for name in models}, modules


class Counted(nn.Module):
    """A module that counts the rows of its forward and backward passes."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.n_forward = self.n_backward = 0
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        self.n_forward += len(x)
        answer: Tensor = self.module(x)
        if answer.requires_grad:
            answer.register_hook(self._count)
        return answer

    def _count(self, slope: Tensor) -> None:
        self.n_backward += len(slope)


def n_passes(result: CellResult) -> tuple[int, int]:
    """Forward passes, the judge's among them, and backward passes of a cell, summed over its samples."""
    outcomes = result.tables["outcomes"]
    n_forward, n_backward, n_judge = (
        int(outcomes[name].to_numpy().sum()) for name in ("n_forward", "n_backward", "n_judge")
    )
    return n_forward + n_judge, n_backward


@contextmanager
def shop(
    arms: Sequence[Mapping[str, Any]],
    *,
    samples: int,
    shard: int,
    data: Mapping[str, Any] = DIGITS,
    model: Mapping[str, Any] = SMALL_CNN,
) -> Iterator[Shop]:
    """Set up a study of one model. Success is a change of prediction, so that weights may be random."""
    with tempfile.TemporaryDirectory(prefix="advrisk-bench-") as name:
        folder = Path(name)
        study = Study.from_dict(
            {
                "name": "bench",
                "data": dict(data) | {"evaluate": samples},
                "models": {"model": dict(model)},
                "arms": [dict(arm) for arm in arms],
                "success": "prediction",
                "keep_inputs": "none",
                "shard": shard,
                "device": "cpu",
            }
        ).spec
        bench = load_bench(study, folder, DEFAULTS)
        plan = plan_study(outline_study(bench), Ledger(Storage(folder)), bench)
        torch.set_num_threads(1)
        yield Shop(bench, [cell for cell in plan.cells() if cell.arm.kind == "attack"], plan)
