"""Transfer arms: what they are called, what they need, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.plan import Cell, ModelCard, Plan, Shard, expand_arms, make_plan, outline_plan
from advrisk.study import StudySpec

MakeStudy = Callable[..., StudySpec]

WALK = {"attack": "walk", "norm": "l2", "eps": 1, "keep": "last"}
TRANSFER = {"attack": "transfer", "from": "plain", "arm": WALK}
MODELS = {"plain": {"source": "torch"}, "other": {"source": "torch"}}
PLAIN = ModelCard("plain", "d1", "gradients", 10)
OTHER = ModelCard("other", "d2", "labels", 10)
SHARDS = [Shard("aa", ("s1", "s2")), Shard("bb", ("s3",))]


@pytest.fixture
def plan(registries: Registries, study: MakeStudy) -> Callable[..., Plan]:
    def make(*lines: dict[str, Any], models: tuple[ModelCard, ...] = (PLAIN, OTHER), seed: int = 0) -> Plan:
        asked = study(*lines, models=MODELS, seed=seed)
        outline = outline_plan(asked, registries, models=models)
        return make_plan(outline, asked, registries, models=models, shards=SHARDS, space="box")

    return make


@pytest.fixture
def refusal(registries: Registries, study: MakeStudy) -> Callable[..., str]:
    def said(*lines: dict[str, Any]) -> str:
        with pytest.raises(StudyError) as caught:
            expand_arms(study(*lines, models=MODELS), registries)
        return str(caught.value)

    return said


def test_the_arm_says_what_is_taken_over_from_where(registries: Registries, study: MakeStudy) -> None:
    line = {"attack": "transfer", "from": "plain", "arm": WALK | {"max_queries": 9, "repeats": 2}}
    _, arm = expand_arms(study(line, models=MODELS), registries)
    assert arm.id == "transfer-plain-walk-l2-1-ace,keep=last,max_queries=9"
    assert (arm.family, arm.norm, arm.eps, arm.keep, arm.repeats) == ("transfer", "l2", 1, "last", 2)
    assert arm.max_queries is None, "the target is asked nothing"
    assert arm.params == {"from": "plain", "arm": "walk-l2-1-ace,keep=last,max_queries=9"}
    assert arm.surrogate == "plain"
    assert arm.crafted_by is not None
    assert arm.crafted_by.max_queries == 9


def test_lists_make_a_grid(registries: Registries, study: MakeStudy) -> None:
    line = {"attack": "transfer", "from": ["plain", "other"], "arm": WALK | {"eps": [1, 2]}}
    arms = expand_arms(study(line, models=MODELS), registries)[1:]
    ends = ["walk-l2-1-ace,keep=last", "walk-l2-2-ace,keep=last"]
    assert [arm.id for arm in arms] == [f"transfer-{model}-{end}" for model in ("plain", "other") for end in ends]


@pytest.mark.parametrize(
    ("arm", "keep"),
    [
        ({"attack": "walk", "norm": "l2", "eps": 1}, "strongest"),  # the first success would seldom carry over
        ({"attack": "walk", "norm": "l2", "eps": 1, "keep": "first"}, "first"),
        ({"attack": "guess"}, "smallest"),
        ({"preset": "fixed"}, "strongest"),
    ],
)
def test_the_strongest_point_is_crafted_where_the_first_would_be(
    registries: Registries, study: MakeStudy, arm: dict[str, Any], keep: str
) -> None:
    made = expand_arms(study({"attack": "transfer", "from": "plain", "arm": arm}, models=MODELS), registries)[1]
    assert made.crafted_by is not None
    assert made.keep == made.crafted_by.keep == keep


def named(cells: list[Cell]) -> list[tuple[str, str]]:
    return [(cell.model, cell.arm.id) for cell in cells if cell.shard.id == "aa"]


def test_the_surrogate_is_attacked_first_and_only_it(plan: Callable[..., Plan]) -> None:
    cells = list(plan(TRANSFER).cells())
    walk, moved = "walk-l2-1-ace,keep=last", "transfer-plain-walk-l2-1-ace,keep=last"
    order = [("plain", walk), ("plain", "clean"), ("other", "clean"), ("plain", moved), ("other", moved)]
    assert named(cells) == order
    assert len(cells) == plan(TRANSFER).n_cells == 2 * len(order)
    by_id = {cell.id: cell for cell in cells}
    for cell in cells:
        assert cell.is_needed == (cell.arm.id == walk)
        assert len(cell.needs) == (cell.arm.id == moved)
        for need in cell.needs:
            assert by_id[need.id] == need
            assert (need.model, need.arm.id, need.shard) == ("plain", walk, cell.shard)


def test_an_arm_of_the_study_crafts_as_well(plan: Callable[..., Plan], study: MakeStudy) -> None:
    """Then every model is attacked with it, and nothing twice."""
    cells = list(plan(TRANSFER, WALK, models=(PLAIN, ModelCard("other", "d2", "gradients", 10))).cells())
    assert len({cell.id for cell in cells}) == len(cells) == 2 * 2 * 3
    assert plan(WALK, models=(PLAIN,)).crafting == ()
    assert {cell.model for cell in cells if cell.is_needed} == {"plain"}


def test_repeats_take_over_from_repeats(plan: Callable[..., Plan]) -> None:
    cells = plan({**TRANSFER, "arm": WALK | {"repeats": 3}}).cells()
    pairs = [(cell.repeat, need.repeat) for cell in cells for need in cell.needs]
    assert sorted(pairs) == [(repeat, repeat) for repeat in range(3) for _ in range(4)]


def test_another_surrogate_makes_other_cells(plan: Callable[..., Plan]) -> None:
    def moved(made: Plan) -> set[str]:
        return {cell.id for cell in made.cells() if cell.model == "other" and cell.needs}

    retrained = (ModelCard("plain", "d9", "gradients", 10), OTHER)
    assert not moved(plan(TRANSFER)) & moved(plan(TRANSFER, models=retrained))


def test_a_surrogate_that_is_not_assessed_meets_its_own_arm_alone(plan: Callable[..., Plan]) -> None:
    cells = list(plan(TRANSFER, models=(ModelCard("plain", "d1", "gradients", 10, surrogate=True), OTHER)).cells())
    walk = "walk-l2-1-ace,keep=last"
    assert named(cells) == [("plain", walk), ("other", "clean"), ("other", f"transfer-plain-{walk}")]


def test_a_preset_can_hold_a_transfer(registries: Registries, study: MakeStudy) -> None:
    line = {"preset": "moved", "origin": "plain", "repeats": 2}
    _, arm = expand_arms(study(line, models=MODELS), registries)
    assert arm.id == "transfer-plain-walk-l2-1-ace,keep=strongest"
    assert arm.repeats == 2


def test_its_surrogate_is_looked_up_too(refusal: Callable[..., str]) -> None:
    assert "unknown model 'plan'; did you mean 'plain'?" in refusal({"preset": "moved", "origin": "plan"})


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ({"attack": "transfer"}, "transfer needs `from`, a model, and `arm`, an attack on it; found attack"),
        ({"attack": "transfer", "form": "plain", "arm": WALK}, "found attack, arm, form (did you mean 'from'?)"),
        ({"attack": "transfer", "foo": 1}, "found attack, foo"),
        ({"attack": "transfer", "from": "plain", "arm": "walk"}, "arms[0].arm: must be a mapping, found 'walk'"),
        ({"attack": "transfer", "from": "plain"}, "transfer needs `from`, a model, and `arm`, an attack on it; found"),
        (TRANSFER | {"eps": 1}, "found `eps` with transfer; settings of the attack belong in its `arm`"),
        (TRANSFER | {"steps": 1}, "found `steps` with transfer"),
        (TRANSFER | {"attack": ["walk", "transfer"]}, "found transfer with other attacks"),
        (WALK | {"from": "plain"}, "found `from`, which belongs to `attack: transfer`"),
        (WALK | {"arm": WALK}, "found `arm`, which belongs to `attack: transfer`"),
        (TRANSFER | {"arm": TRANSFER}, "the arm of a transfer must be an attack on one model, found a transfer"),
        (TRANSFER | {"arm": {"corruption": "fog"}}, "the arm of a transfer must be an attack on one model"),
        (TRANSFER | {"arm": {"preset": "quick", "eps": 1}}, "noise,sigma=1 is no attack, so it has no points"),
        (TRANSFER | {"from": "plan"}, "unknown model 'plan'; did you mean 'plain'?"),
        (TRANSFER | {"arm": WALK | {"norm": "l7"}}, "arms[0].arm.norm: found 'l7'"),
        (TRANSFER | {"arm": {"attack": "wlak"}}, "no attacks called 'wlak'; did you mean 'walk'?"),
    ],
)
def test_what_makes_no_sense_is_refused(refusal: Callable[..., str], line: dict[str, Any], complaint: str) -> None:
    assert complaint in refusal(line)


def test_the_same_arm_with_other_repeats_is_refused(refusal: Callable[..., str]) -> None:
    complaint = "found the arm 'walk-l2-1-ace,keep=last' twice with different repeats"
    assert complaint in refusal(WALK | {"repeats": 2}, TRANSFER)
    assert complaint in refusal(TRANSFER, WALK | {"repeats": 2})


def test_the_surrogate_must_give_what_the_attack_needs(plan: Callable[..., Plan]) -> None:
    with pytest.raises(StudyError, match=r"arms\[1\]: walk.* needs gradients of a model, but other gives labels only"):
        plan({"attack": "guess"}, {"attack": "transfer", "from": "other", "arm": WALK})


def test_surrogates_alone_leave_nothing_to_assess(plan: Callable[..., Plan]) -> None:
    with pytest.raises(StudyError, match="all are surrogates"):
        plan(TRANSFER, models=(ModelCard("plain", "d1", "gradients", 10, surrogate=True),))


def test_a_surrogate_that_nothing_comes_from_is_refused(plan: Callable[..., Plan]) -> None:
    with pytest.raises(StudyError, match=r"models.other: is a surrogate, but no arm transfers from it"):
        plan(TRANSFER, models=(PLAIN, ModelCard("other", "d2", "gradients", 10, surrogate=True)))
