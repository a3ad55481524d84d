"""What queries to a random model meet, from hand-made draws."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.clean import clean_shares
from advrisk.assess.damage.queries import on_queries, read_queries
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from

N, DRAWS = 30, 11
ARMS = {"clean": 0.0, "near": 0.1, "far": 0.3}


def ledger_of(folder: Path, draws: dict[str, Any], keep: str = "strongest", **more: Any) -> Ledger:
    """Arm -> (samples, draws) of classes, or shares of success where draws are not stored. Labels are n % 3."""
    tables: dict[str, list[dict[str, Any]]] = {"outcomes": [], "arms": [], "cells": []}
    for arm, size in ARMS.items():
        kind = {"kind": "clean"} if arm == "clean" else {"kind": "attack", "norm": "linf", "eps": size}
        key = {"model": "net", "arm": arm}
        tables["arms"].append(key | kind | {"recipe": arm, "repeats": 1, "origin": "study", "keep": keep})
        tables["cells"].append(key | {"cell": arm, "recipe": arm, "repeat": 0})
        for n, said in enumerate(draws[arm]):
            row = key | kind | {"cell": arm, "sample": str(n), "repeat": 0, "criterion": "label", "outcome": "resisted"}
            told = {"success_rate": float(said)} if np.ndim(said) == 0 else {"draws": [int(one) for one in said]}
            tables["outcomes"].append(
                row | told | {"d_linf": size, "prediction": n % 3, "clean_prediction": (n + 1) % 3} | more
            )
    tables["samples"] = [{"sample": str(n), "split": "evaluate", "weight": 1.0, "label": n % 3} for n in range(N)]
    tables["models"] = [{"model": "net", "random": True}, {"model": "calm", "random": False}]
    columns = {name: dict.fromkeys(key for row in rows for key in row) for name, rows in tables.items()}
    Ledger.open(folder, create=True).append(
        {
            name: table_from(name, {column: [row.get(column) for row in rows] for column in columns[name]})
            for name, rows in tables.items()
        }
    )
    return Ledger.open(folder)


@pytest.fixture
def draws() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {arm: rng.integers(-1, 3, (N, DRAWS)) for arm in ARMS}


LABEL = np.arange(N)[:, None] % 3


def fair(errs: list[Any]) -> Any:
    """By one sample at a time: five draws choose, six say, and the other way round."""
    found = []
    for n in range(len(errs[0])):
        early, late = ([float(one[n, part].mean()) for one in errs] for part in (slice(5), slice(5, None)))
        by_early, by_late = max(range(len(errs)), key=early.__getitem__), max(range(len(errs)), key=late.__getitem__)
        found.append((5 * early[by_late] + 6 * late[by_early]) / 11)
    return np.array(found)


@pytest.mark.parametrize(("eps", "arms"), [(0.0, ["clean"]), (0.1, ["clean", "near"]), (0.3, list(ARMS))])
def test_the_worst_point_within_a_size(tmp_path: Path, draws: dict[str, Any], eps: float, arms: list[str]) -> None:
    ledger = ledger_of(tmp_path, draws)
    order = [str(n) for n in reversed(range(N))]
    found = read_queries(ledger, norm="linf", arms=["near", "far"], samples=order)
    assert list(found) == ["net"], "others do not draw"
    arms = sorted(arms, key=lambda arm: f"{arm} 0")
    hits = [(draws[arm] >= 0) & (draws[arm] != LABEL) for arm in arms]
    wrong = [draws[arm] != LABEL for arm in arms]
    assert found["net"].broken(eps)[::-1] == pytest.approx(fair(hits))
    assert found["net"].correct(eps)[::-1] == pytest.approx(1 - fair(wrong))


@pytest.mark.parametrize("criterion", ["prediction", "target"])
def test_success_may_mean_something_else(tmp_path: Path, draws: dict[str, Any], criterion: str) -> None:
    ledger = ledger_of(tmp_path, draws, criterion=criterion, target=2)
    found = read_queries(ledger, norm="linf", arms=[], samples=[str(n) for n in range(N)])["net"]
    said = draws["clean"]
    hits = (said == 2) & (LABEL != 2) if criterion == "target" else (said >= 0) & (said != (LABEL + 1) % 3)
    assert found.broken(0.0) == pytest.approx(hits.mean(1))
    assert found.correct(0.0) == pytest.approx((said == LABEL).mean(1))


def test_ledgers_without_draws_know_the_share_that_succeeded(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, {arm: np.full(N, share) for arm, share in zip(ARMS, (0.2, 0.4, 0.6), strict=True)})
    found = read_queries(ledger, norm="linf", arms=["near", "far"], samples=[str(n) for n in range(N)])["net"]
    assert found.broken(0.1) == pytest.approx(0.4)
    assert found.correct(0.3) == pytest.approx(0.4)
    assert clean_shares(ledger).accuracy["net"].value == pytest.approx(0.8)


def test_clean_shares_are_shares_of_queries(tmp_path: Path, draws: dict[str, Any]) -> None:
    found = clean_shares(ledger_of(tmp_path, draws, n_rejected=1))
    accuracy, rejection = found.accuracy["net"], found.rejection["net"]
    assert accuracy.value == pytest.approx((draws["clean"] == LABEL).mean())
    assert rejection.value == pytest.approx((draws["clean"] == -1).mean())
    assert accuracy.method == rejection.method == "samples and draws, Gaffke"
    assert accuracy.low < accuracy.value < accuracy.high


def test_in_words() -> None:
    assert on_queries([]) == []
    assert on_queries(["a", "b"])[0].startswith("Answers at random: a, b. Clean accuracy")


def test_a_size_that_no_attack_had_is_refused(tmp_path: Path, draws: dict[str, Any]) -> None:
    """The walk back met successes at 0.05; how often a query errs there was not measured."""
    ledger = ledger_of(tmp_path, draws, outcome="success", near_linf=0.05)
    points = read_queries(ledger, norm="linf", arms=["near", "far"], samples=[str(n) for n in range(N)])["net"]
    assert [eps for eps in (0.0, 0.05, 0.1, 0.2, 0.3, 0.4) if points.measured(eps)] == [0.0, 0.1, 0.3]
    for share in (points.broken, points.correct):
        with pytest.raises(RiskError, match=r"net answers at random, and no attack had an eps of 0\.05"):
            share(0.05)


def test_an_attack_that_looks_for_the_smallest_change_measures_every_size(
    tmp_path: Path, draws: dict[str, Any]
) -> None:
    ledger = ledger_of(tmp_path, draws, keep="smallest")
    points = read_queries(ledger, norm="linf", arms=["near", "far"], samples=[str(n) for n in range(N)])["net"]
    assert [eps for eps in (0.05, 0.1, 0.2, 0.3, 0.4) if points.measured(eps)] == [0.05, 0.1, 0.2, 0.3]
    assert points.broken(0.2) == pytest.approx(points.broken(0.1))
