"""Scenarios: a risk tensor read from a ledger, and scenarios evaluated on it.

Run: python -m bench indicators.
"""

import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from advrisk.assess.indicators.reading import read_tensor
from advrisk.ledger import Ledger, constant, table_from
from advrisk.risk.indicators import RiskTensor, Scenario, indicator_tree, risk, uniform_scenario, what_if
from bench.timing import least_work, processor_s

CLASSES, REPEATS, ATTACKS = 10, 4, 4
MODEL = "net"
CAUSES = ("sensor", "noise", "weather")
TOWN: dict[str, Any] = {
    "weather": {"weight": 0.3, "of": ["family-2", "family-5", "family-8"]},
    "sensor": {"weight": 0.1, "where": {"light": "night"}, "of": {"family-0": 0.6, "family-3": 0.4}},
    "attacked": {"weight": 0.001, "of": ["pgd-0", "pgd-1", "pgd-2", "pgd-3"]},
}
UNSURE = {**TOWN, "weather": {**TOWN["weather"], "weight": {"beta": [30, 70]}}}


@dataclass(frozen=True)
class Size:
    """How much is written and read."""

    samples: int = 10_000
    shard: int = 500
    families: int = 11
    levels: int = 5


TINY = Size(samples=40, shard=20, families=9, levels=1)


def main(*, tiny: bool = False) -> None:
    """Print what reading takes, and each scenario."""
    size = TINY if tiny else Size()
    folder = Path(tempfile.mkdtemp(prefix="advrisk-bench-"))
    try:
        _write(Ledger.open(folder, create=True), size)
        ledger = Ledger.open(folder)
        ledger.query("SELECT 1")
        arms = _arms(size)
        print(f"{size.samples:,} samples x {len(arms)} arms, corruptions {REPEATS} times; {CLASSES} classes; one core")
        for losses in (["misclassified"], ["misclassified", "confidence-drop"]):
            took = processor_s(partial(read_tensor, ledger, MODEL, losses))
            print(f"read from the ledger: {', '.join(losses):<32} {took:6.2f} s of work")
        tensor = _with_causes(read_tensor(ledger, MODEL, ["misclassified"]))
    finally:
        shutil.rmtree(folder)
    print(
        f"put arms together, once for each loss {1e3 * processor_s(partial(tensor.by_arm, 'misclassified')):24.1f} ms"
    )
    town = Scenario.from_mapping("town", TOWN)
    changed = what_if(town, {"weather": 0.5})
    unsure = Scenario.from_mapping("unsure", UNSURE)
    every = uniform_scenario(tensor)
    for name, scenario in (("town", town), ("what if", changed), ("uncertain weights", unsure), ("every arm", every)):
        n = sum(1 for _ in indicator_tree(tensor, scenario).walk())
        total, tree = (least_work(5, partial(ask, tensor, scenario)) for ask in (risk, indicator_tree))
        print(f"{name:<20} risk {1e3 * total:6.1f} ms   all {n:>3} indicators {1e3 * tree:6.1f} ms")


def _with_causes(tensor: RiskTensor) -> RiskTensor:
    """Causes as a study's own corruptions have them."""
    causes = [CAUSES[int(family.rpartition("-")[2]) % 3] if family[:6] == "family" else "" for family in tensor.family]
    return RiskTensor(tensor.data.assign_coords(cause=("arm", np.array(causes))))


def _arms(size: Size) -> list[dict[str, Any]]:
    clean = {"arm": "clean", "kind": "clean", "family": "clean", "repeats": 1}
    natural = [
        {"arm": f"family-{k}-{level}", "kind": "corruption", "family": f"family-{k}", "repeats": REPEATS}
        for k in range(size.families)
        for level in range(size.levels)
    ]
    attacks = [
        {"arm": f"pgd-{k}", "kind": "attack", "family": "pgd", "norm": "linf", "repeats": 1} for k in range(ATTACKS)
    ]
    return [clean, *natural, *attacks]


def _write(ledger: Ledger, size: Size) -> None:
    rng, n_samples = np.random.default_rng(0), size.samples
    arms = _arms(size)
    names = pa.array([f"s{n:06d}" for n in range(n_samples)])
    label = rng.integers(CLASSES, size=n_samples).astype(np.int32)
    rows = [{"model": MODEL, "origin": "study", "recipe": f"r{place}"} | arm for place, arm in enumerate(arms)]
    columns = dict.fromkeys(column for row in rows for column in row)
    strata = ['{"light": "night"}' if night else '{"light": "day"}' for night in rng.random(n_samples) < 0.3]
    samples = {"sample": names, "split": ["evaluate"] * n_samples, "weight": np.ones(n_samples), "label": label}
    ledger.append(
        {
            "arms": table_from("arms", {column: [row.get(column) for row in rows] for column in columns}),
            "samples": table_from("samples", samples | {"strata": strata}),
        }
    )
    for place, arm in enumerate(arms):
        for repeat in range(arm["repeats"]):
            ledger.append(_cells(rows[place], repeat, size, names, label, rng))


def _cells(row: dict[str, Any], repeat: int, size: Size, names: pa.Array, label: Any, rng: Any) -> dict[str, pa.Table]:
    n, shards = size.samples, size.samples // size.shard
    cells = pa.array([f"{row['arm']}/{repeat}/{shard}" for shard in range(shards)])
    logits = rng.normal(size=(n, CLASSES)).astype(np.float32)
    logits[np.arange(n), label] += 3
    encoded = pa.DictionaryArray.from_arrays
    cell = encoded(pa.array(np.repeat(np.arange(shards, dtype=np.int32), size.shard)), cells)
    sample = encoded(pa.array(np.arange(n, dtype=np.int32)), names)
    outcomes = {
        "cell": cell,
        "sample": sample,
        **{name: constant(row[name], n) for name in ("model", "arm", "kind", "family")},
        "outcome": constant("resisted", n),
        "repeat": np.full(n, repeat, np.int32),
        "prediction": logits.argmax(axis=1),
        "clean_prediction": label,
        "confidence": np.full(n, 0.5, np.float32),
    }
    of_cell = {
        "cell": cells,
        "recipe": [row["recipe"]] * shards,
        "model": [MODEL] * shards,
        "arm": [row["arm"]] * shards,
    }
    return {
        "cells": table_from("cells", of_cell | {"repeat": np.full(shards, repeat, np.int32)}),
        "outcomes": table_from("outcomes", outcomes),
        "outputs": table_from("outputs", {"cell": cell, "sample": sample, "logits": list(logits)}),
    }


if __name__ == "__main__":
    main()
