"""Ledgers in which the truth is known: Weibull times in passes; and what is assessed of them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.survival.assessment import SurvivalAssessment, assess_survival
from advrisk.assess.survival.money import Hardware
from advrisk.ledger import Ledger, table_from

N, MOST = 120, 30
SHAPE, SCALE = 1.4, 16.0
FACTOR = {"a": 1.0, "b": 2.0}  # b lasts twice as long
SLOPE = -4.0  # of log time in eps


def ledger_of(
    folder: Path,
    *,
    factor: dict[str, float] = FACTOR,
    eps: tuple[float, ...] = (0.1, 0.2, 0.3),
    norms: tuple[str, ...] = ("linf",),
    n: int = N,
    train: bool = True,
    seconds: float | None = 0.01,
    clean: bool = True,
    beside: dict[str, Any] | None = None,
    tags: dict[str, str] | None = None,
    prefix: str = "s",
    backwards: bool = False,
    shuffled: bool = False,
    most: dict[str, int] | None = None,
) -> Ledger:
    """Times of each model and eps as the law above has them, rounded up to passes; the first sample is wrong clean."""
    rng = np.random.default_rng(8)
    names = [f"{prefix}{n - place if backwards else place:03d}" for place in range(n)]
    arms, cells, outcomes = [], [], []
    arms_of = [(norm, size) for norm in norms for size in eps]
    for model, times in factor.items():
        limit = (most or {}).get(model, MOST)
        asked: list[tuple[str, str | None, float | None]] = [("clean", None, None)] * clean
        asked += [
            (f"{attack}-{m}-{e}", m, e)
            for attack in ("pgd", *([beside["attack"]] if beside else []))
            for m, e in arms_of
        ]
        for arm, norm, size in asked:
            lasting = beside["factor"] if beside and arm.startswith(beside["attack"]) else times
            own = {"cell": f"{model}-{arm}", "model": model, "arm": arm, "repeat": 0}
            kind = "clean" if arm == "clean" else "attack"
            arms.append(
                {
                    "model": model,
                    "arm": arm,
                    "recipe": own["cell"],
                    "origin": "study",
                    "kind": kind,
                    "family": arm.partition("-")[0],
                }
                | {"norm": norm, "eps": size, "keep": "first", "repeats": 1, "params": '{"steps": 29}'}
            )
            cells.append(own | {"recipe": own["cell"], "accounting": "sample", "n_samples": n, "n_errors": 0})
            cells[-1] |= {"inference_s": 0.004 if kind == "clean" else None}
            for place, sample in enumerate(names):
                row: dict[str, Any] = own | {"sample": sample, "n_forward": 0, "n_forward_first": None}
                row |= {"kind": kind, "prediction": None}
                if kind == "clean":
                    row |= {"outcome": "success" if place == 0 else "resisted", "prediction": int(place == 0)}
                if kind == "attack" and place == 0:
                    row["outcome"] = "already_wrong"
                elif kind == "attack":
                    scale = SCALE * lasting * math.exp(SLOPE * ((size or 0) - 0.1))
                    last = math.ceil(scale * rng.weibull(SHAPE)) if math.isfinite(lasting) else limit + 1
                    row |= {"outcome": "success" if last <= limit else "resisted", "n_forward": min(last, limit)}
                    row["n_forward_first"] = last if last <= limit else None
                spent = None if seconds is None else row["n_forward"] * seconds
                row |= {"n_backward": 0, "spent_s": spent, "first_s": spent if row["n_forward_first"] else None}
                outcomes.append(row)
    facts = {"tags": "{}", "train_s": 60.0 if train else None, "train_samples": 100 if train else None}
    tables = {
        "arms": arms,
        "cells": cells,
        "outcomes": outcomes,
        "samples": [{"sample": name, "label": 0, "split": "evaluate", "weight": 1.0, "strata": "{}"} for name in names],
        "models": [{"model": model} | facts | {"tags": (tags or {}).get(model, "{}")} for model in factor],
    }
    if shuffled:
        tables = {name: [rows[place] for place in rng.permutation(len(rows))] for name, rows in tables.items()}
    ledger = Ledger.open(folder, create=True)
    ledger.append(
        {name: table_from(name, {key: [one[key] for one in rows] for key in rows[0]}) for name, rows in tables.items()}
    )
    return Ledger.open(folder)


@pytest.fixture(scope="session")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return ledger_of(tmp_path_factory.mktemp("two") / "run")


@pytest.fixture(scope="session")
def found(ledger: Ledger) -> SurvivalAssessment:
    return assess_survival(ledger, hardware=Hardware("one core", 3.6))


@pytest.fixture(scope="session")
def split(tmp_path_factory: pytest.TempPathFactory) -> SurvivalAssessment:
    """Half of the attempts succeed at once, the others hardly ever: no law of the three has that shape."""
    folder, slow = tmp_path_factory.mktemp("split") / "run", {"attack": "slow", "factor": 40.0}
    ledger = ledger_of(folder, beside=slow, factor={"a": 0.1, "b": 0.1}, eps=(0.1,), n=200)
    return assess_survival(ledger, covariates=["model"], family="weibull", hardware=Hardware("one core", 3.6))


@pytest.fixture(scope="session")
def defended(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Without a defence, and behind one of two strengths."""
    tags = {"a": "{}", "b": '{"defence": "gauss-out", "sigma": 0.1}', "c": '{"defence": "gauss-out", "sigma": 0.5}'}
    folder, factor = tmp_path_factory.mktemp("defended") / "run", {"a": 1.0, "b": 1.3, "c": 2.0}
    return ledger_of(folder, factor=factor, tags=tags, n=80)
