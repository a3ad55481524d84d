"""What lies beside the ledger in a run's folder."""

import json
from pathlib import Path

STUDY_FILE = "study.yaml"  # the study as it was understood
EVASION_FILE = "evasion.json"  # a copy of the evasion curve that the study names
DATA_FILE = "data.json"  # how many samples the data set has beyond those of the study


def data_text(samples_left: int) -> str:
    """The content of `data.json`."""
    return json.dumps({"samples_left": samples_left}) + "\n"


def read_samples_left(folder: Path) -> int | None:
    """Samples of the data set that no split took; None where the run does not say."""
    try:
        found = json.loads((folder / DATA_FILE).read_text(encoding="utf-8"))["samples_left"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if type(found) is int and found >= 0 else None
