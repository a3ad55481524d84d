"""A ledger of answers that a test knows, too."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.ledger import Ledger, table_from

ARMS: dict[str, dict[str, Any]] = {
    "clean": {"kind": "clean", "family": "clean"},
    "rain-1": {"kind": "corruption", "family": "rain", "repeats": 3},
    "fog-1": {"kind": "corruption", "family": "fog"},
    "pgd": {"kind": "attack", "family": "pgd", "norm": "linf", "eps": 0.1},
    "square": {"kind": "attack", "family": "square", "norm": "linf", "eps": 0.2},
}


@dataclass
class Answered:
    """Logits of every model, arm, repeat and sample; outcomes that are not just told."""

    n: int = 12
    classes: int = 3
    models: tuple[str, ...] = ("net", "other")
    arms: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: dict(arm) for name, arm in ARMS.items()})
    capability: str = "gradients"
    weight: list[float] | None = None
    seed: int = 0
    outcome: dict[tuple[str, str, int, int], str] = field(default_factory=dict)
    missing: set[tuple[str, str, int, int]] = field(default_factory=set)
    top: int | None = None  # only so many of the largest logits are stored
    logits: dict[tuple[str, str, int, int], Any] = field(default_factory=dict)
    label: Any = None
    more: dict[tuple[str, str, int, int], dict[str, Any]] = field(default_factory=dict)  # columns of outcomes
    draws: dict[tuple[str, str, int, int], Any] = field(default_factory=dict)  # logits by draw

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.label = rng.integers(self.classes, size=self.n)
        for place in self.places():
            noise = 0 if place[1] == "clean" else 2
            own = rng.normal(size=self.classes) * (1 + noise)
            own[self.label[place[3]]] += 2
            self.logits[place] = own.astype(np.float32)

    def places(self) -> list[tuple[str, str, int, int]]:
        return [
            (model, arm, repeat, sample)
            for model in self.models
            for arm, facts in self.arms.items()
            for repeat in range(facts.get("repeats", 1))
            for sample in range(self.n)
        ]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Ledger]:
    """A ledger of these answers."""

    def make(given: Answered, folder: str = "run") -> Ledger:
        ledger = Ledger.open(tmp_path / folder, create=True)
        tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("arms", "cells", "outcomes", "outputs")}
        for model in given.models:
            for arm, facts in given.arms.items():
                common = {"model": model, "arm": arm, "recipe": f"{model}/{arm}"}
                tables["arms"].append({"origin": "study", "repeats": 1} | common | facts)
                tables["cells"] += [
                    common | {"cell": f"{model}/{arm}/{repeat}", "repeat": repeat}
                    for repeat in range(facts.get("repeats", 1))
                ]
        for place in given.places():
            if place not in given.missing:
                _add(tables, given, place)
        tables["samples"] = [
            {
                "sample": f"s{n:03d}",
                "split": "evaluate",
                "weight": given.weight[n] if given.weight else 1.0,
                "label": int(given.label[n]),
                "strata": json.dumps({"light": "night" if n % 3 == 0 else "day"}),
            }
            for n in range(given.n)
        ]
        tables["samples"].append({"sample": "t1", "split": "tune", "weight": 1.0, "label": 0, "strata": "{}"})
        tables["models"] = [
            {"model": model, "capability": given.capability, "n_classes": given.classes} for model in given.models
        ]
        ledger.append({name: _table(name, rows) for name, rows in tables.items() if rows})
        return Ledger.open(tmp_path / folder)

    return make


def _add(tables: dict[str, list[dict[str, Any]]], given: Answered, place: tuple[str, str, int, int]) -> None:
    model, arm, repeat, sample = place
    key = {"cell": f"{model}/{arm}/{repeat}", "sample": f"s{sample:03d}"}
    logits, clean = given.logits[place], given.logits[model, "clean", 0, sample]
    outcome = given.outcome.get(place, "resisted")
    failed = outcome in ("error", "timeout")
    tables["outcomes"].append(
        key
        | {"model": model, "arm": arm, "repeat": repeat, "kind": given.arms[arm]["kind"], "outcome": outcome}
        | {"prediction": None if failed else int(logits.argmax()), "clean_prediction": int(clean.argmax())}
        | {"confidence": None if failed else float(softmax(logits).max())}
        | ({"d_linf": 0.05} if outcome == "success" else {})
        | given.more.get(place, {})
    )
    if not failed and given.capability != "labels":
        order = np.argsort(-logits)[: given.top] if given.top else None
        stored = {"logits": (logits if order is None else logits[order]).tolist()}
        if place in given.draws:
            stored["draws"] = np.log(softmax(given.draws[place])).ravel().tolist()
        tables["outputs"].append(key | stored | ({} if order is None else {"classes": order.tolist()}))


def softmax(logits: Any) -> Any:
    return np.exp(np.float64(logits)) / np.exp(np.float64(logits)).sum(axis=-1, keepdims=True)


def _table(name: str, rows: list[dict[str, Any]]) -> Any:
    columns = dict.fromkeys(column for row in rows for column in row)
    return table_from(name, {column: [row.get(column) for row in rows] for column in columns})
