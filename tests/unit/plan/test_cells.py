"""Cells: named by everything that decides their result, and by nothing else."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from advrisk.core.errors import ModelError
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits
from advrisk.plan import ModelCard, Plan, Shard, cells, make_plan
from advrisk.study import StudySpec

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
    return make_plan(study, registries, models=models, shards=shards, space=space)


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
    monkeypatch.setattr(cells, "RUNNER_VERSION", cells.RUNNER_VERSION + 1)
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
        with pytest.raises(ModelError) as caught:
            plan(study(line), registries, models=models)
        assert str(caught.value) == needed


def test_nothing_to_attack_is_an_empty_plan(registries: Registries, study: MakeStudy) -> None:
    made = plan(study(WALK), registries, shards=[])
    assert (made.n_cells, ids(made)) == (0, [])


def test_question_plan_and_ledger_need_no_torch() -> None:
    code = "import sys, advrisk.core, advrisk.study, advrisk.plan, advrisk.ledger; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
