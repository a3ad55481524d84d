import math

import pytest
import yaml
from safetensors import safe_open
from safetensors.torch import load_file

from advrisk.core.errors import RunError, StudyError
from advrisk.parts import REGISTRIES
from advrisk.run.training import train_models
from advrisk.study import load_recipe

MODEL = {
    "factory": "advrisk.parts.models.small:SmallCnn",
    "args": {"size": 8, "width": 4},
    "method": "plain",
    "epochs": 2,
    "learning_rate": 0.01,
}


@pytest.fixture
def recipe(tmp_path):
    def write(*, seed=1, data=None, **models):
        content = {"name": "small", "seed": seed, "data": data or {"source": "digits"}}
        content["models"] = {name: MODEL | changes for name, changes in (models or {"plain": {}}).items()}
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(content))
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


def test_a_loss_that_explodes_stops_the_training_and_leaves_no_file(recipe, train, tmp_path):
    with pytest.raises(RunError, match=r"plain: the loss is .*learning_rate"):
        train(recipe(plain={"learning_rate": 1e30}))
    assert list((tmp_path / "models").iterdir()) == []
