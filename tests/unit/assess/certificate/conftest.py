"""Ledgers of hand-made rows on samples to calibrate."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from advrisk.ledger import Ledger, table_from

OUTCOMES = {"s": "success", "r": "resisted", "w": "already_wrong", "j": "rejected", "e": "error", "t": "timeout"}
Make = Callable[..., Ledger]


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    columns = dict.fromkeys(column for row in rows for column in row)
    return table_from(name, {column: [row.get(column) for row in rows] for column in columns})


def write_rows(
    folder: Path,
    found: Mapping[str, Mapping[str, str | list[str]]],
    *,
    facts: Mapping[str, Mapping[str, Any]] | None = None,
    rows: Mapping[str, Any] | None = None,
    samples: Sequence[Mapping[str, Any]] | None = None,
    flags: Mapping[str, list[str]] | None = None,
    clean: Mapping[str, str] | None = None,
) -> Ledger:
    """A ledger from letters: model -> arm -> one letter for each sample, a list of such texts for several tries.

    `.` is a row that is not there yet. A sample is clean wrong where any attack has a `w`. Arms are called
    `attack@linf:0.1`. `facts` says more of an arm, `rows` more of every outcome, `clean` the first letters of the clean
    arm of a model.
    """
    tables: dict[str, list[dict[str, Any]]] = {"outcomes": [], "arms": [], "cells": [], "models": []}
    n = max(len(text) for of_arm in found.values() for texts in of_arm.values() for text in _texts(texts))
    for model, of_arm in found.items():
        tables["models"].append({"model": model, "digest": f"digest of {model}", "n_classes": 10, "random": False})
        wrong = {
            place for texts in of_arm.values() for text in _texts(texts) for place, c in enumerate(text) if c == "w"
        }
        own = (clean or {}).get(model, "")
        rest = "".join("w" if place in wrong else "r" for place in range(len(own), n))
        every = {"clean": [own + rest], **of_arm}
        for arm, texts in every.items():
            _add(
                tables, model, arm, _texts(texts), wrong, (facts or {}).get(arm, {}), rows or {}, (flags or {}).get(arm)
            )
    if samples is None:
        samples = [{"label": (7 * place) % 3} for place in range(n)]
    defaults = [
        {
            "sample": f"s{place}",
            "hash": f"h{place}",
            "split": "calibrate",
            "weight": 1.0,
            "shard": "one",
            "place": place,
        }
        for place in range(len(samples))
    ]
    tables["samples"] = [{**base, **given} for base, given in zip(defaults, samples, strict=True)]
    Ledger.open(folder, create=True).append({name: _table(name, rows_) for name, rows_ in tables.items()})
    return Ledger.open(folder)


def _texts(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


def _add(
    tables: dict[str, list[dict[str, Any]]],
    model: str,
    arm: str,
    texts: list[str],
    wrong: set[int],
    facts: Mapping[str, Any],
    more: Mapping[str, Any],
    flags: list[str] | None,
) -> None:
    family, _, size = arm.partition("@")
    norm, _, eps = size.partition(":")
    own = {"kind": "attack" if size else "clean", "family": family, "norm": norm or None}
    own |= {"eps": float(eps) if eps else None}
    own |= {name: value for name, value in facts.items() if name in own}
    key = {"model": model, "arm": arm}
    row = {"origin": "study", "params": json.dumps({"steps": 10}), "seed": 0} | own | facts
    tables["arms"].append(key | {"recipe": f"{model}/{arm}", "repeats": len(texts)} | row)
    for repeat, text in enumerate(texts):
        cell = {"cell": f"{model}/{arm}/{repeat}", "repeat": repeat}
        tables["cells"].append(
            key
            | cell
            | {"recipe": f"{model}/{arm}", "shard": "one", "flags": flags or [], "version": "0.1", "torch": "2.0"}
        )
        tables["outcomes"] += [
            key | cell | own | {"sample": f"s{place}", "outcome": OUTCOMES[c], "criterion": "label"} | more
            for place, c in enumerate(text)
            if c != "."
        ]


@pytest.fixture
def made(tmp_path: Path) -> Make:
    """`write_rows` into a folder of this test."""
    return lambda *given, **named: write_rows(tmp_path / "run", *given, **named)
