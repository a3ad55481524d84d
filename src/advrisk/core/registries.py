"""All registries together, so that `plan` can be given them without importing the parts."""

from dataclasses import dataclass, fields
from typing import Any

from advrisk.core.errors import RegistryError
from advrisk.core.names import did_you_mean
from advrisk.core.registry import Registry
from advrisk.core.traits import (
    AttackTraits,
    CorruptionTraits,
    DefenceTraits,
    DetectorTraits,
    MeasureTraits,
    ObjectiveTraits,
    SourceTraits,
    TrainingTraits,
)


@dataclass(frozen=True)
class Registries:
    """One registry per kind of part."""

    attacks: Registry[AttackTraits]
    corruptions: Registry[CorruptionTraits]
    data: Registry[SourceTraits]
    defences: Registry[DefenceTraits]
    detectors: Registry[DetectorTraits]
    measures: Registry[MeasureTraits]
    models: Registry[SourceTraits]
    objectives: Registry[ObjectiveTraits]
    presets: Registry[SourceTraits]
    training: Registry[TrainingTraits]

    def of_kind(self, kind: str) -> Registry[Any]:
        """The registry of a kind given by name."""
        kinds = [field.name for field in fields(self)]
        if kind not in kinds:
            raise RegistryError(f"no kind of part called {kind!r}; {did_you_mean(kind, kinds)}")
        registry: Registry[Any] = getattr(self, kind)
        return registry
