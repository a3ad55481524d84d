"""Training models from a recipe file: seeded, so that anyone can train them again."""

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from advrisk.core.digest import digest
from advrisk.core.errors import AdvriskError, DataError, RunError
from advrisk.core.names import did_you_mean
from advrisk.core.registries import Registries
from advrisk.core.seeds import key
from advrisk.core.version import VERSION
from advrisk.parts.data import Dataset
from advrisk.parts.models import checked_model
from advrisk.parts.models.torch_module import build, from_module
from advrisk.run.loading import load_data, search_beside
from advrisk.run.tensors import write_tensors
from advrisk.study import RecipeSpec, TrainedModel


@dataclass(frozen=True)
class Trained:
    """A model that was trained, or was there already."""

    name: str
    path: Path
    train_s: float
    train_samples: int
    test_accuracy: float | None
    skipped: bool = False


def train_models(
    recipe: RecipeSpec,
    folder: Path,
    registries: Registries,
    *,
    only: list[str] | None = None,
    again: bool = False,
    on_epoch: Callable[[str, int, int, float], None] = lambda *_: None,
) -> list[Trained]:
    """Train every model of a recipe into `folder/<model>.safetensors`; one that is there already is skipped.

    `on_epoch` is called with the model, the epoch, the number of epochs and the mean loss.
    """
    search_beside(recipe.where)
    data = load_data(recipe.data, registries, recipe.where)
    jobs = [_job(recipe, name, data, registries) for name in only or recipe.models]  # every mistake before any work
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made: {error.strerror}") from None
    trained = []
    for job in jobs:
        path = folder / f"{job.name}.safetensors"
        before = None if again else _read_note(path)
        skipped = before is not None and before.get("recipe") == job.identity
        note = before if before is not None and skipped else _train_one(job, data, path, on_epoch)
        trained.append(_trained(job.name, path, note, skipped=skipped))
    return trained


@dataclass(frozen=True)
class _Job:
    """A model to train, checked: the method and its settings, and a module that takes the data."""

    name: str
    spec: TrainedModel
    seed: int
    method: Callable[..., Tensor]
    settings: dict[str, Any]
    module: nn.Module
    identity: str


def _job(recipe: RecipeSpec, name: str, data: Dataset, registries: Registries) -> _Job:
    if name not in recipe.models:
        raise recipe.where.error(("models",), f"no model called {name!r}; {did_you_mean(name, recipe.models)}")
    spec = recipe.models[name]
    identity = digest([recipe.seed, recipe.data.model_dump(), name, spec.model_dump(), data.name])
    try:
        part = registries.training.get(spec.method)
        settings = part.bind(spec.params)
        if spec.method != "plain" and (np.min(data.low), np.max(data.high)) != (0.0, 1.0):
            raise DataError(f"{spec.method} perturbs inputs within [0, 1], but {data.name} has other bounds")
        with torch.random.fork_rng(devices=()):
            module = build(spec.factory, spec.args)
            _initialise(module, key("weights", recipe.seed, name))
        checked_model(name, from_module(module), data)
    except AdvriskError as error:
        raise recipe.where.error(("models", name), str(error)) from None
    return _Job(name, spec, recipe.seed, part.function, settings, module, identity)


def _train_one(
    job: _Job, data: Dataset, path: Path, on_epoch: Callable[[str, int, int, float], None]
) -> dict[str, str]:
    x, y = _split(data, "train")
    began = time.perf_counter()
    generator = torch.Generator().manual_seed(key("training", job.seed, job.name) % 2**63)
    for epoch, loss in enumerate(_epochs(job, x, y, generator), start=1):
        if not math.isfinite(loss):
            raise RunError(f"{job.name}: the loss is {loss} after epoch {epoch}; a smaller learning_rate may help")
        on_epoch(job.name, epoch, job.spec.epochs, loss)
    note = {
        "train_s": f"{time.perf_counter() - began:.3f}",
        "train_samples": str(len(x)),
        "recipe": job.identity,
        "settings": json.dumps(job.spec.model_dump() | job.settings, sort_keys=True),
        "version": VERSION,
    }
    accuracy = _test_accuracy(job.module, data)
    if accuracy is not None:
        note["test_accuracy"] = f"{accuracy:.4f}"
    write_tensors(path, job.module.state_dict(), note)
    return note


def _epochs(job: _Job, x: Tensor, y: Tensor, generator: torch.Generator) -> Iterator[float]:
    """Adam under a one-cycle schedule; yields the mean loss of each epoch."""
    spec, module = job.spec, job.module
    module.train()
    steps = -(-len(x) // spec.batch)
    optimiser = torch.optim.Adam(module.parameters(), lr=spec.learning_rate, weight_decay=spec.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=spec.learning_rate, epochs=spec.epochs, steps_per_epoch=steps
    )
    for _ in range(spec.epochs):
        total = 0.0
        order = torch.randperm(len(x), generator=generator)
        for start in range(0, len(x), spec.batch):
            rows = order[start : start + spec.batch]
            loss = job.method(module, x[rows], y[rows], generator, **job.settings)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            total += loss.item() * len(rows)
        yield total / len(x)


def _initialise(module: nn.Module, seed: int) -> None:
    torch.manual_seed(seed % 2**63)
    for layer in module.modules():
        reset = getattr(layer, "reset_parameters", None)
        if callable(reset):
            reset()


def _split(data: Dataset, split: str) -> tuple[Tensor, Tensor]:
    if data.split is None:
        chosen = torch.full((len(data.x),), split == "train")
    else:
        chosen = torch.from_numpy(data.split == split)
    if split == "train" and not bool(chosen.any()):
        raise DataError(f"{data.name}: no sample is marked `train`")
    return torch.from_numpy(data.x)[chosen], torch.from_numpy(data.y)[chosen]


def _test_accuracy(module: nn.Module, data: Dataset) -> float | None:
    x, y = _split(data, "test")
    if not len(x):
        return None
    module.eval()
    with torch.no_grad():
        predicted = torch.cat([module(x[start : start + 512]).argmax(1) for start in range(0, len(x), 512)])
    return float((predicted == y).double().mean())


def _read_note(path: Path) -> dict[str, str] | None:
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError):
        return None


def _trained(name: str, path: Path, note: dict[str, str], *, skipped: bool = False) -> Trained:
    accuracy = float(note["test_accuracy"]) if "test_accuracy" in note else None
    return Trained(name, path, float(note["train_s"]), int(note["train_samples"]), accuracy, skipped)
