"""A ledger of hand-made rows with scores, and the same rows as the test knows them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.ledger import Ledger, table_from

EYE = "eye@00000001"
ARMS: dict[str, dict[str, Any]] = {
    "pgd-linf-0.1-ace": {"family": "pgd", "norm": "linf", "eps": 0.1, "objective": "ace"},
    "pgd-linf-0.1-kl": {"family": "pgd", "norm": "linf", "eps": 0.1, "objective": "kl", "repeats": 2},
    "square-linf-0.1": {"family": "square", "norm": "linf", "eps": 0.1, "objective": "margin"},
    "pgd-linf-0.2-ace": {"family": "pgd", "norm": "linf", "eps": 0.2, "objective": "ace"},
    "pgd-linf-0.2-kl": {"family": "pgd", "norm": "linf", "eps": 0.2, "objective": "kl"},
    "deepfool-l2": {"family": "deepfool", "norm": "l2"},
    "cw-l2": {"family": "carlini-wagner", "norm": "l2"},
    "spatial": {"family": "spatial"},
    "noise": {"family": "gaussian-noise", "kind": "corruption"},
}


@dataclass
class Rows:
    """Outcome and score of every model, arm, repeat and sample."""

    arms: dict[str, dict[str, Any]]
    n: int
    models: tuple[str, ...] = ("net",)
    outcome: dict[tuple[str, str, int, int], str] = field(default_factory=dict)
    score: dict[tuple[str, str, int, int], float] = field(default_factory=dict)  # arm "clean" for clean inputs
    second: dict[tuple[str, str, int, int], float] = field(default_factory=dict)  # of another detector
    calibrate: dict[str, list[float]] = field(default_factory=dict)

    def places(self, model: str, *, clean: bool = False) -> list[tuple[str, str, int, int]]:
        arms = [*self.arms, "clean"] if clean else list(self.arms)
        return [
            (model, arm, repeat, sample)
            for arm in arms
            for repeat in range(self.arms.get(arm, {}).get("repeats", 1))
            for sample in range(self.n)
        ]


def random_rows(seed: int = 0, n: int = 40, arms: dict[str, dict[str, Any]] | None = None, **facts: Any) -> Rows:
    """Successes, samples that resist or are wrong already, scores with ties; l2 without a success of cw."""
    draw = np.random.default_rng(seed)
    rows = Rows(arms or ARMS, n, **facts)
    for model in rows.models:
        wrong = draw.random(n) < 0.1
        for place in rows.places(model, clean=True):
            _, arm, _, sample = place
            hit = draw.random() < 0.5 and arm != "cw-l2"
            rows.outcome[place] = (
                "resisted" if arm == "clean" else "already_wrong" if wrong[sample] else "success" if hit else "resisted"
            )
            if arm == "clean" or rows.outcome[place] == "success":
                rows.score[place] = float(draw.integers(8)) + 2 * (arm != "clean")
                rows.second[place] = float(draw.normal())
    return rows


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Ledger]:
    """A ledger of these rows."""

    def make(rows: Rows, *, second: bool = False, folder: str = "run") -> Ledger:
        ledger = Ledger.open(tmp_path / folder, create=True)
        arms, cells, outcomes = [], [], []
        scores: list[dict[str, Any]] = []
        for model in rows.models:
            for arm, facts in {**rows.arms, "clean": {"kind": "clean"}}.items():
                common = {"model": model, "arm": arm, "recipe": f"{model}/{arm}"}
                arms.append({"kind": "attack", "origin": "study", "repeats": 1} | common | facts)
                cells += [
                    common | {"cell": f"{model}/{arm}/{repeat}", "repeat": repeat}
                    for repeat in range(facts.get("repeats", 1))
                ]
            for place in rows.places(model, clean=True):
                _, arm, repeat, sample = place
                if place not in rows.outcome:
                    continue
                cell = {"cell": f"{model}/{arm}/{repeat}", "sample": f"s{sample:03d}"}
                kind = rows.arms[arm].get("kind", "attack") if arm != "clean" else "clean"
                passes = {"n_forward": 10 + sample, "n_backward": 5}
                facts = {"model": model, "arm": arm, "repeat": repeat, "kind": kind, "outcome": rows.outcome[place]}
                outcomes.append(cell | facts | passes)
                for detector, of in ((EYE, rows.score), *((("second@2", rows.second),) if second else ())):
                    if place in of:
                        scores.append(cell | {"detector": detector, "score": of[place]})
            scores += [
                {"cell": f"{model}/clean", "sample": f"c{n}", "detector": EYE, "score": score}
                for n, score in enumerate(rows.calibrate.get(model, []))
            ]
        samples = [{"sample": f"s{n:03d}", "split": "evaluate", "weight": 1.0, "label": 0} for n in range(rows.n)]
        tables = {"arms": arms, "cells": cells, "outcomes": outcomes, "samples": samples}
        ledger.append({name: _table(name, content) for name, content in tables.items()})
        if scores:
            ledger.append({"scores": _table("scores", scores)})
        return Ledger.open(tmp_path / folder)

    return make


def _table(name: str, rows: list[dict[str, Any]]) -> Any:
    columns = dict.fromkeys(column for row in rows for column in row)
    return table_from(name, {column: [row.get(column) for row in rows] for column in columns})
