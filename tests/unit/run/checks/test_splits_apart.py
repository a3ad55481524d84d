"""Rows on samples to tune and to calibrate are in the ledger, and in no assessment of the evaluated samples."""

import json
from pathlib import Path
from typing import Any

import pytest

from advrisk import Run
from advrisk.ledger.exchange.exporting import export_inputs
from advrisk.run.campaign import run_study
from advrisk.run.dry import dry_run
from advrisk.run.options import Options
from advrisk.run.progress import Progress
from advrisk.study import study_from
from tests.unit.run.nets import untrained_pair

SEARCH = [{"attack": "pgd", "norm": "linf", "eps": 0.3, "steps": 2, "method": "grid", "rounds": 2}]
BESIDE: dict[str, Any] = {"search": SEARCH, "assess": {"certificate": {}}}


def content(**changes: Any) -> dict[str, Any]:
    return {
        "name": "apart",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 20, "calibrate": 16, "tune": 16},
        "models": {
            "one": {"source": "object", "expect_accuracy": 0},
            "two": {"source": "object", "expect_accuracy": 0},
        },
        "success": "prediction",
        "arms": [
            {"attack": ["fgsm", "pgd"], "norm": "linf", "eps": 0.3},
            {"corruption": "gaussian-noise", "sigma": 0.3},
        ],
        "detectors": ["confidence"],
        "losses": ["misclassified", "confidence-drop"],
        "scenarios": {"grainy": {"gaussian-noise": 0.3, "pgd": 0.1}},
        "shard": 16,
    } | changes


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run, Progress]:
    """The same study without and with a search and a certificate."""
    folder = tmp_path_factory.mktemp("apart")
    alone, beside = folder / "alone" / "run", folder / "beside" / "run"
    run_study(study_from(content()), alone, modules=untrained_pair())
    progress = run_study(study_from(content(**BESIDE)), beside, modules=untrained_pair())
    return Run.open(alone), Run.open(beside), progress


def test_the_rows_are_there(runs: tuple[Run, Run, Progress]) -> None:
    alone, beside, progress = runs
    rows = beside.query(
        "SELECT split, count(*) AS n FROM outcomes JOIN samples USING (sample) GROUP BY ALL"
    ).to_pylist()
    found = {row["split"]: row["n"] for row in rows}
    assert found["evaluate"] == alone.outcomes().num_rows
    assert found["tune"] >= 2 * 16, "racing may leave some out"
    assert found["calibrate"] == 2 * 16 * 4, "clean, two attacks of the study and what the search found, on two models"
    assert progress.finished


def test_assessments_are_the_same(runs: tuple[Run, Run, Progress]) -> None:
    alone, beside, _ = runs
    for arms in (None, ["pgd*"]):
        assert alone.damage(arms=arms).models == beside.damage(arms=arms).models
        assert alone.attacks(arms=arms).as_dict() == beside.attacks(arms=arms).as_dict()
        assert alone.detection(arms=arms).as_dict() == beside.detection(arms=arms).as_dict()
        assert alone.arms(arms=arms) == beside.arms(arms=arms)
    assert alone.indicators().as_dict() == beside.indicators().as_dict()
    assert alone.failures().as_dict() == beside.failures().as_dict()
    assert alone.flags() == beside.flags()
    assert alone.query("SELECT count(*) AS n FROM scores") == beside.query("SELECT count(*) AS n FROM scores")


def test_status_tells_them_apart(runs: tuple[Run, Run, Progress]) -> None:
    alone, beside, _ = runs
    before, after = alone.status(), beside.status()
    assert (before.outcomes, before.n_arms, before.n_cells) == (after.outcomes, after.n_arms, after.n_cells)
    assert not before.elsewhere
    assert sum(after.elsewhere.values()) == beside.outcomes().num_rows - alone.outcomes().num_rows
    assert before.complete
    assert after.complete
    assert "4 of 4 rounds of searches and 8 of 8 cells to calibrate" in after.so_far


def test_exports_hold_evaluated_inputs_only(runs: tuple[Run, Run, Progress], tmp_path: Path) -> None:
    alone, beside, _ = runs
    n = [export_inputs(one.folder, one.ledger, tmp_path / f"{place}.npz") for place, one in enumerate((alone, beside))]
    assert n[0] == n[1]


def test_the_report_shows_the_searches(runs: tuple[Run, Run, Progress], tmp_path: Path) -> None:
    alone, beside, _ = runs
    page = beside.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Searches for the worst settings" in page
    assert 'data-figure="search share_of_samples_broken_by_each_setting_of_search_2"' in page
    assert "Searches for the worst settings" not in alone.report(tmp_path / "alone.html").read_text(encoding="utf-8")


def test_a_dry_run_counts_what_is_to_come_and_nothing_once_it_is_done(
    runs: tuple[Run, Run, Progress], tmp_path: Path
) -> None:
    _, beside, progress = runs
    study = study_from(content(**BESIDE))
    before = dry_run(study, tmp_path / "new", options=Options(), modules=untrained_pair())
    assert before.n_beside == 2 * (2 + 3 + 1), "two settings, three arms and one frozen on each model"
    assert len(before.searches) == 2
    assert before.n_cells >= progress.n_done
    after = dry_run(study, beside.folder, options=Options(), modules=untrained_pair())
    assert (after.n_cells, after.n_beside) == (0, 0)


def test_searches_and_lists_can_be_read(runs: tuple[Run, Run, Progress]) -> None:
    _, beside, _ = runs
    assert [one.model for one in beside.searches()] == ["one", "two"]
    lists = beside.frozen_lists()
    assert [(one.model, one.norm, one.eps, len(one.arms), len(one.searched)) for one in lists] == [
        ("one", "linf", 0.3, 3, 1),
        ("two", "linf", 0.3, 3, 1),
    ]
    (row,) = beside.query("SELECT content FROM questions").to_pylist()
    assert [one["id"] for one in json.loads(row["content"])["question"]["lists"]] == [one.id for one in lists]
