"""What counts as a success, by a truth table."""

import itertools

import pytest
import torch

from advrisk.engine import Goal

REFERENCE = torch.tensor([0, 1, 2])


class TestMet:
    @pytest.mark.parametrize(("reference", "prediction"), list(itertools.product(range(3), repeat=2)))
    def test_without_a_target_any_other_class_will_do(self, reference, prediction):
        met = Goal(torch.tensor([reference])).met(torch.tensor([prediction]))
        assert met.tolist() == [prediction != reference]

    @pytest.mark.parametrize(("reference", "target", "prediction"), list(itertools.product(range(3), repeat=3)))
    def test_with_a_target_only_that_class_will_do_and_never_the_own(self, reference, target, prediction):
        met = Goal(torch.tensor([reference]), torch.tensor([target])).met(torch.tensor([prediction]))
        assert met.tolist() == [prediction == target and target != reference]

    def test_every_row_has_its_own_goal(self):
        goal = Goal(REFERENCE, torch.tensor([1, 0, 2]))
        assert goal.met(torch.tensor([1, 2, 2])).tolist() == [True, False, False]

    def test_no_rows_no_verdicts(self):
        none = torch.zeros(0, dtype=torch.int64)
        assert Goal(none, none).met(none).tolist() == []


class TestRows:
    CLEAN = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])

    @pytest.mark.parametrize("rows", [[2, 0], [1, 1, 1], [], [0, 1, 2]])
    def test_some_of_them_take_target_and_clean_scores_along(self, rows):
        target = torch.tensor([2, 0, 1])
        some = Goal(REFERENCE, target, self.CLEAN).of(torch.tensor(rows, dtype=torch.int64))
        assert some.reference.tolist() == [REFERENCE.tolist()[row] for row in rows]
        assert some.target.tolist() == [target.tolist()[row] for row in rows]
        assert some.clean.tolist() == [self.CLEAN.tolist()[row] for row in rows]

    def test_what_is_not_there_stays_away(self):
        some = Goal(REFERENCE).of(torch.tensor([1]))
        assert (some.reference.tolist(), some.target, some.clean) == ([1], None, None)

    def test_other_targets_leave_the_rest_and_the_goal_itself_alone(self):
        goal = Goal(REFERENCE, torch.tensor([1, 2, 0]), self.CLEAN)
        other = goal.towards(torch.tensor([2, 0, 1]))
        assert other.target.tolist() == [2, 0, 1]
        assert torch.equal(other.reference, REFERENCE)
        assert torch.equal(other.clean, self.CLEAN)
        assert goal.target.tolist() == [1, 2, 0]
        assert Goal(REFERENCE).towards(torch.tensor([2, 0, 1])).met(torch.tensor([2, 2, 1])).tolist() == [
            True,
            False,
            True,
        ]
