"""Which classifiers benchmarks run on: those of $ADVRISK_ZOO on images of $ADVRISK_DATA, or the demo's without them."""

import os
from pathlib import Path
from typing import Any

from bench.cells import DIGITS
from studies.zoo import registered

DEMO = ("plain", "noise-augmented", "pgd-trained", "trades")
_DATA = {"mnist": "mnist", "fmnist": "fashion-mnist", "cifar10": "cifar10"}


def folder() -> Path | None:
    """Where the classifiers lie, if both folders are named."""
    named = os.environ.get("ADVRISK_ZOO")
    return Path(named) if named and os.environ.get("ADVRISK_DATA") else None


def data_and_model(name: str) -> dict[str, dict[str, Any]]:
    """Those of a study: a classifier of the folders, or the demo's model of that name."""
    if name in DEMO:
        return {"data": DIGITS, "model": {"source": "demo", "name": name}}
    data = {"source": _DATA[registered()[name]["dataset"]]}
    return {"data": data, "model": {"source": "torch", "factory": "studies.zoo:net", "args": {"name": name}}}
