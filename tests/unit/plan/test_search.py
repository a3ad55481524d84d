"""Searches as they are planned: boxes, names, identities, and what cannot be searched."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from advrisk.core.digest import digest
from advrisk.core.errors import StudyError
from advrisk.parts import REGISTRIES
from advrisk.plan import ModelCard, Search, SearchAxis, Shard, calibrate_plan, expand_searches, make_plan, outline_plan
from advrisk.study import StudySpec, study_from

MakeStudy = Callable[..., StudySpec]
PLAIN = ModelCard("plain", "d1", "gradients", 10)


def study(*entries: dict[str, Any], **changes: Any) -> StudySpec:
    return study_from(
        {
            "name": "s",
            "data": {"source": "digits", "evaluate": 10, "tune": 10, "calibrate": 10},
            "models": {"plain": {"source": "torch"}},
            "arms": [{"attack": "fgsm", "norm": "linf", "eps": [0.1, 0.2]}],
            "search": list(entries),
        }
        | changes
    )


def searches(*entries: dict[str, Any], models: tuple[ModelCard, ...] = (PLAIN,)) -> tuple[Search, ...]:
    return expand_searches(study(*entries), REGISTRIES, models)


NES = {"attack": "nes", "norm": "linf", "eps": 0.1}


def test_one_search_for_each_model_norm_and_eps() -> None:
    other = replace(PLAIN, name="other")
    spare = replace(PLAIN, name="spare", surrogate=True)
    found = searches(NES | {"eps": [0.1, 0.2], "norm": ["linf", "l2"]}, models=(PLAIN, other, spare))
    assert len(found) == 8
    assert {one.model for one in found} == {"plain", "other"}
    assert found[0].label == "nes-linf-0.1-margin over sigma, step_size against plain"


def test_declared_boxes_may_depend_on_eps() -> None:
    (nes,) = searches(NES)
    assert [(axis.name, axis.low, axis.high, axis.log) for axis in nes.axes] == [
        ("sigma", 1e-4, 0.1, True),
        ("step_size", 1e-3, 1.0, True),
    ]
    assert nes.axes[0].start == (0.005, 0.01, 0.015)
    (pgd,) = searches({"attack": "pgd", "norm": "linf", "eps": 0.5})
    assert (pgd.axes[0].low, pgd.axes[0].high) == (0.005, 1.0)


def test_a_fixed_parameter_is_not_searched_and_others_are() -> None:
    (one,) = searches(NES | {"sigma": 0.02, "steps": 7})
    assert [axis.name for axis in one.axes] == ["step_size"]
    assert one.name == "nes-linf-0.1-margin,steps=7,sigma=0.02"
    arm = one.arm_at({"step_size": 0.25}, REGISTRIES)
    assert arm.id == "nes-linf-0.1-margin,steps=7,sigma=0.02,step_size=0.25"
    assert arm.params["step_size"] == 0.25


def test_an_arm_that_is_found_is_the_one_a_study_could_ask_for() -> None:
    (one,) = searches(NES)
    found = one.arm_at(one.setting([0.3, 0.7]), REGISTRIES)
    asked = study(arms=[NES | {name: found.params[name] for name in ("sigma", "step_size")}])
    plan = make_plan(
        outline_plan(asked, REGISTRIES, models=[PLAIN]),
        asked,
        REGISTRIES,
        models=[PLAIN],
        shards=[Shard("aa", ("s1",))],
        space="box",
    )
    assert found in [arm for _, arm in plan.assessed]


def test_values_have_no_more_digits_than_names_show() -> None:
    axis = SearchAxis("sigma", 1 / 3, 2 / 3)
    for position in (0.0, 0.123456789, 1.0):
        value = axis.value(position)
        assert float(f"{value:.6g}") == value
        assert axis.low <= value <= axis.high
        assert axis.position(value) == pytest.approx(position, abs=1e-5)
    samples = SearchAxis("samples", 3, 11, whole=2)
    assert [samples.value(place / 8) for place in range(9)] == [4, 4, 4, 6, 8, 8, 8, 10, 10]
    assert samples.n_values == 4


def test_a_search_is_named_by_what_decides_its_way() -> None:
    (one,) = searches(NES)

    def name(**changes: Any) -> str:
        return replace(one, **changes).identity("recipe", ["s1"])

    assert name(rounds=99) == name(freeze=7) == name(), "going on is no other search"
    assert len({name(), name(beta=1.0), name(batch=2), name(method="grid"), name(axes=one.axes[:1])}) == 5
    assert one.identity("recipe", ["s2"]) != name() != one.identity("other", ["s1"])
    grid = replace(one, method="grid")
    assert grid.identity("r", []) != replace(grid, rounds=99).identity("r", []), "more points make another grid"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown parameter": ({"over": {"sigm": [0.1, 1]}}, r"nes has no parameter 'sigm'; did you mean 'sigma'"),
    "no number": ({"over": {"signed": [0, 1]}}, r"nes.signed is no number.*signed: \[…\]"),
    "beyond what is accepted": ({"over": {"sigma": [-1, 1]}}, r"nes.sigma: must be more than 0, found -1.0"),
    "half a step": ({"over": {"steps": [1.5, 4]}}, r"nes.steps takes whole numbers, found 1.5"),
    "a single value": ({"over": {"samples": [4, 5]}}, r"nes.samples"),
    "no range": ({"over": ["steps"]}, r"nes declares no range of steps"),
    "fixed and searched": ({"over": ["sigma"], "sigma": 0.1}, r"found `sigma` both fixed and in `over`"),
    "all fixed": ({"sigma": 0.1, "step_size": 0.1}, r"all parameters that nes declares for a search are fixed"),
    "no eps": ({"eps": None}, r"a search for nes needs eps"),
    "nothing to vary": ({"attack": "fgsm"}, r"fgsm declares nothing to search over; it has none to vary"),
    "nothing declared": ({"attack": "apgd"}, r"apgd declares nothing to search over; name some"),
    "no norm": ({"attack": "spatial", "norm": None, "eps": None}, r"spatial has no norm and no eps"),
    "a library": ({"attack": "foolbox", "name": "LinfPGD"}, r"foolbox cannot be searched"),
    "an unknown attack": ({"attack": "ness"}, r"no attacks called 'ness'; did you mean 'nes'"),
    "a wrong norm": ({"norm": "l1"}, r"nes has no norm l1"),
    "a coarse grid": ({"method": "grid", "rounds": 3}, r"a grid over 2 parameters takes at least 4 points"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_searched_is_refused(name: str) -> None:
    changes, complaint = WRONG[name]
    entry = {key: value for key, value in (NES | changes).items() if value is not None}
    with pytest.raises(StudyError, match=rf"search\[0\]: .*{complaint}"):
        searches(entry)


def test_a_search_needs_samples_to_tune_on_and_a_capable_model() -> None:
    with pytest.raises(StudyError, match=r"search: needs samples of a tuning split"):
        expand_searches(study(NES, data={"source": "digits", "evaluate": 5}), REGISTRIES, [PLAIN])
    with pytest.raises(StudyError, match=r"search\[0\]: .* needs scores of a model, but plain gives labels only"):
        outline_plan(
            study(NES, arms=[{"corruption": "gaussian-noise", "sigma": 0.1}]),
            REGISTRIES,
            models=[replace(PLAIN, capability="labels")],
        )
    with pytest.raises(StudyError, match=r"search\[1\]: found .* twice"):
        searches(NES, NES)
    with pytest.raises(
        StudyError, match=r"search\[0\]: .* has 2 repeats here, and nes-linf-0.1-margin of `arms` has 1"
    ):
        outline_plan(study(NES | {"repeats": 2}, arms=[NES]), REGISTRIES, models=[PLAIN])


UNCERTIFIABLE: dict[str, tuple[dict[str, Any], str]] = {
    "no samples": ({"data": {"source": "digits", "evaluate": 5}}, r"assess.certificate: needs samples"),
    "no attack": (
        {"arms": [{"corruption": "gaussian-noise", "sigma": 0.1}]},
        r"finds no attack with a norm and an eps",
    ),
    "an unknown arm": ({"arm": "pgd*"}, r"assess.certificate.arms\[0\]: no arm is called 'pgd\*'"),
    "a clean arm": ({"arm": "clean"}, r"'clean' names no attack with a norm and an eps"),
}


@pytest.mark.parametrize("name", UNCERTIFIABLE)
def test_what_cannot_be_certified_is_refused(name: str) -> None:
    changes, complaint = UNCERTIFIABLE[name]
    changes = dict(changes)
    named = {"arms": [changes.pop("arm")]} if "arm" in changes else {}
    with pytest.raises(StudyError, match=complaint):
        outline_plan(study(assess={"certificate": named}, **changes), REGISTRIES, models=[PLAIN])


def test_cells_to_calibrate_are_those_of_the_certified_arms() -> None:
    asked = study(assess={"certificate": {"arms": ["fgsm-linf-0.2*"]}})
    calibrate = [Shard("cc", ("c1", "c2"))]
    plan = make_plan(
        outline_plan(asked, REGISTRIES, models=[PLAIN]),
        asked,
        REGISTRIES,
        models=[PLAIN],
        shards=[Shard("aa", ("s1",))],
        space="box",
        calibrate=calibrate,
    )
    assert {cell.shard.id for cell in plan.cells()} == {"aa"}
    (one,) = searches(NES)
    found = one.arm_at(one.setting([0.5, 0.5]), REGISTRIES)
    wanted = calibrate_plan(asked, plan, [("plain", found)], {("plain", found.id): "recipe"})
    assert [(cell.shard.id, cell.arm.id) for cell in wanted.cells()] == [
        ("cc", "clean"),
        ("cc", "fgsm-linf-0.2-ace"),
        ("cc", found.id),
    ]
    assert not list(calibrate_plan(study(), plan).cells()), "nobody asked for a certificate"


def test_a_transfer_to_calibrate_brings_what_crafts_it() -> None:
    crafting = {"attack": "pgd", "norm": "linf", "eps": 0.1}
    asked = study(
        assess={"certificate": {"arms": ["transfer*"]}},
        arms=[crafting, {"attack": "transfer", "from": "plain", "arm": crafting | {"keep": "first"}}],
    )
    calibrate = [Shard("cc", ("c1",))]
    plan = make_plan(
        outline_plan(asked, REGISTRIES, models=[PLAIN]),
        asked,
        REGISTRIES,
        models=[PLAIN],
        shards=[Shard("aa", ("s1",))],
        space="box",
        calibrate=calibrate,
    )
    cells = {cell.arm.id: cell for cell in calibrate_plan(asked, plan).cells()}
    assert set(cells) == {"clean", "pgd-linf-0.1-ace", "transfer-plain-pgd-linf-0.1-ace"}
    assert cells["transfer-plain-pgd-linf-0.1-ace"].needs == (cells["pgd-linf-0.1-ace"],)


def test_studies_without_a_search_have_the_cells_they_had() -> None:
    """Names of cells are those of the present runner: nothing else may change them, or finished runs begin anew."""
    l2 = {"norm": "l2", "eps": 0.5}
    before = study_from(
        {
            "name": "before",
            "seed": 3,
            "data": {"source": "digits", "evaluate": 10, "calibrate": 20, "tune": 5},
            "models": {"plain": {"source": "torch"}, "other": {"source": "torch"}},
            "arms": [
                {"attack": ["fgsm", "pgd", "bim"], "norm": "linf", "eps": [0.1, "8/255"]},
                {"attack": "nes", "norm": "linf", "eps": 0.1},
                {"attack": "square", "norm": "l2", "eps": 1, "p_init": 0.3},
                {"attack": "hopskipjump", "norm": "l2"},
                {"attack": ["fab", "fmn", "carlini-wagner", "pgd-adam"], **l2},
                {"attack": "transfer", "from": "other", "arm": {"attack": "pgd", "norm": "linf", "eps": 0.1}},
                {"corruption": "gaussian-noise", "sigma": 0.2, "repeats": 2},
            ],
        }
    )
    cards = [PLAIN, replace(PLAIN, name="other", digest="d2")]
    shards = [Shard("aa", ("s1", "s2")), Shard("bb", ("s3",))]
    ids = [
        cell.id
        for cell in make_plan(
            outline_plan(before, REGISTRIES, models=cards), before, REGISTRIES, models=cards, shards=shards, space="box"
        ).cells()
    ]
    assert len(ids) == 70
    assert digest(ids) == "bc73f7bca911152ded72ebae0736507a"


def test_the_attacks_own_setting_is_known_also_where_it_follows_from_others() -> None:
    (pgd,) = searches({"attack": "pgd", "norm": "linf", "eps": 0.3, "steps": 3})
    assert pgd.usual == {"step_size": pytest.approx(2.5 * 0.3 / 3)}
    assert pgd.from_usual({"step_size": 0.25}) == pytest.approx(0)
    assert pgd.from_usual({"step_size": 0.003}) > pgd.from_usual({"step_size": 0.6})
    (narrow,) = searches({"attack": "fmn", "norm": "linf", "eps": 0.3, "over": {"step_size": [2, 5]}})
    assert narrow.usual == {"step_size": 2}, "1 by default, which lies outside"
