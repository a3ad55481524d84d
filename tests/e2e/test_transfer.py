"""Transfer: crafted on one model, judged on another, and never asked before."""

from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from advrisk import Run, Study
from advrisk.assess.damage.words import findings
from advrisk.core.errors import StudyError
from advrisk.ledger.inputs import cell_inputs, read_inputs
from advrisk.ledger.maintenance.deleting import delete_inputs
from advrisk.parts import REGISTRIES
from advrisk.parts.models.small import SmallCnn
from advrisk.run.walk_back import LINE
from advrisk.testing.ledgers import outcome_rows

Study_ = dict[str, Any]

PGD = {"attack": "pgd", "norm": "linf", "eps": 0.2, "steps": 10}
CRAFTED = "pgd-linf-0.2-ace,steps=10,keep=strongest"
MOVED = f"transfer-plain-{CRAFTED}"


@pytest.fixture
def moved(study: Study_) -> Study_:
    return study | {"arms": [{"attack": "transfer", "from": "plain", "arm": PGD}], "keep_inputs": "all"}


def rows_of(run: Run, model: str, arm: str) -> dict[str, dict[str, Any]]:
    rows = run.query("FROM outcomes WHERE model = $model AND arm = $arm", {"model": model, "arm": arm}).to_pylist()
    return {row["sample"]: row for row in rows}


def points_of(run: Run, model: str, arm: str) -> dict[str, Any]:
    cells = {row["cell"] for row in rows_of(run, model, arm).values()}
    return {name: x for cell in cells for name, x in read_inputs(cell_inputs(run.folder, cell)).items()}


def test_the_other_model_meets_the_very_points_of_the_surrogate(moved: Study_, nets: Path, tmp_path: Path) -> None:
    run = Study.from_dict(moved).run(tmp_path / "run", workers=1)
    crafted, taken = rows_of(run, "plain", CRAFTED), rows_of(run, "noisy", MOVED)
    made, met = points_of(run, "plain", CRAFTED), points_of(run, "noisy", MOVED)
    labels = {row["sample"]: row["label"] for row in run.query("FROM samples").to_pylist()}
    net = SmallCnn(size=8, width=8).eval()
    net.load_state_dict(load_file(nets / "noisy.safetensors"))
    assert len(taken) == 64
    outcomes = []
    for sample, row in taken.items():
        assert row["n_forward"] == row["n_backward"] == 0
        assert row["n_forward_first"] is None
        if row["outcome"] == "already_wrong":
            continue
        np.testing.assert_array_equal(met[sample], made[sample])
        says = int(net(torch.from_numpy(made[sample])[None]).argmax())  # whoever asks it
        outcomes.append(row["outcome"])
        assert row["outcome"] == ("resisted" if says == labels[sample] else "success")
        if crafted[sample]["outcome"] != "already_wrong":
            assert row["d_linf"] == crafted[sample]["d_linf"] <= 0.2 + 1e-6
    assert {"success", "resisted"} <= set(outcomes)


def test_on_the_surrogate_itself_the_points_do_what_they_did(moved: Study_, tmp_path: Path) -> None:
    run = Study.from_dict(moved).run(tmp_path / "run", workers=1)
    crafted, back = rows_of(run, "plain", CRAFTED), rows_of(run, "plain", MOVED)
    assert {name: row["outcome"] for name, row in crafted.items()} == {
        name: row["outcome"] for name, row in back.items()
    }
    assert sum(row["n_forward"] for row in crafted.values()) > 0


def test_samples_that_the_surrogate_has_wrong_resist_and_say_why(moved: Study_, tmp_path: Path) -> None:
    run = Study.from_dict(moved).run(tmp_path / "run", workers=1)
    wrong = {name for name, row in rows_of(run, "plain", CRAFTED).items() if row["outcome"] == "already_wrong"}
    taken = rows_of(run, "noisy", MOVED)
    told = {name for name, row in taken.items() if row["message"]}
    assert told == {name for name in wrong if taken[name]["outcome"] != "already_wrong"}
    assert told, "a study without such a sample proves nothing"
    for name in told:
        assert (taken[name]["outcome"], taken[name]["d_linf"]) == ("resisted", 0)
        assert taken[name]["message"] == f"{CRAFTED} left this sample of plain as it was"
    flags = {(row["model"], row["arm"]) for row in run.flags() if row["flag"] == "not-crafted"}
    assert flags == {("noisy", MOVED)}


@pytest.mark.parametrize("keep_inputs", ["none", "successful"])
def test_rows_depend_neither_on_workers_nor_on_kept_inputs(moved: Study_, tmp_path: Path, keep_inputs: str) -> None:
    Study.from_dict(moved).run(tmp_path / "all", workers=1)
    Study.from_dict(moved | {"keep_inputs": keep_inputs}).run(tmp_path / "less", workers=2)
    assert outcome_rows(tmp_path / "all") == outcome_rows(tmp_path / "less")


def test_a_model_added_later_meets_the_same_points_although_they_were_deleted(moved: Study_, tmp_path: Path) -> None:
    Study.from_dict(moved).run(tmp_path / "whole", workers=1)
    first = moved | {"models": {"plain": moved["models"]["plain"]}}
    run = Study.from_dict(first).run(tmp_path / "grown", workers=1)
    assert delete_inputs(run.folder, run.ledger, model="plain") > 0
    seen: list[Any] = []
    Study.from_dict(moved).run(tmp_path / "grown", workers=1, on_progress=seen.append)
    assert seen[-1].n_cells == 4 * 2, "the surrogate's cells stand"
    assert outcome_rows(tmp_path / "whole") == outcome_rows(tmp_path / "grown")


def crafted_times(study: Study_, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often points are crafted when this study is run in this process."""
    part, calls = REGISTRIES.attacks.get("pgd"), []

    def counting(probe: Any, **settings: Any) -> None:
        calls.append(len(probe.x0))
        part.function(probe, **settings)

    # wraps: parameters are read off the signature
    monkeypatch.setitem(REGISTRIES.attacks._parts, "pgd", replace(part, function=wraps(part.function)(counting)))
    monkeypatch.setattr("advrisk.run.executors.choice.worker_count", lambda *_: 0)
    Study.from_dict(study).run(folder)
    monkeypatch.undo()
    return len(calls)


@pytest.mark.parametrize("keep_inputs", ["none", "successful"])
def test_nothing_is_crafted_twice(
    moved: Study_, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_inputs: str
) -> None:
    moved["arms"][0]["arm"] = {**PGD, "eps": [0.05, 0.1, 0.15, 0.2, 0.25]}  # more than are remembered
    moved |= {"keep_inputs": keep_inputs, "models": moved["models"] | {"again": moved["models"]["noisy"]}}
    n_shards = 4
    times = crafted_times(moved, tmp_path / "run", monkeypatch)
    assert times == n_shards * 5 * (2 if keep_inputs == "none" else 1)  # not kept: once more for those that need them


def test_points_are_crafted_again_once_where_they_were_not_kept(
    moved: Study_, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arm was there before anybody wanted its points."""
    first = moved | {"keep_inputs": "successful", "arms": [{**PGD, "keep": "strongest"}]}
    assert crafted_times(first, tmp_path / "run", monkeypatch) == 4 * 2
    both = first | {"arms": [*first["arms"], *moved["arms"]]}
    assert crafted_times(both, tmp_path / "run", monkeypatch) == 4


def test_a_target_is_aimed_at_on_the_surrogate_and_judged_on_the_other(moved: Study_, tmp_path: Path) -> None:
    run = Study.from_dict(moved | {"success": {"target": "next"}}).run(tmp_path / "run", workers=1)
    taken = rows_of(run, "noisy", MOVED)
    labels = {row["sample"]: row["label"] for row in run.query("FROM samples").to_pylist()}
    assert all(row["target"] == (labels[name] + 1) % 10 for name, row in taken.items())
    hits = [row for row in taken.values() if row["outcome"] == "success"]
    assert hits
    assert all(row["prediction"] == row["target"] for row in hits)


def test_the_least_likely_class_is_another_one_elsewhere(moved: Study_, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"arms\[0\]: .* aims at the surrogate's least likely class"):
        Study.from_dict(moved | {"success": {"target": "least-likely"}}).run(tmp_path / "run")


def test_a_surrogate_is_not_assessed(moved: Study_, tmp_path: Path) -> None:
    moved["models"]["plain"]["surrogate"] = True
    moved["models"]["again"] = {**moved["models"]["plain"], "surrogate": False}
    run = Study.from_dict(moved).run(tmp_path / "run", workers=1)
    assert run.damage().distances.by_model.keys() == {"noisy", "again"}
    assert run.damage(arms=["*pgd*"]).distances.arms == (MOVED,)
    assert {arm["arm"] for arm in run.arms() if arm["model"] == "plain"} == {CRAFTED}
    assert run.status().n_cells == run.status().n_cells_expected == 4 * (1 + 2 * 2)
    assert "transfer-plain" in run.report().read_text()


def test_a_model_that_is_crafted_on_and_assessed_is_named(moved: Study_, tmp_path: Path) -> None:
    """It met its own gradients, and the others did not."""
    run = Study.from_dict(moved).run(tmp_path / "run", workers=1)
    assert run.damage().crafted_on == ("plain",)
    assert any("crafted on plain" in sentence for sentence in findings(run.damage()))
    moved["models"]["theirs"] = {**moved["models"]["plain"], "surrogate": True}
    moved["arms"][0]["from"] = "theirs"
    assert Study.from_dict(moved).run(tmp_path / "apart", workers=1).damage().crafted_on == ()


def test_a_dry_run_counts_the_surrogate_and_writes_nothing(moved: Study_, tmp_path: Path) -> None:
    dry = Study.from_dict(moved).dry_run(tmp_path / "run")
    assert dry.by_arm[CRAFTED] > 64 * 10
    assert dry.by_arm[MOVED] == 2 * 64 * (2 + LINE)  # the judge's
    assert not (tmp_path / "run").exists()


def test_a_study_that_its_models_cannot_answer_leaves_nothing_behind(moved: Study_, tmp_path: Path) -> None:
    moved["models"]["noisy"]["surrogate"] = True
    with pytest.raises(StudyError, match=r"models\.noisy: is a surrogate, but no arm transfers from it"):
        Study.from_dict(moved).run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_attack_that_fails_on_the_surrogate_gives_errors_elsewhere(moved: Study_, tmp_path: Path) -> None:
    moved["arms"][0]["arm"] = {**PGD, "eps": 1e-6, "steps": 2_000_000}
    moved |= {"max_cell_s": 0.2, "data": {"source": "digits", "evaluate": 8}}
    run = Study.from_dict(moved).run(tmp_path / "run", workers=1)
    rows = run.query("FROM outcomes WHERE model = 'noisy' AND family = 'transfer'").to_pylist()
    assert {row["outcome"] for row in rows} <= {"error", "already_wrong"}
    assert any("failed on plain, so there is nothing to transfer" in (row["message"] or "") for row in rows)
