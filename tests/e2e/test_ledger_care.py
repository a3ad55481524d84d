"""`advrisk ledger check`, `compact`, `diff` and `merge` on the ledger of a real study."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk import Run, Study
from advrisk.ledger import Ledger
from advrisk.ledger.inputs import cell_inputs
from advrisk.ledger.segments import segment_folders
from advrisk.testing.ledgers import outcome_rows, output_rows

from .conftest import study_of

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def content(nets: Path) -> dict[str, Any]:
    small = study_of(nets)
    small["data"]["evaluate"] = 32
    small["arms"] = [{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.2]}]
    return small


@pytest.fixture(scope="module")
def done(content: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: 2 models, 3 arms, 2 groups of samples; every cell a segment of its own."""
    folder = tmp_path_factory.mktemp("done") / "run"
    Study.from_dict(content).run(folder, publish_every_s=0.0)
    assert len(segment_folders(folder / "ledger")) == 1 + 12
    return folder


@pytest.fixture
def run(done: Path, tmp_path: Path) -> Path:
    return shutil.copytree(done, tmp_path / "run")


def times(folder: Path) -> dict[str, float]:
    """When, by its clock, each cell was run."""
    rows = Ledger.open(folder).query("SELECT cell, wall_s FROM cells").to_pylist()
    return {row["cell"]: row["wall_s"] for row in rows}


def test_damaged_cells_are_run_again_and_nothing_else(
    run: Path, done: Path, content: dict[str, Any], advrisk: Command
) -> None:
    assert advrisk("ledger", "check", "run").returncode == 0
    first, second = [one for one in segment_folders(run / "ledger") if (one / "cells.parquet").is_file()][:2]
    file = first / "outcomes.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 4
    file.write_bytes(data)
    kept = next(path for path in sorted((run / "inputs" / "cells").rglob("*.npz")))
    kept.unlink()
    found = advrisk("ledger", "check", "run", "--json")
    assert found.returncode == 1
    told = json.loads(found.stdout)
    places = {finding["place"] for finding in told["findings"] if finding["damage"]}
    assert places == {str(Path("run") / one.relative_to(run)) for one in (file, kept)}
    narrow = advrisk("ledger", "check", "run", env={"COLUMNS": "60"}).stdout
    assert narrow.startswith("12 of 13 segments could be counted: 11 cells, 176 rows in")
    assert all(len(line) <= 60 or len(line.split()) <= 2 for line in narrow.splitlines())
    assert told["n_segments_not_counted"] == 1
    repaired = advrisk("ledger", "check", "run", "--repair")
    assert (repaired.returncode, advrisk("ledger", "check", "run").returncode) == (0, 0)
    assert "Next: advrisk run STUDY.yaml --out run" in repaired.stdout
    assert second.is_dir()
    before, left = times(done), times(run)
    lost = before.keys() - left.keys()
    assert kept.stem in lost
    assert 1 <= len(lost) <= 2
    Study.from_dict(content).run(run)
    after = times(run)
    assert {cell for cell in before if before[cell] != after[cell]} == lost
    assert (outcome_rows(run), output_rows(run)) == (outcome_rows(done), output_rows(done))
    assert kept.is_file()
    assert advrisk("ledger", "diff", "run", str(done)).returncode == 0
    assert advrisk("ledger", "check", "run").stdout.splitlines()[-1] == "nothing is damaged"


def test_a_compacted_ledger_says_the_same_and_goes_on(
    run: Path, done: Path, content: dict[str, Any], advrisk: Command
) -> None:
    before = Run.open(done).damage().comparison.estimates
    assert advrisk("ledger", "compact", "run").stdout == "13 segments before, 1 now\n"
    assert Run.open(run).damage().comparison.estimates == before
    assert advrisk("ledger", "check", "run").returncode == 0
    content = content | {"arms": [*content["arms"], {"attack": "fgsm", "norm": "l2", "eps": 0.5}]}
    Study.from_dict(content).run(run)
    different = advrisk("ledger", "diff", str(done), "run")
    assert different.returncode == 1
    assert "outcomes: 64 only in run, as model noisy, arm fgsm-l2-0.5-ace" in different.stdout
    assert "differ," not in different.stdout
    assert times(run).items() >= times(done).items(), "nothing was run again"


def test_a_study_run_on_two_machines_is_merged(
    done: Path, content: dict[str, Any], tmp_path: Path, advrisk: Command
) -> None:
    for name in ("plain", "noisy"):
        half = content | {"models": {name: content["models"][name]}}
        Study.from_dict(half).run(tmp_path / name)
    merged = advrisk("ledger", "merge", "plain", "noisy", "--out", "both")
    assert merged.stdout.startswith("6 cells of noisy added to both, 0 were in both, ")
    assert len(merged.stdout.splitlines()) == 1, "there is nothing else to do"
    asked = Run.open(tmp_path / "both").study
    assert asked is not None
    assert list(asked.models) == ["plain", "noisy"]
    assert advrisk("ledger", "diff", "both", str(done)).stdout == "equal\n"
    assert advrisk("ledger", "check", "both").returncode == 0
    before = times(tmp_path / "both")
    Study.from_dict(content).run(tmp_path / "both")
    assert times(tmp_path / "both") == before, "nothing is left to do"
    assert Run.open(tmp_path / "both").damage().comparison.estimates == Run.open(done).damage().comparison.estimates
    again = advrisk("ledger", "merge", "both", "gone")
    assert again.returncode == 2
    assert "gone: holds no ledger" in again.stderr


def test_inputs_lie_where_the_check_looks(done: Path) -> None:
    rows = Ledger.open(done).query("SELECT DISTINCT cell FROM outcomes WHERE kind = 'attack' AND outcome = 'success'")
    assert all(cell_inputs(done, cell).is_file() for cell in rows["cell"].to_pylist())


def test_halves_that_stopped_early_at_one_place_are_merged(
    content: dict[str, Any], tmp_path: Path, advrisk: Command
) -> None:
    content = content | {"data": content["data"] | {"evaluate": 64}}
    for name in ("plain", "noisy"):
        half = content | {"models": {name: content["models"][name]}}
        Study.from_dict(half).run(tmp_path / name, target="broken at 0.2 ±90 %", workers=1)
        assert "Stopped early, after 32 of 64 samples" in Run.open(tmp_path / name).status().stopped
    merged = advrisk("ledger", "merge", "plain", "noisy", "--out", "both")
    assert merged.returncode == 0, merged.stderr
    assert "decide nothing of both" in merged.stdout
    both = Run.open(tmp_path / "both")
    assert both.stopping is not None
    assert len(both.stopping.earlier) == 2
    assert both.status().n_models == 2
    again = Study.from_dict(content).run(tmp_path / "both", target="broken at 0.2 ±90 %", workers=1)
    assert again.stopping is not None
    assert len(again.stopping.looks) == 1, "the same samples, of both models"
    assert len(again.stopping.earlier) == 2
