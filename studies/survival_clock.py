"""Processor seconds that training takes, measured on one epoch of one network of each kind.

    python -m studies.survival_clock RECIPE --out FILE

`advrisk train` notes seconds by the clock, which other work on the machine stretches; networks of a kind can differ by
much. Here the second of two epochs is timed, in seconds of the processor, and taken times the recipe's epochs.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from advrisk.core.errors import AdvriskError, RunError
from advrisk.parts import REGISTRIES
from advrisk.run.training.models import train_models
from advrisk.study import RecipeSpec, load_recipe
from studies.text import table

COLUMNS = ("networks", "epochs", "epoch_s", "train_s_per_sample")


def main(words: Sequence[str] | None = None) -> int:
    """Parse arguments, print and write."""
    parser = argparse.ArgumentParser(prog="python -m studies.survival_clock", description=__doc__.splitlines()[0])
    parser.add_argument(
        "recipe", type=Path, metavar="RECIPE", help="a recipe whose networks are called <kind>-<number>"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table to this CSV file, too")
    given = parser.parse_args(words)
    try:
        rows = clocked(load_recipe(given.recipe))
        print("\n".join(table(COLUMNS, rows)))
        if given.out:
            _write(given.out, rows)
            print(f"wrote {given.out}")
    except AdvriskError as error:
        print(f"studies.survival_clock: {error}", file=sys.stderr)
        return 2
    return 0


def clocked(recipe: RecipeSpec) -> list[list[str]]:
    """A row for each kind of network."""
    first = {kind_of(name): name for name in reversed(recipe.models)}
    rows = []
    for kind, name in reversed(first.items()):
        epochs = recipe.models[name].epochs
        seconds, samples = _epoch(recipe, name)
        rows.append([kind, str(epochs), f"{seconds:.3f}", f"{epochs * seconds / samples:.6f}"])
    return rows


def kind_of(name: str) -> str:
    """`d8-plain-3` is a `d8-plain`."""
    return name.rpartition("-")[0] or name


def train_seconds(path: Path) -> dict[str, float]:
    """Kind -> processor seconds of training for each sample, from a file that this program wrote."""
    remedy = "make a table of training seconds with `python -m studies.survival_clock`"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            found = {row[COLUMNS[0]]: float(row[COLUMNS[-1]]) for row in csv.DictReader(file)}
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}; {remedy}") from None
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{path}: needs the columns {COLUMNS[0]} and {COLUMNS[-1]}, with numbers; {remedy}") from None
    if not found:
        raise RunError(f"{path}: has no rows; {remedy}")
    return found


def _epoch(recipe: RecipeSpec, name: str) -> tuple[float, int]:
    """Processor seconds of the second epoch, and the samples of an epoch."""
    short = recipe.model_copy(update={"models": {name: recipe.models[name].model_copy(update={"epochs": 2})}})
    short._where = recipe.where
    ends: list[float] = []

    def note(*_: object) -> None:
        ends.append(time.process_time())

    with tempfile.TemporaryDirectory() as folder:
        (trained,) = train_models(short, Path(folder), REGISTRIES, on_epoch=note)
    return ends[1] - ends[0], trained.train_samples


def _write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
