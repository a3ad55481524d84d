"""Study and Run as users import them: a thin facade over the rooms below."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from advrisk.api.run import Run
from advrisk.api.study import Study
from advrisk.assess.status import Status
from advrisk.core.extras import extras_named

if TYPE_CHECKING:
    from advrisk.run.training.models import Trained

__all__ = ["Run", "Status", "Study", "train"]


@extras_named("train")
def train(
    recipe: str | Path,
    folder: str | Path,
    *,
    only: list[str] | None = None,
    again: bool = False,
    on_epoch: Callable[[str, int, int, float], None] = lambda *_: None,
) -> "list[Trained]":
    """Train the models of a recipe file into a folder; those that are there already are skipped."""
    from advrisk.ledger.sync.files import output_folder
    from advrisk.parts import REGISTRIES
    from advrisk.run.training.models import train_models
    from advrisk.study import load_recipe

    return train_models(
        load_recipe(recipe), output_folder(folder, "weights"), REGISTRIES, only=only, again=again, on_epoch=on_epoch
    )
