"""Ledgers of hand-made rows."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from advrisk.ledger import Ledger, table_from


def _table(name: str, rows: Sequence[dict[str, Any]]) -> Any:
    columns = dict.fromkeys(column for row in rows for column in row)
    return table_from(name, {column: [row.get(column) for row in rows] for column in columns})


@pytest.fixture
def found_by(tmp_path: Path) -> Callable[..., Ledger]:
    """A ledger from distances: model -> arm -> one for each sample; inf is resisted, 0 already wrong, None an error.

    `facts` says more of an arm: columns of its outcomes and of its row in `arms`.
    """

    def make(
        distances: dict[str, dict[str, list[float | None]]],
        facts: dict[str, dict[str, Any]] | None = None,
        flags: dict[str, list[str]] | None = None,
    ) -> Ledger:
        outcomes, arms, cells = [], [], []
        for model, of_arm in distances.items():
            for arm, found in of_arm.items():
                own = {"kind": "attack", "norm": "linf", "eps": None, **(facts or {}).get(arm, {})}
                counts = {name: own.pop(name) for name in ("n_forward", "n_backward", "near_linf") if name in own}
                params = {"params": own.pop("params", None), "keep": own.pop("keep", None)}
                key = {"model": model, "arm": arm}
                arms.append(key | {"recipe": f"{model}/{arm}", "repeats": 1, "origin": "study"} | own | params)
                cell = {"cell": f"{model}/{arm}", "recipe": f"{model}/{arm}", "repeat": 0}
                cells.append(key | cell | {"flags": (flags or {}).get(arm, [])})
                outcomes += [
                    key | {"cell": f"{model}/{arm}", "sample": str(place), "repeat": 0, **_verdict(size)} | own | counts
                    for place, size in enumerate(found)
                ]
        names = dict.fromkeys(row["sample"] for row in outcomes)
        samples = [{"sample": name, "split": "evaluate", "weight": 1.0} for name in names]
        tables = {"outcomes": outcomes, "cells": cells, "arms": arms, "samples": samples}
        Ledger.open(tmp_path, create=True).append({name: _table(name, rows) for name, rows in tables.items()})
        return Ledger.open(tmp_path)

    return make


def _verdict(size: float | None) -> dict[str, Any]:
    if size is None:
        return {"outcome": "error"}
    if size == float("inf"):
        return {"outcome": "resisted", "d_linf": 0.01}  # where a resisted row was left does not count
    return {"outcome": "success" if size else "already_wrong", "d_linf": size}
