"""Small ledgers, row by row."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from advrisk.ledger import Ledger, table_from

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
