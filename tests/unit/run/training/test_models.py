import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from advrisk.core.errors import RunError, StudyError
from advrisk.parts import REGISTRIES
from advrisk.run.training.models import _training_samples, train_models
from advrisk.study import load_recipe

MODEL = {
    "factory": "advrisk.parts.models.small:SmallCnn",
    "args": {"size": 8, "width": 4},
    "method": "plain",
    "epochs": 2,
    "learning_rate": 0.01,
}
DISTILLED = {"method": "distilled", "teacher": "teacher", "temperature": 2}
ENSEMBLE = {"method": "ensemble-fgsm", "eps": 0.1}
DROPOUT = {"factory": "studies.nets:ConvNet", "args": {"channels": 1, "size": 8, "width": 4, "hidden": 16}}


@pytest.fixture
def recipe(tmp_path):
    def write(*, seed=1, data=None, **models):
        content = {"name": "small", "seed": seed, "data": data or {"source": "digits"}}
        content["models"] = {name: MODEL | changes for name, changes in (models or {"plain": {}}).items()}
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        return load_recipe(tmp_path / "recipe.yaml")

    return write


@pytest.fixture
def train(tmp_path):
    def run(recipe, folder="models", **settings):
        return train_models(recipe, tmp_path / folder, REGISTRIES, **settings)

    return run


def same(one, other):
    first, second = load_file(one), load_file(other)
    return all(bool((first[name] == second[name]).all()) for name in first)


def test_a_model_is_trained_and_says_how(recipe, train):
    epochs = []
    (trained,) = train(recipe(plain={"epochs": 3}), on_epoch=lambda *call: epochs.append(call))
    assert [call[:3] for call in epochs] == [("plain", 1, 3), ("plain", 2, 3), ("plain", 3, 3)]
    losses = [call[3] for call in epochs]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] < 2 * math.log(10)
    assert trained.test_accuracy > 0.5  # chance is 0.1
    assert trained.train_samples == 1297
    assert not trained.skipped
    with safe_open(trained.path, framework="pt") as file:
        note = file.metadata()
    assert int(note["train_samples"]) == 1297
    assert float(note["train_s"]) == trained.train_s > 0
    assert float(note["train_process_s"]) == trained.train_process_s > 0


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(recipe, train):
    paths = [train(recipe(seed=seed), folder)[0].path for seed, folder in ((1, "a"), (1, "b"), (2, "c"))]
    assert same(paths[0], paths[1])
    assert not same(paths[0], paths[2])


def test_a_model_does_not_depend_on_those_trained_before_it(recipe, train):
    together = recipe(noisy={"method": "gaussian-noise", "sigma": 0.1}, plain={})
    train(together, "a")
    (alone,) = train(together, "b", only=["plain"])
    assert same(alone.path, alone.path.parents[1] / "a" / "plain.safetensors")


def test_what_is_there_is_not_trained_again(recipe, train):
    (first,) = train(recipe())
    written = first.path.stat().st_mtime_ns
    (second,) = train(recipe())
    assert second.skipped
    assert first.path.stat().st_mtime_ns == written
    assert (second.train_s, second.test_accuracy) == (first.train_s, first.test_accuracy)


@pytest.mark.parametrize("why", ["asked", "changed", "damaged"])
def test_but_it_is_if_there_is_a_reason(recipe, train, why):
    (first,) = train(recipe())
    if why == "damaged":
        first.path.write_bytes(b"gone")
    changed = recipe(plain={"epochs": 1}) if why == "changed" else recipe()
    (second,) = train(changed, again=why == "asked")
    assert not second.skipped
    assert load_file(second.path)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"plain": {"method": "plane"}}, r"recipe\.yaml:\d+: models\.plain: .*did you mean 'plain'"),
        ({"plain": {"stepps": 3}}, r"models\.plain: plain has no parameter 'stepps'"),
        ({"hard": {"method": "pgd"}}, r"models\.hard: pgd needs eps"),
        ({"plain": {"factory": "nowhere:Net"}}, r"models\.plain: factory 'nowhere:Net': No module named"),
        ({"plain": {"args": {"deep": 1}}}, r"models\.plain: .*do not fit"),
        ({"plain": {"augmet": {}}}, r"models\.plain: plain has no parameter 'augmet'; did you mean 'augment'"),
        ({"student": DISTILLED | {"teacher": 3}}, r"student: distilled\.teacher: the name of a model .*found 3"),
        (
            {"student": DISTILLED, "teachers": {}},
            r"\.yaml:\d+: models\.student\.teacher: this recipe has no model called 'teacher'; did you mean 'teachers'",
        ),
        ({"student": DISTILLED | {"teacher": "student"}}, r"models\.student: learns from itself: student from student"),
        (
            {"a": DISTILLED | {"teacher": "b"}, "b": DISTILLED | {"teacher": "c"}, "c": DISTILLED | {"teacher": "a"}},
            r"models\.a: learns from itself: a from b from c from a; one must come first",
        ),
        ({"plain": {}, "all": ENSEMBLE | {"sources": []}}, r"models\.all\.sources: names no model"),
        ({"plain": {}, "all": ENSEMBLE | {"sources": "plain"}}, r"ensemble-fgsm\.sources: a list is needed"),
        ({"plain": {}, "all": ENSEMBLE | {"sources": ["plain", 2]}}, r"sources: the name of a model .*found 2"),
        (
            {"teacher": {"args": {"size": 8, "width": 4, "classes": 12}}, "student": DISTILLED},
            r"models\.student: knows 10 classes, and teacher, from which it learns, 12",
        ),
    ],
)
def test_a_mistake_is_blamed_on_its_line(recipe, train, models, message):
    with pytest.raises(StudyError, match=message):
        train(recipe(**models))


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"plain": {"epochs": 0}}, r"models\.plain\.epochs: .*greater than 0"),
        ({"plain": {"learning_rate": "fast"}}, r"models\.plain\.learning_rate: .*'fast'"),
        ({"a b": {}}, r"models\.a b"),
        ({"plain": {"augment": {}}}, r"models\.plain\.augment: found nothing above 0; set rotation_deg"),
        ({"plain": {"augment": {"rotation": 3}}}, r"augment\.rotation: unknown key; did you mean 'rotation_deg'"),
        ({"plain": {"augment": {"shift_pct": 60}}}, r"augment\.shift_pct: .*less than or equal to 50"),
        ({"plain": {"augment": {"scale_pct": 100}}}, r"augment\.scale_pct: .*less than 100"),
    ],
)
def test_an_impossible_recipe_is_refused_when_it_is_read(recipe, models, message):
    with pytest.raises(StudyError, match=message):
        recipe(**models)


def test_an_unknown_data_source_is_refused(recipe, train):
    with pytest.raises(StudyError, match=r"recipe\.yaml:\d+: data: .*did you mean 'digits'"):
        train(recipe(data={"source": "digit"}))


def test_a_model_that_the_recipe_does_not_have_is_refused(recipe, train):
    with pytest.raises(StudyError, match="no model called 'fancy'; known: plain"):
        train(recipe(), only=["fancy"])


def test_an_eps_beyond_the_data_is_refused_with_its_line(recipe, train):
    with pytest.raises(StudyError, match=r"recipe\.yaml:\d+: models\.plain\.eps: found 8 .*did you mean 8/255\?"):
        train(recipe(plain={"method": "pgd", "eps": 8}))


def test_a_loss_that_explodes_stops_the_training_and_leaves_no_file(recipe, train, tmp_path):
    with pytest.raises(RunError, match=r"plain: the loss is .*learning_rate"):
        train(recipe(plain={"learning_rate": 1e30}))
    assert list((tmp_path / "models").iterdir()) == []


def test_a_teacher_is_trained_before_those_who_learn_from_it(recipe, train):
    names = [one.name for one in train(recipe(student=DISTILLED, other={}, teacher={"temperature": 2}))]
    assert names == ["teacher", "student", "other"]


def test_those_to_learn_from_are_trained_even_if_only_the_student_is_asked_for(recipe, train):
    both = recipe(teacher={"temperature": 2}, other={}, student=DISTILLED)
    alone = train(both, "a", only=["student"])
    assert [one.name for one in alone] == ["teacher", "student"]
    together = train(both, "b")
    assert [one.name for one in together] == ["teacher", "other", "student"]
    assert same(alone[1].path, together[2].path)


def test_a_student_learns_from_the_trained_teacher_found_in_the_folder(recipe, train):
    both = recipe(teacher={}, student=DISTILLED)
    train(both, "a", only=["teacher"])
    skipped, student = train(both, "a", only=["student"], again=True)
    assert skipped.skipped
    assert not student.skipped
    assert same(student.path, train(both, "b")[1].path)
    untaught = recipe(teacher={"epochs": 1}, student=DISTILLED)
    assert not same(student.path, train(untaught, "c")[1].path)


@pytest.mark.parametrize("learner", [DISTILLED, ENSEMBLE | {"sources": ["teacher"]}])
def test_a_changed_teacher_makes_its_students_learn_again(recipe, train, learner):
    train(recipe(teacher={}, student=learner, other={}))
    retrained = {one.name for one in train(recipe(teacher={"epochs": 1}, student=learner, other={})) if not one.skipped}
    assert retrained == {"teacher", "student"}
    assert all(one.skipped for one in train(recipe(teacher={"epochs": 1}, student=learner, other={})))


def test_augmentation_moves_what_is_learned_and_nothing_else(recipe, train):
    moves = {"augment": {"rotation_deg": 10, "shift_pct": 8}}
    (still,), (moved,), (again,) = (
        train(recipe(plain=changes), folder) for changes, folder in (({}, "a"), (moves, "b"), (moves, "c"))
    )
    assert not same(still.path, moved.path)
    assert same(moved.path, again.path)
    assert moved.test_accuracy > 0.3  # chance is 0.1


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.random((60, 12), dtype=np.float32)
    np.savez(tmp_path / "table.npz", x=x, y=(x.sum(1) > 6).astype(np.int64), low=0.0, high=1.0)
    return {"source": "npz", "path": "table.npz"}


def test_a_method_that_cannot_work_with_a_network_says_where(recipe, train, table):
    strange = {"factory": "torch.nn:Bilinear", "args": {"in1_features": 12, "in2_features": 12, "out_features": 2}}
    with pytest.raises(StudyError, match=r"models\.plain: "):
        train(recipe(data=table, plain=strange))
    layers = {"factory": "torch.nn:LayerNorm", "args": {"normalized_shape": [12]}, "method": "parseval"}
    with pytest.raises(StudyError, match=r"recipe\.yaml:\d+: models\.plain: parseval .* this model has none"):
        train(recipe(data=table, plain=layers))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"augment": {"shift_pct": 8}}, r"models\.plain: augment moves images .* have the shape \(12,\)"),
        ({"method": "guided-complement-entropy"}, r"needs 3 classes or more, table has 2"),
    ],
)
def test_data_that_a_method_is_not_for_is_refused(recipe, train, table, changes, message):
    linear = {"factory": "torch.nn:Linear", "args": {"in_features": 12, "out_features": 2}}
    assert train(recipe(data=table, plain=linear))
    with pytest.raises(StudyError, match=message):
        train(recipe(data=table, plain=linear | changes))


class TestHowManySamples:
    def test_as_many_as_are_asked_for(self, recipe, train):
        (few,) = train(recipe(data={"source": "digits", "train": 200}))
        assert few.train_samples == 200
        assert few.test_accuracy is not None

    def test_never_those_for_testing_and_others_for_another_seed(self, recipe):
        digits = REGISTRIES.data.get("digits").function()
        rows = {x.tobytes(): row for row, x in enumerate(digits.x)}
        chosen = []
        for seed in (1, 2):
            x, _ = _training_samples(recipe(seed=seed, data={"source": "digits", "train": 900}), digits)
            chosen.append({rows[one.numpy().tobytes()] for one in x})
            assert all(digits.split[row] == "train" for row in chosen[-1])
        assert chosen[0] != chosen[1]

    def test_more_than_there_are_is_refused(self, recipe, train):
        with pytest.raises(StudyError, match=r"recipe\.yaml:\d+: data\.train: 2000 samples .* digits has 1297"):
            train(recipe(data={"source": "digits", "train": 2000}))


def test_dropout_draws_from_the_seed_whatever_was_trained_or_drawn_before(recipe, train):
    both = recipe(first=DROPOUT, second=DROPOUT)
    train(both, "a")
    torch.rand(3)
    before = torch.get_rng_state()
    (alone,) = train(both, "b", only=["second"])
    assert same(alone.path, alone.path.parents[1] / "a" / "second.safetensors")
    assert torch.equal(torch.get_rng_state(), before)


class Stopped(BaseException):
    pass


def stop_after(epoch):
    def on_epoch(_, number, __, ___):
        if number == epoch:
            raise Stopped

    return on_epoch


RESIDUAL = {"factory": "advrisk.parts.models.residual:ResNet", "args": {"width": 4, "stride": 2}, "weight_decay": 0.01}
HARD = {
    "dropout": DROPOUT | {"augment": {"rotation_deg": 10}},
    "residual": RESIDUAL | {"method": "gaussian-noise", "sigma": 0.1},
    "attacked": RESIDUAL | {"method": "pgd", "eps": 0.1, "steps": 2},
}


FEW = {"source": "digits", "train": 300}


class TestCheckpoints:
    @pytest.mark.parametrize("name", HARD)
    def test_a_stopped_training_goes_on_bit_by_bit(self, recipe, train, tmp_path, name):
        model = recipe(data=FEW, **{name: HARD[name] | {"epochs": 4}})
        whole = train(model, "whole")[0]
        for epoch in (1, 3):
            with pytest.raises(Stopped):
                train(model, "stopped", on_epoch=stop_after(epoch))
            assert [file.name for file in (tmp_path / "stopped").iterdir()] == [f".{name}.checkpoint"]
        seen = []
        (rest,) = train(model, "stopped", on_epoch=lambda _, epoch, *__: seen.append(epoch))
        assert seen == [4]
        assert same(rest.path, whole.path)
        assert rest.test_accuracy == whole.test_accuracy
        assert [file.name for file in (tmp_path / "stopped").iterdir()] == [rest.path.name]

    @pytest.mark.parametrize("why", ["changed", "damaged", "again", "reshaped"])
    def test_but_not_if_there_is_a_reason(self, recipe, train, tmp_path, why):
        with pytest.raises(Stopped):
            train(recipe(plain={"epochs": 3}), on_epoch=stop_after(2))
        checkpoint = tmp_path / "models" / ".plain.checkpoint"
        if why == "damaged":
            checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
        if why == "reshaped":  # the factory's code changed since, and the recipe did not
            with safe_open(checkpoint, framework="pt") as file:
                note = file.metadata()
            tensors = load_file(checkpoint)
            tensors["module/layers.0.weight"] = tensors["module/layers.0.weight"][:2].clone()
            save_file(tensors, checkpoint, metadata=note)
        changed = recipe(plain={"epochs": 3, "learning_rate": 0.02 if why == "changed" else 0.01})
        seen = []
        (trained,) = train(changed, again=why == "again", on_epoch=lambda _, epoch, *__: seen.append(epoch))
        assert seen == [1, 2, 3]
        assert same(trained.path, train(changed, "fresh")[0].path)
        assert not checkpoint.exists()

    def test_the_seconds_of_all_parts_count(self, recipe, train, tmp_path):
        model = recipe(plain={"epochs": 3})
        with pytest.raises(Stopped):
            train(model, on_epoch=stop_after(2))
        checkpoint = tmp_path / "models" / ".plain.checkpoint"
        with safe_open(checkpoint, framework="pt") as file:
            note = file.metadata()
        save_file(load_file(checkpoint), checkpoint, metadata=note | {"train_s": "1000.5"})
        assert 1000.5 < train(model)[0].train_s < 1060

    def test_a_checkpoint_beside_a_finished_model_is_cleared_away(self, recipe, train, tmp_path):
        train(recipe())
        with pytest.raises(Stopped):
            train(recipe(), again=True, on_epoch=stop_after(1))
        assert train(recipe())[0].skipped
        assert not (tmp_path / "models" / ".plain.checkpoint").exists()

    def test_killed_and_started_again(self, recipe, train, tmp_path):
        models = recipe(data=FEW, residual=HARD["residual"] | {"epochs": 12}, plain={})
        command = [sys.executable, "-m", "advrisk", "train", "recipe.yaml", "--out", "killed"]
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # as the tests themselves: sums come out the same
        with subprocess.Popen(command, cwd=tmp_path, env=one_thread, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("residual: epoch 3/"):
                    process.kill()
        assert process.returncode == -signal.SIGKILL
        assert not (tmp_path / "killed" / "residual.safetensors").exists()
        seen = []
        continued = train(models, "killed", on_epoch=lambda name, epoch, *_: seen.append((name, epoch)))
        assert seen[0] > ("residual", 3)
        assert seen[-3:] == [("residual", 12), ("plain", 1), ("plain", 2)]
        for rest, whole in zip(continued, train(models, "whole"), strict=True):
            assert same(rest.path, whole.path)


def test_a_place_that_cannot_be_written_is_named(recipe, train, tmp_path):
    (tmp_path / "models" / ".plain.checkpoint").mkdir(parents=True)
    with pytest.raises(RunError, match=r"models: plain cannot be stored there: .*\.plain\.checkpoint"):
        train(recipe())
