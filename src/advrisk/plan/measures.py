"""Configured measures from the entries of `measures`: parts by name, bound parameters, expanded grids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.core.mistakes import Mistakes
from advrisk.core.registries import Registries
from advrisk.core.traits import gives
from advrisk.plan.arms import readable_id
from advrisk.plan.card import ModelCard
from advrisk.plan.detectors import detector_id
from advrisk.plan.grids import grid
from advrisk.study import Loc, MeasureSpec, StudySpec


@dataclass(frozen=True)
class ConfiguredMeasure:
    """A measure with all its parameters. `id`, its name in the ledger, is a readable name, `@`, and a digest."""

    id: str
    name: str
    params: Mapping[str, Any]
    loc: Loc  # in the study
    samples: int | None = None  # the number of first samples of the evaluation split; None: all

    @property
    def readable(self) -> str:
        return self.id.rpartition("@")[0]


def expand_measures(study: StudySpec, registries: Registries) -> list[ConfiguredMeasure]:
    """Every measure of a study, each once: one that is named twice has the larger number of samples."""
    expanded: dict[str, ConfiguredMeasure] = {}
    mistakes = Mistakes()
    for index, spec in enumerate(study.measures):
        loc: Loc = ("measures", index)
        with mistakes.collect(), study.where.at(loc):
            for one in _configured(spec, registries, study, loc):
                expanded[one.id] = _larger(one, expanded.get(one.id, one))
    mistakes.refuse()
    return list(expanded.values())


def refuse_measures(study: StudySpec, registries: Registries, models: Sequence[ModelCard]) -> None:
    """Refuse measures that are unknown, or that a model cannot answer."""
    for one in expand_measures(study, registries):
        needs = registries.measures.get(one.name).traits.needs
        for model in models:
            if not model.surrogate and not gives(model.capability, needs):
                problem = f"{one.name} needs {needs} of a model, but {model.name} gives {model.capability} only"
                raise study.where.error(one.loc, f"{problem}; remove it, or that model")


def _configured(spec: MeasureSpec, registries: Registries, study: StudySpec, loc: Loc) -> list[ConfiguredMeasure]:
    part = registries.measures.get(spec.name)
    configured = []
    for params in grid(spec.params, part):
        bound = part.bind(params, folder=study.where.folder, beside=["name", "samples"])
        decisive = {"name": part.name, "version": part.version, "params": bound}
        full = detector_id(readable_id(part, [], bound), decisive)
        configured.append(ConfiguredMeasure(full, part.name, bound, loc, spec.samples))
    return configured


def _larger(one: ConfiguredMeasure, other: ConfiguredMeasure) -> ConfiguredMeasure:
    return one if one.samples is None or (other.samples is not None and one.samples > other.samples) else other
