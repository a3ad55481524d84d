"""From the lines of `arms` to arms: exact ids, and refusals that name the line."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.core.traits import SourceTraits
from advrisk.plan import entry_for, expand_arms
from advrisk.study import CLEAN, Arm, StudySpec, load_study

MakeStudy = Callable[..., StudySpec]


@pytest.fixture
def ids(registries: Registries, study: MakeStudy) -> Callable[..., list[str]]:
    """The ids of the arms that lines expand to, without the clean arm, which must come first."""

    def expanded(*lines: dict[str, Any]) -> list[str]:
        first, *others = expand_arms(study(*lines), registries)
        assert first == CLEAN
        return [arm.id for arm in others]

    return expanded


@pytest.fixture
def refusal(registries: Registries, study: MakeStudy) -> Callable[..., str]:
    def said(*lines: dict[str, Any]) -> str:
        with pytest.raises(StudyError) as caught:
            expand_arms(study(*lines), registries)
        return str(caught.value)

    return said


def test_an_attack_line_becomes_an_arm_with_everything_recorded(registries: Registries, study: MakeStudy) -> None:
    line = {"attack": "walk", "norm": "l2", "eps": "1/2", "steps": 10, "keep": "last", "max_queries": 99, "repeats": 3}
    assert expand_arms(study(line), registries)[1] == Arm(
        id="walk-l2-0.5-ace,steps=10,keep=last,max_queries=99",
        kind="attack",
        family="walk",
        version=2,
        norm="l2",
        eps=0.5,
        objective="ace",
        keep="last",
        max_queries=99,
        repeats=3,
        params={"steps": 10, "size": None, "start": True, "widths": (1, 2)},
    )


def test_an_attack_without_a_norm_becomes_an_arm_without_norm_and_eps(registries: Registries, study: MakeStudy) -> None:
    assert expand_arms(study({"attack": "turn"}), registries)[1] == Arm(
        id="turn", kind="attack", family="turn", keep="strongest", params={"angle": 30.0}
    )


def test_a_corruption_line_becomes_an_arm(registries: Registries, study: MakeStudy) -> None:
    line = {"corruption": "noise", "sigma": "1/4", "repeats": 2}
    assert expand_arms(study(line), registries)[1] == Arm(
        id="noise,sigma=0.25", kind="corruption", family="noise", cause="noise", repeats=2, params={"sigma": 0.25}
    )


def test_lists_expand_to_a_grid(ids: Callable[..., list[str]]) -> None:
    line = {
        "attack": "walk",
        "norm": ["linf", "l2"],
        "eps": ["8/255", 0.5],
        "objective": ["ace", "kl"],
        "steps": [1, 9],
    }
    assert ids(line) == [
        "walk-linf-0.0313725-ace,steps=1",
        "walk-linf-0.0313725-ace,steps=9",
        "walk-linf-0.0313725-kl,steps=1",
        "walk-linf-0.0313725-kl,steps=9",
        "walk-linf-0.5-ace,steps=1",
        "walk-linf-0.5-ace,steps=9",
        "walk-linf-0.5-kl,steps=1",
        "walk-linf-0.5-kl,steps=9",
        "walk-l2-0.0313725-ace,steps=1",
        "walk-l2-0.0313725-ace,steps=9",
        "walk-l2-0.0313725-kl,steps=1",
        "walk-l2-0.0313725-kl,steps=9",
        "walk-l2-0.5-ace,steps=1",
        "walk-l2-0.5-ace,steps=9",
        "walk-l2-0.5-kl,steps=1",
        "walk-l2-0.5-kl,steps=9",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"attack": ["push", "walk"], "norm": "linf", "eps": 1}, ["push-linf-1-ace", "walk-linf-1-ace"]),
        ({"attack": "push", "eps": "8/255"}, ["push-linf-0.0313725-ace"]),
        ({"attack": "push", "eps": 0}, ["push-linf-0-ace"]),
        ({"attack": "push", "eps": [0.1, "1/10", 0.1]}, ["push-linf-0.1-ace"]),
        ({"attack": "push", "eps": 1, "keep": ["first", "last"]}, ["push-linf-1-ace", "push-linf-1-ace,keep=last"]),
        ({"attack": "guess"}, ["guess-l2"]),
        ({"attack": "aim", "eps": 1, "objective": ["ace", "ratio"]}, ["aim-l2-1-ace", "aim-l2-1-ratio"]),
        ({"attack": "guess", "norm": "l2", "eps": 3, "keep": "first"}, ["guess-l2-3,keep=first"]),
        ({"attack": "walk", "norm": "l1", "eps": 12, "steps": 40, "start": True}, ["walk-l1-12-ace"]),
        ({"attack": "walk", "norm": "l1", "eps": 12, "start": False}, ["walk-l1-12-ace,start=False"]),
        ({"attack": "walk", "norm": "l1", "eps": 12, "size": "1/3"}, ["walk-l1-12-ace,size=0.333333"]),
        ({"attack": "walk", "norm": "l1", "eps": 12, "size": [None, 2]}, ["walk-l1-12-ace", "walk-l1-12-ace,size=2"]),
        ({"attack": "walk", "norm": "l1", "eps": 12, "widths": [3, 4]}, ["walk-l1-12-ace,widths=3+4"]),
        ({"attack": "turn"}, ["turn"]),
        ({"attack": "turn", "angle": [10, 30], "keep": "first"}, ["turn,angle=10,keep=first", "turn,keep=first"]),
        ({"corruption": "fog"}, ["fog"]),
        ({"corruption": ["fog", "fog"], "density": [1, 3, 5]}, ["fog", "fog,density=3", "fog,density=5"]),
        ({"corruption": "noise", "sigma": [0.1, 0.2]}, ["noise,sigma=0.1", "noise,sigma=0.2"]),
        ({"corruption": "noise", "level": [1, 3]}, ["noise-level-1", "noise-level-3"]),
    ],
)
def test_ids_say_what_differs_from_the_defaults(
    ids: Callable[..., list[str]], line: dict[str, Any], expected: list[str]
) -> None:
    assert ids(line) == expected


def test_a_level_is_a_preset_of_the_strength(registries: Registries, study: MakeStudy) -> None:
    _, arm = expand_arms(study({"corruption": "noise", "level": 2, "repeats": 3}), registries)
    assert (arm.id, arm.params, arm.cause, arm.repeats) == ("noise-level-2", {"sigma": 0.2}, "noise", 3)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"corruption": "noise", "level": 4}, "noise has levels from 1 to 3, found 4"),
        ({"corruption": "noise", "level": 1, "sigma": 2}, "found both `level` and `sigma`, which the level sets"),
        ({"corruption": "fog", "level": 1}, "fog has no levels; remove `level` and give its strength"),
        ({"attack": "push", "eps": 1, "level": 1}, "level is for corruptions; push is an attack, whose limit is eps"),
        ({"preset": "quick", "eps": 1, "level": 1}, "quick sets its own level"),
    ],
)
def test_levels_that_mean_nothing_are_refused(
    registries: Registries, study: MakeStudy, line: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(StudyError, match=re.escape(complaint)):
        expand_arms(study(line), registries)


@pytest.mark.parametrize("level", [0, -1, 1.5, "high", True, []])
def test_a_level_is_a_whole_number_from_one(study: MakeStudy, level: object) -> None:
    with pytest.raises(StudyError, match="arms"):
        study({"corruption": "noise", "level": level})


def test_settings_within_settings_are_a_grid_and_part_of_the_id(ids: Callable[..., list[str]]) -> None:
    line = {"attack": "borrow", "method": "labels", "eps": [1, 2], "settings": {"steps": [3, 4], "sizes": [[5, 6]]}}
    assert ids(line) == [
        f"borrow-l2-{eps},method=labels,sizes=[5, 6],steps={steps}" for eps in (1, 2) for steps in (3, 4)
    ]


def test_the_order_of_settings_does_not_matter(ids: Callable[..., list[str]]) -> None:
    line = {"attack": "borrow", "method": "labels"}
    assert ids(line | {"settings": {"a": 1, "b": 2}}, line | {"settings": {"b": 2, "a": 1}}) == [
        "borrow-l2,method=labels,a=1,b=2"
    ]


def test_what_is_found_out_about_an_attack_is_recorded(registries: Registries, study: MakeStudy) -> None:
    _, arm = expand_arms(study({"attack": "borrow", "method": "labels"}), registries)
    assert arm.params == {"method": "labels", "settings": None, "version": "1.2"}
    assert arm.id == "borrow-l2,method=labels"
    assert arm.keep == "last"


def test_the_order_of_keys_does_not_matter(ids: Callable[..., list[str]]) -> None:
    line = {"attack": "walk", "norm": "l2", "eps": 1, "start": False, "steps": 3}
    assert ids(dict(reversed(line.items()))) == ids(line) == ["walk-l2-1-ace,steps=3,start=False"]


def test_an_arm_named_by_two_lines_is_there_once(ids: Callable[..., list[str]]) -> None:
    assert ids({"attack": "push", "eps": [0.1, 0.2]}, {"attack": "push", "eps": [0.2, 0.3]}) == [
        "push-linf-0.1-ace",
        "push-linf-0.2-ace",
        "push-linf-0.3-ace",
    ]


def test_a_preset_expands_to_its_lines(ids: Callable[..., list[str]]) -> None:
    assert ids({"preset": "quick", "eps": ["1/10", 0.2]}) == [
        "walk-linf-0.1-ace,steps=5",
        "walk-linf-0.2-ace,steps=5",
        "noise,sigma=1",
    ]
    assert ids({"preset": "quick", "norm": "l2", "eps": 1, "steps": 7}) == ["walk-l2-1-ace,steps=7", "noise,sigma=1"]


def test_a_preset_repeats_all_its_arms(registries: Registries, study: MakeStudy) -> None:
    arms = expand_arms(study({"preset": "quick", "eps": 1, "repeats": 4}), registries)
    assert [(arm.id, arm.repeats) for arm in arms] == [
        ("clean", 1),
        ("walk-linf-1-ace,steps=5", 4),
        ("noise,sigma=1", 4),
    ]


def test_a_preset_repeats_those_corruptions_that_are_random(registries: Registries, study: MakeStudy) -> None:
    @registries.presets.register("wet", traits=SourceTraits("outdoors"))
    def wet() -> list[dict[str, Any]]:
        return [{"corruption": "fog"}, {"corruption": "noise", "level": 1}]

    arms = expand_arms(study({"preset": "wet", "repeats": 3}), registries)[1:]
    assert [(arm.id, arm.repeats) for arm in arms] == [("fog", 1), ("noise-level-1", 3)]


def test_an_objective_without_slope_at_the_clean_input_makes_every_attack_random(
    registries: Registries, study: MakeStudy
) -> None:
    arm = expand_arms(study({"attack": "push", "eps": 1, "objective": "kl", "repeats": 2}), registries)[1]
    assert (arm.id, arm.repeats) == ("push-linf-1-kl", 2)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"attack": "wlak", "norm": "l2", "eps": 1}, "no attacks called 'wlak'; did you mean 'walk'?"),
        ({"attack": "fog"}, "no attacks called 'fog'; known: aim, borrow, few, guess, push, transfer, turn, walk"),
        ({"corruption": "frog"}, "no corruptions called 'frog'; did you mean 'fog'?"),
        ({"preset": "quik", "eps": 1}, "no presets called 'quik'; did you mean 'quick'?"),
        ({"attack": "walk", "eps": 1}, "walk needs a norm: linf, l2, l1"),
        ({"attack": "few", "eps": [2, 0.5]}, "few: eps counts changed features in l0, and less than 1 allows none"),
        ({"attack": "walk", "norm": "l0", "eps": 1}, "walk has no norm l0, only linf, l2, l1"),
        ({"attack": "push", "norm": ["linf", "l2"], "eps": 1}, "push has no norm l2, only linf"),
        ({"attack": "push"}, "push needs eps, the size limit of the perturbation"),
        ({"attack": "guess", "objective": "ace"}, "guess has no objective to choose"),
        ({"attack": "turn", "norm": "l2"}, "turn has no norm and no eps; remove `norm`"),
        ({"attack": "turn", "eps": 1}, "turn has no norm and no eps; remove `eps`"),
        (
            {"attack": "turn", "keep": ["first", "smallest"]},
            "turn has no norm, so no smallest success; keep first, strongest or last",
        ),
        ({"attack": "push", "eps": 1, "objective": "k"}, "no objectives called 'k'; did you mean 'kl'?"),
        ({"attack": "aim", "eps": 1, "objective": "kl"}, "aim aims at classes, which the objective kl cannot"),
        (
            {"attack": "aim", "eps": 1, "objective": ["ace", "kl"]},
            "aim aims at classes, which the objective kl cannot",
        ),
        (
            {"attack": "push", "eps": 1, "repeats": 2},
            "push with the objective ace is not random: its 2 repeats would be equal; remove `repeats`",
        ),
        ({"attack": "push", "eps": 1, "objective": ["kl", "ace"], "repeats": 2}, "push with the objective ace is not"),
        ({"attack": "guess", "repeats": 2}, "guess is not random: its 2 repeats would be equal"),
        ({"corruption": "fog", "repeats": 3}, "fog is not random: its 3 repeats would be equal"),
        ({"attack": "push", "eps": 1, "steps": 3}, "push has no parameter 'steps'; "),
        ({"attack": "walk", "norm": "l2", "eps": 1, "stepz": 3}, "no parameter 'stepz'; did you mean 'steps'?"),
        ({"attack": "walk", "norm": "l2", "eps": 1, "repeat": 3}, "no parameter 'repeat'; did you mean 'repeats'?"),
        ({"attack": "walk", "norm": "l2", "eps": 1, "max_querys": 3}, "did you mean 'max_queries'?"),
        ({"attack": "walk", "norm": "l2", "eps": 1, "steps": 0}, "walk.steps: must be at least 1, found 0"),
        ({"attack": "walk", "norm": "l2", "eps": 1, "steps": [1, 0]}, "walk.steps: must be at least 1, found 0"),
        (
            {"attack": "walk", "norm": "l2", "eps": 1, "steps": "1/2"},
            "walk.steps: a whole number is needed, found '1/2'",
        ),
        ({"attack": "walk", "norm": "l2", "eps": 1, "steps": []}, "walk.steps: an empty list leaves no arm"),
        ({"attack": "walk", "norm": "l2", "eps": 1, "widths": 3}, "walk.widths: a list is needed, found 3"),
        ({"corruption": "noise"}, "noise needs sigma: float"),
        ({"corruption": "noise", "sigma": []}, "noise.sigma: an empty list leaves no arm"),
        ({"corruption": "noise", "sigma": 1, "repeat": 2}, "did you mean 'repeats'?"),
        (
            {"attack": "borrow", "method": "labels", "max_queries": 9},
            "it cannot stop single samples; remove `max_queries` and give the attack fewer steps",
        ),
        (
            {"attack": "borrow", "method": "labels", "keep": ["last", "first"]},
            "returns one point per sample: keep last, not first",
        ),
        ({"attack": "borrow", "method": "labels", "eps": [1, 0]}, "nothing fits into nothing"),
        ({"attack": "borrow", "method": "labels", "settings": {"a": []}}, "borrow.a: an empty list leaves no arm"),
        ({"attack": "borrow", "method": "labels", "settings": 3}, "borrow.settings: a mapping of names to values is"),
        ({"corruption": "fog", "eps": 1}, "eps is for attacks; fog is a corruption"),
        ({"corruption": "fog", "norm": "l2"}, "norm is for attacks; fog is a corruption"),
        ({"corruption": "fog", "objective": "kl"}, "objective is for attacks; fog is a corruption"),
        ({"corruption": "fog", "keep": "last"}, "keep is for attacks; fog is a corruption"),
        ({"corruption": "fog", "max_queries": 9}, "max_queries is for attacks; fog is a corruption"),
        ({"preset": "quick"}, "quick needs eps: tuple[float, ...]"),
        ({"preset": "quick", "eps": 1, "stepz": 3}, "quick has no parameter 'stepz'; did you mean 'steps'?"),
        (
            {"preset": "fixed", "eps": 0.1},
            "fixed sets its own eps; with this preset, set only keep, max_queries, repeats, draws",
        ),
        ({"preset": ["quick", "fixed"], "eps": 0.1}, "fixed sets its own eps; "),
        ({"preset": "fixed", "norm": "l1"}, "fixed sets its own norm; "),
        (
            {"preset": "quick", "eps": 1, "objective": "kl"},
            "quick sets its own objective; "
            "with this preset, set only norm, eps, steps, keep, max_queries, repeats, draws",
        ),
        ({"preset": "fixed", "zeal": 0.1}, "fixed has no parameter 'zeal'; known: draws, keep, max_queries, repeats"),
        ({"preset": "fixed", "repeat": 2}, "fixed has no parameter 'repeat'; did you mean 'repeats'?"),
        ({"preset": "quick", "eps": 1, "norm": "l0"}, "walk has no norm l0, only linf, l2, l1"),
        ({"preset": "broken"}, "found 'l7'; known: l0, l1, l2, linf"),
    ],
)
def test_a_line_that_asks_the_impossible_is_refused(
    refusal: Callable[..., str], line: dict[str, Any], complaint: str
) -> None:
    message = refusal({"corruption": "fog"}, line)
    assert message.startswith("<study>: arms[1]: ")
    assert message.count("<study>: arms[1]") == 1, "the place is said once, also for what a preset brings"
    assert complaint in message


def test_a_refusal_names_file_and_line(registries: Registries, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(
        "name: a\ndata: {source: digits, evaluate: 1}\nmodels: {plain: {source: torch}}\n"
        "arms:\n  - {corruption: fog}\n  - {attack: puhs, eps: 1}\n"
    )
    with pytest.raises(StudyError) as caught:
        expand_arms(load_study(file), registries)
    assert str(caught.value) == f"{file}:6: arms[1]: no attacks called 'puhs'; did you mean 'push'?"


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (
            [{"corruption": "noise", "sigma": 1}, {"corruption": "noise", "sigma": 1, "repeats": 2}],
            "found the arm 'noise,sigma=1' twice with different repeats",
        ),
        (
            [{"attack": "push", "eps": 0.1}, {"attack": "push", "eps": 0.10000001}],
            "found the arm 'push-linf-0.1-ace' twice with different eps",
        ),
        (
            [{"corruption": "noise", "sigma": 1}, {"corruption": "noise", "sigma": 1.00000001, "repeats": 2}],
            "found the arm 'noise,sigma=1' twice with different repeats and params",
        ),
    ],
)
def test_two_arms_never_share_an_id(refusal: Callable[..., str], lines: list[dict[str, Any]], complaint: str) -> None:
    assert refusal(*lines) == f"<study>: arms[1]: {complaint}"


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("noise", ("`- {corruption: noise, level: [1, 3]}`", 2)),
        ("noise-level-2", ("`- {corruption: noise, level: 2}`", 1)),
        ("fog", ("`- {corruption: fog}`", 1)),
        ("push", ("`- {attack: push, …}`", 1)),
        ("quick", ("`- {preset: quick}`", 1)),  # which needs eps
        ("mist", None),
    ],
)
def test_what_to_write_for_a_name_that_no_arm_has(
    registries: Registries, name: str, offered: tuple[str, int] | None
) -> None:
    assert entry_for(name, registries) == offered
