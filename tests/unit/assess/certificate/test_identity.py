"""The classes of clean answers as a digest: near ties are left out, and nothing else."""

from typing import Any

import numpy as np
import pytest

from advrisk.assess.certificate.identity import NEAR_TIE, answers_of, recorded_answers
from advrisk.ledger import Ledger, table_from

from .conftest import Make

N = 40
RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(N, 5)) * 4


def answered(ledger: Ledger, logits: Any, *, with_logits: bool = True) -> Ledger:
    """The ledger with clean answers of a model called n, to all samples but the last one."""
    names = [f"s{place}" for place in range(N - 1)]
    cell = {"cell": ["n/clean"] * len(names), "sample": names}
    rows = cell | {
        "model": ["n"] * len(names),
        "arm": ["clean"] * len(names),
        "kind": ["clean"] * len(names),
        "outcome": ["resisted"] * len(names),
        "clean_prediction": [int(row.argmax()) for row in logits[: N - 1]],
    }
    named = {"model": ["n"], "arm": ["clean"], "recipe": ["n/clean"]}
    tables = {
        "outcomes": table_from("outcomes", rows),
        "cells": table_from("cells", named | {"cell": ["n/clean"], "shard": ["one"], "flags": [[]]}),
        "arms": table_from("arms", named | {"origin": ["study"], "kind": ["clean"]}),
        "models": table_from("models", {"model": ["n"], "random": [False]}),
    }
    if with_logits:
        kept = cell | {"logits": [row.astype(np.float32).tolist() for row in logits[: N - 1]]}
        tables["outputs"] = table_from("outputs", kept)
    ledger.append(tables)
    return ledger.reopened()


@pytest.fixture
def ledger(made: Make) -> Ledger:
    return made({"m": {"pgd@linf:0.1": "r" * N}})


def test_rounding_changes_no_digest_and_another_class_does(ledger: Ledger) -> None:
    found = recorded_answers(answered(ledger, LOGITS), "n")
    assert found is not None
    spread = float(np.median(np.ptp(LOGITS[: N - 1].astype(np.float32), axis=1)))
    margin = np.diff(np.sort(LOGITS, axis=1)[:, -2:])[:, 0]
    names = sorted(f"s{place}" for place in range(N))
    near = {place for place, name in enumerate(names) if margin[int(name[1:])] <= NEAR_TIE * spread or name == "s39"}
    assert set(found.left_out) == near
    assert 1 < len(near) < N / 2
    assert found.n == N - len(near)
    moved = LOGITS + RNG.uniform(-1, 1, LOGITS.shape) * NEAR_TIE * spread * 0.49
    assert any(moved.argmax(1) != LOGITS.argmax(1)), "some near tie is decided otherwise"
    classes = {f"s{place}": int(row.argmax()) for place, row in enumerate(moved)}
    assert answers_of(classes, found.left_out) == found
    kept = next(name for place, name in enumerate(names) if place not in near)
    assert answers_of(classes | {kept: (classes[kept] + 1) % 5}, found.left_out).digest != found.digest


def test_of_labels_alone_every_answer_counts(ledger: Ledger) -> None:
    found = recorded_answers(answered(ledger, LOGITS, with_logits=False), "n")
    assert found is not None
    assert (found.n, len(found.left_out)) == (N - 1, 1)


@pytest.mark.parametrize("fact", ["random", "batch-dependent"])
def test_a_model_that_may_say_something_else_has_none(ledger: Ledger, fact: str) -> None:
    answered(ledger, LOGITS)
    if fact == "random":
        ledger.append({"models": table_from("models", {"model": ["n"], "random": [True]})})
    else:
        named = {"model": ["n"], "arm": ["pgd"], "recipe": ["n/pgd"]}
        cell = named | {"cell": ["n/pgd"], "shard": ["one"], "flags": [[fact]]}
        arm = named | {"origin": ["study"], "kind": ["attack"]}
        ledger.append({"cells": table_from("cells", cell), "arms": table_from("arms", arm)})
    assert recorded_answers(ledger.reopened(), "n") is None
    assert recorded_answers(ledger.reopened(), "m") is None, "no class of it is known"
