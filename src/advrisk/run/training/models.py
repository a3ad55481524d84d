"""Training models from a recipe file: seeded, so that anyone can train them again."""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from advrisk.core.containment import Containment, exits_as_errors
from advrisk.core.digest import digest
from advrisk.core.errors import AdvriskError, DataError, ModelError, RunError, StudyError
from advrisk.core.extent import Extent
from advrisk.core.names import did_you_mean
from advrisk.core.registries import Registries
from advrisk.core.registry import Part
from advrisk.core.seeds import key
from advrisk.core.traits import TrainingTraits
from advrisk.core.version import VERSION
from advrisk.parts.data import Dataset
from advrisk.parts.models import checked_model
from advrisk.parts.models.torch_module import build, from_module, load_weights
from advrisk.parts.training import augmented
from advrisk.run.loading import load_data, search_beside
from advrisk.run.tensors import write_tensors
from advrisk.run.training.loop import Loss, Reached, resume, run_epoch, start_training, write_checkpoint
from advrisk.study import RecipeSpec, TrainedModel

OnEpoch = Callable[[str, int, int, float], None]

_UNIT = Extent(0.0, 1.0, {"linf": 1.0})  # what recipes train on


@dataclass(frozen=True)
class Trained:
    """A model that was trained, or was there already."""

    name: str
    path: Path
    train_s: float
    train_process_s: float | None  # of all processors; None for weights of before they were counted
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
    on_epoch: OnEpoch = lambda *_: None,
) -> list[Trained]:
    """Train every model of a recipe into `folder/<model>.safetensors`; one that is there already is skipped.

    A model that learns from others comes after them; `only` takes these in if they are not there. One whose training
    was stopped goes on after its last whole epoch. `on_epoch` is called with the model, the epoch, the number of
    epochs and the mean loss.
    """
    search_beside(recipe.where)
    data = load_data(recipe.data, registries, recipe.where)
    samples = _training_samples(recipe, data)
    jobs = _jobs(recipe, only or list(recipe.models), data, registries)  # every mistake before any work
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made: {error.strerror}") from None
    trained = []
    for job in jobs.values():
        path = folder / f"{job.name}.safetensors"
        checkpoint = folder / f".{job.name}.checkpoint"  # no model's name begins with a dot
        anew = again and job.name in (only or recipe.models)
        there = not anew and (_read_note(path) or {}).get("recipe") == job.identity
        if there or anew:
            checkpoint.unlink(missing_ok=True)
        if not there:
            try:
                others = {name: _frozen(jobs[name], folder) for name in job.learns_from}
                with exits_as_errors(job.name):
                    note = _train_one(job, others, samples, checkpoint, on_epoch)
                    write_tensors(path, job.module.state_dict(), note | _tested(job.module, data))
            except ModelError as error:
                raise recipe.where.error(("models", job.name), str(error)) from None
            except (OSError, SafetensorError) as error:
                raise RunError(f"{folder}: {job.name} cannot be stored there: {error}") from None
            checkpoint.unlink(missing_ok=True)
        trained.append(_trained(job.name, path, skipped=there))
    return trained


@dataclass(frozen=True)
class _Job:
    """A model to train, checked: the method and its settings, and a module that takes the data."""

    name: str
    spec: TrainedModel
    seed: int
    part: Part[TrainingTraits]
    settings: Mapping[str, Any]  # other models by their names
    module: nn.Module
    n_classes: int
    identity: str

    @property
    def learns_from(self) -> list[str]:
        """The models that the method is handed."""
        return [name for names in _named(self.part, self.settings).values() for name in names]

    def loss(self, others: Mapping[str, nn.Module]) -> Loss:
        """The loss of one batch."""
        settings = dict(self.settings)
        for parameter in _named(self.part, self.settings):
            given = self.settings[parameter]
            settings[parameter] = others[given] if isinstance(given, str) else tuple(others[name] for name in given)
        method: Loss = partial(self.part.function, **settings)
        if self.spec.augment is None:
            return method
        moves = self.spec.augment.model_dump()
        return lambda module, x, y, generator: method(module, augmented(x, generator, **moves), y, generator)


def _jobs(recipe: RecipeSpec, names: Iterable[str], data: Dataset, registries: Registries) -> dict[str, _Job]:
    """The models of these names and those they learn from, in an order in which they can be trained."""
    jobs: dict[str, _Job] = {}

    def visit(name: str, learners: tuple[str, ...]) -> None:
        if name in learners:
            circle = " from ".join([*learners[learners.index(name) :], name])
            raise recipe.where.error(("models", name), f"learns from itself: {circle}; one must come first")
        if name not in jobs:
            part, settings = _method(recipe, name, registries)
            for other in _others(recipe, name, part, settings):
                visit(other, (*learners, name))
            jobs[name] = _job(recipe, name, part, settings, data, jobs)

    for name in names:
        if name not in recipe.models:
            raise recipe.where.error(("models",), f"no model called {name!r}; {did_you_mean(name, recipe.models)}")
        visit(name, ())
    return jobs


def _method(recipe: RecipeSpec, name: str, registries: Registries) -> tuple[Part[TrainingTraits], dict[str, Any]]:
    spec = recipe.models[name]
    try:
        part = registries.training.get(spec.method)
        return part, part.bind(spec.params, beside=TrainedModel.model_fields)
    except AdvriskError as error:
        raise recipe.where.error(("models", name), str(error)) from None


def _named(part: Part[TrainingTraits], settings: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Parameter -> the models that it names."""
    given = {name: settings[name] for name, parameter in part.parameters.items() if parameter.by_name}
    listed = {name: (one,) if isinstance(one, str) else one for name, one in given.items()}
    return {name: tuple(names) for name, names in listed.items() if names is not None}


def _others(recipe: RecipeSpec, name: str, part: Part[TrainingTraits], settings: Mapping[str, Any]) -> Iterable[str]:
    """The models that a model names, each known to the recipe."""
    for parameter, names in _named(part, settings).items():
        place = ("models", name, parameter)
        if not names:
            raise recipe.where.error(place, "names no model; at least one of this recipe is needed")
        for other in names:
            if other not in recipe.models:
                known = did_you_mean(other, recipe.models)
                raise recipe.where.error(place, f"this recipe has no model called {other!r}; {known}")
        yield from names


def _job(
    recipe: RecipeSpec,
    name: str,
    part: Part[TrainingTraits],
    settings: dict[str, Any],
    data: Dataset,
    earlier: Mapping[str, _Job],
) -> _Job:
    spec = recipe.models[name]
    if part.traits.perturbs and (complaint := _UNIT.complaint(settings.get("eps", 0), "linf")):
        raise recipe.where.error(("models", name, "eps"), complaint)
    try:
        _check_data(part, spec, data)
        with Containment().around(name), torch.random.fork_rng(devices=()):
            module = build(spec.factory, spec.args)
            _initialise(module, key("weights", recipe.seed, name))
            n_classes = checked_model(name, from_module(module), data).n_classes
        others = [earlier[other] for names in _named(part, settings).values() for other in names]
        for other in others:
            if other.n_classes != n_classes:
                raise ModelError(
                    f"knows {n_classes} classes, and {other.name}, from which it learns, {other.n_classes}"
                )
    except AdvriskError as error:
        raise recipe.where.error(("models", name), str(error)) from None
    lines = [recipe.data.model_dump(exclude_none=True), name, spec.model_dump(exclude_none=True)]
    version = [part.version] if part.version > 1 else []  # what the first version of a method made stays as it is
    identity = digest([recipe.seed, *lines, data.name, *version, *(other.identity for other in others)])
    return _Job(name, spec, recipe.seed, part, settings, module, n_classes, identity)


def _check_data(part: Part[TrainingTraits], spec: TrainedModel, data: Dataset) -> None:
    if part.traits.perturbs and (np.min(data.low), np.max(data.high)) != (0.0, 1.0):
        raise DataError(f"{part.name} perturbs inputs within [0, 1], but {data.name} has other bounds")
    if data.n_classes < part.traits.classes:
        raise DataError(f"{part.name} needs {part.traits.classes} classes or more, {data.name} has {data.n_classes}")
    if spec.augment is not None and data.x.ndim != 4:
        raise StudyError(
            f"augment moves images (channels × height × width), but inputs of {data.name} have the shape "
            f"{data.x.shape[1:]}; leave it out"
        )


def _training_samples(recipe: RecipeSpec, data: Dataset) -> tuple[Tensor, Tensor]:
    """The samples marked `train`, or as many of them as are asked for, in an order of the seed and their ids alone."""
    rows = _rows(data, "train")
    wanted = recipe.data.train
    if not rows:
        raise DataError(f"{data.name}: no sample is marked `train`")
    if wanted is not None and wanted > len(rows):
        raise recipe.where.error(("data", "train"), f"{wanted} samples are asked for, but {data.name} has {len(rows)}")
    if wanted is not None:
        rows = sorted(sorted(rows, key=lambda row: key("order", recipe.seed, data.ids[row]))[:wanted])
    return torch.from_numpy(data.x[rows]), torch.from_numpy(data.y[rows])


def _rows(data: Dataset, split: str) -> list[int]:
    if data.split is None:
        return list(range(len(data.x))) if split == "train" else []
    return [int(row) for row in np.flatnonzero(data.split == split)]


def _train_one(
    job: _Job, others: Mapping[str, nn.Module], samples: tuple[Tensor, Tensor], checkpoint: Path, on_epoch: OnEpoch
) -> dict[str, str]:
    """Train a job's module, from its checkpoint if there is one; what there is to note about it."""
    x, y = samples
    loss_of = job.loss(others)
    with torch.random.fork_rng(devices=()):
        state = start_training(job.module, job.spec, n_samples=len(x), seed=job.seed, name=job.name)
        reached = resume(checkpoint, state, job.identity)
        began, process_began = time.perf_counter() - reached.train_s, time.process_time() - reached.process_s
        for epoch in range(reached.epoch + 1, job.spec.epochs + 1):
            loss = run_epoch(state, loss_of, x, y, batch=job.spec.batch)
            if not math.isfinite(loss):
                checkpoint.unlink(missing_ok=True)
                raise RunError(f"{job.name}: the loss is {loss} after epoch {epoch}; a smaller learning_rate may help")
            reached = Reached(epoch, time.perf_counter() - began, time.process_time() - process_began)
            if epoch < job.spec.epochs:
                write_checkpoint(checkpoint, state, job.identity, reached)
            on_epoch(job.name, epoch, job.spec.epochs, loss)
    return {
        "train_s": f"{reached.train_s:.3f}",
        **({"train_process_s": f"{reached.process_s:.3f}"} if math.isfinite(reached.process_s) else {}),
        "train_samples": str(len(x)),
        "recipe": job.identity,
        "settings": json.dumps(job.spec.model_dump(exclude_none=True) | dict(job.settings), sort_keys=True),
        "version": VERSION,
    }


def _frozen(job: _Job, folder: Path) -> nn.Module:
    """A model that is trained, for others to learn from."""
    load_weights(job.module, folder / f"{job.name}.safetensors", job.spec.factory)
    return job.module.eval().requires_grad_(False)


def _initialise(module: nn.Module, seed: int) -> None:
    torch.manual_seed(seed % 2**63)
    for layer in module.modules():
        reset = getattr(layer, "reset_parameters", None)
        if callable(reset):
            reset()


def _tested(module: nn.Module, data: Dataset) -> dict[str, str]:
    """The share of test samples that are classified correctly, where there are any."""
    rows = _rows(data, "test")
    if not rows:
        return {}
    x, y = torch.from_numpy(data.x[rows]), torch.from_numpy(data.y[rows])
    module.eval()
    with torch.no_grad():
        predicted = torch.cat([module(x[start : start + 512]).argmax(1) for start in range(0, len(x), 512)])
    return {"test_accuracy": f"{float((predicted == y).double().mean()):.4f}"}


def _read_note(path: Path) -> dict[str, str] | None:
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError):
        return None


def _trained(name: str, path: Path, *, skipped: bool) -> Trained:
    note = _read_note(path) or {}
    accuracy = float(note["test_accuracy"]) if "test_accuracy" in note else None
    process_s = float(note["train_process_s"]) if "train_process_s" in note else None
    return Trained(name, path, float(note["train_s"]), process_s, int(note["train_samples"]), accuracy, skipped)
