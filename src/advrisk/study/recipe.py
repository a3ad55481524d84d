"""A training recipe as the user writes it: one YAML file, several models that differ in training."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr

from advrisk.study.fields import Identifier, Number, Open, PositiveInt, Seed, Strict, validated
from advrisk.study.source import Source, read_yaml


class TrainingSource(Open):
    """Where the training samples come from; the source's parameters beside its name."""

    source: str


class TrainedModel(Open):
    """One model to train: its factory, the method, how long; other keys are the method's parameters."""

    factory: str
    args: dict[str, Any] = Field(default_factory=dict)
    method: str
    epochs: PositiveInt
    batch: PositiveInt = 64
    learning_rate: Annotated[Number, Field(gt=0)] = 1e-3
    weight_decay: Annotated[Number, Field(ge=0)] = 0.0


class RecipeSpec(Strict):
    """What to train, on what, from which seed."""

    name: Identifier
    seed: Seed = 0
    data: TrainingSource
    models: Annotated[dict[Identifier, TrainedModel], Field(min_length=1)]

    _where: Source = PrivateAttr(default_factory=Source)

    @property
    def where(self) -> Source:
        """The file and lines this recipe was read from."""
        return self._where


def load_recipe(path: str | Path) -> RecipeSpec:
    """Read and check a recipe file."""
    data, source = read_yaml(Path(path))
    recipe = validated(RecipeSpec, data, source)
    recipe._where = source
    return recipe
