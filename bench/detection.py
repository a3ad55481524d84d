"""The multi-armed evaluation of a detector: the table with its intervals from a ledger, and the bare worst-case ROC."""

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from advrisk.assess.detection.assessment import assess_detection
from advrisk.ledger import Ledger, constant, table_from
from advrisk.risk.detection import worst_case_scores
from advrisk.risk.detection.roc import exact_roc
from bench.timing import best_of, processor_s, seconds

SHARD = 64
SIZES = {"l1": (5, 10, 15), "l2": (0.5, 1, 2), "linf": (0.1, 0.2, 0.3)}
OBJECTIVES = ("ace", "kl", "gini", "fisher-rao")
MODEL, DETECTOR = "net", "eye@00000000"


def main(*, tiny: bool = False) -> None:
    """Print seconds of both, with what takes them."""
    samples, resamples = (100, 20) if tiny else (10_000, 1000)
    folder = Path(tempfile.mkdtemp(prefix="advrisk-bench-"))
    try:
        _write(Ledger.open(folder, create=True), samples)
        ledger = Ledger.open(folder)
        ledger.query("SELECT 1")
        n_arms = len(_arms())
        print(f"{samples:,} samples x {n_arms} arms, one detector, one core")
        first = seconds(partial(assess_detection, ledger))
        for n in (resamples, 1):
            work = partial(assess_detection, ledger, resamples=n)
            print(f"full table, {n:>5,} resamples   {best_of(3, work):6.3f} s, {processor_s(work):.3f} s of work")
        print(f"  the first time {first:.3f} s; limit 2 s")
        rng = np.random.default_rng(0)
        scores, success = rng.normal(1, 1, (n_arms, samples)), rng.random((n_arms, samples)) < 0.6
        clean = rng.normal(size=samples)
        took = best_of(10, partial(_bare_roc, clean, scores, success))
        print(f"bare worst-case ROC            {1e3 * took:6.1f} ms; limit 25 ms")
    finally:
        shutil.rmtree(folder)


def _bare_roc(clean: Any, scores: Any, success: Any) -> None:
    worst = worst_case_scores(scores, success)
    exact_roc(clean, worst[~np.isnan(worst)])


def _arms() -> list[dict[str, Any]]:
    """Nine groups of four objectives, Square in one of the groups, and an arm without a norm."""
    arms: list[dict[str, Any]] = [
        {"arm": f"pgd-{norm}-{eps}-{objective}", "family": "pgd", "norm": norm, "eps": eps, "objective": objective}
        for norm, sizes in SIZES.items()
        for eps in sizes
        for objective in OBJECTIVES
    ]
    arms.append(
        {"arm": "square-linf-0.3-margin", "family": "square", "norm": "linf", "eps": 0.3, "objective": "margin"}
    )
    arms.append({"arm": "spatial", "family": "spatial", "norm": None, "eps": None, "objective": None})
    return arms


def _write(ledger: Ledger, n_samples: int) -> None:
    arms = [{"arm": "clean", "kind": "clean"}, *({**arm, "kind": "attack"} for arm in _arms())]
    shards = -(-n_samples // SHARD)
    cells = pa.array([f"{place:08x}{shard:024x}" for place in range(len(arms)) for shard in range(shards)])
    names = pa.array([f"mnist/{n:06d}" for n in range(n_samples)])
    common = {"model": MODEL, "origin": "study", "repeats": 1}
    rows = [common | {"recipe": f"r{place}"} | arm for place, arm in enumerate(arms)]
    columns = dict.fromkeys(column for row in rows for column in row)
    question = {
        "arms": table_from("arms", {column: [row.get(column) for row in rows] for column in columns}),
        "samples": table_from(
            "samples",
            {
                "sample": names,
                "split": ["evaluate"] * n_samples,
                "weight": np.ones(n_samples),
                "label": [0] * n_samples,
            },
        ),
    }
    ledger.append(question)
    arm, sample = (np.ravel(part).astype(np.int32) for part in np.indices((len(arms), n_samples)))
    cell = pa.DictionaryArray.from_arrays(pa.array(arm * shards + sample // SHARD), cells)
    rng = np.random.default_rng(0)
    hit = (rng.random(arm.size) < 0.6) & (arm > 0)
    ledger.append({"cells": _cells(arms, cells, shards), "outcomes": _outcomes(arms, arm, sample, names, cell, hit)})
    kept = pa.array(hit | (arm == 0))
    scores = rng.normal(size=arm.size) + 1.5 * (arm > 0)
    columns = {"cell": cell.filter(kept), "score": pa.array(scores).filter(kept)}
    columns |= {"sample": pa.DictionaryArray.from_arrays(pa.array(sample), names).filter(kept)}
    ledger.append({"scores": table_from("scores", columns | {"detector": constant(DETECTOR, len(columns["cell"]))})})


def _cells(arms: list[dict[str, Any]], cells: pa.Array, shards: int) -> pa.Table:
    place = np.repeat(np.arange(len(arms)), shards)
    return table_from(
        "cells",
        {
            "cell": cells,
            "model": [MODEL] * len(cells),
            "arm": [arms[n]["arm"] for n in place],
            "recipe": [f"r{n}" for n in place],
            "repeat": np.zeros(len(cells), np.int32),
        },
    )


def _outcomes(arms: list[dict[str, Any]], arm: Any, sample: Any, names: pa.Array, cell: Any, hit: Any) -> pa.Table:
    encoded = pa.DictionaryArray.from_arrays
    n = arm.size
    return table_from(
        "outcomes",
        {
            "cell": cell,
            "model": constant(MODEL, n),
            "sample": encoded(pa.array(sample), names),
            "arm": encoded(pa.array(arm), pa.array([one["arm"] for one in arms])),
            "kind": encoded(pa.array((arm > 0).astype(np.int32)), pa.array(["clean", "attack"])),
            "outcome": encoded(pa.array(hit.astype(np.int32)), pa.array(["resisted", "success"])),
            "repeat": np.zeros(n, np.int32),
            "prediction": np.zeros(n, np.int32),
            "n_forward": np.full(n, 40),
            "n_backward": np.full(n, 40),
        },
    )


if __name__ == "__main__":
    main()
