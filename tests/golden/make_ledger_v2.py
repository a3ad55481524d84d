"""Makes tests/golden/ledger-v2: the run of ledger-v1, gone on with as schema version 2 wrote it.

    python tests/golden/make_ledger_v2.py tests/golden/ledger-v2

FAB against both models, and PGD against `hardened` by a new recipe. The committed files stay as they are when the
schema changes; this file then only tells where they came from.
"""

import json
import shutil
import sys
import uuid
from pathlib import Path
from unittest import mock

import pyarrow as pa

from advrisk.ledger import Ledger, table_from

OLD = Path(__file__).parent / "ledger-v1"
SAMPLES = ["digits/000001", "digits/000002", "digits/000003", "digits/000004"]
PGD, FAB = "pgd-linf-0.1-ace", "fab-linf"


def arms(*made: tuple[str, str, str]) -> pa.Table:
    """(model, arm, recipe) as the present study has them."""
    model, arm, recipe = zip(*made, strict=True)
    n = len(made)
    columns = {"model": model, "arm": arm, "recipe": recipe, "origin": ["study"] * n, "kind": ["attack"] * n}
    columns |= {"norm": ["linf"] * n, "repeats": [1] * n, "params": [json.dumps({})] * n}
    return table_from("arms", columns)


def cell(
    model: str, arm: str, recipe: str, distances: list[float | None], **trust: float | None
) -> dict[str, pa.Table]:
    """A finished cell of four samples; a distance for each success, None for what resisted."""
    n, name = len(SAMPLES), f"cell-{recipe}-0"
    outcomes = {
        "cell": [name] * n,
        "model": [model] * n,
        "arm": [arm] * n,
        "sample": SAMPLES,
        "kind": ["attack"] * n,
        "norm": ["linf"] * n,
        "repeat": [0] * n,
        "criterion": ["target"] * n,
        "target": [5, 6, 7, 8],
        "outcome": ["resisted" if distance is None else "success" for distance in distances],
        "d_linf": [0.1 if distance is None else distance for distance in distances],
    }
    row = {"cell": name, "recipe": recipe, "run": "run-3", "model": model, "arm": arm, "repeat": 0}
    row |= {"n_samples": n, "n_errors": 0, "flags": ["still-gaining"], **trust}
    return {
        "outcomes": table_from("outcomes", outcomes),
        "cells": table_from("cells", {column: [value] for column, value in row.items()}),
    }


def make(folder: Path) -> None:
    """Write the ledger: four more segments, whose names do not depend on chance."""
    shutil.copytree(OLD, folder)
    with mock.patch("uuid.uuid4", side_effect=[uuid.UUID(int=number << 96) for number in (5, 6, 7, 8)]):
        ledger = Ledger.open(folder)
        ledger.append({"arms": arms(("plain", FAB, "r-fab"), ("hardened", FAB, "r-fab-2"), ("hardened", PGD, "r-new"))})
        ledger.append(cell("plain", FAB, "r-fab", [0.04, None, 0.03, 0.02], zero_gradients=0.25, still_gaining=0.5))
        ledger.append(cell("hardened", FAB, "r-fab-2", [None] * 4, zero_gradients=1.0))
        ledger.append(cell("hardened", PGD, "r-new", [None, 0.06, 0.07, None], not_increasing=0.0))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
