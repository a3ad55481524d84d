"""Failure modes: which branches, which samples, in which order, and the answer that cost most."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.failures.modes import FailureModes, failure_modes
from advrisk.assess.indicators.assessment import IndicatorAssessment, assess_indicators
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.risk.indicators import Scenario

LABEL = 0
# Predictions of six samples of class 0 under each arm, by repeat; how sure the model was is in SURE.
ANSWERS: dict[str, list[list[int]]] = {
    "clean": [[0, 0, 0, 0, 0, 9]],
    "rain-1": [[0, 1, 0, 2, 0, 9], [0, 0, 3, 2, 0, 9]],
    "rain-2": [[0, 1, 0, 2, 0, 9], [0, 1, 0, 2, 0, 9]],
    "pgd": [[4, 4, 0, 4, 4, 9]],
}
KIND = {"clean": "clean", "rain-1": "corruption", "rain-2": "corruption", "pgd": "attack"}
SURE = {"pgd": [0.6, 0.9, 0.5, 0.7, 0.9, 0.99]}
TOWN = {"rain": {"weight": 0.5, "arms": ["rain-*"]}, "evil": {"weight": 0.1, "arms": ["pgd"]}}


def made(folder: Path, answers: dict[str, list[list[int]]] = ANSWERS) -> Ledger:
    """A ledger of one model with these answers."""
    outcomes, arms, cells = [], [], []
    for arm, repeats in answers.items():
        facts = {"model": "net", "arm": arm, "kind": KIND[arm], "recipe": arm}
        arms.append(facts | {"origin": "study", "repeats": len(repeats), "family": arm.partition("-")[0]})
        for repeat, said in enumerate(repeats):
            cell = f"{arm}/{repeat}"
            cells.append({"model": "net", "arm": arm, "recipe": arm, "cell": cell, "repeat": repeat, "shard": "s"})
            for place, prediction in enumerate(said):
                skipped = KIND[arm] == "attack" and answers["clean"][0][place] != LABEL
                outcome = "already_wrong" if skipped else "success" if prediction != LABEL else "resisted"
                answer = {"prediction": prediction, "clean_prediction": answers["clean"][0][place]}
                sure = SURE.get(arm, [0.8] * 6)[place]
                key = {"model": "net", "arm": arm, "kind": KIND[arm], "cell": cell, "repeat": repeat}
                outcomes.append(key | answer | {"sample": f"x{place}", "outcome": outcome, "confidence": sure})
    samples = [
        {"sample": f"x{place}", "split": "evaluate", "weight": 1.0, "label": LABEL, "shard": "s", "strata": None}
        for place in range(6)
    ]
    models = [{"model": "net", "capability": "scores", "n_classes": 10}]
    tables = {"outcomes": outcomes, "arms": arms, "cells": cells, "samples": samples, "models": models}
    Ledger.open(folder, create=True).append({name: _table(name, rows) for name, rows in tables.items()})
    return Ledger.open(folder)


def _table(name: str, rows: list[dict[str, Any]]) -> Any:
    columns = dict.fromkeys(column for row in rows for column in row)
    return table_from(name, {column: [row.get(column) for row in rows] for column in columns})


def assessed(ledger: Ledger, town: dict[str, Any] = TOWN) -> IndicatorAssessment:
    return assess_indicators(ledger, [Scenario.from_mapping("town", town)], ["misclassified"])


def modes(ledger: Ledger, town: dict[str, Any] = TOWN, **asked: Any) -> FailureModes:
    found = assessed(ledger, town)
    assert found.tensors is not None
    return failure_modes(ledger, found.results[0], found.tensors, **asked)


def test_branches_come_by_what_they_contribute(tmp_path: Path) -> None:
    found = modes(made(tmp_path))
    # rain: (0 + 3/4 + 1/4 + 1 + 0 + 1) / 6 = 0.5, half of the time; pgd: 5/6, a tenth; clean: 1/6, four tenths.
    parts = {"rain": 0.5 * 0.5, "evil": 0.1 * 5 / 6, "clean": 0.4 / 6}
    assert [mode.path for mode in found.modes] == ["rain", "evil", "clean"]
    for mode in found.modes:
        assert mode.contribution.value == pytest.approx(parts[mode.path])
        assert mode.share == pytest.approx(parts[mode.path] / sum(parts.values()))


def test_samples_that_the_branch_made_worse_come_first_then_the_larger_loss(tmp_path: Path) -> None:
    rain = modes(made(tmp_path)).modes[0]
    assert [one.sample for one in rain.failures] == ["x3", "x1", "x2", "x5"]  # x5 is as wrong clean
    assert [one.branch_loss for one in rain.failures] == [1.0, 0.75, 0.25, 1.0]
    assert [one.made_worse for one in rain.failures] == [True, True, True, False]
    assert (rain.n, rain.n_hurt, rain.n_made_worse) == (6, 4, 3)


def test_the_answer_shown_is_one_that_cost_most(tmp_path: Path) -> None:
    third = modes(made(tmp_path)).modes[0].failures[2]
    assert (third.arm, third.repeat, third.prediction, third.clean_prediction) == ("rain-1", 1, 3, 0)
    assert (third.loss, third.clean_loss, third.outcome, third.cell) == (1.0, 0.0, "success", "rain-1/1")


def test_of_equal_losses_the_surer_answer_comes_first(tmp_path: Path) -> None:
    evil = modes(made(tmp_path)).modes[1]
    assert [one.sample for one in evil.failures] == ["x1", "x4", "x3", "x0", "x5"]
    assert [one.sample for one in modes(made(tmp_path / "again"), n=2).modes[1].failures] == ["x1", "x4"]
    assert evil.failures[-1].outcome == "already_wrong"
    assert evil.failures[-1].prediction == 9


def test_branches_that_contribute_alike_come_by_their_own_risk(tmp_path: Path) -> None:
    town = {"rain": {"weight": 0, "arms": ["rain-*"]}, "evil": {"weight": 0, "arms": ["pgd"]}}
    assert [mode.path for mode in modes(made(tmp_path), town).modes] == ["clean", "evil", "rain"]


def test_a_branch_without_loss_is_no_failure_mode(tmp_path: Path) -> None:
    right = {arm: [[0] * 6 for _ in repeats] for arm, repeats in ANSWERS.items()}
    found = modes(made(tmp_path, right | {"pgd": ANSWERS["pgd"][:1]}))
    assert [mode.path for mode in found.modes] == ["evil"]
    nothing = modes(made(tmp_path / "right", right))
    assert nothing.modes == ()
    assert nothing.models == ("net",)


def test_a_branch_of_some_samples_shows_no_others(tmp_path: Path) -> None:
    ledger = made(tmp_path)
    place = {f"x{k}": "wet" if k < 2 else "dry" for k in range(6)}
    rows = ledger.query("FROM samples ORDER BY sample").to_pylist()
    dressed = [row | {"strata": f'{{"road": "{place[row["sample"]]}"}}'} for row in rows]
    ledger.append({"samples": _table("samples", dressed)})
    town = {"rain": {"weight": 0.5, "arms": ["rain-*"], "where": {"road": "wet"}}}
    rain = modes(Ledger.open(tmp_path), town).modes[0]
    assert [one.sample for one in rain.failures] == ["x1"]
    assert rain.n == 2


def test_everything_fits_into_json(tmp_path: Path) -> None:
    import json

    found = json.loads(json.dumps(modes(made(tmp_path)).as_dict()))
    assert found["modes"][0]["failures"][0]["sample"] == "x3"


@pytest.mark.parametrize("asked", [{"n": 0}, {"branches": 0}])
def test_nothing_to_be_shown_is_refused(tmp_path: Path, asked: dict[str, int]) -> None:
    with pytest.raises(RiskError, match="at least one sample and one branch"):
        modes(made(tmp_path), **asked)


def test_a_model_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RiskError, match="no model 'nett' was compared; did you mean 'net'"):
        modes(made(tmp_path), models=["nett"])


def test_the_worst_are_those_that_brute_force_finds(tmp_path: Path) -> None:
    """Order and choice against a loop over all answers, for random ones."""
    rng = np.random.default_rng(5)
    answers = {arm: rng.choice(2, size=(len(r), 6), p=[0.6, 0.4]).tolist() for arm, r in ANSWERS.items()}
    answers["clean"][0][0] = 0
    rain = next(mode for mode in modes(made(tmp_path, answers)).modes if mode.path == "rain")
    expected = []
    for place in range(6):
        said = [repeat[place] for arm in ("rain-1", "rain-2") for repeat in answers[arm]]
        loss, clean = sum(one != LABEL for one in said) / 4, float(answers["clean"][0][place] != LABEL)
        if loss > 0:
            expected.append((not loss > clean, -loss, f"x{place}"))
    assert [one.sample for one in rain.failures] == [name for *_, name in sorted(expected)]
