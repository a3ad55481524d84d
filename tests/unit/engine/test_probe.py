"""A model that can be followed by hand: two features, and the larger one names the class.

Every sample is (1, 0), of class 0; the point (1, a) is a success for a > 1, at distance a.
"""

import copy
import math
import time
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from advrisk.core.errors import ModelError
from advrisk.engine import Goal, Noise, OutOfTimeError, Probe, Space, Task, Trust, objectives
from advrisk.testing import toys

LARGER = toys.Linear(torch.eye(2), torch.zeros(2))


def make_probe(n=1, *, model=LARGER.model, **settings):
    defaults = {
        "x0": start(n),
        "goal": Goal(torch.zeros(n, dtype=torch.int64)),
        "space": Space.box(-10, 10),
        "norm": "linf",
        "eps": 9.0,
    }
    task = Task(**(defaults | settings))
    return Probe(model, task, Noise(range(n)))


def start(n):
    return torch.tensor([[1.0, 0.0]]).repeat(n, 1)


def ask(probe, *heights, rows=None, **settings):
    """Propose (1, a) for each height a, by default for rows 0, 1, …"""
    x = torch.tensor([[1.0, height] for height in heights])
    return probe.forward(x, torch.arange(len(heights)) if rows is None else torch.tensor(rows), **settings)


def heights(probe):
    return probe.memory.kept[:, 1].tolist()


def test_a_sample_without_a_start_is_finished():
    probe = make_probe(3, keep="last")
    ask(probe, 0.1, 0.2, 0.3)
    probe.no_start(torch.tensor([0, 2]))
    assert probe.memory.no_start.tolist() == [True, False, True]
    assert probe.active().tolist() == [1]
    ask(probe, 0.4, 0.5, 0.6)
    assert probe.memory.n_forward.tolist() == [1, 2, 1]


def test_a_sample_that_failed_did_not_lack_a_start():
    probe = make_probe(2)
    probe.fail(1, "broken")
    probe.no_start(torch.tensor([0, 1]))
    assert probe.memory.no_start.tolist() == [True, False]


class TestCounting:
    def test_each_forward_and_each_backward_counts(self):
        probe = make_probe(3, keep="last")
        ask(probe, 0.1, 0.2, 0.3).gradient()
        ask(probe, 0.4, 0.5, rows=[0, 2])
        ask(probe, 0.6, rows=[2]).gradients(torch.tensor([[0, 1]]))
        assert probe.memory.n_forward.tolist() == [2, 1, 3]
        assert probe.memory.n_backward.tolist() == [1, 1, 3]

    def test_a_row_that_stands_several_times_counts_several_times(self):
        probe = make_probe(2, keep="last")
        ask(probe, 0.1, 0.2, 0.3, 0.4, rows=[1, 0, 1, 1]).gradient()
        assert probe.memory.n_forward.tolist() == [1, 3]
        assert probe.memory.n_backward.tolist() == [1, 3]

    def test_labels_cost_a_forward(self):
        probe = make_probe(2, model=toys.label_only(LARGER.model), keep="last")
        assert probe.labels(torch.tensor([[1.0, 2.0], [1.0, 0.5]]), torch.arange(2)).tolist() == [1, 0]
        assert probe.memory.n_forward.tolist() == [1, 1]
        assert probe.memory.n_backward.tolist() == [0, 0]

    def test_the_first_success_is_noted_once_with_what_was_spent(self):
        probe = make_probe(3, keep="last")
        ask(probe, 0.5, 0.5, 0.5).gradient()
        ask(probe, 2.0, 0.5, 0.5).gradient()
        ask(probe, 3.0, 2.0, 0.5)
        assert probe.memory.n_forward_first.tolist() == [2, 3, -1]
        assert probe.memory.n_backward_first.tolist() == [1, 2, -1]
        assert torch.isnan(probe.memory.first_s).tolist() == [False, False, True]
        assert (probe.memory.first_s[:2] <= probe.memory.spent_s[:2]).all()
        assert (probe.memory.spent_s > 0).all()

    def test_a_first_success_within_a_population_costs_the_whole_batch(self):
        probe = make_probe(2)
        ask(probe, 0.5, 2.0, 0.5, 0.2, rows=[0, 0, 0, 1])
        assert probe.memory.n_forward_first.tolist() == [3, -1]

    def test_a_first_success_came_after_the_query_before(self):
        """Which may have been several passes ago: of a population, of slopes of several classes, or without a slope."""
        probe = make_probe(3, keep="last")
        ask(probe, 0.5, 0.5, 0.5, 0.5, rows=[0, 0, 1, 2]).gradient()
        ask(probe, 0.5, 0.5, rows=[1, 2]).gradients(torch.tensor([[0, 1], [0, 1]]))
        ask(probe, 0.5, rows=[2])
        ask(probe, 0.5, 2.0, 0.5, 2.0, 2.0, rows=[0, 0, 0, 1, 2])
        assert probe.memory.n_forward_first.tolist() == [5, 3, 4]
        assert probe.memory.n_forward_before.tolist() == [2, 2, 3]
        assert probe.memory.n_backward_first.tolist() == [2, 3, 3]
        assert probe.memory.n_backward_before.tolist() == [0, 1, 1]

    def test_the_probe_asks_nothing_of_its_own(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(4, model=model, keep="smallest")
        ask(probe, 0.5, 2.0, 3.0, 0.1).gradient()
        ask(probe, 2.0, 1.5, rows=[0, 1])
        assert record.n_rows == 6 == int(probe.memory.n_forward.sum())


class TestKeep:
    def test_first_keeps_the_first_success_and_ends_the_sample(self):
        probe = make_probe(2, keep="first")
        ask(probe, 3.0, 0.5)
        assert probe.active().tolist() == [1]
        ask(probe, 1.5, 0.7)
        assert heights(probe) == pytest.approx([3.0, 0.7])
        assert probe.memory.success.tolist() == [True, False]
        assert probe.memory.n_forward.tolist() == [1, 2]

    def test_smallest_keeps_the_nearest_success_and_goes_on(self):
        probe = make_probe(keep="smallest")
        for height in (0.9, 3.0, 1.5, 2.0, 0.95):
            ask(probe, height)
            assert probe.active().tolist() == [0]
        assert heights(probe) == [1.5]
        assert probe.memory.n_forward_first.item() == 2

    @pytest.mark.parametrize(("norm", "nearest"), [("l1", (1.0, 1.3)), ("linf", (0.3, 1.0))])
    def test_smallest_is_meant_in_the_norm_of_the_arm(self, norm, nearest):
        """(1, 1.3) moved by 1.3 in both norms; (0.3, 1) by 1.7 in l1 but by 1 in linf."""
        probe = make_probe(keep="smallest", norm=norm)
        probe.forward(torch.tensor([[1.0, 1.3]]), torch.tensor([0]))
        probe.forward(torch.tensor([[0.3, 1.0]]), torch.tensor([0]))
        torch.testing.assert_close(probe.memory.kept, torch.tensor([nearest]))

    def test_strongest_keeps_the_highest_objective(self):
        probe = make_probe(keep="strongest")
        for height in (2.0, 5.0, 3.0, 0.5):
            ask(probe, height)
        assert heights(probe) == [5.0]

    def test_strongest_counts_only_within_eps(self):
        probe = make_probe(keep="strongest", eps=4.0, within_eps=False)
        for height in (2.0, 5.0, 3.0):
            ask(probe, height)
        assert heights(probe) == [3.0]

    def test_last_keeps_the_last_point_and_never_stops_early(self):
        probe = make_probe(keep="last")
        for height in (5.0, 2.0, 3.0):
            ask(probe, height)
            assert probe.active().tolist() == [0]
        assert heights(probe) == [3.0]
        assert probe.memory.n_forward_first.item() == 1

    def test_last_is_the_final_iterate_even_if_an_earlier_one_succeeded(self):
        probe = make_probe(keep="last")
        for height in (5.0, 2.0, 0.5):
            ask(probe, height)
        assert not probe.memory.success.item()
        assert heights(probe) == [0.5]
        assert probe.memory.n_forward_first.item() == 1

    def test_last_without_success_is_the_last_point(self):
        probe = make_probe(keep="last")
        for height in (0.9, 0.1, 0.4):
            ask(probe, height)
        assert heights(probe) == pytest.approx([0.4])

    @pytest.mark.parametrize("keep", ["first", "smallest", "strongest"])
    def test_a_resisted_sample_keeps_the_highest_objective(self, keep):
        probe = make_probe(keep=keep)
        for height in (0.5, 0.9, 0.2):
            ask(probe, height)
        assert not probe.memory.success.item()
        assert heights(probe) == pytest.approx([0.9])

    @pytest.mark.parametrize("keep", ["first", "smallest", "strongest"])
    def test_a_success_wins_over_a_failure_of_the_same_batch(self, keep):
        probe = make_probe(2, keep=keep)
        ask(probe, 0.2, 0.3, 2.0, 0.9, 0.1, rows=[1, 0, 0, 0, 1])
        assert probe.memory.success.tolist() == [True, False]
        assert heights(probe) == pytest.approx([2.0, 0.2])

    def test_the_last_point_of_a_batch_is_the_latest_in_it(self):
        probe = make_probe(2, keep="last")
        ask(probe, 0.2, 0.3, 2.0, 0.9, 0.1, rows=[1, 0, 0, 0, 1])
        assert probe.memory.success.tolist() == [False, False]
        assert heights(probe) == pytest.approx([0.9, 0.1])

    @pytest.mark.parametrize(("keep", "kept"), [("smallest", 1.5), ("strongest", 4.0), ("last", 3.0)])
    def test_the_best_of_a_population_is_kept(self, keep, kept):
        probe = make_probe(2, keep=keep)
        ask(probe, 2.0, 4.0, 1.5, 7.0, 3.0, rows=[0, 0, 0, 1, 0])
        assert heights(probe) == [kept, 7.0]

    def test_before_anything_was_asked_the_clean_input_is_kept(self):
        assert torch.equal(make_probe(2).memory.kept, start(2))

    @pytest.mark.parametrize(("keep", "kept"), [("first", 2.0), ("smallest", 1.5), ("last", 3.0)])
    def test_labels_suffice(self, keep, kept):
        probe = make_probe(model=toys.label_only(LARGER.model), keep=keep)
        for height in (0.5, 2.0, 1.5, 3.0):
            ask(probe, height)
        assert heights(probe) == [kept]

    @pytest.mark.parametrize("keep", ["smallest", "strongest"])
    def test_of_equals_the_later_is_kept(self, keep):
        """A label model gives no objective to tell points apart; and (1, 2) and (1.5, 2) are equally far in linf."""
        probe = make_probe(model=toys.label_only(LARGER.model), keep=keep)
        for point in ([1.0, 2.0], [1.5, 2.0]):
            probe.forward(torch.tensor([point]), torch.tensor([0]))
        assert probe.memory.kept.tolist() == [[1.5, 2.0]]

    def test_kept_points_are_copies(self):
        probe = make_probe(keep="last")
        x = torch.tensor([[1.0, 2.0]])
        probe.forward(x, torch.tensor([0]), gradient=False)
        x += 5
        assert heights(probe) == [2.0]


class TestMaxQueries:
    def test_a_sample_is_asked_exactly_that_often(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(2, model=model, keep="last", max_queries=3)
        for number in range(5):
            ask(probe, 0.1 * number, 0.1 * number)
        assert probe.memory.n_forward.tolist() == [3, 3]
        assert record.n_rows == 6
        assert len(probe.active()) == 0
        assert heights(probe) == pytest.approx([0.2, 0.2])

    def test_a_population_is_cut_at_the_limit(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(2, model=model, keep="last", max_queries=4)
        ask(probe, 0.1, 0.2, rows=[0, 1])
        answered = ask(probe, 0.3, 0.4, 0.5, 0.6, 2.0, 0.7, rows=[0, 0, 1, 0, 0, 1])
        assert probe.memory.n_forward.tolist() == [4, 3]
        assert record.n_rows == 7
        assert probe.active().tolist() == [1]
        assert not probe.memory.success.any()  # the only success was beyond the limit
        assert answered.labels.tolist() == [0] * 6

    def test_success_on_the_last_query_counts(self):
        probe = make_probe(keep="last", max_queries=2)
        ask(probe, 0.5)
        ask(probe, 2.0)
        assert probe.memory.success.item()
        assert probe.memory.n_forward_first.item() == 2


class TestUnaskedRows:
    def test_answer_like_failures_without_slope(self):
        probe = make_probe(3, keep="first")
        ask(probe, 2.0, 0.5, 0.5)
        passed = ask(probe, 3.0, 0.6, 2.0)
        scores = passed.scores
        assert scores[0].argmax() == 0
        assert scores[1].tolist() == pytest.approx([1, 0.6])
        assert scores[2].tolist() == pytest.approx([1, 2.0])
        assert passed.labels.tolist() == [0, 0, 1]
        slope = passed.gradient()
        assert not slope[0].any()
        assert slope[1].any()
        assert slope[2].any()
        assert probe.memory.n_backward.tolist() == [0, 1, 1]

    def test_a_batch_of_them_asks_nothing(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(2, model=model, keep="first")
        ask(probe, 2.0, 2.0)
        passed = ask(probe, 3.0, 3.0)
        assert record.n_rows == 2
        assert passed.labels.tolist() == [0, 0]
        assert passed.scores.argmax(1).tolist() == [0, 0]
        assert not passed.gradient().any()
        assert passed.gradients(torch.tensor([[0, 1], [1, 0]])).shape == (2, 2, 2)
        assert not passed.gradients(torch.tensor([[0, 1], [1, 0]])).any()

    def test_an_empty_batch_is_no_pass(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(2, model=model)
        passed = probe.forward(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))
        assert passed.scores.shape == (0, 2)
        assert record.passes == []


class TestSuccess:
    def test_beyond_eps_is_none(self):
        probe = make_probe(2, eps=2.5, within_eps=False, keep="first")
        ask(probe, 3.0, 2.4)
        assert probe.memory.success.tolist() == [False, True]
        assert probe.memory.n_forward_first.tolist() == [-1, 1]
        assert probe.active().tolist() == [0]

    def test_at_eps_is_one_even_if_rounding_adds_a_little(self):
        probe = make_probe(2, eps=2.4, within_eps=False)
        ask(probe, math.nextafter(2.4, 3) + 1e-7, 2.401)
        assert probe.memory.success.tolist() == [True, False]

    @pytest.mark.parametrize("keep", ["first", "smallest", "strongest", "last"])
    def test_a_point_beyond_eps_is_never_kept_whatever_came_of_it(self, keep):
        probe = make_probe(3, eps=2.5, within_eps=False, keep=keep)
        ask(probe, 0.5, 0.5, 2.0)
        probe.forward(torch.tensor([[1.0, 3.0], [-3.0, -4.5], [1.0, 4.0]]), torch.arange(3))
        torch.testing.assert_close(probe.memory.kept, torch.tensor([[1.0, 0.5], [1.0, 0.5], [1.0, 2.0]]))
        assert probe.memory.success.tolist() == [False, False, True]
        assert probe.memory.failed == {}

    def test_without_eps_any_distance_will_do(self):
        probe = make_probe(eps=None, within_eps=False)
        ask(probe, 9.5)
        assert probe.memory.success.item()


class TestErrors:
    def test_leaving_the_space_ends_the_sample_and_only_it(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(3, model=model, eps=None, keep="last")
        ask(probe, 0.5, 11.0, 2.0)
        assert probe.memory.failed == {1: "the attack left the space: feature 1 is 11, outside [-10, 10]"}
        assert probe.memory.success.tolist() == [False, False, True]
        assert record.n_rows == 2
        assert probe.active().tolist() == [0, 2]

    def test_leaving_eps_ends_the_sample_of_an_attack_that_promised_not_to(self):
        probe = make_probe(2, eps=2.0, keep="last")
        ask(probe, 2.1, 1.9)
        assert probe.memory.failed == {0: "the attack left eps: 2.1 > 2"}
        assert probe.memory.n_forward.tolist() == [0, 1]

    def test_a_point_that_is_no_number_is_not_asked(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(2, model=model, keep="last")
        ask(probe, math.nan, 0.5)
        assert probe.memory.failed == {0: "the attack left the space: a feature is not finite"}
        assert record.n_rows == 1

    @pytest.mark.parametrize("keep", ["first", "smallest", "strongest", "last"])
    def test_an_answer_that_is_no_number_ends_the_sample_and_is_no_success(self, keep):
        """Whatever class NaN may seem to name: here class 0, which would be a success of samples of class 1."""
        model = toys.answering_nan(LARGER.model, where=lambda x: x[:, 0] > 2)
        probe = make_probe(3, model=model, keep=keep, x0=start(3).flip(1), goal=Goal(torch.ones(3, dtype=torch.int64)))
        probe.forward(torch.tensor([[0.5, 1.0], [3.0, 1.0], [1.5, 1.0]]), torch.arange(3))
        assert probe.memory.failed == {1: "the model answered with a number that is not finite"}
        assert probe.memory.success.tolist() == [False, False, True]
        assert probe.memory.n_forward_first.tolist() == [-1, -1, 1]
        assert probe.active().tolist() == ([0] if keep == "first" else [0, 2])

    @pytest.mark.parametrize("height", [11.0, 9.5, math.nan])
    def test_what_is_proposed_for_a_finished_sample_does_not_matter(self, height):
        probe = make_probe(2, keep="first")
        ask(probe, 2.0, 0.5)
        ask(probe, height, 0.6)
        assert probe.memory.failed == {}
        assert probe.memory.success.tolist() == [True, False]

    def test_the_first_message_stays(self):
        probe = make_probe(eps=None)
        ask(probe, 11.0)
        ask(probe, 12.0)
        assert "is 11," in probe.memory.failed[0]

    def test_time_that_is_up_stops_the_attack_before_the_pass(self):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(model=model, deadline=time.monotonic() - 1)
        with pytest.raises(OutOfTimeError):
            ask(probe, 0.5)
        assert record.passes == []

    def test_an_arm_without_norm_or_eps_says_so(self):
        probe = make_probe(norm=None, eps=None)
        with pytest.raises(ValueError, match="no norm"):
            _ = probe.norm
        with pytest.raises(ValueError, match="no eps"):
            _ = probe.eps

    def test_a_wrong_shape_is_a_model_error(self):
        with pytest.raises(ModelError, match=r"\(1, 3\)"):
            ask(make_probe(model=toys.answering_wrong_shape(LARGER.model)), 0.5)


class TestCapability:
    def test_a_score_model_is_never_asked_for_gradients(self):
        probe = make_probe(2, model=toys.score_only(LARGER.model), keep="last")
        passed = ask(probe, 0.5, 2.0)
        expected = F.log_softmax(torch.tensor([[1.0, 0.5], [1.0, 2.0]]), 1)
        torch.testing.assert_close(passed.scores, expected)
        with pytest.raises(ModelError, match="without gradients"):
            passed.gradient()
        assert probe.memory.n_backward.tolist() == [0, 0]

    def test_a_label_model_gives_no_scores(self):
        passed = ask(make_probe(model=toys.label_only(LARGER.model)), 2.0)
        assert passed.labels.tolist() == [1]
        with pytest.raises(ModelError, match="labels only"):
            _ = passed.scores

    def test_a_pass_without_gradient_refuses_one(self):
        passed = ask(make_probe(keep="last"), 0.5, gradient=False)
        assert passed.scores.tolist() == [pytest.approx([1.0, 0.5])]
        with pytest.raises(ModelError, match="without gradients"):
            passed.gradient()


class TestGradients:
    @pytest.fixture
    def shard(self):
        conv = toys.conv_net()
        x0 = toys.images(5)
        reference = torch.tensor([0, 1, 2, 3, 0])
        task = Task(x0=x0, goal=Goal(reference), space=Space.box(0, 1), norm="linf", eps=1.0, keep="last")
        return Probe(conv, task, Noise(range(5))), toys.images(5, seed=9), reference

    def test_gradient_is_that_of_the_objective(self, shard):
        probe, x, reference = shard
        found = probe.forward(x, torch.arange(5)).gradient()
        leaf = x.clone().requires_grad_(True)
        F.cross_entropy(probe.model.answer(leaf), reference, reduction="sum").backward()
        torch.testing.assert_close(found, leaf.grad)
        assert not x.requires_grad

    def test_gradients_are_those_of_the_chosen_scores(self, shard):
        probe, x, _ = shard
        classes = torch.tensor([[0, 3], [1, 2], [2, 2], [3, 0], [1, 0]])
        found = probe.forward(x, torch.arange(5)).gradients(classes)
        assert found.shape == (5, 2, 1, 8, 8)
        for row, chosen in enumerate(classes.tolist()):
            for place, number in enumerate(chosen):
                leaf = x[[row]].clone().requires_grad_(True)
                probe.model.answer(leaf)[0, number].backward()
                torch.testing.assert_close(found[row, place], leaf.grad[0], atol=1e-6, rtol=1e-4)

    def test_gradients_over_a_class_are_those_of_the_leads(self, shard):
        probe, x, reference = shard
        classes = torch.tensor([[1, 3], [0, 2], [0, 3], [2, 0], [1, 0]])
        found = probe.forward(x, torch.arange(5)).gradients(classes, over=reference)
        for row, chosen in enumerate(classes.tolist()):
            for place, number in enumerate(chosen):
                leaf = x[[row]].clone().requires_grad_(True)
                scores = probe.model.answer(leaf)[0]
                (scores[number] - scores[reference[row]]).backward()
                torch.testing.assert_close(found[row, place], leaf.grad[0], atol=1e-6, rtol=1e-4)
        assert probe.memory.n_backward.tolist() == [2] * 5

    def test_a_class_leads_itself_nowhere(self, shard):
        probe, x, reference = shard
        found = probe.forward(x, torch.arange(5)).gradients(reference[:, None], over=reference)
        assert not found.any()

    @pytest.mark.parametrize("objective", [None, "margin", "kl", "gini", "ace", "dlr"])
    def test_heights_and_gradient_of_any_objective(self, shard, objective):
        """Against autograd of the formulas, written down once more in float64."""
        probe, x, reference = shard
        clean = probe.model.answer(probe.x0).detach()
        probe = with_goal(probe, Goal(reference, clean=clean))
        passed = probe.forward(x, torch.arange(5))
        heights, slope = passed.heights(objective), passed.gradient(objective)
        exact = copy.deepcopy(probe.model.answer).double()
        leaf = x.double().requires_grad_(True)
        expected = plain(objective or "ace", exact(leaf), reference, clean=exact(probe.x0.double()).detach())
        (expected_slope,) = torch.autograd.grad(expected.sum(), leaf)
        assert heights.dtype == torch.float64
        torch.testing.assert_close(heights, expected.detach(), atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(slope.double(), expected_slope, atol=1e-6, rtol=1e-3)

    @pytest.mark.parametrize("objective", [None, "margin", "ace"])
    @pytest.mark.parametrize("arm", ["ace", "margin"])
    def test_heights_and_gradient_towards_a_class_of_the_attacks_own_choice(self, shard, objective, arm):
        probe, x, reference = shard
        probe = Probe(probe.model, replace(probe.task, objective=arm), Noise(range(5)))
        target = torch.tensor([2, 0, 3, 1, 1])
        passed = probe.forward(x, torch.arange(5))
        heights, slope = passed.heights(objective, target=target), passed.gradient(objective, target=target)
        exact = copy.deepcopy(probe.model.answer).double()
        leaf = x.double().requires_grad_(True)
        expected = plain(objective or arm, exact(leaf), reference, target=target)
        (expected_slope,) = torch.autograd.grad(expected.sum(), leaf)
        torch.testing.assert_close(heights, expected.detach(), atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(slope.double(), expected_slope, atol=1e-6, rtol=1e-3)
        assert probe.goal.target is None, "the arm's own goal is what it was"

    def test_the_goal_of_the_arm_aims_where_nothing_else_is_said(self, shard):
        probe, x, reference = shard
        target = torch.tensor([2, 0, 3, 1, 1])
        aimed = with_goal(probe, Goal(reference, target))
        rows = torch.tensor([3, 0])
        passed, hinted = aimed.forward(x[:2], rows), probe.forward(x[:2], rows)
        assert torch.equal(passed.heights(), hinted.heights(target=target[rows]))
        assert torch.equal(passed.gradient(), hinted.gradient(target=target[rows]))

    def test_rows_that_were_not_asked_stand_lowest_without_slope(self, shard):
        probe, x, _ = shard
        probe = Probe(probe.model, replace(probe.task, max_queries=1), Noise(range(5)))
        probe.forward(x[:2], torch.tensor([1, 3]))
        passed = probe.forward(x, torch.arange(5))
        target = torch.tensor([2, 0, 3, 1, 1])
        for heights, slope in (
            (passed.heights(), passed.gradient(retain=True)),
            (passed.heights("margin", target=target), passed.gradient("margin", target=target, retain=True)),
        ):
            assert heights.isinf().tolist() == [False, True, False, True, False]
            assert (heights[[1, 3]] < 0).all()
            assert slope.flatten(1).any(1).tolist() == [True, False, True, False, True]
        alone = Probe(probe.model, probe.task, Noise(range(5))).forward(x, torch.arange(5))
        asked = [0, 2, 4]
        torch.testing.assert_close(
            passed.heights("margin", target=target)[asked], alone.heights("margin", target=target)[asked]
        )
        leads = passed.gradients(target[:, None], over=probe.goal.reference)
        expected = alone.gradients(target[:, None], over=probe.goal.reference)
        torch.testing.assert_close(leads[asked], expected[asked])
        assert not leads[[1, 3]].any()

    def test_slopes_that_are_not_wanted_are_zero_and_cost_nothing(self, shard):
        probe, x, reference = shard
        wanted = torch.tensor([True, False, True, True, False])
        whole = Probe(probe.model, probe.task, Noise(range(5))).forward(x, torch.arange(5))
        passed = probe.forward(x, torch.arange(5))
        slope, lead = passed.gradient(wanted=wanted, retain=True), passed.gradients(reference[:, None], wanted=wanted)
        assert not slope[~wanted].any()
        assert not lead[~wanted].any()
        torch.testing.assert_close(slope[wanted], whole.gradient(retain=True)[wanted])
        torch.testing.assert_close(lead[wanted], whole.gradients(reference[:, None])[wanted])
        assert probe.memory.n_backward.tolist() == [2, 0, 2, 2, 0]

    def test_where_no_slope_is_wanted_none_is_asked(self, shard):
        probe, x, _ = shard
        passed = probe.forward(x, torch.arange(5))
        assert not passed.gradient(wanted=torch.zeros(5, dtype=torch.bool)).any()
        assert probe.memory.n_backward.tolist() == [0] * 5
        assert probe.trust.zero_gradients is None

    def test_a_batch_that_was_not_asked_at_all_has_heights_too(self, shard):
        probe, x, _ = shard
        probe = Probe(probe.model, replace(probe.task, max_queries=1), Noise(range(5)))
        probe.forward(x, torch.arange(5))
        passed = probe.forward(x, torch.arange(5))
        for objective in (None, "margin"):
            assert passed.heights(objective, target=torch.zeros(5, dtype=torch.int64)).tolist() == [-math.inf] * 5
            assert not passed.gradient(objective, target=torch.zeros(5, dtype=torch.int64)).any()

    def test_repeated_rows_each_get_their_own(self, shard):
        probe, x, _ = shard
        rows = torch.tensor([2, 2, 0])
        found = probe.forward(x[:3], rows).gradient()
        leaf = x[:3].clone().requires_grad_(True)
        F.cross_entropy(probe.model.answer(leaf), probe.goal.reference[rows], reduction="sum").backward()
        torch.testing.assert_close(found, leaf.grad)

    def test_the_graph_is_kept_only_on_request(self, shard):
        probe, x, _ = shard
        passed = probe.forward(x, torch.arange(5))
        first = passed.gradient("ace", retain=True)
        assert torch.equal(passed.gradient(), first)
        with pytest.raises(RuntimeError, match="second time"):
            passed.gradient()

    def test_so_it_is_by_several_gradients(self, shard):
        probe, x, _ = shard
        classes = torch.tensor([[0, 1, 2]]).expand(5, -1)
        passed = probe.forward(x, torch.arange(5))
        first = passed.gradients(classes, retain=True)
        assert torch.equal(passed.gradients(classes), first)
        with pytest.raises(RuntimeError, match="second time"):
            passed.gradients(classes)

    def test_immutable_features_have_no_slope(self, shard):
        probe, x, reference = shard
        fixed = torch.zeros(1, 8, 8, dtype=torch.bool)
        fixed[0, :3] = True
        space = replace(Space.box(0, 1), immutable=fixed)
        x = torch.where(fixed, probe.x0, x)
        limited = Probe(probe.model, replace(probe.task, space=space), Noise(range(5)))
        found = limited.forward(x, torch.arange(5)).gradient()
        leaf = x.clone().requires_grad_(True)
        F.cross_entropy(probe.model.answer(leaf), reference, reduction="sum").backward()
        assert not found[:, fixed].any()
        torch.testing.assert_close(found[:, ~fixed], leaf.grad[:, ~fixed])


def with_goal(probe, goal):
    return Probe(probe.model, replace(probe.task, goal=goal), Noise(range(len(probe.x0))))


def plain(name, scores, reference, *, target=None, clean=None):
    """Objectives as the papers write them, without care for rounding."""
    own = scores.gather(1, reference[:, None])[:, 0]
    top = scores.sort(1, descending=True).values
    if target is not None:
        wanted = scores.gather(1, target[:, None])[:, 0]
        if name == "ace":
            return -F.cross_entropy(scores, target, reduction="none")
        return wanted - scores.scatter(1, target[:, None], -torch.inf).amax(1)
    best_other = scores.scatter(1, reference[:, None], -torch.inf).amax(1)
    return {
        "ace": lambda: F.cross_entropy(scores, reference, reduction="none"),
        "margin": lambda: best_other - own,
        "gini": lambda: 1 - scores.softmax(1).square().sum(1).sqrt(),
        "kl": lambda: (clean.softmax(1) * (clean.log_softmax(1) - scores.log_softmax(1))).sum(1),
        "dlr": lambda: (best_other - own) / (top[:, 0] - top[:, 2]),
    }[name]()


class TestTarget:
    """Three features, the largest of which names the class; samples are (2, 1, 0), of class 0, and must become 2."""

    LARGEST = toys.Linear(torch.eye(3), torch.zeros(3))
    X0 = torch.tensor([[2.0, 1.0, 0.0]])

    def probe(self, n=1, **settings):
        goal = Goal(torch.zeros(n, dtype=torch.int64), torch.full((n,), 2))
        return make_probe(n, model=self.LARGEST.model, x0=self.X0.repeat(n, 1), goal=goal, **settings)

    def test_only_the_target_is_a_success(self):
        probe = self.probe(3)
        probe.forward(torch.tensor([[0.0, 1.0, 0.0], [0.0, 1.0, 3.0], [2.0, 1.0, 0.0]]), torch.arange(3))
        assert probe.memory.success.tolist() == [False, True, False]
        assert probe.memory.n_forward_first.tolist() == [-1, 1, -1]
        assert probe.active().tolist() == [0, 2]

    def test_of_failures_the_one_nearest_to_the_target_is_kept(self):
        """For cross-entropy of the reference the first, of class 1, would be the better one."""
        probe = self.probe(objective="ace")
        for point in ([0.0, 5.0, 0.0], [2.0, 1.0, 1.5]):
            probe.forward(torch.tensor([point]), torch.tensor([0]))
        assert probe.memory.kept.tolist() == [[2.0, 1.0, 1.5]]

    def test_unasked_rows_answer_with_the_class_to_lose(self):
        probe = self.probe(keep="last", max_queries=1)
        hit = torch.tensor([[0.0, 0.0, 3.0]])
        assert probe.forward(hit, torch.tensor([0])).labels.tolist() == [2]
        passed = probe.forward(hit, torch.tensor([0]))
        assert passed.labels.tolist() == [0]
        assert passed.scores.argmax(1).tolist() == [0]


class TestLookedAtOnce:
    """Points fresh from `project` are not checked again; anything else is."""

    def test_a_projected_point_is_asked_as_it_is(self):
        probe = make_probe(2, eps=2.0, keep="last")
        rows = torch.arange(2)
        x = probe.project(torch.tensor([[1.0, 5.0], [-99.0, 0.0]]), rows)
        probe.forward(x, rows)
        assert probe.memory.failed == {}
        assert probe.memory.kept.tolist() == [[1.0, 2.0], [-1.0, 0.0]]

    @pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
    @pytest.mark.parametrize(
        ("height", "message"),
        [
            (11.0, "the attack left the space: feature 1 is 11, outside [-10, 10]"),
            (math.nan, "the attack left the space: a feature is not finite"),
            (3.0, "the attack left eps: 3 > 2"),
        ],
    )
    def test_what_is_written_into_it_afterwards_is_seen(self, norm, height, message):
        model, record = toys.recorded(LARGER.model)
        probe = make_probe(2, model=model, norm=norm, eps=2.0, keep="last")
        rows = torch.arange(2)
        x = probe.project(torch.tensor([[1.0, 1.5], [1.0, 0.5]]), rows)
        x[0, 1] = height
        probe.forward(x, rows)
        assert probe.memory.failed == {0: message}
        assert record.n_rows == 1

    def test_what_is_written_through_a_view_of_it_is_seen(self):
        probe = make_probe(1, eps=2.0, keep="last")
        rows = torch.arange(1)
        x = probe.project(torch.tensor([[1.0, 1.5]]), rows)
        x.view(-1)[1:].add_(9.0)
        probe.forward(x, rows)
        assert sorted(probe.memory.failed) == [0]

    def test_the_same_numbers_for_other_samples_are_looked_at(self):
        """A point within eps of sample 0 is far from sample 1, also when the rows are written over in place."""
        x0 = torch.tensor([[1.0, 0.0], [5.0, 0.0]])
        for in_place in (False, True):
            probe = make_probe(2, x0=x0, eps=1.0, keep="last")
            rows = torch.tensor([0])
            x = probe.project(torch.tensor([[1.5, 0.0]]), rows)
            other = rows.fill_(1) if in_place else torch.tensor([1])
            probe.forward(x, other)
            assert probe.memory.failed == {1: "the attack left eps: 3.5 > 1"}

    def test_points_made_from_a_projected_one_are_looked_at(self):
        probe = make_probe(1, eps=2.0, keep="last")
        rows = torch.arange(1)
        x = probe.project(torch.tensor([[1.0, 2.0]]), rows)
        probe.forward(x + 0.5, rows)
        assert sorted(probe.memory.failed) == [0]

    def test_an_earlier_projected_point_is_looked_at_again(self):
        probe = make_probe(1, eps=2.0, keep="last")
        rows = torch.arange(1)
        first = probe.project(torch.tensor([[1.0, 2.0]]), rows)
        first[0, 1] = 9.9
        probe.project(torch.tensor([[1.0, 1.0]]), rows)
        probe.forward(first, rows)
        assert sorted(probe.memory.failed) == [0]

    def test_a_step_along_a_slope_that_is_no_number_ends_the_sample(self):
        """Projection leaves NaN alone."""
        probe = make_probe(2, norm="l2", eps=2.0, keep="last")
        rows = torch.arange(2)
        x = probe.climb(probe.x0, rows, torch.tensor([[math.nan, 1.0], [0.0, 1.0]]), 0.5)
        assert x.isnan().any(1).tolist() == [True, False]
        probe.forward(x, rows)
        assert list(probe.memory.failed) == [0]
        assert "not finite" in probe.memory.failed[0]
        assert probe.memory.success.tolist() == [False, False]


class TestTrust:
    def test_before_anything_was_asked_nothing_is_said(self):
        assert make_probe(2).trust == Trust(None, None, None)

    def test_heights_and_slopes_of_all_passes_are_remembered(self):
        """Row 0 rises, row 1 falls back, row 2 succeeds."""
        probe = make_probe(3, keep="first")
        ask(probe, 0.1, 0.5, 0.1).gradient()
        ask(probe, 0.2, 0.4, 2.0).gradient()
        assert probe.trust == Trust(0.0, 0.5, None)

    def test_zero_slopes_are_counted_by_row_and_unasked_rows_are_not(self):
        flat = replace(LARGER.model, answer=lambda x: LARGER.model.answer(x.clamp_max(1.0)))
        probe = make_probe(3, model=flat, eps=None, keep="last", max_queries=2)
        x = torch.tensor([[2.0, 3.0], [0.5, 0.5], [1.5, 0.5]])
        probe.forward(x, torch.arange(3)).gradient()
        assert probe.trust.zero_gradients == pytest.approx(1 / 3)
        probe.forward(x[:1], torch.tensor([0])).gradient()
        assert probe.trust.zero_gradients == 0.5
        probe.forward(x[:1], torch.tensor([0])).gradient()  # beyond its queries: not asked
        assert probe.trust.zero_gradients == 0.5

    @pytest.mark.parametrize(("keep", "gaining"), [("smallest", 1.0), ("strongest", None), ("last", None)])
    def test_late_gains_of_successes_are_told_where_the_smallest_is_sought(self, keep, gaining):
        probe = make_probe(1, keep=keep)
        for height in (5.0, 4.5, 4.0, 3.5, 3.0, 2.5, 2.0, 1.5):
            ask(probe, height)
        assert probe.trust.still_gaining == gaining

    def test_samples_without_a_start_count_for_that_alone(self):
        probe = make_probe(2, keep="last")
        ask(probe, 0.1, 0.5)
        probe.no_start(torch.tensor([1]))
        ask(probe, 0.2, 0.5)
        assert probe.trust == Trust(not_increasing=0.0, no_start=0.5)

    def test_late_gains_of_a_sample_that_resists(self):
        probe = make_probe(2)
        for height in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
            ask(probe, height, 0.5)
        assert probe.trust == Trust(None, 0.5, 0.5)

    def test_slopes_that_are_not_wanted_are_not_counted(self):
        flat = replace(LARGER.model, answer=lambda x: LARGER.model.answer(x.clamp_max(1.0)))
        probe = make_probe(3, model=flat, eps=None, keep="last")
        x = torch.tensor([[2.0, 3.0], [0.5, 0.5], [2.0, 2.0]])
        probe.forward(x, torch.arange(3)).gradient(wanted=torch.tensor([True, True, False]))
        assert probe.trust.zero_gradients == 0.5

    def test_where_there_is_no_objective_nothing_can_be_said_of_its_rise(self):
        probe = make_probe(1, model=toys.label_only(LARGER.model), keep="smallest")
        for height in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
            ask(probe, height)
        assert probe.trust == Trust(None, None, None)


def test_project_goes_through_the_space_and_eps():
    probe = make_probe(2, eps=2.0)
    projected = probe.project(torch.tensor([[1.0, 5.0], [-99.0, 0.0]]), torch.tensor([1, 0]))
    assert projected.tolist() == [[1.0, 2.0], [-1.0, 0.0]]


class TestMoves:
    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    def test_project_is_that_of_the_space(self, norm):
        generator = torch.Generator().manual_seed(0)
        x0 = torch.rand(9, 2, generator=generator)
        probe = make_probe(9, x0=x0, norm=norm, eps=0.3, space=Space.box(0, 1))
        x = x0 + torch.randn(9, 2, generator=generator)
        rows = torch.tensor([8, 0, 3, 3, 5])
        expected = probe.space.project(x[:5], x0[rows], norm=norm, eps=0.3)
        torch.testing.assert_close(probe.project(x[:5], rows), expected, atol=1e-7, rtol=0)

    def test_rows_may_be_written_over_between_calls(self):
        """The same tensor with other numbers in it names other samples."""
        probe = make_probe(2, x0=torch.tensor([[1.0, 0.0], [5.0, 0.0]]), eps=1.0, keep="last")
        rows = torch.tensor([0])
        probe.forward(torch.tensor([[1.5, 0.0]]), rows)
        rows.fill_(1)
        assert probe.project(torch.tensor([[9.0, 0.0]]), rows).tolist() == [[6.0, 0.0]]
        probe.forward(torch.tensor([[5.5, 0.0]]), rows)
        assert probe.memory.failed == {}
        assert probe.memory.kept.tolist() == [[1.5, 0.0], [5.5, 0.0]]

    @pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
    @pytest.mark.parametrize("scale", [1.0, 4.0, (0.5, 2.0)])
    def test_a_climb_is_a_step_of_that_length_up_the_slope(self, norm, scale):
        space = Space(torch.tensor(-10.0), torch.tensor(10.0), torch.tensor(scale))
        probe = make_probe(2, norm=norm, eps=3.0, space=space)
        slope = torch.tensor([[0.3, -0.7], [-2.0, 0.1]])
        moved = probe.climb(probe.x0, torch.arange(2), slope, 0.5)
        assert space.distance(moved, probe.x0, norm).tolist() == pytest.approx([0.5, 0.5])
        assert (((moved - probe.x0) * slope).sum(1) > 0).all()

    def test_a_climb_ends_at_eps(self):
        probe = make_probe(1, eps=0.2)
        moved = probe.climb(probe.x0, torch.arange(1), torch.tensor([[1.0, -1.0]]), 5.0)
        torch.testing.assert_close(moved, torch.tensor([[1.2, -0.2]]))

    def test_a_climb_in_another_unit_follows_the_unit(self):
        """In l2 the steepest way is that of the slope per unit: a feature in larger units gains more by a step."""
        space = Space(torch.tensor(-10.0), torch.tensor(10.0), torch.tensor([1.0, 3.0]))
        probe = make_probe(1, norm="l2", eps=9.0, space=space)
        moved = probe.climb(probe.x0, torch.arange(1), torch.tensor([[1.0, 1.0]]), 1.0)
        torch.testing.assert_close(moved - probe.x0, torch.tensor([[1.0, 9.0]]) / 10**0.5)


def test_heights_are_those_of_the_objective_and_class_asked_for():
    """Whatever was asked of the same pass before."""
    toy = toys.linear(features=6, classes=5)
    x0 = toy.inputs(4)
    probe = Probe(
        toy.model, Task(x0, Goal(toy.model.ask(x0).argmax(1)), Space.box(-10, 10), "l2", 1.0), Noise(range(4))
    )
    answered = probe.forward(x0, torch.arange(4))
    targets = [torch.full((4,), number) for number in (0, 3)]
    for objective, target in (
        ("margin", targets[0]),
        ("margin", targets[1]),
        ("dlr", targets[1]),
        ("margin", targets[0]),
    ):
        expected = objectives.value(objective, toy.model.ask(x0), probe.goal.towards(target)).float().double()
        assert torch.equal(answered.heights(objective, target=target), expected)
