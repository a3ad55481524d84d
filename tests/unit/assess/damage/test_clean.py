"""Refusals, from hand-made rows: beside the accuracy, and as losses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.clean import clean_shares, on_rejection
from advrisk.assess.failures.modes import failure_modes
from advrisk.assess.failures.words import caption
from advrisk.assess.indicators.assessment import assess_indicators
from advrisk.assess.indicators.reading import read_tensor
from advrisk.ledger import Ledger, table_from
from advrisk.risk.indicators import Scenario
from advrisk.risk.losses import Answers, bound_loss, custom_loss

# What a model says of six samples of class 0; None: it refuses to.
CLEAN: list[int | None] = [0, 0, 0, 1, None, None]
PGD: list[int | None] = [0, 2, None, 1, None, 2]


def made(folder: Path, clean: list[int | None] = CLEAN, pgd: list[int | None] = PGD) -> Ledger:
    """A ledger of one model; a wrong clean input is not attacked, a refused one is."""
    outcomes, outputs = [], []
    for arm, said in (("clean", clean), ("pgd", pgd)):
        for place, prediction in enumerate(said):
            outcome = "rejected" if prediction is None else "success" if prediction else "resisted"
            if arm == "pgd" and clean[place]:
                outcome = "already_wrong"
            row = {"model": "net", "arm": arm, "kind": "clean" if arm == "clean" else "attack", "cell": arm}
            answer = {"prediction": prediction, "clean_prediction": clean[place] or 0, "confidence": 0.5}
            sample = f"x{place}"
            outcomes.append(row | answer | {"sample": sample, "outcome": outcome, "repeat": 0, "n_rejected": 0})
            logits = np.eye(3)[2 if prediction is None else prediction].tolist()
            outputs.append({"cell": arm, "sample": sample, "logits": logits})
    facts = {"model": "net", "origin": "study", "repeats": 1}
    tables: dict[str, list[dict[str, Any]]] = {
        "outcomes": outcomes,
        "outputs": outputs,
        "arms": [
            facts | {"arm": "clean", "kind": "clean", "recipe": "clean", "family": "clean"},
            facts | {"arm": "pgd", "kind": "attack", "recipe": "pgd", "family": "pgd"},
        ],
        "cells": [{"model": "net", "arm": arm, "recipe": arm, "cell": arm, "repeat": 0} for arm in ("clean", "pgd")],
        "samples": [
            {"sample": f"x{place}", "split": "evaluate", "weight": 1.0, "label": 0, "shard": "s"} for place in range(6)
        ],
        "models": [{"model": "net", "capability": "scores", "n_classes": 3}],
    }
    ledger = Ledger.open(folder, create=True)
    ledger.append(
        {
            name: table_from(name, {column: [row[column] for row in rows] for column in rows[0]})
            for name, rows in tables.items()
        }
    )
    return Ledger.open(folder)


def test_what_is_refused_is_not_right_and_not_wrong(tmp_path: Path) -> None:
    ledger = made(tmp_path)
    accuracy, rejection = (shares["net"] for shares in clean_shares(ledger))
    assert (accuracy.value, accuracy.n) == (3 / 6, 6)
    assert (rejection.value, rejection.n) == (2 / 6, 6)
    (sentence,) = on_rejection({"net": rejection})
    assert sentence.startswith("Clean inputs that are refused: net 33.3 % [4.3, 77.7].")


def test_where_nothing_is_ever_refused_nothing_is_said(tmp_path: Path) -> None:
    ledger = made(tmp_path, [0, 0, 0, 1, 0, 0], [0, 2, 0, 1, 0, 2])
    assert clean_shares(ledger).rejection == {}
    assert on_rejection({}) == []


def test_a_refused_input_costs_nothing_but_under_its_own_loss(tmp_path: Path) -> None:
    ledger = made(tmp_path)
    found = read_tensor(ledger, "net", ["misclassified", "class-change", "rejected", "confidence-drop"])
    misclassified, change, rejected, drop = (found.data.values[place, :, :, 0].T.tolist() for place in range(4))
    assert misclassified == [[0, 0, 0, 1, 0, 0], [0, 1, 0, 1, 0, 1]]
    assert change[0] == [0, 0, 0, 0, 0, 0]
    assert change[1] == [0, 1, 0, pytest.approx(np.nan, nan_ok=True), 0, 1], "what was wrong already was not attacked"
    assert rejected == [[0, 0, 0, 0, 1, 1], [0, 0, 1, 0, 1, 0]]
    assert drop[1][2] == drop[1][4] == 0
    assert drop[1][1] > 0


def test_indicators_say_what_is_refused(tmp_path: Path) -> None:
    scenario = Scenario.from_mapping("town", {"evil": {"weight": 1.0, "arms": ["pgd"]}})
    found = assess_indicators(made(tmp_path), [scenario], ["rejected"])
    assert any(note.startswith("Clean inputs that are refused: net 33.3 %") for note in found.notes)
    assert found.results[0].models[0].risk.value == pytest.approx(2 / 6)
    modes = failure_modes(Ledger.open(tmp_path), found.results[0], found.tensors or {})
    refused = [one for mode in modes.modes for one in mode.failures if one.outcome == "rejected"]
    assert refused
    assert {caption(one) for one in refused} == {"0 refused"}


def test_a_loss_of_ones_own_is_zero_there_too_or_the_least_it_can_be() -> None:
    given = Answers(
        prediction=np.array([1, 1]),
        label=np.array([0, 0]),
        clean_prediction=np.array([0, 0]),
        confidence=np.array([0.9, 0.9]),
        clean_confidence=np.array([0.9, 0.9]),
        rejected=np.array([False, True]),
    )
    assert custom_loss("seven", lambda answers: np.full(len(answers), 7.0))(given).tolist() == [7, 0]
    assert custom_loss("seven", lambda answers: np.full(len(answers), 7.0), range=(1, 9))(given).tolist() == [7, 1]
    assert bound_loss("rejected")(given).tolist() == [0, 1]
