"""Small ledgers, row by row."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from advrisk.ledger import Ledger, table_from
from advrisk.ledger.inputs import cell_inputs, shard_inputs, write_inputs

Tables = dict[str, pa.Table]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "run", create=True)


@pytest.fixture
def cell() -> Callable[..., Tables]:
    """The tables of one finished cell."""

    def tables(
        name: str,
        samples: Sequence[str] = ("s1", "s2"),
        *,
        model: str = "plain",
        arm: str = "push",
        recipe: str = "r1",
        repeat: int = 0,
        outcome: str = "success",
        d_linf: float | None = 0.1,
    ) -> Tables:
        n = len(samples)
        outcomes: dict[str, Any] = {"cell": [name] * n, "model": [model] * n, "arm": [arm] * n, "sample": samples}
        outcomes |= {"kind": ["attack"] * n, "repeat": [repeat] * n, "outcome": [outcome] * n, "d_linf": [d_linf] * n}
        row = {"cell": name, "recipe": recipe, "model": model, "arm": arm, "repeat": repeat, "n_samples": n}
        row |= {"n_errors": n if outcome in ("error", "timeout") else 0, "flags": []}
        return {
            "outcomes": table_from("outcomes", outcomes),
            "outputs": table_from("outputs", {"cell": [name] * n, "sample": samples, "logits": [[1.0, 2.0]] * n}),
            "cells": table_from("cells", {column: [value] for column, value in row.items()}),
        }

    return tables


@pytest.fixture
def arms() -> Callable[..., Tables]:
    """Which recipe stands for an arm against a model now."""

    def tables(*rows: tuple[str, str, str]) -> Tables:
        model, arm, recipe = zip(*rows, strict=True)
        return {"arms": table_from("arms", {"model": model, "arm": arm, "recipe": recipe})}

    return tables


@pytest.fixture
def kept_run(tmp_path: Path, cell: Callable[..., Tables]) -> Path:
    """Two models; `plain` falls on s1 and s2 (a1) and on s1 (a2), `other` on s3; s2 of a1 was not kept."""
    clean = {"s1": 0.1, "s2": 0.2, "s3": 0.3}

    def image(value: float) -> NDArray[np.float32]:
        return np.full((1, 2, 2), value, np.float32)

    folder = tmp_path / "run"
    ledger = Ledger.open(folder, create=True)
    for name, model, arm, samples, outcome in [
        ("aa", "plain", "a1", ["s1", "s2"], "success"),
        ("bb", "plain", "a2", ["s1"], "success"),
        ("cc", "other", "a1", ["s3"], "success"),
        ("dd", "other", "a2", ["s3"], "resisted"),
    ]:
        ledger.append(cell(name, samples, model=model, arm=arm, outcome=outcome))
    pairs = {"model": ["plain", "plain", "other", "other"], "arm": ["a1", "a2", "a1", "a2"], "recipe": ["r1"] * 4}
    samples = {"sample": list(clean), "label": [1, 2, 3], "shard": ["sh"] * 3}
    ledger.append({"arms": table_from("arms", pairs), "samples": table_from("samples", samples)})
    write_inputs(shard_inputs(folder, "sh"), list(clean), np.stack([image(value) for value in clean.values()]))
    for name, sample, value in [("aa", "s1", 0.15), ("bb", "s1", 0.16), ("cc", "s3", 0.35), ("dd", "s3", 0.36)]:
        write_inputs(cell_inputs(folder, name), [sample], image(value)[None])
    return folder
