"""One process, one study, cell by cell: whatever goes wrong becomes rows, and inputs are kept as asked."""

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from advrisk.core.containment import MOST_LINES
from advrisk.engine import Noise, Space
from advrisk.ledger.inputs import cell_inputs, read_bounds, read_inputs, shard_inputs
from advrisk.parts.data import Dataset
from advrisk.parts.defences import defences, defended_model
from advrisk.run.cell import run_cell
from advrisk.run.loading import Material
from advrisk.run.perturb import judge_keys
from advrisk.run.workbench import Workbench
from advrisk.study import study_from
from advrisk.testing import toys

STUDY = {
    "name": "toy",
    "data": {"source": "digits", "evaluate": 3},
    "models": {"larger": {"source": "object", "expect_accuracy": 0}},
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": 1}],
}


def attack(probe):
    """The first sample falls, the second resists."""
    probe.forward(torch.tensor([[1.0, 2.0], [1.0, 0.5]]), torch.arange(2))


@pytest.fixture
def bench(tmp_path, scene):
    def make(function=attack, *, model=scene.model, **study):
        x = np.array([[1, 0], [1, 0], [0, 1]], np.float32)  # the third is wrong from the start
        data = Dataset("toy", x, np.array([0, 0, 0]), 2, ids=("s0", "s1", "s2"), low=-10, high=10)
        material = Material(data, Space.box(-10, 10), {"larger": model}, {"s0": 0, "s1": 1, "s2": 2})
        return Workbench(study_from(STUDY | study), scene.registries(function), material, tmp_path, "run1")

    return make


def outcomes(result):
    return [(row["sample"], row["outcome"]) for row in result.tables["outcomes"].to_pylist()]


def test_a_cell_is_perturbed_judged_and_told(bench, scene):
    result = run_cell(scene.cell(scene.arm()), bench())
    assert outcomes(result) == [("s0", "success"), ("s1", "resisted"), ("s2", "already_wrong")]


@pytest.mark.parametrize(("keep", "kept"), [("none", None), ("successful", ["s0"]), ("all", ["s0", "s1", "s2"])])
def test_inputs_are_kept_as_asked(bench, scene, tmp_path, keep, kept):
    cell = scene.cell(scene.arm())
    run_cell(cell, bench(keep_inputs=keep))
    if kept is None:
        assert list(tmp_path.iterdir()) == []
    else:
        perturbed, clean = read_inputs(cell_inputs(tmp_path, cell.id)), read_inputs(shard_inputs(tmp_path, "shard"))
        assert list(perturbed) == kept
        assert [float(bound) for bound in read_bounds(tmp_path)] == [-10, 10]
        assert perturbed["s0"].tolist() == [1, 2]
        assert {name: x.tolist() for name, x in clean.items()} == {"s0": [1, 0], "s1": [1, 0], "s2": [0, 1]}


def test_the_clean_arm_keeps_no_second_copy(bench, scene, tmp_path):
    cell = scene.cell(scene.clean)
    run_cell(cell, bench(keep_inputs="all"))
    assert not cell_inputs(tmp_path, cell.id).exists()
    assert shard_inputs(tmp_path, "shard").exists()


def test_a_corruption_that_raises_gives_error_rows(bench, scene):
    def corruption(x, noise, rows, space):
        raise ArithmeticError("no rain today")

    arm = scene.arm(kind="corruption", norm=None, eps=None)
    result = run_cell(scene.cell(arm), bench(corruption))
    assert outcomes(result) == [("s0", "error"), ("s1", "error"), ("s2", "error")]
    assert result.messages == ("ArithmeticError: no rain today",)


def test_a_corruption_that_gives_nan_gives_error_rows_where_it_did(bench, scene):
    def corruption(x, noise, rows, space):
        x = x.clone()
        x[1, 0] = torch.nan
        return x

    result = run_cell(scene.cell(scene.arm(kind="corruption", norm=None, eps=None)), bench(corruption))
    assert outcomes(result) == [("s0", "resisted"), ("s1", "error"), ("s2", "success")]


def test_a_model_that_raises_gives_error_rows(bench, scene):
    broken = bench(model=toys.raising(scene.model))
    result = run_cell(scene.cell(scene.arm()), broken)
    assert {outcome for _, outcome in outcomes(result)} == {"error"}
    assert "as it was told to" in result.messages[0]


def test_inputs_that_cannot_be_kept_give_error_rows(bench, scene, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    result = run_cell(scene.cell(scene.arm()), bench(keep_inputs="all"))
    assert {outcome for _, outcome in outcomes(result)} == {"error"}
    assert "No space left on device" in result.messages[0]


def test_the_clean_pass_is_made_once_for_all_arms(bench, scene):
    model, record = toys.recorded(scene.model)
    shared = bench(model=model)
    for family in ("a", "b"):
        cell = scene.cell(scene.arm())
        run_cell(replace(cell, id=family * 32), shared)
    clean = [x for x, _ in record.passes if len(x) == 3]
    assert len(clean) == 2 + 1  # the first two, with and without a slope, warm the model up


def slow_at_first(model, seconds):
    """A model that sets something up in its first pass."""
    asked = []

    def answer(x):
        asked.append(len(x))
        if len(asked) == 1:
            time.sleep(seconds)
        return model.answer(x)

    return replace(model, answer=answer)


def test_what_a_first_pass_sets_up_is_on_no_clock(bench, scene):
    made = bench(model=slow_at_first(scene.model, 0.3))
    attacked = run_cell(scene.cell(scene.arm()), made)
    clean = run_cell(scene.cell(scene.clean), made)
    for result in (attacked, clean):
        assert result.tables["cells"]["wall_s"][0].as_py() < 0.3
    assert attacked.tables["cells"]["inference_s"][0].as_py() is None
    assert 0 < clean.tables["cells"]["inference_s"][0].as_py() < 0.1


def test_a_model_that_draws_is_warmed_up_from_streams_of_no_cell(bench, scene):
    part = defences.get("gauss-out")

    def result(model):
        noisy = defended_model("larger", model, part, part.bind({"sigma": 0.5, "noise_on": "logits"}))
        return run_cell(scene.cell(scene.clean), bench(model=noisy)).tables

    slow, again = result(slow_at_first(scene.model, 0.3)), result(scene.model)
    assert slow["cells"]["wall_s"][0].as_py() < 0.3
    assert 0 < slow["cells"]["inference_s"][0].as_py() < 0.1
    chance = Noise(judge_keys(0, scene.cell(scene.clean)))
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    said = torch.stack([x + 0.5 * chance.normal(torch.arange(3), (2,)) for _ in range(11)])
    expected = said.double().softmax(2).mean(0).log()
    for tables in (slow, again):
        np.testing.assert_allclose(tables["outputs"]["logits"].to_pylist(), expected, atol=1e-5)


def test_seconds_are_told_of_all_passes_and_of_those_up_to_the_first_success(bench, scene):
    def twice(probe):
        attack(probe)
        attack(probe)

    broken, held, wrong = run_cell(scene.cell(scene.arm(keep="last")), bench(twice)).tables["outcomes"].to_pylist()
    assert 0 < broken["first_s"] < broken["spent_s"]
    assert held["first_s"] is None
    assert held["spent_s"] == broken["spent_s"]  # they shared both passes
    assert wrong["spent_s"] == 0


@pytest.fixture
def no_signals():
    """Ctrl-C is ignored, as in worker processes: a KeyboardInterrupt comes from the code that is run."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


def leaves(how):
    if how == "exit":
        sys.exit(0)
    raise KeyboardInterrupt


@pytest.mark.usefixtures("no_signals")
@pytest.mark.parametrize(("how", "told"), [("exit", "called sys.exit(0)"), ("interrupt", "raised KeyboardInterrupt")])
def test_an_attack_or_a_model_that_wants_to_end_the_process_gives_error_rows(bench, scene, how, told):
    """What the attack broke before is broken all the same; a model that ends the process answers nothing."""

    def attack_and_leave(probe):
        attack(probe)
        leaves(how)

    result = run_cell(scene.cell(scene.arm()), bench(attack_and_leave))
    assert outcomes(result) == [("s0", "success"), ("s1", "error"), ("s2", "already_wrong")]
    ends = replace(scene.model, name="larger", answer=lambda _: leaves(how))
    failed = run_cell(scene.cell(scene.arm()), bench(model=ends))
    assert outcomes(failed) == [("s0", "error"), ("s1", "error"), ("s2", "error")]
    for message in (*result.messages, *failed.messages):
        assert message.startswith(f"ModelError: code of larger {told} (test_cell.py, line ")


def test_an_attack_that_changes_the_folder_and_prints_without_end_is_contained(bench, scene, tmp_path, capsys):
    def loud(probe):
        os.chdir("/")
        sys.stdout.write("a line\n" * 1000)
        attack(probe)

    before, here = Path.cwd(), bench(loud)
    for _ in range(3):
        assert outcomes(run_cell(scene.cell(scene.arm()), here))[0] == ("s0", "success")
    assert Path.cwd() == before
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["a line"] * MOST_LINES + ["… further output of larger suppressed"]


def test_a_model_that_begins_to_work_in_place_spoils_nothing(bench, scene):
    """Also behind the back of torch, which counts no changes of `data`."""
    asked = []

    def answer(x):
        asked.append(len(x))
        said = x.clone()
        if len(asked) > 2:
            x.data.mul_(-1)
        return said

    cell, model = scene.cell(scene.arm()), replace(scene.model, answer=answer)
    expected, found = (run_cell(cell, bench(model=one)).tables["outcomes"] for one in (scene.model, model))
    timed = ["first_s", "spent_s"]
    assert found.drop_columns(timed).equals(expected.drop_columns(timed))
    assert len(asked) > 3


@pytest.mark.parametrize("dependent", [False, True])
def test_cells_of_a_model_whose_answers_depend_on_the_batch_are_flagged(bench, scene, dependent):
    model = replace(scene.model, batch_dependent=dependent)
    for arm in (scene.arm(), scene.clean):
        (row,) = run_cell(scene.cell(arm), bench(model=model)).tables["cells"].to_pylist()
        assert ("batch-dependent" in row["flags"]) == dependent
