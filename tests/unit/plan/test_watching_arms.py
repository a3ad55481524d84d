"""Arms that know a detector: which one, under what name, and refused where there is none."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits, DetectorTraits
from advrisk.plan import ModelCard, Plan, Shard, expand_detectors, make_plan, outline_plan
from advrisk.study import Arm, StudySpec

MakeStudy = Callable[..., StudySpec]
SNEAK = {"attack": "sneak", "norm": "linf", "eps": 0.1}
SHARD = Shard("shard", ("a", "b"))


@pytest.fixture
def parts(registries: Registries) -> Registries:
    traits = AttackTraits("scores", ("linf", "l2"), None, "unseen", objective="ace", keep="strongest", watches=True)

    @registries.attacks.register("sneak", traits=traits)
    def sneak(probe: object, *, steps: int = 40) -> None:
        """Knows a detector."""

    detectors: Registry[DetectorTraits] = Registry("detectors")

    @detectors.register("eye", traits=DetectorTraits("always", needs="scores"))
    def eye(*, size: int = 3) -> None:
        """Looks."""

    detectors.register("nose", traits=DetectorTraits("always"))(lambda: None)
    detectors.register("dog", traits=DetectorTraits("always", learns="attacks"))(lambda: None)
    return replace(registries, detectors=detectors)


def planned(study: StudySpec, parts: Registries, capability: Any = "gradients") -> Plan:
    models = [ModelCard(name, "d1", capability, 10) for name in study.models]
    outline = outline_plan(study, parts, models=models, detectors=expand_detectors(study, parts))
    return make_plan(outline, study, parts, models=models, shards=[SHARD], space="box")


def arms(study: StudySpec, parts: Registries) -> list[Arm]:
    return [arm for _, arm in planned(study, parts).assessed if arm.kind == "attack"]


def test_an_arm_is_named_after_its_detector_and_holds_its_full_name(study: MakeStudy, parts: Registries) -> None:
    made = study(SNEAK | {"detector": "nose", "steps": 5}, detectors=["nose"])
    (arm,) = arms(made, parts)
    assert arm.id == "sneak-linf-0.1-ace,detector=nose,steps=5"
    assert arm.keep == "strongest"
    (nose,) = expand_detectors(made, parts)
    assert arm.params == {"steps": 5, "detector": nose.id}
    assert planned(made, parts).watched == {nose.id}


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("eye", ["eye"]),
        ("eye,size=5", ["eye,size=5"]),
        (["eye", "nose"], ["eye", "nose"]),
        (["nose", "nose"], ["nose"]),
    ],
)
def test_a_detector_is_called_by_its_readable_name(
    asked: Any, meant: list[str], study: MakeStudy, parts: Registries
) -> None:
    made = study(SNEAK | {"detector": asked}, detectors=[{"name": "eye", "size": [3, 5]}, "nose"])
    assert [arm.params["detector"].rpartition("@")[0] for arm in arms(made, parts)] == meant
    assert [arm.id for arm in arms(made, parts)] == [f"sneak-linf-0.1-ace,detector={name}" for name in meant]


def test_a_name_that_none_has_alone_means_all_of_that_part(study: MakeStudy, parts: Registries) -> None:
    made = study(SNEAK | {"detector": "eye"}, detectors=[{"name": "eye", "size": [4, 5]}])
    assert [arm.id.partition("detector=")[2] for arm in arms(made, parts)] == ["eye,size=4", "eye,size=5"]


def test_a_full_name_means_one(study: MakeStudy, parts: Registries) -> None:
    full = [one.id for one in expand_detectors(study(detectors=[{"name": "eye", "size": [4, 5]}]), parts)]
    made = study(SNEAK | {"detector": full[1]}, detectors=[{"name": "eye", "size": [4, 5]}])
    assert [arm.params["detector"] for arm in arms(made, parts)] == [full[1]]


def test_other_settings_make_a_grid_beside_it(study: MakeStudy, parts: Registries) -> None:
    made = study(SNEAK | {"detector": ["eye", "nose"], "steps": [1, 2]}, detectors=["eye", "nose"])
    assert len(arms(made, parts)) == 4


def test_another_version_of_a_detector_makes_other_cells(study: MakeStudy, parts: Registries) -> None:
    made = study(SNEAK | {"detector": "nose"}, {"attack": "push", "eps": 0.1}, detectors=["nose"])
    before = {cell.arm.family: cell.id for cell in planned(made, parts).cells()}
    newer: Registry[DetectorTraits] = Registry("detectors")
    newer.register("nose", traits=DetectorTraits("always"), version=2)(lambda: None)
    after = {cell.arm.family: cell.id for cell in planned(made, replace(parts, detectors=newer)).cells()}
    assert before["sneak"] != after["sneak"]
    assert before["push"] == after["push"]


@pytest.mark.parametrize(
    ("entry", "detectors", "message"),
    [
        ({}, ["eye", "nose"], "sneak needs `detector`, the detector to evade: eye, nose$"),
        ({"detector": []}, ["nose"], "sneak needs `detector`"),
        ({"detector": "nose"}, [], "this study has none; add `detectors: "),
        ({}, [], "this study has none; add `detectors: "),
        ({"detector": "nosy"}, ["nose"], "unknown detector 'nosy'; did you mean 'nose'"),
        ({"detector": 3}, ["nose"], "unknown detector 3"),
        ({"detector": [["nose"]]}, ["nose"], "unknown detector"),
        ({"detector": {"name": "nose"}}, ["nose"], "unknown detector"),
        ({"detector": "nose", "stepz": 3}, ["nose"], "stepz"),
    ],
)
def test_is_refused_where_it_can_know_none(
    entry: dict[str, Any], detectors: list[str], message: str, study: MakeStudy, parts: Registries
) -> None:
    with pytest.raises(StudyError, match=message):
        planned(study(SNEAK | entry, detectors=detectors), parts)


def test_other_attacks_know_no_detector(study: MakeStudy, parts: Registries) -> None:
    with pytest.raises(StudyError, match=r"push.*detector"):
        planned(study({"attack": "push", "eps": 0.1, "detector": "nose"}, detectors=["nose"]), parts)


def test_is_neither_transferred_nor_learned_from(study: MakeStudy, parts: Registries) -> None:
    known = SNEAK | {"detector": "nose"}
    moved = {"attack": "transfer", "from": "plain", "arm": known}
    with pytest.raises(StudyError, match="knows a detector of its model"):
        planned(study(moved, detectors=["nose"]), parts)
    data = {"source": "digits", "evaluate": 10, "train": 10}
    with pytest.raises(StudyError, match="knows a detector of its model"):
        planned(study(known, detectors=["nose", {"name": "dog", "arms": [known]}], data=data), parts)


def test_a_model_that_gives_labels_only_is_refused_with_the_place(study: MakeStudy, parts: Registries) -> None:
    with pytest.raises(StudyError, match=r"arms\[0\]: sneak-linf-0.1-ace,detector=nose needs scores"):
        planned(study(SNEAK | {"detector": "nose"}, detectors=["nose"]), parts, capability="labels")
