"""Names that a study gives its arms and detectors: unique, readable, and without a say in what is run."""

from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.parts import REGISTRIES
from advrisk.plan.arms import expand_arms
from advrisk.plan.detectors import ConfiguredDetector, expand_detectors, names_of
from advrisk.study import StudySpec, study_from

PGD = {"attack": "pgd", "norm": "linf", "eps": "8/255"}


def study(*arms: dict[str, Any], detectors: list[Any] | None = None) -> StudySpec:
    return study_from(
        {
            "name": "s",
            "data": {"source": "digits", "evaluate": 10, "train": 20},
            "models": {"net": {"source": "demo"}, "other": {"source": "demo"}},
            "arms": list(arms),
            "detectors": detectors or [],
        }
    )


def shown(*arms: dict[str, Any], detectors: list[Any] | None = None) -> dict[str, str]:
    """Name -> id, of all arms but the clean one."""
    given = study(*arms, detectors=detectors)
    names = names_of(expand_detectors(given, REGISTRIES))
    return {arm.shown: arm.id for arm in expand_arms(given, REGISTRIES, names)[1:]}


def configured(*detectors: Any) -> list[ConfiguredDetector]:
    return expand_detectors(study(PGD, detectors=list(detectors)), REGISTRIES)


def test_an_arm_without_a_name_is_shown_by_its_id() -> None:
    assert shown(PGD) == {"pgd-linf-0.0313725-ace": "pgd-linf-0.0313725-ace"}


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        (PGD, ["strong"]),
        (PGD | {"eps": ["2/255", 0.1]}, ["strong-2/255", "strong-0.1"]),
        (
            PGD | {"eps": ["2/255", "8/255"], "objective": ["ace", "kl"], "steps": 5},
            ["strong-2/255-ace", "strong-2/255-kl", "strong-8/255-ace", "strong-8/255-kl"],
        ),
        (PGD | {"attack": ["pgd", "fgsm"]}, ["strong-pgd", "strong-fgsm"]),
        (PGD | {"steps": [5, 10]}, ["strong-steps=5", "strong-steps=10"]),
        (PGD | {"norm": ["linf", "l2"], "keep": ["last", "first"]}, None),
        ({"corruption": ["rain", "fog"], "level": [1, 3]}, None),
        ({"corruption": "rain", "level": [1, 3]}, ["strong-level-1", "strong-level-3"]),
        ({"attack": "transfer", "from": ["net", "other"], "arm": PGD}, ["strong-net", "strong-other"]),
        ({"preset": "minimal-distance", "norm": "linf"}, None),
    ],
)
def test_arms_of_one_entry_are_told_apart_by_what_differs(entry: dict[str, Any], names: list[str] | None) -> None:
    found, plain = shown(entry | {"name": "strong"}), shown(entry)
    assert list(found.values()) == list(plain.values()), "a name decides nothing"
    assert all(name.startswith("strong") for name in found)
    assert len(found) == len(set(found.values())) == len(plain)
    assert names is None or list(found) == names


def test_a_name_is_no_part_of_what_names_a_cell() -> None:
    plain, named = (expand_arms(study(PGD | more), REGISTRIES)[1] for more in ({}, {"name": "strong"}))
    assert (named.id, named.identity()) == (plain.id, plain.identity())


@pytest.mark.parametrize(
    ("arms", "complaint"),
    [
        (
            [PGD | {"name": "a"}, PGD | {"eps": 0.1, "name": "a"}],
            r"arms\[1\]: pgd-linf-0.0313725-ace and .* both have the name 'a'",
        ),
        (
            [PGD | {"name": "a"}, PGD | {"name": "b"}],
            r"arms\[1\].*has the names 'a' and 'b'; remove one name",
        ),
        (
            [PGD, PGD | {"eps": 0.1, "name": "pgd-linf-0.0313725-ace"}],
            r"arms\[1\].*both have the name|is the id of another arm",
        ),
        ([PGD | {"name": "clean"}], "both have the name 'clean'"),
        ([PGD | {"name": "two words"}], "letters, digits"),
        ([{"attack": "transfer", "from": "net", "arm": PGD | {"name": "a"}}], "name the transfer itself"),
    ],
)
def test_a_name_that_cannot_be_is_refused_where_it_stands(arms: list[dict[str, Any]], complaint: str) -> None:
    with pytest.raises(StudyError, match=complaint):
        shown(*arms)


def test_an_arm_that_a_preset_brings_may_be_named_by_an_entry_of_its_own() -> None:
    assert shown(PGD, PGD | {"name": "strong"}) == {"strong": "pgd-linf-0.0313725-ace"}
    transfer = {"attack": "transfer", "from": "net", "arm": PGD}
    assert set(shown(PGD | {"name": "strong"}, transfer | {"arm": PGD | {"keep": "first"}})) >= {"strong"}


def test_a_detector_is_shown_by_its_name_and_known_by_its_settings() -> None:
    plain, named = (
        configured({"name": "lid", "neighbours": 10})[0],
        configured({"detector": "lid", "name": "near", "neighbours": 10})[0],
    )
    assert (plain.readable, named.readable) == ("lid,neighbours=10", "near")
    assert named.id == plain.id
    assert named.shown == f"near@{plain.id.rpartition('@')[2]}"
    assert names_of([named]) == {"near": (plain.id,), named.shown: (plain.id,)}


def test_detectors_of_one_entry_are_told_apart_by_what_differs() -> None:
    found = configured({"detector": "lid", "name": "near", "neighbours": [10, 20]})
    assert [one.readable for one in found] == ["near-neighbours=10", "near-neighbours=20"]


@pytest.mark.parametrize(
    ("detectors", "complaint"),
    [
        (
            [{"detector": "lid", "name": "a"}, {"detector": "nss", "name": "a"}],
            r"detectors\[1\]: lid and nss both have the name 'a'",
        ),
        ([{"detector": "lid", "name": "a"}, {"detector": "lid", "name": "b"}], "has the names 'a' and 'b'"),
        (["lid", {"detector": "nss", "name": "lid"}], "both have the name 'lid'"),
        (
            [{"name": "mine", "neighbours": 3}],
            r"no detectors called 'mine'.*write, for example, \{detector: lid, name: mine\}",
        ),
        ([{"neighbours": 3}], "found no `detector`"),
        ([{"detector": "nss", "arms": [PGD | {"name": "a"}]}], "remove its `name`"),
    ],
)
def test_a_detectors_name_that_cannot_be_is_refused(detectors: list[Any], complaint: str) -> None:
    with pytest.raises(StudyError, match=complaint):
        configured(*detectors)


def test_an_arm_that_knows_a_named_detector_says_so_by_its_name() -> None:
    adaptive = {"attack": "adaptive", "norm": "linf", "eps": 0.1, "detector": "sure"}
    sure = [{"detector": "confidence", "name": "sure"}]
    (name,) = shown(adaptive, detectors=sure)
    (plain,) = shown(adaptive | {"detector": "confidence"}, detectors=["confidence"])
    assert name == plain.replace("detector=confidence", "detector=sure")
    assert list(shown(adaptive | {"name": "knowing"}, detectors=sure)) == ["knowing"]
