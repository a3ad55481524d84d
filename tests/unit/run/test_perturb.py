import math

import numpy as np
import pytest
import torch

from advrisk.core.flags import NO_START_MESSAGE
from advrisk.engine import OutOfTimeError, Space, Trust
from advrisk.parts import REGISTRIES
from advrisk.parts.data import Dataset
from advrisk.run.judge import judge
from advrisk.run.loading import Material
from advrisk.run.perturb import Crafted, goal_of, load_target, perturb
from advrisk.study import Arm, TargetSpec
from advrisk.testing import toys


def propose(probe, *heights, rows=None):
    """Ask at (1, a) for each height a."""
    x = torch.tensor([[1.0, height] for height in heights])
    return probe.forward(x, torch.arange(len(heights)) if rows is None else torch.tensor(rows))


@pytest.fixture
def attempt_of(scene):
    """What is left of an attack by a function of the probe."""

    def run(function, target=None, *, within_eps=True, max_cell_s=None, seed=1, repeat=0, samples=None, **arm):
        target = target or scene.target()
        cell = scene.cell(scene.arm(**arm), len(target.x0), repeat=repeat, samples=samples)
        registries = scene.registries(function, within_eps=within_eps)
        return perturb(target, cell, registries, seed=seed, max_cell_s=max_cell_s)

    return run


class TestAttack:
    def test_what_it_found_and_what_it_spent(self, attempt_of):
        def attack(probe):
            propose(probe, 0.5, 2.0, 0.7).gradient()
            propose(probe, 3.0, 0.9, rows=[0, 2])

        attempt = attempt_of(attack)
        torch.testing.assert_close(attempt.kept[:, 1], torch.tensor([3.0, 2.0, 0.9]))
        assert attempt.claimed.tolist() == [True, True, False]
        assert {name: column.tolist() for name, column in attempt.counts.items()} == {
            "n_forward": [2, 1, 2],
            "n_backward": [1, 1, 1],
            "n_rejected": [0, 0, 0],
            "n_confirm": [0, 0, 0],
            "n_forward_first": [2, 1, -1],
            "n_backward_first": [1, 0, -1],
            "n_forward_before": [1, 0, -1],
            "n_backward_before": [0, 0, -1],
        }
        assert torch.isnan(attempt.first_s).tolist() == [False, False, True]
        assert attempt.settled == {}

    def test_what_the_model_has_wrong_is_not_attacked(self, scene, attempt_of):
        x0 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        model, record = toys.recorded(scene.model)
        target = scene.target(x0=x0, model=model)
        record.passes.clear()
        attempt = attempt_of(lambda probe: propose(probe, 2.0, 0.5), target)
        assert attempt.settled == {1: ("already_wrong", "")}
        assert torch.equal(attempt.kept[1], x0[1])
        torch.testing.assert_close(attempt.kept[[0, 2], 1], torch.tensor([2.0, 0.5]))
        assert attempt.counts["n_forward"].tolist() == [1, 0, 1]
        assert attempt.counts["n_forward_first"].tolist() == [1, -1, -1]
        assert record.n_rows == 2

    def test_against_its_own_prediction_no_sample_is_already_wrong(self, scene, attempt_of):
        x0 = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        target = scene.target(x0=x0, criterion="prediction")
        attempt = attempt_of(lambda probe: probe.forward(probe.x0.flip(1), torch.arange(3)), target)
        assert attempt.settled == {}
        assert attempt.claimed.tolist() == [True, True, True]

    def test_an_attack_with_nothing_to_do_is_not_called(self, scene, attempt_of):
        target = scene.target(label=torch.tensor([1, 1, 1]))
        attempt = attempt_of(lambda probe: pytest.fail("called"), target)
        assert {outcome for outcome, _ in attempt.settled.values()} == {"already_wrong"}

    def test_a_clean_answer_that_is_no_number_is_an_error_not_already_wrong(self, scene, attempt_of):
        model = toys.answering_nan(scene.model, where=lambda x: x[:, 0] > 1.5)
        x0 = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
        target = scene.target(x0=x0, model=model, label=torch.tensor([0, 1]))
        attempt = attempt_of(lambda probe: propose(probe, 0.5), target)
        outcome, message = attempt.settled[1]
        assert outcome == "error"
        assert "clean input" in message

    def test_a_sample_without_a_start_resists_and_says_why(self, attempt_of):
        """What was tried in vain is not kept."""

        def attack(probe):
            propose(probe, 0.5, 2.0, 0.7)
            probe.no_start(torch.tensor([0]))

        attempt = attempt_of(attack)
        assert attempt.settled == {0: ("resisted", NO_START_MESSAGE)}
        torch.testing.assert_close(attempt.kept[:, 1], torch.tensor([0.0, 2.0, 0.7]))
        assert attempt.counts["n_forward"].tolist() == [1, 1, 1]

    def test_an_error_is_not_a_missing_start(self, scene, attempt_of):
        model = toys.answering_nan(scene.model, where=lambda x: x[:, 1] == 0.5)

        def attack(probe):
            propose(probe, 0.5, 0.6, 0.7)
            probe.no_start(torch.arange(3))

        attempt = attempt_of(attack, scene.target(model=model))
        assert [attempt.settled[row][0] for row in range(3)] == ["error", "resisted", "resisted"]

    @pytest.mark.parametrize(("objective", "climbed"), [("ace", "ace"), ("kl", "kl"), (None, "margin")])
    def test_limits_of_the_arm_reach_the_probe(self, attempt_of, objective, climbed):
        def attack(probe):
            assert (probe.norm, probe.eps, probe.task.objective) == ("linf", 0.3, climbed)
            for _ in range(9):
                propose(probe, 0.1, 0.2, 0.3)

        attempt = attempt_of(attack, eps=0.3, max_queries=4, keep="last", objective=objective)
        assert attempt.counts["n_forward"].tolist() == [4, 4, 4]

    @pytest.mark.parametrize("family", ["fgsm", "bim"])
    @pytest.mark.parametrize(("objective", "random"), [("ace", False), ("kl", True), ("fisher-rao", True)])
    def test_repeats_differ_where_the_clean_input_has_no_slope(self, scene, family, objective, random):
        arm = scene.arm(family=family, eps=0.5, objective=objective, keep="last", params=_defaults(family))
        cells = [scene.cell(arm, 16, repeat=repeat) for repeat in range(2)]
        first, second = (perturb(scene.target(16), cell, REGISTRIES, seed=1, max_cell_s=None).kept for cell in cells)
        assert (not torch.equal(first, second)) == random


def _defaults(family):
    return REGISTRIES.attacks.get(family).bind({})


class TestWhatGoesWrong:
    def test_an_attack_that_raises_in_the_middle(self, attempt_of):
        """What had left the batch keeps its success; the others end with the error, whatever they had."""

        def attack(probe):
            propose(probe, 2.0, 0.5, 0.5)
            raise ZeroDivisionError("the step is zero")

        attempt = attempt_of(attack)
        assert attempt.settled == dict.fromkeys((1, 2), ("error", "ZeroDivisionError: the step is zero"))
        assert attempt.claimed.tolist() == [True, False, False]
        assert attempt.counts["n_forward"].tolist() == [1, 1, 1]

    def test_an_attack_that_does_not_fit_its_parameters(self, attempt_of):
        attempt = attempt_of(lambda probe: None, params={"steps": 3})
        assert all(outcome == "error" and "steps" in message for outcome, message in attempt.settled.values())
        assert len(attempt.settled) == 3

    def test_a_model_that_raises_in_the_middle(self, scene, attempt_of):
        model = toys.raising(scene.model, after=2)  # the clean pass, and one more
        target = scene.target(model=model)

        def attack(probe):
            propose(probe, 0.5, 2.0, 0.5)
            propose(probe, 0.6, 0.6, rows=[0, 2])

        attempt = attempt_of(attack, target)
        assert sorted(attempt.settled) == [0, 2]
        assert "as it was told to" in attempt.settled[0][1]

    def test_a_model_that_answers_the_wrong_shape(self, scene, attempt_of):
        target = scene.target()
        broken = toys.answering_wrong_shape(scene.model)
        attempt = attempt_of(
            lambda probe: propose(probe, 0.5, 0.5, 0.5), type(target)(**(vars(target) | {"model": broken}))
        )
        assert {outcome for outcome, _ in attempt.settled.values()} == {"error"}
        assert "answered with shape (3, 3)" in attempt.settled[0][1]

    @pytest.mark.parametrize(
        ("height", "message"),
        [
            (math.nan, "the attack left the space: a feature is not finite"),
            (11.0, "the attack left the space: feature 1 is 11, outside [-10, 10]"),
            (6.0, "the attack left eps: 6 > 5"),
        ],
    )
    def test_a_sample_whose_point_is_not_allowed_ends_alone(self, attempt_of, height, message):
        def attack(probe):
            propose(probe, 0.5, height, 0.5)
            propose(probe, 2.0, 2.0, 2.0)

        attempt = attempt_of(attack)
        assert attempt.settled == {1: ("error", message)}
        assert attempt.claimed.tolist() == [True, False, True]

    def test_time_that_is_up_gives_timeout_to_those_still_at_it(self, attempt_of):
        def attack(probe):
            propose(probe, 2.0, 0.5, 11.0)
            raise OutOfTimeError

        attempt = attempt_of(attack, max_cell_s=7.5)
        assert attempt.settled[1] == ("timeout", "not finished after 7.5 s")
        assert attempt.settled[2][0] == "error"
        assert 0 not in attempt.settled

    def test_the_clock_is_looked_at_between_passes(self, scene, attempt_of):
        """However fast or busy the machine: endless passes of 20 ms cannot fit into 50 ms."""

        def attack(probe):
            while True:
                propose(probe, 0.5, 0.5, 0.5)

        target = scene.target(model=toys.slow(scene.model, pass_s=0.02))
        attempt = attempt_of(attack, target, max_cell_s=0.05)
        assert attempt.settled == dict.fromkeys(range(3), ("timeout", "not finished after 0.05 s"))


class TestRandomness:
    @pytest.fixture
    def drawn(self, attempt_of):
        """The random numbers that each sample of a shard gets."""

        def run(**settings):
            seen = {}

            def attack(probe):
                seen["noise"] = probe.noise.uniform(probe.active(), (4,))

            attempt_of(attack, **settings)
            return seen["noise"]

        return run

    def test_is_the_same_for_the_same_question(self, drawn):
        assert torch.equal(drawn(), drawn())

    @pytest.mark.parametrize(
        "change", [{"seed": 2}, {"repeat": 1}, {"id": "mine-linf-4"}, {"samples": ("a", "b", "c")}]
    )
    def test_changes_with_everything_that_names_it(self, drawn, change):
        assert not (drawn() == drawn(**change)).any()

    def test_follows_the_sample_not_its_place(self, drawn):
        forth, back = drawn(samples=("a", "b", "c")), drawn(samples=("c", "b", "a"))
        assert torch.equal(forth, back.flip(0))

    def test_follows_the_sample_when_others_are_already_wrong(self, scene, drawn):
        spoilt = scene.target(x0=torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]))
        assert torch.equal(drawn(target=spoilt), drawn()[1:])


class TestTransfer:
    CRAFTED = torch.tensor([[1.0, 2.0], [1.0, 0.5], [1.0, 0.0]])

    @pytest.fixture
    def moved(self, scene):
        def run(target, missing):
            arm = scene.arm(family="transfer", params={"from": "other", "arm": "mine-linf-5"})
            crafted = Crafted(self.CRAFTED, missing)
            return perturb(target, scene.cell(arm), REGISTRIES, seed=1, max_cell_s=None, crafted=crafted)

        return run

    def test_takes_the_points_over_and_asks_nothing(self, scene, moved):
        model, record = toys.recorded(scene.model)
        target = scene.target(model=model)
        record.passes.clear()
        attempt = moved(target, {})
        assert record.passes == []
        assert torch.equal(attempt.kept, self.CRAFTED)
        assert attempt.claimed is None
        assert attempt.counts["n_forward"].tolist() == [0, 0, 0]
        assert attempt.counts["n_forward_first"].tolist() == [-1, -1, -1]
        assert (attempt.settled, attempt.accounting, attempt.not_crafted) == ({}, "none", False)
        assert judge(target, attempt, scene.arm()).outcome == ["success", "resisted", "resisted"]

    def test_says_what_there_was_not(self, scene, moved):
        attempt = moved(scene.target(), {2: ("resisted", "as it was")})
        assert attempt.settled == {2: ("resisted", "as it was")}
        assert attempt.not_crafted

    def test_what_the_target_has_wrong_needs_no_point(self, scene, moved):
        target = scene.target(x0=torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        attempt = moved(target, {2: ("error", "failed")})
        assert attempt.settled == {2: ("already_wrong", "")}
        assert not attempt.not_crafted


@pytest.mark.parametrize("exhaustive", [False, True])
def test_an_attack_that_tries_all_there_is_cannot_gain_by_going_on(scene, exhaustive):
    def climb(probe):
        for height in range(1, 9):
            propose(probe, *[height / 10] * 3)

    registries = scene.registries(climb, exhaustive=exhaustive)
    attempt = perturb(scene.target(), scene.cell(scene.arm()), registries, seed=0, max_cell_s=None)
    assert attempt.trust.still_gaining == (None if exhaustive else 1)


class TestOtherArms:
    def test_the_clean_arm_keeps_the_input(self, scene):
        target = scene.target()
        attempt = perturb(target, scene.cell(scene.clean), scene.registries(lambda: None), seed=0, max_cell_s=None)
        assert torch.equal(attempt.kept, target.x0)
        assert attempt.claimed is None
        assert attempt.settled == {}

    def test_a_corruption_meets_every_sample_and_is_put_back_into_the_space(self, scene):
        def corruption(x, noise, rows, space, *, far):
            assert rows.tolist() == [0, 1, 2]
            return x + far

        arm = scene.arm(kind="corruption", norm=None, eps=None, params={"far": 9.5})
        target = scene.target(label=torch.tensor([0, 1, 0]))
        attempt = perturb(target, scene.cell(arm), scene.registries(corruption), seed=0, max_cell_s=None)
        assert attempt.kept.tolist() == [[10.0, 9.5]] * 3
        assert attempt.settled == {}
        assert attempt.counts == {}

    def test_repeats_of_a_corruption_differ(self, scene):
        def corruption(x, noise, rows, space):
            return x + noise.uniform(rows, (2,))

        arm = scene.arm(kind="corruption", norm=None, eps=None)
        first, again, second = (
            perturb(
                scene.target(), scene.cell(arm, repeat=repeat), scene.registries(corruption), seed=0, max_cell_s=None
            ).kept
            for repeat in (0, 0, 1)
        )
        assert torch.equal(first, again)
        assert not (first == second).any()


LARGEST = toys.Linear(torch.eye(4), torch.zeros(4)).model  # the largest of four features names the class


class TestGoal:
    """What `success` means, sample by sample."""

    ANSWER = torch.tensor([[4.0, 1.0, 2.0, 3.0], [1.0, 2.0, 0.0, 9.0], [3.0, 2.0, 0.0, 0.5], [0.0, 7.0, 8.0, 9.0]])
    LABEL = torch.tensor([0, 3, 2, 3])

    @pytest.mark.parametrize(
        ("success", "reference", "target"),
        [
            ("label", [0, 3, 2, 3], None),
            ("prediction", [0, 3, 0, 3], None),
            (2, [0, 3, 2, 3], [2, 2, 2, 2]),
            ("next", [0, 3, 2, 3], [1, 0, 3, 0]),
            ("least-likely", [0, 3, 2, 3], [1, 2, 3, 0]),  # of the third its own class is the least likely
            ({0: 3, 2: 1, 3: 0}, [0, 3, 2, 3], [3, 0, 1, 0]),
        ],
    )
    def test_of_every_spelling(self, success, reference, target):
        success = success if success in ("label", "prediction") else TargetSpec(target=success)
        goal = goal_of(success, self.LABEL, LARGEST, self.ANSWER)
        assert goal.reference.tolist() == reference
        assert (goal.target if target is None else goal.target.tolist()) == target
        assert goal.target is None or goal.target.dtype == torch.int64
        assert torch.equal(goal.clean, self.ANSWER)

    def test_next_counts_the_classes_of_the_model(self):
        two, ten = (toys.linear(features=4, classes=classes).model for classes in (2, 10))
        label = torch.tensor([0, 1])
        assert goal_of(TargetSpec(target="next"), label, two, torch.zeros(2, 2)).target.tolist() == [1, 0]
        assert goal_of(TargetSpec(target="next"), label, ten, torch.zeros(2, 10)).target.tolist() == [1, 2]

    def test_the_least_likely_is_never_the_own_class(self):
        generator = torch.Generator().manual_seed(0)
        for answer in (torch.randn(500, 4, generator=generator), torch.zeros(500, 4), torch.full((500, 4), -1e30)):
            label = torch.randint(0, 4, (500,), generator=generator)
            target = goal_of(TargetSpec(target="least-likely"), label, LARGEST, answer).target
            assert (target != label).all()
            others = answer.scatter(1, label[:, None], torch.inf)
            assert torch.equal(others.gather(1, target[:, None])[:, 0], others.amin(1))

    def test_a_score_model_has_clean_scores_to_measure_from_and_a_label_model_none(self):
        scores, labels = toys.score_only(LARGEST), toys.label_only(LARGEST)
        assert torch.equal(goal_of("label", self.LABEL, scores, self.ANSWER).clean, self.ANSWER)
        for success in ("label", "prediction", TargetSpec(target="next")):
            goal = goal_of(success, self.LABEL, labels, self.ANSWER.argmax(1))
            assert goal.clean is None
        assert goal_of("prediction", self.LABEL, labels, torch.tensor([1, 2, 3, 0])).reference.tolist() == [1, 2, 3, 0]


class TestTargets:
    """Samples 0 and 1 are of class 0, 2 and 3 of class 1; the model has samples 1 and 3 wrong. All must become 1."""

    X0 = torch.tensor([[2.0, 1, 0, 0], [1.0, 2, 0, 0], [0.0, 2, 0, 0], [0.0, 0, 3, 0]])
    LABEL = torch.tensor([0, 0, 1, 1])

    @pytest.fixture
    def target(self, scene):
        return scene.target(x0=self.X0, label=self.LABEL, model=LARGEST, criterion=TargetSpec(target=1))

    def test_a_sample_whose_class_is_the_target_resists_and_says_why(self, target):
        own = ("resisted", "the target is the sample's own class")
        assert target.settled() == {1: ("already_wrong", ""), 2: own, 3: own}

    def test_only_what_can_become_the_target_is_attacked(self, target, attempt_of):
        seen = []

        def attack(probe):
            seen.append((probe.goal.reference.tolist(), probe.goal.target.tolist(), probe.goal.clean.tolist()))
            probe.forward(torch.tensor([[2.0, 1, 5, 0]]), torch.tensor([0]))  # wrong, but not the target
            probe.forward(torch.tensor([[2.0, 5, 1, 0]]), torch.tensor([0]))

        attempt = attempt_of(attack, target)
        assert seen == [([0], [1], [[2.0, 1.0, 0.0, 0.0]])]
        assert attempt.claimed.tolist() == [True, False, False, False]
        assert attempt.counts["n_forward_first"].tolist() == [2, -1, -1, -1]
        verdict = judge(target, attempt, scene_arm())
        assert verdict.outcome == ["success", "already_wrong", "resisted", "resisted"]
        assert verdict.message == ["", "", *["the target is the sample's own class"] * 2]
        assert verdict.n_unconfirmed == 0

    def test_another_class_than_the_target_is_no_success_for_the_judge(self, target, attempt_of):
        attempt = attempt_of(lambda probe: probe.forward(torch.tensor([[2.0, 1, 5, 0]]), torch.tensor([0])), target)
        assert judge(target, attempt, scene_arm()).outcome[0] == "resisted"

    def test_a_wrong_sample_that_is_not_yet_the_target_is_attacked(self, scene):
        x0 = torch.tensor([[0.0, 0, 3, 0]])
        label = torch.tensor([0])
        target = scene.target(x0=x0, label=label, model=LARGEST, criterion=TargetSpec(target=1))
        assert target.clean_prediction.tolist() == [2]
        assert target.settled() == {}

    def test_an_answer_that_is_no_number_is_an_error_whatever_the_target(self, scene):
        model = toys.answering_nan(LARGEST)
        target = scene.target(x0=self.X0, label=self.LABEL, model=model, criterion=TargetSpec(target=1))
        assert {outcome for outcome, _ in target.settled().values()} == {"error"}
        assert len(target.settled()) == 4


def scene_arm():
    return Arm("mine-linf-5", "attack", "mine", norm="linf", eps=5.0)


class TestTrust:
    def test_the_signs_of_the_probe_are_handed_on(self, attempt_of):
        def attack(probe):
            propose(probe, 0.5, 2.0, 0.5).gradient()
            propose(probe, 0.4, 0.6, rows=[0, 2]).gradient()

        assert attempt_of(attack).trust == Trust(0.0, 0.5, None)

    def test_of_an_attack_with_nothing_to_do_nothing_is_said(self, scene, attempt_of):
        target = scene.target(label=torch.tensor([1, 1, 1]))
        assert attempt_of(lambda probe: pytest.fail("called"), target).trust == Trust(None, None, None)


@pytest.mark.parametrize("criterion", ["label", "prediction"])
def test_the_target_holds_the_samples_of_the_shard_in_its_order(scene, criterion):
    x = np.array([[1, 0], [0, 1], [2, 0], [0, 2]], np.float32)
    data = Dataset("toy", x, np.array([0, 0, 0, 1]), 2, ids=("a", "b", "c", "d"), low=-10, high=10)
    material = Material(
        data, Space.box(-10, 10), {"larger": scene.model}, {name: row for row, name in enumerate("abcd")}
    )
    target = load_target(material, scene.cell(scene.arm(), samples=("d", "b", "a")), criterion, seed=0)
    assert target.x0.tolist() == [[0, 2], [0, 1], [1, 0]]
    assert target.label.tolist() == [1, 0, 0]
    assert target.clean_prediction.tolist() == [1, 1, 0]
    assert target.goal.reference.tolist() == ([1, 0, 0] if criterion == "label" else [1, 1, 0])
    assert sorted(target.settled()) == ([1] if criterion == "label" else [])
