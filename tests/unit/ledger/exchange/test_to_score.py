"""What a detector that runs elsewhere must score: all of it in one file, or a word on what is missing."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from advrisk.assess.detection.assessment import assess_detection
from advrisk.core.errors import LedgerError
from advrisk.ledger import Ledger
from advrisk.ledger.exchange.score_file import import_scores
from advrisk.ledger.exchange.to_score import export_to_score
from advrisk.ledger.inputs import calibrate_folder
from advrisk.ledger.maintenance.deleting import delete_inputs
from advrisk.parts.models.small import SmallCnn
from advrisk.run.campaign import run_study
from advrisk.run.options import Options
from advrisk.study import study_from


def modules() -> dict[str, nn.Module]:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return {"one": SmallCnn(size=8, width=4), "two": SmallCnn(size=8, width=4)}


def run(folder: Path, **changes: Any) -> Path:
    content = {
        "name": "elsewhere",
        "device": "cpu",
        "data": {"source": "digits", "evaluate": 20, "calibrate": 12},
        "models": {
            "one": {"source": "object", "expect_accuracy": 0},
            "two": {"source": "object", "expect_accuracy": 0},
        },
        "success": "prediction",
        "arms": [{"attack": "pgd", "norm": "linf", "eps": [0.1, 0.3], "steps": 3, "repeats": 2}],
        "detectors": ["confidence"],
        "shard": 8,
    }
    study = study_from(content | changes)
    run_study(study, folder, options=Options(publish_every_s=0), modules=modules())
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("elsewhere") / "run")


def exported(folder: Path, **names: str) -> dict[str, Any]:
    target = folder.parent / "to-score.npz"
    n = export_to_score(folder, Ledger.open(folder), target, **names)
    with np.load(target, allow_pickle=False) as file:
        found = {name: file[name] for name in file.files}
    assert set(found) == {"x", "model", "arm", "sample", "repeat"}
    assert {len(column) for column in found.values()} == {n}
    return found


def rows_of(found: dict[str, Any]) -> set[tuple[Any, ...]]:
    return set(zip(*(found[name].tolist() for name in ("model", "arm", "sample", "repeat")), strict=True))


def test_what_is_exported_is_what_a_detector_of_the_study_scores(finished: Path) -> None:
    ledger = Ledger.open(finished)
    scored = ledger.query(
        "SELECT o.model, o.arm, o.sample, o.repeat FROM scores s JOIN outcomes o USING (cell, sample) UNION ALL "
        "SELECT a.model, a.arm, s.sample, 0 FROM scores s JOIN arms a ON a.recipe = s.cell"
    )
    found = exported(finished)
    assert rows_of(found) == {tuple(row.values()) for row in scored.to_pylist()}
    assert scored.num_rows == len(found["x"])
    splits = dict(zip(*ledger.query("SELECT sample, split FROM samples").to_pydict().values(), strict=True))
    clean = [splits[name] for name in found["sample"][found["arm"] == "clean"].tolist()]
    assert (clean.count("evaluate"), clean.count("calibrate")) == (40, 24)


def test_scores_of_it_can_be_imported_and_say_the_same_as_the_studys_own_detector(finished: Path) -> None:
    """The formula of `confidence`, by hand, on what was exported: export, score, import, evaluate."""
    found = exported(finished)
    nets = {name: module.eval() for name, module in modules().items()}
    key = ("model", "arm", "sample", "repeat")
    lines = [("detector", *key, "score")]
    for x, *row in zip(found["x"], *(found[name].tolist() for name in key), strict=True):
        with torch.no_grad():
            logits = nets[row[0]](torch.from_numpy(x)[None]).double()
        lines.append(("theirs", *row, 1 - float(torch.softmax(logits, 1).amax())))
    with (finished.parent / "scores.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)  # names of arms hold commas
    imported = import_scores(finished.parent / "scores.csv", finished)
    assert (imported.n_scores, imported.n_left_out) == (len(lines) - 1, 0)
    assert (imported.missing, imported.uncalibrated) == ({}, {})
    assessed = assess_detection(Ledger.open(finished), resamples=100)
    assert not assessed.notes
    for model in ("one", "two"):
        theirs, own = (assessed.of(model, name) for name in ("theirs", "confidence"))
        assert theirs.overall.auroc is not None
        assert own.overall.auroc is not None
        assert theirs.overall.auroc.value == pytest.approx(own.overall.auroc.value, abs=1e-3)
        assert theirs.defeat.threshold == pytest.approx(own.defeat.threshold, rel=1e-3)


def test_one_model_and_one_arm_with_the_clean_inputs(finished: Path) -> None:
    some = exported(finished, model="one", arm="pgd-linf-0.1*")
    assert set(some["model"].tolist()) == {"one"}
    assert {arm.partition("-ace")[0] for arm in some["arm"].tolist()} == {"clean", "pgd-linf-0.1"}
    with pytest.raises(LedgerError, match="no model is called 'on'; did you mean 'one'"):
        exported(finished, model="on")
    with pytest.raises(LedgerError, match="no arm is called 'fgsm'"):
        exported(finished, arm="fgsm")


def test_inputs_that_were_not_kept_are_no_half_a_file(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", keep_inputs="none")
    with pytest.raises(
        LedgerError, match=r"\d+ inputs of \d+ that a detector must score were not kept .*another folder"
    ):
        exported(folder)
    assert not (tmp_path / "to-score.npz").exists()
    assert not calibrate_folder(folder).exists()


def test_samples_to_calibrate_of_an_older_run_are_kept_by_running_it_again(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    (file,) = calibrate_folder(folder).iterdir()
    file.unlink()
    with pytest.raises(LedgerError, match=r"24 inputs of .* all of samples to calibrate; run the study again"):
        exported(folder)
    run(folder)
    assert len(exported(folder)["x"]) > 0
    ledger = Ledger.open(folder)
    (sample,) = ledger.query("SELECT min(sample) AS s FROM samples WHERE split = 'calibrate'")["s"].to_pylist()
    assert delete_inputs(folder, ledger, sample=sample) == 1
    with pytest.raises(LedgerError, match="2 inputs of"):
        exported(folder)


def test_a_folder_without_a_study_has_nothing_to_score(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="nothing to score"):
        export_to_score(tmp_path, Ledger.open(tmp_path, create=True), tmp_path / "to-score.npz")
