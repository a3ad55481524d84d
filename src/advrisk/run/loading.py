"""A study's data and models in memory, checked against each other."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from advrisk.core.containment import Containment
from advrisk.core.digest import digest, digest_array
from advrisk.core.errors import DataError, ModelError
from advrisk.core.mistakes import Mistakes
from advrisk.core.registries import Registries
from advrisk.core.registry import Part
from advrisk.engine import Model, Space
from advrisk.parts.data import Dataset
from advrisk.parts.defences import defended_model
from advrisk.parts.models import checked_model
from advrisk.parts.models.torch_module import from_module
from advrisk.plan import DefendedModel, expand_defences, tags_of
from advrisk.study import DataSpec, ModelSpec, Source, StudySpec, TrainingSource

OBJECT = "object"  # the source of a model that is a Python object


@dataclass(frozen=True)
class Material:
    """The material of cells: samples, their space, and models."""

    data: Dataset
    space: Space
    models: Mapping[str, Model]
    rows: Mapping[str, int]  # sample id -> row of data.x
    surrogates: frozenset[str] = frozenset()  # models that are not assessed
    tags: Mapping[str, Mapping[str, str | int | float | bool]] = field(default_factory=dict)  # model -> its tags

    @property
    def space_digest(self) -> str:
        """A digest of the space; part of every recipe."""
        parts = [self.space.low, self.space.high, self.space.scale]
        masks = [self.space.immutable, self.space.integer, self.space.category]
        arrays = [None if part is None else digest_array(part.cpu().numpy()) for part in parts + masks]
        return digest(arrays)


def load_material(
    study: StudySpec,
    registries: Registries,
    *,
    device: str,
    containment: Containment,
    data: Dataset | None = None,
    modules: Mapping[str, nn.Module] | None = None,
) -> Material:
    """Load a study's data and models; every mistake is refused with its location in the file.

    `data` are the samples, if the process has already loaded them.
    """
    search_beside(study.where)
    data = data or load_data(study.data, registries, study.where)
    space = _space(data).to(device)
    models, mistakes = {}, Mistakes()
    for name in study.models:
        with mistakes.collect():
            module = (modules or {}).get(name)
            models[name] = load_model(name, study, registries, data, device, containment, module=module)
    mistakes.refuse()
    defended = expand_defences(study, registries)
    for one in defended:
        with containment.around(f"{one.name} ({one.defence})"):
            models[one.name] = _defended(one, models[one.of], study, registries)
    surrogates = {name for name, spec in study.models.items() if spec.surrogate}
    surrogates |= {one.name for one in defended if one.surrogate}
    rows = {name: row for row, name in enumerate(data.ids)}
    tags = tags_of(study, defended, {name: model.precision for name, model in models.items()})
    return Material(data, space, models, rows, frozenset(surrogates), tags)


def _defended(one: DefendedModel, inner: Model, study: StudySpec, registries: Registries) -> Model:
    with study.where.at(one.loc):
        return defended_model(one.name, inner, registries.defences.get(one.defence), one.params)


def search_beside(where: Source) -> None:
    """Let factories be found in the folder of the file that names them."""
    folder = str(where.folder.resolve())
    if where.path is not None and folder not in sys.path:
        sys.path.append(folder)  # last: nothing there can stand in for an installed package


def load_data(spec: DataSpec | TrainingSource, registries: Registries, where: Source) -> Dataset:
    """The samples that a study or recipe names."""
    with where.at(("data",)):
        source = registries.data.get(spec.source)
        settings = source.bind(spec.params, folder=where.folder)
        with Containment().around(f"the data source {spec.source}", DataError):
            dataset: Dataset = source.function(**settings)
    return dataset


def choose_device(name: str) -> str:
    """The device to compute on: `auto` takes an accelerator where there is one."""
    if name == "auto":
        device = str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else "cpu"
        return "cpu" if device.startswith("mps") else device  # mps has no float64, which attacks need
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return name


def load_model(
    name: str,
    study: StudySpec,
    registries: Registries,
    data: Dataset,
    device: str,
    containment: Containment,
    *,
    module: nn.Module | None = None,
) -> Model:
    """A model of a study, checked with fixed inputs; `module` is the Python object of a model without a file."""
    with study.where.at(("models", name)), containment.around(name):
        return _load_model(name, study.models[name], study.where, registries, data, device, module)


def _load_model(
    name: str,
    spec: ModelSpec,
    where: Source,
    registries: Registries,
    data: Dataset,
    device: str,
    module: nn.Module | None,
) -> Model:
    if spec.source == OBJECT:
        if not isinstance(module, nn.Module):
            given = "nothing" if module is None else type(module).__name__
            raise ModelError(
                f"source: {OBJECT} needs a torch module, run(…, modules={{{name!r}: …}}); {given} was given"
            )
        settings = Part("models", OBJECT, from_module, 1, None).bind(spec.params)
        loaded = from_module(module, **settings)
    else:
        source = registries.models.get(spec.source)
        settings = source.bind(spec.params, folder=where.folder, beside=ModelSpec.model_fields)
        loaded = source.function(**settings)
    model = checked_model(name, loaded, data, device=device, precision=spec.precision, batch=spec.batch)
    return replace(model, **spec.training)


def _space(data: Dataset) -> Space:
    def tensor(value: Any, dtype: type) -> torch.Tensor:
        return torch.from_numpy(np.asarray(value, dtype=dtype).copy())

    masks = {name: tensor(mask, np.bool_) for name, mask in data.masks.items()}
    return Space(*(tensor(value, np.float32) for value in (data.low, data.high, data.scale)), **masks)
