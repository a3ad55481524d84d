"""Small runs, row by row: clean answers and attacks on samples of known content."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from advrisk import Run
from advrisk.ledger import Ledger, table_from
from advrisk.study import study_from

MISSING = "missing"  # in place of a distance: no row
MakeRun = Callable[..., Run]


def _table(name: str, rows: Sequence[dict[str, Any]]) -> Any:
    columns = dict.fromkeys(column for row in rows for column in row)
    return table_from(name, {column: [row.get(column) for row in rows] for column in columns})


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A run from distances: model -> arm -> one for each sample; inf is resisted, 0 already wrong, None an error.

    `clean` says of which samples the clean answer is right (None: an error); all that have no distance of 0, if it
    does not; a model whose clean answers are `[]` has no clean rows. `eps` is that of all arms, `hashes` are the
    contents of the samples, `study` is more of the study. Models of different runs differ unless `digest` is given.
    """

    def make(
        distances: Mapping[str, Mapping[str, Sequence[Any]]],
        *,
        name: str = "run",
        clean: Mapping[str, Sequence[bool | None]] | None = None,
        eps: float | None = 0.3,
        hashes: Sequence[str] | None = None,
        study: Mapping[str, Any] | None = None,
        facts: Mapping[str, Mapping[str, Any]] | None = None,
        flags: Mapping[str, list[str]] | None = None,
        criterion: str = "label",
        origin: str = "study",
        weights: Sequence[float] | None = None,
        near: float | None = None,
        digest: str | None = None,
    ) -> Run:
        outcomes, arms, cells = [], [], []
        n = len(next(iter(next(iter(distances.values())).values())))
        for model, of_arm in distances.items():
            right = (clean or {}).get(model, [all(own[place] != 0 for own in of_arm.values()) for place in range(n)])
            for arm, found in _arms(right, of_arm):
                is_clean = arm == "clean"
                own = {"kind": "clean"} if is_clean else {"kind": "attack", "norm": "linf", "eps": eps, "family": "pgd"}
                more = {} if is_clean else dict((facts or {}).get(arm, {}))
                key = {"model": model, "arm": arm}
                arms.append(key | {"recipe": f"{model}/{arm}", "repeats": 1, "origin": origin} | own | more)
                cell = {"cell": f"{model}/{arm}", "recipe": f"{model}/{arm}", "repeat": 0, "shard": "all"}
                if MISSING not in found:
                    cells.append(key | cell | {"flags": (flags or {}).get(arm, [])})
                outcomes += [
                    key
                    | {"cell": f"{model}/{arm}", "sample": f"s{place:03}", "repeat": 0, "criterion": criterion}
                    | (_clean(one) if is_clean else _attacked(one) | ({} if near is None else {"near_linf": near}))
                    | own
                    for place, one in enumerate(found)
                    if one != MISSING
                ]
        samples = [
            {"sample": f"s{place:03}", "split": "evaluate", "weight": 1.0, "label": 1, "shard": "all", "strata": "{}"}
            | {"hash": hashes[place] if hashes else f"content {place}", "place": place}
            | ({} if weights is None else {"weight": weights[place]})
            for place in range(n)
        ]
        models = [{"model": model, "digest": digest or f"{model} of {name}"} for model in distances]
        tables = {"outcomes": outcomes, "cells": cells, "arms": arms, "samples": samples, "models": models}
        folder = tmp_path / name
        Ledger.open(folder, create=True).append({key: _table(key, rows) for key, rows in tables.items() if rows})
        return Run(folder, Ledger.open(folder), _study(distances, n, study))

    return make


def _arms(right: Sequence[bool | None], attacks: Mapping[str, Sequence[Any]]) -> list[tuple[str, Sequence[Any]]]:
    return [*([("clean", right)] if right else []), *attacks.items()]


def _study(distances: Mapping[str, Any], n: int, more: Mapping[str, Any] | None) -> Any:
    if more is None:
        return None
    base = {"name": "small", "data": {"source": "digits", "evaluate": n}, "arms": [{"attack": "pgd"}]}
    return study_from(base | {"models": {model: {"source": "object"} for model in distances}} | dict(more))


def _clean(right: bool | None) -> dict[str, Any]:
    return {"outcome": "error"} if right is None else {"outcome": "resisted", "prediction": 1 if right else 0}


def _attacked(size: float | None) -> dict[str, Any]:
    if size is None:
        return {"outcome": "error"}
    if size == float("inf"):
        return {"outcome": "resisted", "d_linf": 0.01}
    return {"outcome": "success" if size else "already_wrong", "d_linf": size}
