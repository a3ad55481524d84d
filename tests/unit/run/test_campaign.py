"""The main path: the plan is outlined once, and only cells that the ledger lacks are run."""

import json
from pathlib import Path
from typing import Any

import pytest

from advrisk.plan import Cell
from advrisk.run import campaign, planning
from advrisk.run.campaign import run_study
from advrisk.run.progress import Progress
from advrisk.run.rows import CellResult
from advrisk.study import study_from
from tests.durability import recorded
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


def test_study_and_inputs_are_on_the_disk_before_the_segments_that_count_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = recorded(monkeypatch)
    run(tmp_path / "run", keep_inputs="all")
    published = [steps.index(step) for step in steps if step.startswith("rename .unfinished-")]
    for name in ("study.yaml", "data.json"):
        renamed = next(place for place, step in enumerate(steps) if step.endswith(f" {name}"))
        assert steps[renamed - 1].startswith(f"fsync .{name}.")
        assert steps[renamed + 1] == "fsync run"
        assert renamed + 1 < published[0]
    kept = [place for place, step in enumerate(steps) if step.startswith("rename ") and step.endswith(".npz")]
    assert len(kept) == 6, "of four attacks and two shards"
    for place in kept:
        unfinished = steps[place].split()[1]
        assert steps[place - 1] == f"fsync {unfinished}"
        assert steps[place + 1].startswith("fsync "), "of its folder"
        assert place < published[-1]
    named = {
        Path(name).name: Path(segment["place"]).name
        for segment in manifests(tmp_path / "run")
        for name in segment["inputs"]
    }
    for name, segment in named.items():
        kept_at = next(place for place, step in enumerate(steps) if step.endswith(f" {name}"))
        assert kept_at < steps.index(f"rename .unfinished-{segment} {segment}"), "kept before its segment names it"


def manifests(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "ledger" / "segments").glob("*/segment.json"))
    return [json.loads(path.read_text()) | {"place": str(path.parent)} for path in paths]
