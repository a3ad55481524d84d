"""What lies beside the ledger in a run's folder."""

import json
from pathlib import Path
from typing import Any

from advrisk.core.extent import Extent
from advrisk.core.labels import NUMBERED, Labels

STUDY_FILE = "study.yaml"  # the study as it was understood
EVASION_FILE = "evasion.json"  # a copy of the evasion curve that the study names
ANSWERS_FILE = "answers.sqlite"  # what people answered, see `advrisk.answers`
DATA_FILE = "data.json"  # samples that the data set still has, how far apart inputs can be, names of classes, features


def data_text(samples_left: int, extent: Extent, labels: Labels = NUMBERED) -> str:
    """The content of `data.json`."""
    named = {name: list(names) for name, names in vars(labels).items() if names}
    return json.dumps({"samples_left": samples_left, "extent": extent.as_dict(), **named}) + "\n"


def read_samples_left(folder: Path) -> int | None:
    """Samples of the data set that no split took; None where the run does not say."""
    found = _data(folder).get("samples_left")
    return found if type(found) is int and found >= 0 else None


def read_extent(folder: Path) -> Extent | None:
    """How far apart inputs of the data set can be; None where the run does not say."""
    try:
        return Extent.from_dict(_data(folder)["extent"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def read_labels(folder: Path) -> Labels:
    """What the data set calls its classes and features; empty where the run does not say."""
    return Labels.from_dict(_data(folder))


def _data(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / DATA_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
