"""Makes tests/golden/ledger-v1: a run as schema version 1 wrote it, small enough to check by hand.

    python tests/golden/make_ledger_v1.py tests/golden/ledger-v1

Two models, four samples to evaluate, a clean arm, FGSM, PGD (twice) and noise. In the course of the run
one cell failed and was run again, and PGD's recipe changed. The committed files stay as they are when the
schema changes; this file then only tells where they came from.
"""

import json
import sys
import uuid
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from advrisk.ledger import Ledger, SegmentWriter, table_from

SAMPLES = ["digits/000001", "digits/000002", "digits/000003", "digits/000004"]
LABELS = [0, 1, 2, 3]
FGSM, PGD, NOISE = "fgsm-linf-0.1-ace", "pgd-linf-0.1-ace", "gaussian-noise,sigma=0.1"

# (model, arm, repeat) -> outcome and d_linf for each sample.
FIRST = {
    ("plain", "clean", 0): "resisted 0, resisted 0, resisted 0, success 0",
    ("plain", FGSM, 0): "success 0.08, resisted 0.1, success 0.1, already_wrong 0",
    ("plain", PGD, 0): "success 0.01, success 0.01, success 0.01, already_wrong 0",
    ("plain", PGD, 1): "success 0.02, success 0.02, success 0.02, already_wrong 0",
    ("plain", NOISE, 0): "resisted 0.04, success 0.04, resisted 0.04, success 0.04",
    ("hardened", "clean", 0): "resisted 0, resisted 0, resisted 0, resisted 0",
    ("hardened", FGSM, 0): "error -, error -, error -, error -",
    ("hardened", PGD, 0): "resisted 0.1, success 0.08, timeout -, success 0.095",
    ("hardened", PGD, 1): "resisted 0.1, success 0.085, success 0.075, resisted 0.1",
    ("hardened", NOISE, 0): "resisted 0.04, resisted 0.04, resisted 0.04, resisted 0.04",
}
# PGD against `plain` by another recipe, and the cell that had failed.
LATER = {
    ("plain", PGD, 0): "success 0.05, success 0.09, resisted 0.1, already_wrong 0",
    ("plain", PGD, 1): "success 0.06, success 0.07, resisted 0.1, already_wrong 0",
    ("hardened", FGSM, 0): "resisted 0.1, success 0.1, rejected 0.1, resisted 0.1",
}
KINDS = {"clean": "clean", FGSM: "attack", PGD: "attack", NOISE: "corruption"}


def recipe_of(model: str, arm: str, *, later: bool) -> str:
    return f"recipe-{model}-{arm}" + ("-2" if later and (model, arm) == ("plain", PGD) else "")


def cell_tables(model: str, arm: str, repeat: int, written: str, *, later: bool) -> dict[str, pa.Table]:
    recipe = recipe_of(model, arm, later=later)
    cell = f"cell-{recipe}-{repeat}"
    outcomes, sizes = zip(*(entry.split() for entry in written.split(", ")), strict=True)
    told = [size != "-" for size in sizes]
    n = len(SAMPLES)
    attack = KINDS[arm] == "attack"
    rows: dict[str, Any] = {
        "run": ["run-2" if later else "run-1"] * n,
        "cell": [cell] * n,
        "model": [model] * n,
        "sample": SAMPLES,
        "arm": [arm] * n,
        "kind": [KINDS[arm]] * n,
        "family": [arm.split("-linf")[0].split(",")[0]] * n,
        "norm": ["linf" if attack else None] * n,
        "eps": [0.1 if attack else None] * n,
        "objective": ["ace" if attack else None] * n,
        "repeat": [repeat] * n,
        "criterion": ["label"] * n,
        "clean_prediction": [
            9 if model == "plain" and sample == SAMPLES[3] else LABELS[i] for i, sample in enumerate(SAMPLES)
        ],
        "prediction": [
            None if not known else 9 if word in ("success", "already_wrong") else LABELS[i]
            for i, (word, known) in enumerate(zip(outcomes, told, strict=True))
        ],
        "confidence": [0.75 if known else None for known in told],
        "outcome": outcomes,
        "survives_8bit": [word == "success" if known else None for word, known in zip(outcomes, told, strict=True)],
        "success_rate": [
            float(word == "success") if known else None for word, known in zip(outcomes, told, strict=True)
        ],
        "d_linf": [float(size) if known else None for size, known in zip(sizes, told, strict=True)],
        "d_l2": [8 * float(size) if known else None for size, known in zip(sizes, told, strict=True)],
        "n_forward": [11 if known else 0 for known in told],
        "n_backward": [10 if known and attack else 0 for known in told],
        "n_judge": [int(known) for known in told],
        "n_rejected": [0] * n,
        "n_forward_first": [4 if word == "success" and attack else None for word in outcomes],
        "message": ["the attack broke" if word == "error" else None for word in outcomes],
    }
    kept = [sample for sample, known in zip(SAMPLES, told, strict=True) if known]
    row = {
        "cell": cell,
        "recipe": recipe,
        "run": rows["run"][0],
        "model": model,
        "arm": arm,
        "repeat": repeat,
        "shard": "shard-1",
        "n_samples": n,
        "n_errors": n - len(kept),
        "accounting": "sample",
        "wall_s": 0.5,
        "process_s": 0.25,
        "flags": ["unconfirmed"] if "timeout" in outcomes else [],
        "version": "0.1.0",
    }
    tables = {
        "outcomes": table_from("outcomes", rows),
        "cells": table_from("cells", {name: [value] for name, value in row.items()}),
    }
    if kept:
        logits = [[float(repeat), 2.5, -1.0]] * len(kept)
        tables["outputs"] = table_from("outputs", {"cell": [cell] * len(kept), "sample": kept, "logits": logits})
    return tables


def question(*, later: bool) -> dict[str, pa.Table]:
    """What the study wrote down: the arms with their recipes, and the first time models and samples."""
    pairs = [(model, arm) for model in ("plain", "hardened") for arm in KINDS]
    if later:
        pairs = [("plain", PGD)]
    arms = {
        "model": [model for model, _ in pairs],
        "arm": [arm for _, arm in pairs],
        "recipe": [recipe_of(model, arm, later=later) for model, arm in pairs],
        "origin": ["study"] * len(pairs),
        "kind": [KINDS[arm] for _, arm in pairs],
        "family": [arm.split("-linf")[0].split(",")[0] for _, arm in pairs],
        "norm": ["linf" if KINDS[arm] == "attack" else None for _, arm in pairs],
        "eps": [0.1 if KINDS[arm] == "attack" else None for _, arm in pairs],
        "objective": ["ace" if KINDS[arm] == "attack" else None for _, arm in pairs],
        "keep": ["first" if KINDS[arm] == "attack" else "last" for _, arm in pairs],
        "repeats": [2 if arm == PGD else 1 for _, arm in pairs],
        "params": [json.dumps({"steps": 40 if later else 10} if arm == PGD else {}) for _, arm in pairs],
        "seed": [7] * len(pairs),
    }
    tables = {"arms": table_from("arms", arms)}
    if later:
        return tables
    models = {
        "model": ["plain", "hardened"],
        "digest": ["d-plain", "d-hardened"],
        "capability": ["gradients"] * 2,
        "n_classes": [10] * 2,
        "input_shape": [[1, 8, 8]] * 2,
        "random": [False, False],
        "train_s": [1.5, None],
        "train_samples": [1000, None],
        "tags": [json.dumps({"depth": 8}), "{}"],
    }
    names = [*SAMPLES, "digits/000009"]
    samples = {
        "sample": names,
        "hash": [f"hash-{name}" for name in names],
        "label": [*LABELS, 9],
        "split": ["evaluate"] * 4 + ["calibrate"],
        "weight": [1.0] * 5,
        "strata": [json.dumps({"site": "north" if place % 2 else "south"}) for place in range(5)],
        "shard": ["shard-1"] * 4 + [None],
        "place": [0, 1, 2, 3, None],
    }
    return tables | {"models": table_from("models", models), "samples": table_from("samples", samples)}


def scores() -> dict[str, pa.Table]:
    """A detector's scores, made after the run."""
    cell = f"cell-{recipe_of('plain', FGSM, later=False)}-0"
    columns = {"cell": [cell] * 2, "sample": SAMPLES[:2], "detector": ["detector-1"] * 2, "score": [0.25, 0.75]}
    return {"scores": table_from("scores", columns)}


def make(folder: Path) -> None:
    """Write the ledger: four segments, whose names do not depend on chance."""
    with mock.patch("uuid.uuid4", side_effect=[uuid.UUID(int=number << 96) for number in (1, 2, 3, 4)]):
        ledger = Ledger.open(folder, create=True)
        for later, cells in ((False, FIRST), (True, LATER)):
            ledger.append(question(later=later))
            with SegmentWriter(ledger, every_s=float("inf")) as writer:
                for (model, arm, repeat), written in cells.items():
                    writer.add(cell_tables(model, arm, repeat, written, later=later))
                if later:
                    writer.add(scores())


if __name__ == "__main__":
    make(Path(sys.argv[1]))
