"""Detectors of a study: looked up, bound, named, and refused where they cannot score."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import pytest
import yaml
from annotated_types import Ge

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import Capability, DetectorTraits
from advrisk.parts import REGISTRIES
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
    detectors.register("dog", traits=DetectorTraits("always", learns="attacks"))(lambda: None)
    detectors.register("cat", traits=DetectorTraits("always", learns="clean"))(lambda: None)
    detectors.register("xray", traits=DetectorTraits("always", inside=True, dropout=True))(lambda: None)
    return replace(registries, detectors=detectors)


@pytest.fixture
def parts(registries: Registries) -> Registries:
    return with_eye(registries)


def outline(study: StudySpec, parts: Registries, *cards: ModelCard) -> None:
    outline_plan(study, parts, models=cards, detectors=expand_detectors(study, parts))


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
        ({"name": "nose", "size": 1}, "<study>: detectors[0]: nose has no parameter 'size'; known: detector, name"),
        (
            "eye,size=5,layers=a+b@12345678",
            "<study>: detectors[0]: found 'eye,size=5,layers=a+b@12345678', as a ledger shows it; in a study write "
            "{name: eye, size: 5, layers: [a, b]}",
        ),
        ("eyes,size=5", "<study>: detectors[0]: no detectors called 'eyes,size=5'"),
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
        outline(study(arms, detectors=["nose", "eye"]), parts, card)
    assert str(caught.value).startswith(f"<study>: detectors[1]: {said}")
    outline(study(arms, detectors=["nose"]), parts, card)
    outline(study(arms, detectors=["eye"]), parts, PLAIN)


def test_a_surrogate_is_not_scored_and_may_give_less(study: MakeStudy, parts: Registries) -> None:
    surrogate = replace(PLAIN, name="thief", capability="labels", surrogate=True)
    arms = {"attack": "transfer", "from": "thief", "arm": {"attack": "guess"}}
    models = {"plain": {"source": "torch"}, "thief": {"source": "torch", "surrogate": True}}
    outline(study(arms, detectors=["eye"], models=models), parts, PLAIN, surrogate)


@pytest.fixture
def real() -> Registries:
    """With the attacks that there are: what detectors learn from is one of them."""
    return with_eye(REGISTRIES)


FGSM = {"attack": "fgsm", "norm": "linf", "eps": 0.1}
LEARNING = {"data": {"source": "digits", "evaluate": 10, "train": 50}}


def test_one_that_looks_inside_needs_something_to_see(study: MakeStudy, parts: Registries) -> None:
    spec = study(detectors=["xray"])
    outline(spec, parts, PLAIN)
    with pytest.raises(StudyError, match=r"detectors\[0\]: xray reads hidden layers, but plain is a file"):
        outline(spec, parts, replace(PLAIN, opaque={ids(spec, parts)[0]: "plain is a file"}))
    with pytest.raises(StudyError, match=r"detectors\[0\]: xray switches dropout on, but plain has none"):
        outline(spec, parts, replace(PLAIN, undropped="plain has none"))


def test_one_that_learns_needs_samples_to_learn_from(study: MakeStudy, real: Registries) -> None:
    with pytest.raises(
        StudyError, match=r"data: dog learns from samples of the split `train`, and the study has none; add"
    ):
        outline(study(FGSM, detectors=["dog"]), real, PLAIN)
    outline(study(FGSM, detectors=["dog"], **LEARNING), real, PLAIN)


def test_one_that_learns_is_named_after_what_it_learns_from(study: MakeStudy, real: Registries) -> None:
    def name(entry: Any, *, train: str = "these", seed: int = 7, success: Any = "label") -> str:
        spec = study(detectors=[entry], seed=seed, success=success, **LEARNING)
        (one,) = expand_detectors(spec, real, examples=train)
        return one.id

    assert name("dog") == name("dog")
    assert len({name("dog"), name("dog", train="those"), name("dog", seed=8), name("dog", success="prediction")}) == 4
    assert name("cat") == name("cat", success="prediction") != name("cat", train="those")
    assert name("nose") == name("nose", train="those", seed=8)
    usual = {"attack": "pgd", "norm": "linf", "eps": 0.03125, "keep": "last"}
    assert name({"name": "dog", "arms": [usual]}) == name("dog")
    other = name({"name": "dog", "arms": [usual, usual | {"eps": 0.1}]})
    assert other.startswith("dog,arms=pgd-linf-0.03125-ace,keep=last+pgd-linf-0.1-ace,keep=last@")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": "cat", "arms": [{"attack": "square"}]}, "cat does not learn from attacks; remove its `arms`"),
        ({"name": "dog", "arms": [{"attack": "squar"}]}, "no attacks called 'squar'; did you mean 'square'?"),
        (
            {"name": "dog", "arms": [{"corruption": "gaussian-noise", "sigma": 0.1}]},
            "dog learns from attacks on the model itself, and gaussian-noise",
        ),
    ],
)
def test_arms_that_cannot_be_learned_from(study: MakeStudy, real: Registries, entry: Any, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        expand_detectors(study(detectors=[entry], **LEARNING), real)
    assert str(caught.value).startswith(f"<study>: detectors[0]: {said}")


@pytest.mark.parametrize("capability", ["labels", "scores", "gradients"])
def test_arms_are_offered_that_the_model_can_answer(study: MakeStudy, real: Registries, capability: Capability) -> None:
    """What the message writes is a study that is not refused."""
    table = replace(PLAIN, capability=capability, takes_images=False)
    arms = {"attack": "hopskipjump", "norm": "linf"}
    images = {"name": "dog", "arms": [{"attack": "spatial"}]}
    with pytest.raises(StudyError) as caught:
        outline(study(arms, detectors=[images], **LEARNING), real, table)
    offered = str(caught.value).partition("let it learn from others, as in ")[2].partition(", or remove it")[0]
    entry = yaml.safe_load(offered)
    assert set(entry) == {"name", "arms"}
    outline(study(arms, detectors=[entry], **LEARNING), real, table)


def test_a_model_that_the_attack_cannot_ask_is_refused(study: MakeStudy, real: Registries) -> None:
    with pytest.raises(
        StudyError, match=r"dog learns from pgd-.*, which needs gradients of a model, but plain gives sc"
    ):
        outline(
            study({"attack": "square", "norm": "linf", "eps": 0.1}, detectors=["dog"], **LEARNING),
            real,
            replace(PLAIN, capability="scores"),
        )
