"""The main path: the plan is outlined once, and only cells that the ledger lacks are run."""

from pathlib import Path
from typing import Any

import pytest

from advrisk.plan import Cell
from advrisk.run import campaign, planning
from advrisk.run.campaign import run_study
from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult
from advrisk.study import study_from
from tests.unit.run.nets import untrained_pair

STUDY = {
    "name": "small",
    "data": {"source": "digits", "evaluate": 8},
    "models": {name: {"source": "object", "expect_accuracy": 0} for name in ("one", "two")},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    "shard": 4,
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What was outlined and which cells were run, in the order of the calls."""
    made: dict[str, list[Any]] = {"outlined": [], "ran": []}
    outline, run_cell = planning.outline_plan, campaign.run_cell

    def outlined(study: Any, *given: Any, **settings: Any) -> Any:
        made["outlined"].append(study.name)
        return outline(study, *given, **settings)

    def ran(cell: Cell, bench: Any) -> CellResult:
        made["ran"].append(cell.id)
        return run_cell(cell, bench)

    monkeypatch.setattr(planning, "outline_plan", outlined)
    monkeypatch.setattr(campaign, "run_cell", ran)
    return made


def run(folder: Path, **changes: Any) -> Progress:
    return run_study(study_from(STUDY | changes), folder, modules=untrained_pair())


def test_a_plan_is_outlined_once_for_each_run(tmp_path: Path, calls: dict[str, list[Any]]) -> None:
    run(tmp_path / "run")
    assert calls["outlined"] == ["small"]
    run(tmp_path / "run")
    assert calls["outlined"] == ["small", "small"]


def test_every_cell_is_run_once_and_finished_ones_are_skipped(tmp_path: Path, calls: dict[str, list[Any]]) -> None:
    first = run(tmp_path / "run")
    assert (first.n_cells, first.n_done, first.n_skipped) == (8, 8, 0)
    assert len(set(calls["ran"])) == len(calls["ran"]) == 8
    more = run(tmp_path / "run", arms=[{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.2]}])
    assert (more.n_cells, more.n_done, more.n_skipped) == (4, 4, 8)
    assert len(set(calls["ran"])) == len(calls["ran"]) == 12
