"""A training recipe as the user writes it: one YAML file, several models that differ in training."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from advrisk.study.fields import Identifier, Number, Open, PositiveInt, Seed, Strict, validated
from advrisk.study.source import Source, read_yaml


class TrainingSource(Open):
    """Where the training samples come from; the source's parameters beside its name.

    `train` is how many of the samples to train on; all, if it is not said.
    """

    source: str
    train: PositiveInt | None = None


class Augmentation(Strict):
    """How far each training image is moved, and whether it is flipped, at random, anew in every epoch."""

    rotation_deg: Annotated[Number, Field(ge=0, le=180)] = 0.0
    shift_pct: Annotated[Number, Field(ge=0, le=50)] = 0.0
    scale_pct: Annotated[Number, Field(ge=0, lt=100)] = 0.0
    horizontal_flip: bool = False
    vertical_flip: bool = False

    @model_validator(mode="after")
    def _moves(self) -> "Augmentation":
        if not any(self.model_dump().values()):
            raise ValueError(
                "found nothing above 0; say rotation_deg, shift_pct, scale_pct, horizontal_flip or vertical_flip, or "
                "leave it out"
            )
        return self


class TrainedModel(Open):
    """One model to train: its factory, the method, how long; other keys are the method's parameters."""

    factory: str
    args: dict[str, Any] = Field(default_factory=dict)
    method: str
    epochs: PositiveInt
    batch: PositiveInt = 64
    learning_rate: Annotated[Number, Field(gt=0)] = 1e-3
    weight_decay: Annotated[Number, Field(ge=0)] = 0.0
    augment: Augmentation | None = None


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
