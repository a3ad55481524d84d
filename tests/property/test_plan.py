"""The plan: the same question gives the same cells, and a larger question keeps those of the smaller one."""

from dataclasses import dataclass, fields
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from advrisk.core.digest import digest
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits, CorruptionTraits, ObjectiveTraits
from advrisk.plan import (
    ModelCard,
    Plan,
    RecordedSample,
    Shard,
    choose_splits,
    cut_shards,
    make_plan,
    outline_plan,
    refuse_moved,
)
from advrisk.study import DataSpec, StudySpec, study_from


def fake_registries() -> Registries:
    """Two attacks, a corruption and two objectives that nobody runs."""
    made: dict[str, Any] = {field.name: Registry(field.name) for field in fields(Registries)}
    found = Registries(**made)
    for name, random in (("push", False), ("walk", True)):
        traits = AttackTraits("gradients", ("linf", "l2"), lambda *_: (1, 1), "", objective="ace", random=random)

        @found.attacks.register(name, traits=traits)
        def attack(probe: object, *, steps: int = 40, rate: float | None = None) -> None: ...

    @found.corruptions.register("noise", traits=CorruptionTraits("", ""))
    def noise(*, sigma: float) -> None: ...

    for name in ("ace", "kl"):
        found.objectives.register(name, traits=ObjectiveTraits("", targeted=True))(lambda scores, goal: None)
    return found


REGISTRIES = fake_registries()


@dataclass(frozen=True)
class Question:
    """Everything that goes into a plan, as plain values that a test can change one by one."""

    arms: list[dict[str, Any]]
    models: list[ModelCard]
    shards: list[Shard]
    seed: int
    success: Any
    space: str

    def study(self) -> StudySpec:
        return study_from(
            {
                "name": "any",
                "seed": self.seed,
                "success": self.success,
                "data": {"source": "none", "evaluate": 1},
                "models": {model.name: {"source": "none"} for model in self.models},
                "arms": self.arms,
            }
        )

    def plan(self) -> Plan:
        outline = outline_plan(self.study(), REGISTRIES, models=self.models)
        return make_plan(outline, self.study(), REGISTRIES, models=self.models, shards=self.shards, space=self.space)

    def ids(self) -> dict[tuple[str, str, str, int], str]:
        """(model, arm, shard, repeat) -> cell id."""
        return {(cell.model, cell.arm.id, cell.shard.id, cell.repeat): cell.id for cell in self.plan().cells()}


SUCCESSES: list[Any] = ["label", "prediction", {"target": 1}, {"target": "next"}, {"target": {0: 1, 1: 0}}]


def one_or_some(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(values) | st.lists(st.sampled_from(values), min_size=1, max_size=3)


PUSH = st.fixed_dictionaries(
    {"attack": st.just("push"), "norm": one_or_some(["linf", "l2"]), "eps": one_or_some([0, "8/255", 0.1, 2])},
    optional={
        "objective": one_or_some(["ace", "kl"]),
        "keep": one_or_some(["first", "smallest", "strongest", "last"]),
        "max_queries": st.integers(1, 3),
        "steps": one_or_some([1, 2, 40]),
        "rate": one_or_some([None, 0.5, "1/3"]),
    },
)
NOISE = st.fixed_dictionaries({"corruption": st.just("noise"), "sigma": one_or_some([0.1, "1/2", 3])})
WALK = st.fixed_dictionaries(
    {"attack": st.just("walk"), "norm": st.just("l2"), "eps": one_or_some([1, 2]), "repeats": st.integers(1, 3)}
)
# One walk and one noise line at most: the same arm with different repeats would rightly be refused.
ARMS = st.tuples(st.lists(PUSH, max_size=2), st.lists(NOISE, max_size=1), st.lists(WALK, max_size=1)).map(
    lambda lines: [line for group in lines for line in group]
)
MODELS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["d1", "d2"])), min_size=1, unique_by=lambda m: m[0]
)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    return Question(
        arms=draw(ARMS.filter(bool)),
        models=[ModelCard(name, weights, "gradients", 10) for name, weights in draw(MODELS)],
        shards=[Shard(name, (f"s-{name}",)) for name in draw(st.lists(st.sampled_from("uvwx"), unique=True))],
        seed=draw(st.sampled_from([0, 1, 2**63 - 1])),  # few, so that two questions often have the same
        success=draw(st.sampled_from(SUCCESSES)),
        space=draw(st.sampled_from(["box", "ball"])),
    )


@given(questions())
def test_the_same_question_gives_the_same_plan(question: Question) -> None:
    assert question.plan() == question.plan()
    assert list(question.plan().cells()) == list(question.plan().cells())


@given(questions(), st.randoms(use_true_random=False))
def test_the_order_of_arms_keys_models_and_shards_does_not_matter(question: Question, random: Any) -> None:
    arms = [dict(random.sample(list(line.items()), len(line))) for line in question.arms]
    shuffled = Question(
        arms=random.sample(arms, len(arms)),
        models=random.sample(question.models, len(question.models)),
        shards=random.sample(question.shards, len(question.shards)),
        seed=question.seed,
        success=question.success,
        space=question.space,
    )
    assert shuffled.ids() == question.ids()


@given(questions())
def test_cell_ids_are_distinct_and_as_many_as_announced(question: Question) -> None:
    cells = list(question.plan().cells())
    assert len({cell.id for cell in cells}) == len(cells) == question.plan().n_cells
    assert len(question.ids()) == len(cells), "no two cells are about the same thing"


@given(questions(), questions())
def test_cells_of_two_questions_share_an_id_only_if_they_are_about_the_same_thing(one: Question, two: Question) -> None:
    def about(question: Question) -> dict[str, Any]:
        return {
            cell.id: (
                (cell.model, cell.arm, cell.shard.id, cell.repeat),
                (question.seed, question.success, question.space),
                next(model.digest for model in question.models if model.name == cell.model),
            )
            for cell in question.plan().cells()
        }

    first, second = about(one), about(two)
    for shared in set(first) & set(second):
        (where, *decided), (other_where, *other_decided) = first[shared], second[shared]
        assert decided == other_decided
        assert (where[0], where[1].identity(), *where[2:]) == (
            *(other_where[0], other_where[1].identity()),
            *other_where[2:],
        )


@given(questions(), WALK, st.sampled_from(["d1", "d9"]))
def test_adding_an_arm_a_model_or_a_shard_leaves_the_other_cells_alone(
    question: Question, line: dict[str, Any], weights: str
) -> None:
    assume(not any(entry.get("attack") == "walk" for entry in question.arms))
    before = question.ids()
    larger = Question(
        arms=[line, *question.arms],
        models=[ModelCard("added", weights, "gradients", 10), *question.models],
        shards=[Shard("added", ("s-added",)), *question.shards],
        seed=question.seed,
        success=question.success,
        space=question.space,
    )
    after = larger.ids()
    assert {key: after[key] for key in before} == before
    assert not {cell for key, cell in after.items() if key not in before} & set(before.values())


@given(questions(), st.sampled_from(["seed", "success", "space", "digest"]))
def test_what_decides_every_result_changes_every_id(question: Question, what: str) -> None:
    changes: dict[str, Any] = {
        "seed": {"seed": question.seed ^ 1},
        "success": {"success": SUCCESSES[SUCCESSES.index(question.success) - 1]},
        "space": {"space": question.space + "!"},
        "digest": {"models": [ModelCard(model.name, model.digest + "!", "gradients", 10) for model in question.models]},
    }
    changed = Question(**{field.name: getattr(question, field.name) for field in fields(question)} | changes[what])
    assert changed.ids().keys() == question.ids().keys()
    assert not set(changed.ids().values()) & set(question.ids().values())


@given(questions())
def test_two_arms_of_a_model_never_share_a_recipe(question: Question) -> None:
    plan = question.plan()
    for name in {model for model, _ in plan.assessed}:
        arms = [arm.id for model, arm in plan.assessed if model == name]
        assert len({plan.recipes[name, arm] for arm in arms}) == len(arms)


# Samples

N = 30
IDS = [f"s{number}" for number in range(N)]
LABELS = [place % 3 for place in range(N)]


def data_spec(evaluate: int, calibrate: int, tune: int, order: str) -> DataSpec:
    return DataSpec.model_validate(
        {"source": "none", "evaluate": evaluate, "calibrate": calibrate, "tune": tune, "order": order}
    )


@st.composite
def growths(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """Sizes of `evaluate` that grow, and the sizes of `calibrate` and `tune`, all of which fit."""
    calibrate, tune = draw(st.integers(0, 8)), draw(st.integers(0, 8))
    steps = draw(st.lists(st.integers(1, N - calibrate - tune), min_size=1, max_size=4).map(sorted))
    return steps, calibrate, tune


def remembered(chosen: dict[str, str], shards: list[Shard], hashes: dict[str, str]) -> dict[str, RecordedSample]:
    """What a ledger would say after such a step."""
    place = {name: (shard.id, number) for shard in shards for number, name in enumerate(shard.samples)}
    return {name: RecordedSample(hashes[name], split, *place.get(name, (None, None))) for name, split in chosen.items()}


@given(
    growths(),
    st.sampled_from(["shuffled", "balanced", "file"]),
    st.integers(0, 5),
    st.lists(st.integers(1, 9), min_size=4),
)
def test_growing_in_steps_or_at_once_selects_the_same_samples_and_cuts_no_shard_again(
    growth: tuple[list[int], int, int], order: str, seed: int, sizes: list[int]
) -> None:
    steps, calibrate, tune = growth
    hashes = {name: digest(name) for name in IDS}
    known: dict[str, RecordedSample] = {}
    shards: list[Shard] = []
    for evaluate, size in zip(steps, sizes, strict=False):
        chosen = choose_splits(data_spec(evaluate, calibrate, tune, order), IDS, None, seed=seed, labels=LABELS)
        refuse_moved(chosen, known)
        asked = [name for name, split in chosen.items() if split == "evaluate"]
        grown = cut_shards(asked, hashes, known, size=size)
        assert set(shards) <= set(grown)
        assert all(len(shard.samples) <= size for shard in grown if shard not in shards)
        assert sorted(name for shard in grown for name in shard.samples) == sorted(asked), "each sample once"
        known, shards = known | remembered(chosen, grown, hashes), grown
    at_once = choose_splits(data_spec(steps[-1], calibrate, tune, order), IDS, None, seed=seed, labels=LABELS)
    assert {name: sample.split for name, sample in known.items()} == at_once, "all that was ever chosen"


@given(growths(), st.integers(0, 5), st.integers(1, 9))
def test_asking_again_finds_the_same_shards_whatever_their_size_is_now(
    growth: tuple[list[int], int, int], seed: int, size: int
) -> None:
    steps, calibrate, tune = growth
    hashes = {name: digest(name) for name in IDS}
    chosen = choose_splits(data_spec(steps[-1], calibrate, tune, "shuffled"), IDS, None, seed=seed)
    asked = [name for name, split in chosen.items() if split == "evaluate"]
    first = cut_shards(asked, hashes, {}, size=4)
    again = cut_shards(asked, hashes, remembered(chosen, first, hashes), size=size)
    assert set(again) == set(first)
    assert len(again) == len(first)


@given(
    st.lists(st.sampled_from(["test", "train", "evaluate", "calibrate", "tune"]), min_size=N, max_size=N) | st.none(),
    *(st.integers(low, 8) for low in (1, 0, 0)),
    st.sampled_from(["shuffled", "balanced", "file"]),
)
def test_splits_are_disjoint_of_the_asked_size_and_never_from_training_samples(
    marks: list[str] | None, evaluate: int, calibrate: int, tune: int, order: str
) -> None:
    sizes = {"evaluate": evaluate, "calibrate": calibrate, "tune": tune}
    given_marks = marks or ["test"] * N
    pool = given_marks.count("test")
    own = {split: given_marks.count(split) for split in sizes}
    assume(all(size <= own[split] for split, size in sizes.items() if own[split]))
    assume(sum(size for split, size in sizes.items() if not own[split]) <= pool)
    chosen = choose_splits(data_spec(evaluate, calibrate, tune, order), IDS, marks, seed=3, labels=LABELS)
    for split, size in sizes.items():
        taken = [name for name in chosen if chosen[name] == split]
        assert len(taken) == size, "a dict holds each sample once, so splits of the right size are disjoint"
        allowed = {split} if own[split] else {"test"}
        assert {given_marks[IDS.index(name)] for name in taken} <= allowed
