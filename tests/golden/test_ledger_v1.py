"""A ledger of schema version 1, as it was written then: every number below is known by hand.

d_A is the smallest d_linf over the successful attack rows that count, 0 where the model was wrong before,
infinite where nothing succeeded:

    sample      plain                                        hardened
    000001      min(fgsm 0.08, pgd 0.05, 0.06) = 0.05        nothing succeeds: inf
    000002      min(pgd 0.09, 0.07)            = 0.07        min(fgsm 0.1, pgd 0.08, 0.085) = 0.08
    000003      fgsm                           = 0.1         pgd, second draw (the first ran out of time) = 0.075
    000004      wrong before                   = 0           pgd, first draw = 0.095

Sample 000003 is left out of the comparison: one draw against `hardened` gave no verdict.
The old recipe of PGD against `plain` (0.01, 0.02) and the noise (0.04, not an attack) must not count.
"""

import importlib.util
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from advrisk.assess.damage.distances import smallest_distances
from advrisk.ledger import TABLES, Ledger
from advrisk.risk.damage import detector_free_damage

HERE = Path(__file__).parent
FOLDER = HERE / "ledger-v1"
SAMPLES = ["digits/000001", "digits/000002", "digits/000003", "digits/000004"]
D_A = {"plain": [0.05, 0.07, 0.1, 0.0], "hardened": [math.inf, 0.08, 0.075, 0.095]}


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger.open(FOLDER)


def rows(ledger: Ledger, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ledger.query(sql).to_pylist()]


def test_the_files_are_of_version_1_and_few() -> None:
    files = sorted(FOLDER.rglob("*.parquet"))
    assert {pq.read_schema(file).metadata[b"advrisk.schema"] for file in files} == {b"1"}
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 100_000


def test_the_smallest_distances(ledger: Ledger) -> None:
    found = smallest_distances(ledger, norm="linf")
    assert found.samples == (SAMPLES[0], SAMPLES[1], SAMPLES[3])
    expected = {model: [values[0], values[1], values[3]] for model, values in D_A.items()}
    assert {model: values.tolist() for model, values in found.by_model.items()} == expected
    assert (found.n_samples, found.n_unfinished, found.n_without_verdict) == (4, 0, 1)


def test_the_smallest_distances_by_sql(ledger: Ledger) -> None:
    sql = """
        SELECT model, sample, min(CASE outcome WHEN 'success' THEN d_linf WHEN 'already_wrong' THEN 0 END)
        FROM outcomes WHERE kind = 'attack' GROUP BY ALL ORDER BY ALL
    """
    expected = [
        (model, sample, None if math.isinf(distance) else distance)
        for model in sorted(D_A)
        for sample, distance in zip(SAMPLES, D_A[model], strict=True)
    ]
    assert rows(ledger, sql) == expected


def test_relative_damage(ledger: Ledger) -> None:
    """Of the 6 distances so many are greater: plain 4 + 3 + 5 = 12, hardened 0 + 2 + 1 = 3; 3 × 6 = 18."""
    by_model = smallest_distances(ledger, norm="linf").by_model
    found = detector_free_damage(by_model, resamples=100, rng=np.random.default_rng(0))
    assert {model: estimate.value for model, estimate in found.estimates.items()} == {
        "plain": 12 / 18,
        "hardened": 3 / 18,
    }


def test_counts_per_model_and_outcome(ledger: Ledger) -> None:
    assert rows(ledger, "SELECT model, outcome, count(*) FROM outcomes GROUP BY ALL ORDER BY ALL") == [
        ("hardened", "rejected", 1),
        ("hardened", "resisted", 13),
        ("hardened", "success", 5),
        ("hardened", "timeout", 1),
        ("plain", "already_wrong", 3),
        ("plain", "resisted", 8),
        ("plain", "success", 9),
    ]


def test_one_row_per_model_arm_sample_and_repeat(ledger: Ledger) -> None:
    keys = rows(ledger, "SELECT model, arm, sample, repeat FROM outcomes")
    assert len(keys) == len(set(keys)) == 2 * 5 * 4


def test_the_cell_that_failed_was_run_again_and_the_one_out_of_time_was_not(ledger: Ledger) -> None:
    assert rows(ledger, "SELECT count(*) FROM outcomes WHERE message IS NOT NULL") == [(0,)]
    assert rows(ledger, "SELECT model, arm, repeat, n_errors, flags FROM cells WHERE n_errors > 0") == [
        ("hardened", "pgd-linf-0.1-ace", 0, 1, ["unconfirmed"])
    ]
    finished = ledger.finished_cells()
    assert len(finished) == 12, "ten cells, and the two of the old recipe"
    assert finished - ledger.finished_cells(without_errors=True) == {"cell-recipe-hardened-pgd-linf-0.1-ace-0"}


def test_passes_outputs_and_scores(ledger: Ledger) -> None:
    # 20 rows against each model, one of them without a verdict; 12 of each model's rows are of attacks.
    assert rows(
        ledger, "SELECT model, sum(n_forward), sum(n_backward), sum(n_judge) FROM outcomes GROUP BY 1 ORDER BY 1"
    ) == [
        ("hardened", 19 * 11, 11 * 10, 19),
        ("plain", 20 * 11, 12 * 10, 20),
    ]
    assert rows(ledger, "SELECT count(*), min(logits[2]), max(logits[1]) FROM outputs") == [(39, 2.5, 1.0)]
    assert rows(ledger, "SELECT sample, detector, score FROM scores ORDER BY sample") == [
        ("digits/000001", "detector-1", 0.25),
        ("digits/000002", "detector-1", 0.75),
    ]


def test_models_samples_and_arms(ledger: Ledger) -> None:
    assert rows(ledger, "SELECT model, digest, input_shape, train_s, tags FROM models ORDER BY model") == [
        ("hardened", "d-hardened", [1, 8, 8], None, "{}"),
        ("plain", "d-plain", [1, 8, 8], 1.5, '{"depth": 8}'),
    ]
    assert rows(ledger, "SELECT sample, label, split, strata->>'site', place FROM samples ORDER BY sample") == [
        ("digits/000001", 0, "evaluate", "south", 0),
        ("digits/000002", 1, "evaluate", "north", 1),
        ("digits/000003", 2, "evaluate", "south", 2),
        ("digits/000004", 3, "evaluate", "north", 3),
        ("digits/000009", 9, "calibrate", "south", None),
    ]
    assert rows(ledger, "SELECT count(*), sum(repeats) FROM arms") == [(8, 10)]
    assert rows(ledger, "SELECT params->>'steps' FROM arms WHERE arm LIKE 'pgd%' ORDER BY model") == [("10",), ("40",)]


def test_the_script_that_made_it_makes_it_again(ledger: Ledger, tmp_path: Path) -> None:
    """In the present version, whose new columns are as empty as those that the old files lack."""
    script("make_ledger_v1").make(tmp_path / "again")
    again = Ledger.open(tmp_path / "again")
    for name in TABLES:
        columns = ", ".join(TABLES[name].names)
        query = f"SELECT {columns}, parse_path(filename)[-2] AS segment FROM all_{name} ORDER BY ALL"
        assert again.query(query).to_pylist() == ledger.query(query).to_pylist()


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
