"""Detectors of a study: looked up, bound, named, and refused where they cannot score."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import pytest
from annotated_types import Ge

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import DetectorTraits
from advrisk.plan import ModelCard, expand_detectors, outline_plan
from advrisk.study import StudySpec

MakeStudy = Callable[..., StudySpec]
PLAIN = ModelCard("plain", "d1", "gradients", 10)


def with_eye(registries: Registries, *, version: int = 1) -> Registries:
    detectors: Registry[DetectorTraits] = Registry("detectors")

    @detectors.register("eye", traits=DetectorTraits("always", needs="scores", images=True), version=version)
    def eye(*, size: Annotated[int, Ge(1)] = 3, layers: tuple[str, ...] = ()) -> None:
        """Looks."""

    detectors.register("nose", traits=DetectorTraits("always"))(lambda: None)
    return replace(registries, detectors=detectors)


@pytest.fixture
def parts(registries: Registries) -> Registries:
    return with_eye(registries)


def ids(study: StudySpec, parts: Registries) -> list[str]:
    return [one.id for one in expand_detectors(study, parts)]


def test_a_detector_is_named_readably_and_by_a_digest(study: MakeStudy, parts: Registries) -> None:
    found = ids(study(detectors=["eye", {"name": "eye", "size": 5, "layers": ["a", "b"]}, "nose"]), parts)
    assert [name.rpartition("@")[0] for name in found] == ["eye", "eye,size=5,layers=a+b", "nose"]
    assert all(len(name.rpartition("@")[2]) == 8 for name in found)
    assert len({name.rpartition("@")[2] for name in found}) == 3


def test_lists_make_a_grid_and_the_same_detector_counts_once(study: MakeStudy, parts: Registries) -> None:
    entries = [{"name": "eye", "size": [2, 3]}, "eye", {"name": "eye", "size": 3}]
    found = expand_detectors(study(detectors=entries), parts)
    assert [dict(one.params) for one in found] == [{"size": 2, "layers": ()}, {"size": 3, "layers": ()}]


def test_another_version_is_another_detector_of_the_same_name(study: MakeStudy, registries: Registries) -> None:
    (old,) = ids(study(detectors=["eye"]), with_eye(registries))
    (new,) = ids(study(detectors=["eye"]), with_eye(registries, version=2))
    assert old != new
    assert old.rpartition("@")[0] == new.rpartition("@")[0]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("eyes", "<study>: detectors[0]: no detectors called 'eyes'; did you mean 'eye'?"),
        ({"name": "eye", "sise": 3}, "<study>: detectors[0]: eye has no parameter 'sise'; did you mean 'size'?"),
        ({"name": "eye", "size": 0}, "<study>: detectors[0]: eye.size: must be at least 1, found 0"),
    ],
)
def test_what_is_not_known_is_refused(study: MakeStudy, parts: Registries, entry: Any, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        expand_detectors(study(detectors=[entry]), parts)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (replace(PLAIN, capability="labels"), "eye needs scores of a model, but plain gives labels only"),
        (replace(PLAIN, takes_images=False), "eye is for images (channels × height × width), which plain does not"),
    ],
)
def test_what_a_model_cannot_give_is_refused(study: MakeStudy, parts: Registries, card: ModelCard, said: str) -> None:
    arms = {"attack": "guess"}
    with pytest.raises(StudyError) as caught:
        outline_plan(study(arms, detectors=["nose", "eye"]), parts, models=[card])
    assert str(caught.value).startswith(f"<study>: detectors[1]: {said}")
    outline_plan(study(arms, detectors=["nose"]), parts, models=[card])
    outline_plan(study(arms, detectors=["eye"]), parts, models=[PLAIN])


def test_a_surrogate_is_not_scored_and_may_give_less(study: MakeStudy, parts: Registries) -> None:
    surrogate = replace(PLAIN, name="thief", capability="labels", surrogate=True)
    arms = {"attack": "transfer", "from": "thief", "arm": {"attack": "guess"}}
    models = {"plain": {"source": "torch"}, "thief": {"source": "torch", "surrogate": True}}
    outline_plan(study(arms, detectors=["eye"], models=models), parts, models=[PLAIN, surrogate])


def test_without_kept_inputs_there_is_nothing_to_score(study: MakeStudy, parts: Registries) -> None:
    with pytest.raises(StudyError, match=r"keep_inputs: `none` keeps no input.*say `keep_inputs: successful`"):
        outline_plan(study(detectors=["eye"], keep_inputs="none"), parts, models=[PLAIN])
    outline_plan(study(detectors=[], keep_inputs="none"), parts, models=[PLAIN])
