"""A run of small pictures, made by hand: 40 samples, two models, one arm, a few resisted or wrong from the start."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RunError
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_inputs
from advrisk.web import labelling as labelling_module
from advrisk.web.fitter import result_or_reason
from advrisk.web.labelling import Labelling, Wishes, open_labelling

N = 40
MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    def make(
        name: str = "run",
        *,
        shape: tuple[int, ...] = (1, 8, 8),
        keep: bool = True,
        top: float = 0.8,
        succeed: bool = True,
        models: tuple[str, ...] = ("plain", "hard"),
        norm: str = "linf",
        prefix: str = "s",
    ) -> Path:
        folder = tmp_path / name
        rng = np.random.default_rng(0)
        samples = [f"{prefix}{n:02d}" for n in range(N)]
        x = rng.uniform(0.2, top, (N, *shape)).astype(np.float32)
        tables: dict[str, Any] = {
            "samples": {
                "sample": samples, "label": [0] * N, "split": ["evaluate"] * N, "weight": [1.0] * N,
                "shard": ["shard"] * N, "place": list(range(N)),
            },
            "arms": {
                "model": models, "arm": ["push"] * len(models), "recipe": ["r"] * len(models),
                "origin": ["import"] * len(models), "kind": ["attack"] * len(models), "norm": [norm] * len(models),
                "repeats": [1] * len(models),
            },
        }  # fmt: skip
        ledger = Ledger.open(folder, create=True)
        ledger.append({name: table_from(name, columns) for name, columns in tables.items()})
        if keep:
            write_inputs(shard_inputs(folder, "shard"), samples, x)
        for number, model in enumerate(models):
            size = np.geomspace(0.01, 0.2 * (number + 1), N)
            outcome = ["already_wrong", "resisted", *["success" if succeed else "resisted"] * (N - 2)]
            delta = size.reshape(-1, *[1] * len(shape)) * rng.choice([-1, 1], x.shape)
            point = np.clip(x + delta, 0, 1).astype(np.float32)
            ledger.append(_cell(f"c{number}", model, samples, outcome, np.abs(point - x).reshape(N, -1)))
            if keep:
                write_inputs(cell_inputs(folder, f"c{number}"), samples, point)
        return folder

    return make


def _cell(name: str, model: str, samples: list[str], outcome: list[str], steps: Any) -> dict[str, Any]:
    steps = steps.astype(np.float64)
    outcomes = {
        "cell": [name] * N, "model": [model] * N, "arm": ["push"] * N, "sample": samples, "kind": ["attack"] * N,
        "repeat": [0] * N, "outcome": outcome, "d_linf": steps.max(1), "d_l1": steps.sum(1),
        "d_l2": np.sqrt((steps**2).sum(1)), "d_l0": (steps > 0).sum(1).astype(np.float64),
    }  # fmt: skip
    row = {"cell": name, "recipe": "r", "model": model, "arm": "push", "repeat": 0, "n_samples": N}
    row |= {"n_errors": 0, "flags": [], "shard": "shard"}
    return {
        "outcomes": table_from("outcomes", outcomes),
        "cells": table_from("cells", {column: [value] for column, value in row.items()}),
    }


@pytest.fixture
def open_run() -> Iterator[Callable[..., Labelling]]:
    """Open a labelling; it is closed at the end."""
    opened: list[Labelling] = []

    def open_(folder: Path, *, create: bool = True, **wishes: Any) -> Labelling:
        opened.append(open_labelling(folder, Wishes(**wishes), create=create))
        return opened[-1]

    yield open_
    for labelling in opened:
        labelling.store.close()


@pytest.fixture(autouse=True)
def _fits_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit in this process: others take a second to start. `test_fitting` starts them."""

    class FitsHere:
        def __init__(self, *material: Any) -> None:
            self.material = material

        def fit(self) -> Any:
            result = result_or_reason(*self.material)
            if isinstance(result, RunError):
                raise result
            return result

        def stop(self) -> None:
            """Nothing to end."""

    monkeypatch.setattr(labelling_module, "FitProcess", FitsHere)


@pytest.fixture
def labelling(make_run: MakeRun, open_run: Callable[..., Labelling]) -> Labelling:
    return open_run(make_run())
