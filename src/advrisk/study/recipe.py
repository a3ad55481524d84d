"""A training recipe as the user writes it: one YAML file, several models that differ in training."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, model_validator

from advrisk.study.fields import Identifier, Number, Open, PositiveInt, Seed, Strict, validated
from advrisk.study.source import Source, read_yaml


class TrainingSource(Open):
    """The source of the training samples, with its parameters.

    `train` is the number of samples to train on; by default all.
    """

    source: str
    train: PositiveInt | None = None


class Augmentation(Strict):
    """Limits of the random moves of each training image, and whether it is flipped; new in every epoch."""

    rotation_deg: Annotated[Number, Field(ge=0, le=180)] = 0.0
    shift_pct: Annotated[Number, Field(ge=0, le=50)] = 0.0
    scale_pct: Annotated[Number, Field(ge=0, lt=100)] = 0.0
    horizontal_flip: bool = False
    vertical_flip: bool = False

    @model_validator(mode="after")
    def _moves(self) -> "Augmentation":
        if not any(self.model_dump().values()):
            raise ValueError(
                "found nothing above 0; set rotation_deg, shift_pct, scale_pct, horizontal_flip or vertical_flip, or "
                "remove it"
            )
        return self


class TrainedModel(Open):
    """One model to train: factory, method, epochs; other keys are the method's parameters."""

    factory: str
    args: dict[str, Any] = Field(default_factory=dict)
    method: str
    epochs: PositiveInt
    batch: PositiveInt = 64
    learning_rate: Annotated[Number, Field(gt=0)] = 1e-3
    weight_decay: Annotated[Number, Field(ge=0)] = 0.0
    augment: Augmentation | None = None


class RecipeSpec(Strict):
    """The models to train, the training data, and the seed."""

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
