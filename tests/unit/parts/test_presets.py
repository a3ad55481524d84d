"""Presets named after papers hold the papers' arms."""

import pytest

from advrisk.core.errors import StudyError
from advrisk.parts import REGISTRIES
from advrisk.plan import expand_arms
from advrisk.study import Arm, study_from


def arms_of(preset: str, **given: object) -> list[Arm]:
    study = {
        "name": "a",
        "data": {"source": "digits", "evaluate": 1},
        "models": {"plain": {"source": "torch"}},
        "arms": [{"preset": preset, **given}],
    }
    return expand_arms(study_from(study), REGISTRIES)[1:]


def test_prosac() -> None:
    arms = arms_of("prosac-paper")
    sizes = {
        (family, norm): [arm.eps for arm in arms if (arm.family, arm.norm) == (family, norm)]
        for family in ("autoattack", "square", "nes")
        for norm in ("l2", "linf")
    }
    assert len(arms) == sum(map(len, sizes.values())) == 59
    tenths = [0.021, 0.022, 0.023, 0.024, 0.025, 0.026, 0.027, 0.028, 0.029, 0.03]
    tiny = [1e-5, 2e-5, 3e-5, 4e-5, 5e-5, 6e-5, 7e-5, 8e-5, 9e-5, 1e-4]
    assert sizes["autoattack", "l2"] == sizes["square", "l2"] == tenths
    assert sizes["autoattack", "linf"] == sizes["square", "linf"] == sizes["nes", "linf"] == tiny
    assert sizes["nes", "l2"] == [0.1, 0.14, 0.15, 0.16, 0.17, 0.18, 0.2, 0.25, 0.3]
    assert {arm.params["p_init"] for arm in arms if arm.family == "square"} == {0.05}
    assert not any(arm.params["signed"] for arm in arms if arm.family == "nes")


@pytest.mark.parametrize(("preset", "turn", "shift"), [("mead-mnist", 60, 2.8), ("mead-cifar10", 30, 2.56)])
def test_mead(preset: str, turn: float, shift: float) -> None:
    arms = {arm.family: arm for arm in arms_of(preset)}
    assert arms["spatial"].params["max_rotation"] == turn
    assert arms["spatial"].params["max_translation"] == shift
    assert arms["spatial"].keep == "strongest"
    assert (arms["hopskipjump"].norm, arms["hopskipjump"].eps, arms["hopskipjump"].keep) == ("l2", None, "smallest")
    climbed = [arm for arm in arms_of(preset) if arm.objective in ("ace", "kl", "fisher-rao", "gini")]
    assert len(climbed) == 4 * (7 + 7 + 3 * 6)


def test_survival() -> None:
    arms = arms_of("survival-paper")
    assert [arm.params["pixels"] for arm in arms if arm.family == "pixel"] == [4, 16, 64, 256]
    assert [arm.eps for arm in arms if arm.family == "threshold"] == [1 / 255, 4 / 255, 16 / 255, 64 / 255, 1]
    assert {arm.params["generations"] for arm in arms if arm.family in ("pixel", "threshold")} == {10}
    assert [arm.params["steps"] for arm in arms if arm.family == "hopskipjump"] == [10]
    assert len(arms) == 2 * 27 + 4 + 1 + 4 + 5


@pytest.mark.parametrize(("preset", "left_out"), [("sensor", {"colour-cast"}), ("noise", set())])
def test_corruptions_of_one_cause(preset: str, left_out: set[str]) -> None:
    families = {part.name for part in REGISTRIES.corruptions if part.traits.cause == preset} - left_out
    arms = arms_of(preset)
    assert {arm.family for arm in arms} == families
    assert {arm.id for arm in arms} == {f"{name}-level-{level}" for name in families for level in (1, 3, 5)}
    assert {arm.id for arm in arms_of(preset, level=2)} == {f"{name}-level-2" for name in families}
    assert {arm.id for arm in arms_of(preset, level=[2, 4])} == {
        f"{name}-level-{n}" for name in families for n in (2, 4)
    }


def test_repeats_of_corruptions_that_are_not_random_are_left_out() -> None:
    repeats = {arm.family: arm.repeats for arm in arms_of("sensor", repeats=4)}
    assert (repeats["rotation"], repeats["jpeg"]) == (4, 1)
    assert set(repeats.values()) == {1, 4}


@pytest.mark.parametrize("level", [6, [1, 9]])
def test_a_level_that_there_is_not_is_refused(level: object) -> None:
    with pytest.raises(StudyError, match="has levels from 1 to 5, found"):
        arms_of("noise", level=level)
