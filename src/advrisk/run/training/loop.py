"""The training loop of one model: epochs of Adam, and a checkpoint from which it resumes bit by bit."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from advrisk.core.seeds import key
from advrisk.run.tensors import write_tensors
from advrisk.study import TrainedModel

Loss = Callable[[nn.Module, Tensor, Tensor, torch.Generator], Tensor]


@dataclass(frozen=True)
class TrainingState:
    """Everything that changes while a model is trained; layers that draw by themselves use torch's own generator."""

    module: nn.Module
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    generator: torch.Generator


@dataclass(frozen=True)
class Reached:
    """How far a training came: whole epochs, and the seconds of the clock and of processors that they took."""

    epoch: int = 0
    train_s: float = 0.0
    process_s: float = 0.0


def start_training(module: nn.Module, spec: TrainedModel, *, n_samples: int, seed: int, name: str) -> TrainingState:
    """Adam under a one-cycle schedule of the learning rate."""
    torch.manual_seed(key("layers", seed, name) % 2**63)  # for dropout; the caller has forked this generator
    optimiser = torch.optim.Adam(module.parameters(), lr=spec.learning_rate, weight_decay=spec.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=spec.learning_rate, epochs=spec.epochs, steps_per_epoch=-(-n_samples // spec.batch)
    )
    generator = torch.Generator().manual_seed(key("training", seed, name) % 2**63)
    return TrainingState(module, optimiser, schedule, generator)


def run_epoch(state: TrainingState, loss_of: Loss, x: Tensor, y: Tensor, *, batch: int) -> float:
    """Every sample once, in a new order; the mean loss."""
    state.module.train()
    total = 0.0
    order = torch.randperm(len(x), generator=state.generator)
    for start in range(0, len(x), batch):
        rows = order[start : start + batch]
        loss = loss_of(state.module, x[rows], y[rows], state.generator)
        state.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        state.optimiser.step()
        state.schedule.step()
        total += loss.item() * len(rows)
    return total / len(x)


def write_checkpoint(path: Path, state: TrainingState, identity: str, reached: Reached) -> None:
    """Everything that is needed to resume, as plain tensors and JSON."""
    optimiser = state.optimiser.state_dict()
    tensors = {f"module/{name}": tensor for name, tensor in state.module.state_dict().items()}
    for number, moments in optimiser["state"].items():
        tensors |= {f"optimiser/{number}/{name}": tensor for name, tensor in moments.items()}
    tensors["generator"] = state.generator.get_state()
    tensors["layers"] = torch.get_rng_state()
    note = {
        "identity": _full(identity),
        "epoch": str(reached.epoch),
        "train_s": repr(reached.train_s),
        "train_process_s": repr(reached.process_s),
        "groups": json.dumps(optimiser["param_groups"]),
        "schedule": json.dumps(state.schedule.state_dict()),
    }
    write_tensors(path, tensors, note)


def resume(path: Path, state: TrainingState, identity: str) -> Reached:
    """Restore the state of a checkpoint; one that is missing, damaged or of another model counts as none."""
    try:
        with safe_open(path, framework="pt") as file:
            note: dict[str, str] = file.metadata() or {}
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError):
        return Reached()
    weights = _below("module/", tensors)
    if note.get("identity") != _full(identity) or _shapes(weights) != _shapes(state.module.state_dict()):
        return Reached()
    moments: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _below("optimiser/", tensors).items():
        number, _, kind = name.partition("/")
        moments.setdefault(int(number), {})[kind] = tensor
    state.module.load_state_dict(weights)
    state.optimiser.load_state_dict({"state": moments, "param_groups": json.loads(note["groups"])})
    state.schedule.load_state_dict(json.loads(note["schedule"]))
    state.generator.set_state(tensors["generator"])
    torch.set_rng_state(tensors["layers"])
    return Reached(int(note["epoch"]), float(note["train_s"]), float(note.get("train_process_s", "nan")))


def _full(identity: str) -> str:
    return f"{identity} torch {torch.__version__}"


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _shapes(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: tensor.shape for name, tensor in weights.items()}
