"""Cells: named by everything that decides their result, and by nothing else."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits
from advrisk.parts import REGISTRIES
from advrisk.plan import ModelCard, Plan, Shard, make_plan, outline_plan, recipe
from advrisk.study import StudySpec, load_study

MakeStudy = Callable[..., StudySpec]

PLAIN = ModelCard("plain", "d1", "gradients", 10)
OTHER = ModelCard("other", "d2", "gradients", 10)
SHARDS = [Shard("aa", ("s1", "s2")), Shard("bb", ("s3",))]
WALK = {"attack": "walk", "norm": "l2", "eps": 1, "repeats": 3}
PUSH = {"attack": "push", "eps": 0.1}


def plan(
    study: StudySpec,
    registries: Registries,
    *,
    models: Sequence[ModelCard] = (PLAIN, OTHER),
    shards: Sequence[Shard] = SHARDS,
    space: str = "box",
) -> Plan:
    outline = outline_plan(study, registries, models=models)
    return make_plan(outline, study, registries, models=models, shards=shards, space=space)


def ids(made: Plan) -> list[str]:
    return [cell.id for cell in made.cells()]


def test_cells_are_models_by_arms_by_shards_by_repeats(registries: Registries, study: MakeStudy) -> None:
    made = plan(study(PUSH, WALK), registries)
    expected = [
        (shard.id, model, arm, repeat)
        for shard in SHARDS
        for model in ("plain", "other")
        for arm, repeats in (("clean", 1), ("push-linf-0.1-ace", 1), ("walk-l2-1-ace", 3))
        for repeat in range(repeats)
    ]
    found = [(cell.shard.id, cell.model, cell.arm.id, cell.repeat) for cell in made.cells()]
    assert found == expected, "shard by shard, so that an interrupted run has whole samples to show"
    assert made.n_cells == len(expected) == 20
    assert len(set(ids(made))) == 20


def test_a_cell_is_found_by_its_name_without_making_all_others(registries: Registries, study: MakeStudy) -> None:
    made = plan(study(PUSH, WALK), registries)
    for cell in made.cells():
        for sample in cell.shard.samples:
            assert made.find(cell.id, cell.model, cell.arm.id, sample) == cell
    first = next(made.cells())
    assert made.find("0" * 32, first.model, first.arm.id, "s1") is None, "another recipe, say"
    assert made.find(first.id, first.model, first.arm.id, "s3") is None, "that sample is in another shard"
    assert made.find(first.id, "nobody", first.arm.id, "s1") is None
    assert made.find(first.id, first.model, "nothing", "s1") is None
    assert made.find(first.id, first.model, first.arm.id, "s9") is None


def test_a_cell_carries_its_recipe(registries: Registries, study: MakeStudy) -> None:
    made = plan(study(PUSH, WALK), registries)
    for cell in made.cells():
        assert cell.recipe == made.recipes[cell.model, cell.arm.id]
    assert len(set(made.recipes.values())) == 6, "two models by three arms"


def test_planning_twice_gives_the_same_plan(registries: Registries, study: MakeStudy) -> None:
    assert plan(study(PUSH, WALK), registries) == plan(study(PUSH, WALK), registries)


def test_the_same_weights_under_two_names_are_two_models(registries: Registries, study: MakeStudy) -> None:
    twins = [PLAIN, replace(PLAIN, name="twin")]
    made = plan(study(PUSH), registries, models=twins)
    assert len(set(ids(made))) == made.n_cells == 8


DECIDES: dict[str, dict[str, Any]] = {
    "seed": {"keys": {"seed": 1}},
    "criterion": {"keys": {"success": "prediction"}},
    "a target": {"keys": {"success": {"target": 3}}},
    "space": {"space": "sphere"},
    "eps": {"arm": {"eps": 2}},
    "norm": {"arm": {"norm": "l1"}},
    "objective": {"arm": {"objective": "kl"}},
    "keep": {"arm": {"keep": "last"}},
    "max_queries": {"arm": {"max_queries": 10}},
    "a parameter": {"arm": {"steps": 41}},
    "a list of numbers": {"arm": {"widths": [2, 1]}},
    "the model": {"models": [replace(PLAIN, digest="d1'")]},
    "the samples": {"shards": [Shard("cc", ("s1", "s2"))]},
}


@pytest.mark.parametrize("what", sorted(DECIDES))
def test_whatever_decides_a_result_changes_every_id_of_the_arm(
    registries: Registries, study: MakeStudy, what: str
) -> None:
    change = dict(DECIDES[what])
    before = plan(study(WALK), registries, models=[PLAIN], shards=SHARDS[:1])
    changed = study(WALK | change.pop("arm", {}), **change.pop("keys", {}))
    after = plan(changed, registries, **{"models": [PLAIN], "shards": SHARDS[:1]} | change)
    assert not set(attack_ids(before)) & set(attack_ids(after))


def attack_ids(made: Plan) -> list[str]:
    return [cell.id for cell in made.cells() if cell.arm.kind == "attack"]


def with_version(registry: Registry[Any], name: str, version: int) -> Registry[Any]:
    """A registry like the given one, in which one part has another version."""
    changed: Registry[Any] = Registry(registry.kind)
    for part in registry:
        changed.register(part.name, traits=part.traits, version=version if part.name == name else part.version)(
            part.function
        )
    return changed


@pytest.mark.parametrize(
    ("kind", "name", "arm"),
    [("attacks", "walk", "walk-l2-1-ace"), ("objectives", "ace", "walk-l2-1-ace"), ("corruptions", "fog", "fog")],
)
def test_a_raised_version_runs_the_cells_of_that_part_again(
    registries: Registries, study: MakeStudy, kind: str, name: str, arm: str
) -> None:
    raised = replace(registries, **{kind: with_version(registries.of_kind(kind), name, 7)})
    lines = [WALK, {"attack": "guess"}, {"attack": "push", "eps": 1, "objective": "kl"}, {"corruption": "fog"}]
    before, after = plan(study(*lines), registries), plan(study(*lines), raised)
    changed = {cell.arm.id for cell, again in zip(before.cells(), after.cells(), strict=True) if cell.id != again.id}
    assert changed == {arm}


def test_a_raised_runner_version_runs_everything_again(
    registries: Registries, study: MakeStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plan(study(WALK), registries)
    monkeypatch.setattr(recipe, "RUNNER_VERSION", recipe.RUNNER_VERSION + 1)
    assert not set(ids(before)) & set(ids(plan(study(WALK), registries)))


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "other"},
        {"device": "cuda"},
        {"keep_inputs": "all"},
        {"max_cell_s": 3},
        {"shard": 7},
        {"data": {"source": "digits", "evaluate": 99, "calibrate": 5, "tune": 4}},
        {"models": {"plain": {"source": "torch", "tags": {"depth": 8}}}},
        {"assess": {"damage": {"norm": "l2"}}},
    ],
)
def test_what_decides_no_result_changes_no_id(registries: Registries, study: MakeStudy, keys: dict[str, Any]) -> None:
    assert ids(plan(study(WALK, **keys), registries)) == ids(plan(study(WALK), registries))


def test_more_repeats_keep_those_there_are(registries: Registries, study: MakeStudy) -> None:
    before, after = plan(study(WALK), registries), plan(study(WALK | {"repeats": 5}), registries)
    assert set(ids(before)) < set(ids(after))
    assert after.n_cells - before.n_cells == 2 * 2 * 2, "two more repeats on two shards of two models"


@pytest.mark.parametrize(
    ("capability", "line", "needed"),
    [
        ("scores", PUSH, "push-linf-0.1-ace needs gradients of a model, but weak gives scores only"),
        ("labels", PUSH, "push-linf-0.1-ace needs gradients of a model, but weak gives labels only"),
        ("labels", {"attack": "ask", "eps": 1}, "ask-l2-1 needs scores of a model, but weak gives labels only"),
        ("scores", {"attack": "ask", "eps": 1}, None),
        ("labels", {"attack": "guess"}, None),
        ("labels", {"corruption": "fog"}, None),
        (
            "labels",
            {"attack": "borrow", "method": "scores"},
            "borrow-l2,method=scores needs scores of a model, but weak gives labels only",
        ),
        ("scores", {"attack": "borrow", "method": "scores"}, None),
    ],
)
def test_a_model_that_cannot_answer_is_refused_before_anything_runs(
    registries: Registries, study: MakeStudy, capability: Any, line: dict[str, Any], needed: str | None
) -> None:
    registries.attacks.register("ask", traits=AttackTraits("scores", ("l2",), lambda *_: (1, 0), ""))(lambda _: None)
    models = [PLAIN, ModelCard("weak", "d3", capability, 10)]
    if needed is None:
        assert plan(study(line), registries, models=models).n_cells == 8
    else:
        with pytest.raises(StudyError) as caught:
            plan(study({"corruption": "fog"}, line), registries, models=models)
        able = {"scores": "ask, few, guess, transfer, turn", "labels": "guess, transfer, turn"}[capability]
        assert str(caught.value) == f"<study>: arms[1]: {needed}; use one of {able}"


def test_a_query_must_not_take_more_draws_than_there_are_queries(registries: Registries, study: MakeStudy) -> None:
    """Of a model that does not draw, it takes one."""
    line = {"attack": "walk", "norm": "l2", "eps": 1, "draws": 20, "max_queries": 10}
    noisy = ModelCard("noisy", "d3", "gradients", 10, random=True)
    plan(study(line), registries, models=[PLAIN])
    plan(study(line | {"max_queries": 20}), registries, models=[noisy])
    with pytest.raises(StudyError) as caught:
        plan(study({"corruption": "fog"}, line), registries, models=[PLAIN, noisy])
    assert str(caught.value).startswith("<study>: arms[1]: walk-l2-1")
    assert "a point takes 20 passes of noisy, which answers at random (`draws`), but max_queries is 10" in str(
        caught.value
    )


def test_a_corruption_of_images_needs_models_that_take_them(registries: Registries, study: MakeStudy) -> None:
    table = ModelCard("table", "d3", "gradients", 10, takes_images=False)
    plan(study({"corruption": "noise", "level": 1}), registries, models=[table])
    complaint = r"arms\[0\]: fog is for images .*, which table does not take; use one of noise"
    with pytest.raises(StudyError, match=complaint):
        plan(study({"corruption": "fog"}), registries, models=[table])


def test_an_attack_on_images_needs_models_that_take_them(registries: Registries, study: MakeStudy) -> None:
    assert plan(study({"attack": "turn"}), registries).n_cells == 8
    table = ModelCard("table", "d3", "gradients", 10, takes_images=False)
    with pytest.raises(StudyError) as caught:
        plan(study({"corruption": "fog"}, {"attack": "turn"}), registries, models=[PLAIN, table])
    fog, turn = str(caught.value).splitlines()  # both at once
    assert fog.startswith("<study>: arms[0]: fog is for images")
    assert turn == "<study>: arms[1]: turn is for images (channels × height × width), which table does not take"


TARGETS: list[Any] = [0, 1, "next", "least-likely", {0: 1}, {0: 2}, {0: 1, 1: 0}]


def test_every_target_has_cells_of_its_own(registries: Registries, study: MakeStudy) -> None:
    plans = [plan(study(PUSH, success=success), registries) for success in ("label", "prediction")]
    plans += [plan(study(PUSH, success={"target": target}), registries) for target in TARGETS]
    assert len({name for made in plans for name in ids(made)}) == sum(made.n_cells for made in plans)


def test_the_order_of_a_map_does_not_matter(registries: Registries, study: MakeStudy) -> None:
    forth, back = ({"target": {0: 1, 1: 2, 10: 3}}, {"target": {10: 3, 1: 2, 0: 1}})
    assert ids(plan(study(PUSH, success=forth), registries)) == ids(plan(study(PUSH, success=back), registries))


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        (9, None),
        (10, "success.target: found class 10, but plain has 0 to 9"),
        (10**20, f"success.target: found class {10**20}, but plain has 0 to 9"),
        ({0: 9, 9: 0}, None),
        ({0: 1, 1: 12}, "success.target: found class 12, but plain has 0 to 9"),
        ("next", None),
        ("least-likely", None),
    ],
)
def test_a_target_that_a_model_does_not_know_is_refused(
    registries: Registries, study: MakeStudy, target: object, complaint: str | None
) -> None:
    asked = study(PUSH, success={"target": target})
    if complaint is None:
        assert plan(asked, registries).n_cells == 2 * 2 * 2
    else:
        with pytest.raises(StudyError) as caught:
            plan(asked, registries)
        assert str(caught.value) == f"<study>: {complaint}"


def test_every_model_must_know_the_target(registries: Registries, study: MakeStudy) -> None:
    models = [PLAIN, ModelCard("small", "d3", "gradients", 4)]
    with pytest.raises(StudyError, match="found class 7, but small has 0 to 3"):
        plan(study(PUSH, success={"target": 7}), registries, models=models)


def test_least_likely_needs_scores(registries: Registries, study: MakeStudy) -> None:
    weak = ModelCard("weak", "d3", "labels", 10)
    with pytest.raises(StudyError) as caught:
        plan(study({"attack": "guess"}, success={"target": "least-likely"}), registries, models=[weak])
    assert str(caught.value) == "<study>: success: least-likely needs scores, but weak gives labels only"
    assert plan(study({"attack": "guess"}, success={"target": "next"}), registries, models=[weak]).n_cells == 4


def test_an_objective_that_leads_to_no_class_is_refused_with_a_target(registries: Registries, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(
        "name: a\ndata: {source: digits, evaluate: 1}\nmodels: {plain: {source: torch}}\n"
        "success:\n  target: 3\narms:\n  - {attack: push, eps: 1, objective: [ace, kl]}\n"
    )
    with pytest.raises(StudyError) as caught:
        plan(load_study(file), registries)
    remedy = "the objective kl cannot aim at a target; use ace, ratio"
    assert str(caught.value) == f"{file}:4: success: push-linf-1-kl: {remedy}"


@pytest.mark.parametrize("success", ["label", "prediction"])
def test_without_a_target_any_objective_will_do(registries: Registries, study: MakeStudy, success: str) -> None:
    line = {"attack": "push", "eps": 1, "objective": ["ace", "kl", "ratio"]}
    assert len(plan(study(line, success=success), registries).assessed) == 2 * 4


@pytest.mark.parametrize(
    ("name", "success", "complaint"),
    [
        ("labels away", {"target": 1}, "borrow-l2,method=labels away cannot aim at a target; remove it"),
        ("labels towards", "label", "borrow-l2,method=labels towards can only aim at a target; remove it, or write"),
        ("labels towards", "prediction", "can only aim at a target"),
        ("labels towards", {"target": 1}, None),
        ("labels away", "label", None),
    ],
)
def test_an_attack_that_cannot_lead_to_success_is_refused(
    registries: Registries, study: MakeStudy, name: str, success: Any, complaint: str | None
) -> None:
    asked = study({"corruption": "fog"}, {"attack": "borrow", "method": name}, success=success)
    if complaint is None:
        assert len(plan(asked, registries).assessed) == 2 * 3
        return
    with pytest.raises(StudyError) as caught:
        plan(asked, registries)
    assert str(caught.value).startswith("<study>: arms[1]: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (
            ModelCard("two", "d3", "gradients", 2),
            "look-l2-1-ratio needs 3 classes, but two knows 2; use the objective ace or margin",
        ),
        (
            ModelCard("weak", "d3", "scores", 10),
            "look-l2-1-ratio needs logits, but weak gives scores only; use the objective ace or margin",
        ),
        (ModelCard("three", "d3", "gradients", 3), None),
    ],
)
def test_an_objective_that_a_model_cannot_serve_is_refused(
    registries: Registries, study: MakeStudy, model: ModelCard, complaint: str | None
) -> None:
    traits = AttackTraits("scores", ("l2",), lambda *_: (1, 0), "", objective="ratio")
    registries.attacks.register("look", traits=traits)(lambda _: None)
    asked = study({"attack": "look", "eps": 1})
    if complaint is None:
        assert plan(asked, registries, models=[PLAIN, model]).n_cells == 8
    else:
        with pytest.raises(StudyError) as caught:
            plan(asked, registries, models=[PLAIN, model])
        assert str(caught.value) == f"<study>: arms[0]: {complaint}"


@pytest.mark.parametrize(
    ("line", "arm", "fewest"),
    [
        ("attack: pgd, objective: [ace, dlr]", "pgd-linf-0.1-dlr", 3),
        ("attack: apgd-t", "apgd-t-linf-0.1-dlr", 4),
    ],
)
def test_too_few_classes_for_dlr_are_refused_with_file_and_line(
    tmp_path: Path, line: str, arm: str, fewest: int
) -> None:
    """The objectives that are really there, with their traits as they are."""
    file = tmp_path / "study.yaml"
    file.write_text(
        "name: a\ndata: {source: digits, evaluate: 1}\nmodels: {plain: {source: torch}}\n"
        f"arms:\n  - {{preset: first-look, eps: 0.1}}\n  - {{norm: linf, eps: 0.1, {line}}}\n"
    )
    few = ModelCard("few", "d", "gradients", fewest - 1)
    with pytest.raises(StudyError) as caught:
        plan(load_study(file), REGISTRIES, models=[few])
    found = f"{arm} needs {fewest} classes, but few knows {fewest - 1}; use the objective ace or margin"
    assert str(caught.value) == f"{file}:6: arms[1]: {found}"
    assert plan(load_study(file), REGISTRIES, models=[replace(few, n_classes=fewest)]).n_cells > 0


@pytest.mark.parametrize("objective", ["kl", "fisher-rao", "gini"])
def test_only_ace_margin_and_dlr_can_be_climbed_towards_a_class(study: MakeStudy, objective: str) -> None:
    line = {"attack": "pgd", "norm": "linf", "eps": 0.1, "objective": objective}
    with pytest.raises(StudyError, match=f"{objective} cannot aim at a target; use "):
        plan(study(line, success={"target": 1}), REGISTRIES)
    for able in ("ace", "margin", "dlr"):
        assert plan(study(line | {"objective": able}, success={"target": 1}), REGISTRIES).n_cells == 8


def test_nothing_to_attack_is_an_empty_plan(registries: Registries, study: MakeStudy) -> None:
    made = plan(study(WALK), registries, shards=[])
    assert (made.n_cells, ids(made)) == (0, [])


def test_question_plan_and_ledger_need_no_torch() -> None:
    code = "import sys, advrisk.core, advrisk.study, advrisk.plan, advrisk.ledger; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
