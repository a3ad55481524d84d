"""From the section `defences` to models: names, grids, stacks, tags, and what is refused."""

from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.parts import REGISTRIES
from advrisk.plan import expand_defences, model_names, tags_of
from advrisk.study import StudySpec, study_from

SOURCE = {"source": "demo", "name": "plain"}


def study(defences: dict[str, Any], models: dict[str, Any] | None = None, **more: Any) -> StudySpec:
    content = {
        "name": "s",
        "data": {"source": "mnist-5k", "evaluate": 4},
        "models": models or {"plain": SOURCE, "hardened": SOURCE},
        "defences": defences,
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    }
    return study_from(content | more)


def test_options_of_a_model_are_among_its_tags() -> None:
    """So that a depth, a width or a precision can explain durations; paths and addresses are none of them."""
    options = {"source": "torch", "factory": "nets:make", "weights": "w.pt", "args": {"depth": 18, "norm": "batch"}}
    models = {
        "deep": options | {"draws": 3, "verbose": True},
        "own": options | {"tags": {"depth": 34, "site": "a"}},
        "plain": SOURCE,
    }
    asked = study({"noisy": {"of": "deep", "name": "gauss-out", "sigma": 0.1}}, models)
    tags = tags_of(asked, expand_defences(asked, REGISTRIES))
    assert tags["deep"] == {"depth": 18, "norm": "batch", "draws": 3, "verbose": True}
    assert tags["own"] == {"depth": 34, "norm": "batch", "site": "a"}
    assert tags["plain"] == {}
    assert tags["noisy"]["depth"] == 18


def names(defences: dict[str, Any]) -> list[str]:
    return [one.name for one in expand_defences(study(defences), REGISTRIES)]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"of": "plain", "sigma": 0.1}, ["noisy"]),
        ({"of": ["plain"], "sigma": [0.1]}, ["noisy"]),
        ({"of": "plain", "sigma": [0.01, "1/10"]}, ["noisy-0.01", "noisy-0.1"]),
        ({"of": ["plain", "hardened"], "sigma": 0.1}, ["noisy-plain", "noisy-hardened"]),
        (
            {"of": ["plain", "hardened"], "sigma": [0.01, 0.1]},
            ["noisy-0.01-plain", "noisy-0.01-hardened", "noisy-0.1-plain", "noisy-0.1-hardened"],
        ),
        (
            {"of": "plain", "sigma": [0.1, 1], "noise_on": ["logits", "probabilities"]},
            ["noisy-0.1-logits", "noisy-0.1-probabilities", "noisy-1-logits", "noisy-1-probabilities"],
        ),
    ],
)
def test_a_defended_model_is_called_by_its_key_and_what_it_differs_by(entry, expected):
    assert names({"noisy": {"name": "gauss-out"} | entry}) == expected


def test_a_defence_may_be_of_defended_models_in_any_order():
    stacked = {
        "outer": {"of": ["noisy", "inner-2-plain"], "name": "conf", "threshold": 0.9},
        "noisy": {"of": "plain", "name": "gauss-out", "sigma": 0.1},
        "inner": {"of": ["plain", "hardened"], "name": "feature-squeezing", "bits": [2, 4]},
    }
    found = expand_defences(study(stacked), REGISTRIES)
    assert [(one.name, one.of) for one in found if one.defence == "conf"] == [
        ("outer-noisy", "noisy"),
        ("outer-inner-2-plain", "inner-2-plain"),
    ]
    places = {one.name: place for place, one in enumerate(found)}
    assert all(places[one.of] < places[one.name] for one in found if one.of in places)
    assert model_names(study(stacked), REGISTRIES)[:2] == ["plain", "hardened"]


def test_tags_are_those_of_the_model_inside_with_the_defence_and_its_parameters():
    asked = study(
        {
            "noisy": {"of": "plain", "name": "gauss-out", "sigma": 0.1, "tags": {"cheap": True}},
            "both": {"of": "noisy", "name": "gauss-at-input", "sigma": 0.3},
        },
        {"plain": SOURCE | {"tags": {"depth": 8}}},
    )
    tags = tags_of(asked, expand_defences(asked, REGISTRIES))
    noisy = {"depth": 8, "defence": "gauss-out", "sigma": 0.1, "noise_on": "probabilities", "cheap": True}
    assert tags["noisy"] == noisy
    assert tags["both"] == noisy | {"defence": "gauss-out+gauss-at-input", "gauss-at-input-sigma": 0.3}
    assert tags["plain"] == {"depth": 8}


@pytest.mark.parametrize(
    ("defences", "complaint"),
    [
        ({"a": {"of": "plane", "name": "jpeg"}}, "defences.a.of: unknown model 'plane'; did you mean 'plain'?"),
        (
            {"a": {"of": "b", "name": "jpeg"}, "b": {"of": "a", "name": "jpeg"}},
            "defences.a.of: defences form a circle: a of b of a; let one be of a model",
        ),
        ({"a": {"of": "a", "name": "jpeg"}}, "defences.a.of: defences form a circle: a of a"),
        ({"plain": {"of": "hardened", "name": "jpeg"}}, "defences.plain: found a model 'plain', too"),
        (
            {
                "a": {"of": ["plain", "hardened"], "name": "jpeg"},
                "a-plain": {"of": "plain", "name": "jpeg"},
            },
            "makes a model 'a-plain', and so does",
        ),
        ({"a": {"of": "plain", "name": "conf"}}, "defences.a: conf needs threshold: float"),
        ({"a": {"of": "plain", "name": "conf", "threshold": 2}}, "conf.threshold: must be at most 1"),
        ({"a": {"of": "plain", "name": "conf", "treshold": 1}}, "did you mean 'threshold'?"),
        ({"a": {"of": "plain", "name": "konf"}}, "no defences called 'konf'; did you mean 'conf'?"),
        (
            {"a": {"of": "plain", "name": "gauss-in", "sigma": 1}},
            "gauss-in is a training option: train a model by `advrisk train`",
        ),
        ({"a": {"of": "plain", "name": "jpeg", "quality": []}}, "jpeg.quality: an empty list"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(defences, complaint):
    with pytest.raises(StudyError) as caught:
        expand_defences(study(defences), REGISTRIES)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("entry", [{"name": "jpeg"}, {"of": "plain"}])
def test_both_keys_are_needed(entry):
    with pytest.raises(StudyError, match=r"found no `(of|name)`; set `of`, a model of this study, and `name`"):
        study({"a": entry})


def test_a_transfer_may_come_from_a_defended_model():
    from advrisk.plan import expand_arms

    arm = {"attack": "transfer", "from": "noisy", "arm": {"attack": "fgsm", "norm": "linf", "eps": 0.1}}
    asked = study({"noisy": {"of": "plain", "name": "gauss-out", "sigma": 0.1}}, arms=[arm])
    assert [one.surrogate for one in expand_arms(asked, REGISTRIES)] == [None, "noisy"]


class TestDraws:
    @pytest.mark.parametrize(
        ("line", "complaint"),
        [
            ({"corruption": "gaussian-noise", "sigma": 0.1, "draws": 2}, "draws is for attacks"),
            ({"attack": "fgsm", "norm": "linf", "eps": 0.1, "draws": 0}, "draws"),
        ],
    )
    def test_are_refused_where_they_mean_nothing(self, line, complaint):
        from advrisk.plan import expand_arms

        with pytest.raises(StudyError, match=complaint):
            expand_arms(study({}, arms=[line]), REGISTRIES)

    def test_are_part_of_an_arms_name_only_where_there_are_several(self):
        from advrisk.plan import expand_arms

        line = {"attack": "fgsm", "norm": "linf", "eps": 0.1}
        once, several = (expand_arms(study({}, arms=[line | {"draws": n}]), REGISTRIES)[1] for n in (1, 8))
        assert once == expand_arms(study({}, arms=[line]), REGISTRIES)[1]
        assert several.id == f"{once.id},draws=8"
        assert several.draws == 8
