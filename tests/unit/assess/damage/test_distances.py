"""d_A from hand-made rows: what counts, what is left out, what is refused."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.damage.distances import smallest_distances
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from

INF = float("inf")


def rows_as(table: str, rows: Sequence[dict[str, Any]]) -> Any:
    names = dict.fromkeys(name for row in rows for name in row)
    return table_from(table, {name: [row.get(name) for row in rows] for name in names})


def ledger_of(tmp_path: Path, outcomes: list[dict[str, Any]], **changes: Any) -> Ledger:
    """A ledger of these rows; `weights` by sample and `dropped` arms may differ from the usual."""
    ledger = Ledger.open(tmp_path, create=True)
    pairs = dict.fromkeys((row["model"], row["arm"]) for row in outcomes)
    repeats = {arm: 1 + max(row.get("repeat", 0) for row in outcomes if row["arm"] == arm) for _, arm in pairs}
    arms = [
        {"model": model, "arm": arm, "recipe": f"{model}/{arm}", "repeats": repeats[arm]}
        | {"origin": "dropped" if arm in changes.get("dropped", ()) else "study"}
        | {"kind": "corruption" if arm == "rain" else "attack", "norm": None if arm == "rain" else "linf"}
        for model, arm in pairs
    ]
    cells = [{"cell": f"{m}/{a}", "model": m, "arm": a, "recipe": f"{m}/{a}", "repeat": 0} for m, a in pairs]
    samples = [
        {"sample": sample, "split": changes.get("splits", {}).get(sample, "evaluate")}
        | {"weight": changes.get("weights", {}).get(sample, 1.0)}
        for sample in dict.fromkeys(row["sample"] for row in outcomes)
    ]
    full = [{"cell": f"{row['model']}/{row['arm']}", "repeat": 0, "kind": "attack", **row} for row in outcomes]
    tables = {"outcomes": full, "cells": cells, "arms": arms, "samples": samples}
    ledger.append({name: rows_as(name, rows) for name, rows in tables.items()})
    return Ledger.open(tmp_path)


def row(
    model: str, arm: str, sample: str, outcome: str, distance: float | None = None, repeat: int = 0
) -> dict[str, Any]:
    return {"model": model, "arm": arm, "sample": sample, "outcome": outcome, "d_linf": distance, "repeat": repeat}


def test_the_smallest_success_counts_and_already_wrong_is_zero(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [
            row("m", "a", "1", "success", 0.3),
            row("m", "b", "1", "success", 0.2),
            row("m", "a", "2", "already_wrong", 0.0),
            row("m", "b", "2", "already_wrong", 0.0),
            row("m", "a", "3", "resisted", 0.1),  # where a resisted row was left does not count
            row("m", "b", "3", "resisted", 0.1),
            row("m", "a", "4", "resisted", 0.1),
            row("m", "b", "4", "success", 0.5),
        ],
    )
    found = smallest_distances(ledger, norm="linf")
    assert found.samples == ("1", "2", "3", "4")
    np.testing.assert_array_equal(found.by_model["m"], [0.2, 0.0, INF, 0.5])


def test_a_sample_without_a_verdict_is_left_out_even_if_another_arm_broke_it(tmp_path: Path) -> None:
    """To leave out only the unbroken ones would keep the weak samples and turn the verdict round."""
    ledger = ledger_of(
        tmp_path,
        [
            row("m", "a", "1", "error"),
            row("m", "b", "1", "success", 0.2),
            row("m", "a", "2", "timeout"),
            row("m", "b", "2", "resisted", 0.1),
            row("m", "a", "3", "success", 0.4),
            row("m", "b", "3", "resisted", 0.1),
            *(row("n", arm, sample, "success", 0.1) for arm in "ab" for sample in "123"),
        ],
    )
    found = smallest_distances(ledger, norm="linf")
    assert found.samples == ("3",)
    assert (found.n_samples, found.n_without_verdict, found.n_unfinished) == (3, 2, 0)
    np.testing.assert_array_equal(found.by_model["m"], [0.4])
    assert found.too_few


def test_models_attacked_by_different_arms_are_not_compared(tmp_path: Path) -> None:
    rows = [
        row("m", "a", "1", "resisted", 0.1),
        row("n", "a", "1", "resisted", 0.1),
        row("n", "b", "1", "success", 0.1),
    ]
    ledger = ledger_of(tmp_path, rows)
    with pytest.raises(RiskError, match="m was not attacked by b"):
        smallest_distances(ledger, norm="linf")
    assert smallest_distances(ledger, norm="linf", arms=["a"]).arms == ("a",)


def test_a_sample_with_a_missing_row_is_left_out_for_all_models(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [
            row("m", "a", "1", "success", 0.3),
            row("m", "a", "1", "success", 0.1, repeat=1),
            row("m", "a", "2", "success", 0.3),
            row("n", "a", "1", "success", 0.3),
            row("n", "a", "1", "success", 0.3, repeat=1),
            row("n", "a", "2", "success", 0.3),
            row("n", "a", "2", "success", 0.2, repeat=1),
        ],
    )
    found = smallest_distances(ledger, norm="linf")
    assert (found.samples, found.n_unfinished) == (("1",), 1)
    np.testing.assert_array_equal(found.by_model["m"], [0.1])


def test_corruptions_count_only_if_named_and_dropped_arms_never(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        [
            row("m", "a", "1", "success", 0.3),
            row("m", "rain", "1", "success", 0.2),
            row("m", "old", "1", "success", 0.1),
        ],
        dropped=["old"],
    )
    assert smallest_distances(ledger, norm="linf").arms == ("a",)
    named = smallest_distances(ledger, norm="linf", arms=["a", "ra*"])
    np.testing.assert_array_equal(named.by_model["m"], [0.2])
    assert "old" not in smallest_distances(ledger, norm="linf", arms=["*"]).arms
    with pytest.raises(RiskError, match="did you mean 'rain'"):
        smallest_distances(ledger, norm="linf", arms=["rains"])


def test_samples_outside_the_evaluation_are_ignored(tmp_path: Path) -> None:
    rows = [row("m", "a", sample, "success", 0.1) for sample in "123"]
    ledger = ledger_of(tmp_path, rows, splits={"2": "dropped"})
    assert smallest_distances(ledger, norm="linf").samples == ("1", "3")


def test_what_cannot_be_answered_is_refused(tmp_path: Path) -> None:
    weighted = ledger_of(tmp_path / "w", [row("m", "a", s, "success", 0.1) for s in "12"], weights={"1": 2.0})
    with pytest.raises(RiskError, match="different weight"):
        smallest_distances(weighted, norm="linf")
    with pytest.raises(RiskError, match="no attack with a norm"):
        smallest_distances(ledger_of(tmp_path / "c", [row("m", "rain", "1", "success", 0.1)]), norm="linf")
    with pytest.raises(RiskError, match="no sample has a verdict"):
        smallest_distances(ledger_of(tmp_path / "e", [row("m", "a", "1", "error")]), norm="linf")


def test_a_success_without_a_distance_is_not_taken_for_robust(found_by: Callable[..., Ledger]) -> None:
    ledger = found_by({"m": {"pgd": [0.1, INF], "fgsm": [0.2, INF]}})
    with pytest.raises(RiskError, match=r"m, sample 0: a success has no l2 distance \(1 in all\)"):
        smallest_distances(ledger, norm="l2")
