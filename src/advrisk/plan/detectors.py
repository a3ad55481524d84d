"""From the lines of `detectors` to configured detectors: names looked up, parameters bound, grids expanded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advrisk.core.digest import digest
from advrisk.core.errors import AdvriskError
from advrisk.core.registries import Registries
from advrisk.core.registry import Part
from advrisk.core.traits import DetectorTraits, gives
from advrisk.plan.arms import grid, readable_id
from advrisk.plan.card import ModelCard
from advrisk.study import DetectorSpec, Loc, StudySpec


@dataclass(frozen=True)
class ConfiguredDetector:
    """A detector with all its parameters. `id` is what stands in the ledger: a readable name, `@`, and a digest."""

    id: str
    name: str
    params: Mapping[str, Any]
    place: Loc  # in the study


def expand_detectors(study: StudySpec, registries: Registries) -> list[ConfiguredDetector]:
    """Every detector of a study, each once."""
    found: dict[str, ConfiguredDetector] = {}
    for index, spec in enumerate(study.detectors):
        place: Loc = ("detectors", index)
        try:
            for one in _configured(spec, registries.detectors.get(spec.name), study.where.folder, place):
                found.setdefault(one.id, one)
        except AdvriskError as error:
            raise study.where.error(place, str(error)) from None
    return list(found.values())


def detector_id(readable: str, decisive: Any) -> str:
    """The readable name and a short digest of everything that decides a score but the model."""
    return f"{readable}@{digest(decisive)[:8]}"


def refuse_detectors(study: StudySpec, registries: Registries, models: Sequence[ModelCard]) -> None:
    """Detectors that cannot score: for want of inputs, or of what a model answers."""
    configured = expand_detectors(study, registries)
    if configured and study.keep_inputs == "none":
        found = "`none` keeps no input, but `detectors` score those that succeeded; say `keep_inputs: successful`"
        raise study.where.error(("keep_inputs",), found)
    for one in configured:
        traits = registries.detectors.get(one.name).traits
        for model in models:
            if model.surrogate:
                continue
            if not gives(model.capability, traits.needs):
                found = f"{one.name} needs {traits.needs} of a model, but {model.name} gives {model.capability} only"
                raise study.where.error(one.place, f"{found}; remove it, or that model")
            if traits.images and not model.takes_images:
                found = f"{one.name} is for images (channels × height × width), which {model.name} does not take"
                raise study.where.error(one.place, found)


def _configured(spec: DetectorSpec, part: Part[DetectorTraits], folder: Path, place: Loc) -> list[ConfiguredDetector]:
    bound = [part.bind(params, folder=folder, beside=["name"]) for params in grid(spec.params, part)]
    return [
        ConfiguredDetector(
            detector_id(
                readable_id(part, [], params),
                {"name": part.name, "version": part.version, "params": _plain(params)},
            ),
            part.name,
            params,
            place,
        )
        for params in bound
    ]


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in params.items()}
