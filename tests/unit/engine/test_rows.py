import pytest
import torch

from advrisk.engine.rows import ascending, occurrence, one_of_each


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([], []), ([3], [0]), ([0, 2, 5], [0, 0, 0]), ([4, 4, 1, 4, 1], [0, 1, 0, 2, 1]), ([2, 1, 0], [0, 0, 0])],
)
def test_occurrence_counts_what_stands_before(rows, expected):
    assert occurrence(torch.tensor(rows, dtype=torch.int64)).tolist() == expected


def test_ascending_means_each_row_once():
    assert ascending(torch.tensor([0, 1, 7]))
    assert ascending(torch.tensor([], dtype=torch.int64))
    assert not ascending(torch.tensor([0, 1, 1]))
    assert not ascending(torch.tensor([1, 0]))


class TestOneOfEach:
    def test_distinct_rows_leave_no_choice(self):
        assert one_of_each(torch.tensor([0, 3, 4]), torch.tensor([1.0, 0.0, 2.0])).tolist() == [0, 1, 2]

    def test_the_latest_without_merits(self):
        assert one_of_each(torch.tensor([5, 2, 5, 2, 2])).tolist() == [4, 2]

    def test_the_largest_merit_and_of_equals_the_latest(self):
        rows, merit = torch.tensor([1, 1, 1, 0, 0]), torch.tensor([3.0, 7.0, 5.0, 2.0, 2.0])
        assert one_of_each(rows, merit).tolist() == [4, 1]

    def test_the_last_merit_rules(self):
        rows, merit = torch.tensor([1, 1, 1]), torch.tensor([3.0, 7.0, 5.0])
        assert one_of_each(rows, merit, torch.tensor([True, False, True])).tolist() == [2]
