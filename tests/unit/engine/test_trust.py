"""Signs of distrust, read from traces made by hand: each list below is one sample's points in the order of asking."""

import math

import pytest
import torch

from advrisk.engine.trust import CLOSER, EARLY, FEWEST, GAIN, Trace, Trust


def trust(*samples, hits=None, smallest=False, shuffle=False, no_start=None):
    """The shares for samples given by their merits and by the places of their successes."""
    trace = Trace()
    for place in range(max(map(len, samples))):
        rows = [row for row, merits in enumerate(samples) if place < len(merits)]
        rows = rows[::-1] if shuffle else rows
        trace.note(
            torch.tensor(rows),
            torch.tensor([float(samples[row][place]) for row in rows]),
            torch.tensor([place in (hits or {}).get(row, ()) for row in rows]),
        )
    return trace.trust(smallest=smallest, no_start=None if no_start is None else torch.tensor(no_start))


def test_the_limits_are_those_the_documentation_speaks_of():
    assert (EARLY, GAIN, CLOSER, FEWEST) == (0.75, 0.05, 0.05, 8)


def test_of_nothing_nothing_is_said():
    for smallest in (False, True):
        assert Trace().trust(smallest=smallest) == Trust(None, None, None)


def test_of_answers_that_are_no_numbers_nothing_is_said():
    """Several points of a sample in one batch, as populations have: none of them counts."""
    assert trust([-math.inf] * 20) == Trust(None, None, None)
    assert trust([1.0] * 10 + [-math.inf] * 10, [1.0] * 20).not_increasing == 1


class TestZeroGradients:
    def test_counts_rows_whose_slope_is_zero_in_every_feature(self):
        trace = Trace()
        slope = torch.zeros(4, 1, 3, 3)
        slope[1, 0, 2, 2] = 1e-38
        slope[3] = -1
        trace.note_slope(slope)
        assert trace.trust(smallest=False) == Trust(0.5, None, None)
        trace.note_slope(torch.ones(4, 1, 3, 3))
        assert trace.trust(smallest=False).zero_gradients == 2 / 8

    @pytest.mark.parametrize("n_features", [1, 2, 15, 16, 17, 64, 784, 3072])
    def test_one_feature_anywhere_is_a_slope(self, n_features):
        trace = Trace()
        for start in range(0, n_features, 512):
            trace.note_slope(torch.eye(n_features)[start : start + 512])
        assert (trace.n_gradients, trace.n_zero) == (n_features, 0)
        trace.note_slope(torch.zeros(n_features, n_features)[:9])
        assert trace.n_zero == min(9, n_features)

    def test_a_slope_that_is_no_number_is_not_zero(self):
        trace = Trace()
        trace.note_slope(torch.tensor([[math.nan, 0.0], [0.0, 0.0]]))
        assert trace.trust(smallest=False).zero_gradients == 0.5

    def test_an_empty_batch_says_nothing(self):
        trace = Trace()
        trace.note_slope(torch.zeros(0, 5))
        assert trace.trust(smallest=False).zero_gradients is None


class TestNotIncreasing:
    @pytest.mark.parametrize(
        ("merits", "stuck"),
        [
            ([1.0, 1.0], True),
            ([1.0, 0.5, 0.9], True),
            ([1.0, 0.5, 1.5, 0.2], False),
            ([1.0, math.nextafter(1, 2)], True),  # the same in float32
            ([1.0, 1.000001], False),
            ([-5.0, -4.0], False),
        ],
    )
    def test_a_sample_whose_objective_never_rose_above_its_first_value(self, merits, stuck):
        assert trust(merits).not_increasing == float(stuck)

    def test_is_a_share_of_the_samples_that_resisted(self):
        """Row 1 fell, so that its standing still does not matter; row 3 was asked once: it was given up at once."""
        found = trust([1, 0, 0], [1, 1, 1], [1, 2, 0], [7], [3, 3], hits={1: (2,)})
        assert found.not_increasing == 3 / 4

    @pytest.mark.parametrize("samples", [([1.0],), ([1.0], [2.0])])
    def test_samples_that_were_given_up_after_one_look_never_rose(self, samples):
        assert trust(*samples).not_increasing == 1

    def test_nor_do_samples_that_fell(self):
        assert trust([1, 0, 0], [1, 1], hits={0: (0,), 1: (1,)}).not_increasing is None

    def test_points_belong_to_their_samples_whatever_their_order_in_the_batch(self):
        samples = [1, 0, 0], [1, 2, 0], [0, 0, 0, 1], [4, 3]
        assert trust(*samples, shuffle=True) == trust(*samples)
        assert trust(*samples).not_increasing == 0.5

    def test_several_points_of_a_sample_in_one_batch_count_in_their_order(self):
        trace = Trace()
        trace.note(torch.tensor([1, 0, 1, 1]), torch.tensor([2.0, 5.0, 1.0, 3.0]), torch.zeros(4, dtype=torch.bool))
        trace.note(torch.tensor([0]), torch.tensor([4.0]), torch.tensor([False]))
        assert trace.trust(smallest=False).not_increasing == 0.5


class TestStillGaining:
    @pytest.mark.parametrize(
        ("merits", "gaining"),
        [
            ([0, 1, 2, 3, 4, 5, 6, 7], True),  # of a climb of 7 the last 2 points bring 2
            ([0, 5, 6, 7, 7, 7, 7, 7], False),
            ([0, 0, 0, 0, 0, 10, 10.4, 10.4], False),  # 0.4 of 10.4 is less than 5 %
            ([0, 0, 0, 0, 0, 10, 10, 10.6], True),  # 0.6 of 10.6 is more
            ([3, 3, 3, 3, 3, 3, 3, 3], False),
            ([8, 7, 6, 5, 4, 3, 2, 1], False),
            ([0, 9, 1, 1, 1, 1, 1, 8.9], False),  # late, but below the best of before
            ([-9, -9, -9, -9, -9, -9, -1, -1], True),
        ],
    )
    def test_a_sample_that_resisted_and_whose_objective_rose_in_the_last_quarter(self, merits, gaining):
        for smallest in (False, True):
            assert trust(merits, smallest=smallest).still_gaining == float(gaining)

    def test_of_twelve_points_the_last_three_are_late(self):
        before = [0.0] * 8 + [10.0]
        assert trust([*before, 10, 10, 11]).still_gaining == 1
        assert trust([0.0] * 7 + [10.0, 11.0, 11, 11, 11]).still_gaining == 0

    def test_too_few_points_tell_nothing(self):
        assert trust(list(range(FEWEST - 1))).still_gaining is None
        assert trust(list(range(FEWEST))).still_gaining == 1

    def test_is_a_share_of_the_samples_asked_often_enough(self):
        flat, rising = [1.0] * 8, [float(place) for place in range(8)]
        assert trust(flat, rising, rising[:7], flat).still_gaining == 1 / 3

    def test_a_sample_that_fell_needs_no_more_steps(self):
        rising = [float(place) for place in range(8)]
        assert trust(rising, hits={0: (7,)}).still_gaining is None
        assert trust(rising, [1.0] * 8, hits={0: (7,)}).still_gaining == 0


class TestSmallest:
    """The merit of a success is minus its distance."""

    @pytest.mark.parametrize(
        ("distances", "hits", "nearer"),
        [
            ([9, 8, 7, 6, 5, 4, 3, 2], range(8), True),
            ([9, 2, 2, 2, 2, 2, 2, 2], range(8), False),
            ([9, 2, 2, 2, 2, 2, 2, 1.92], range(8), False),  # by four per cent
            ([9, 2, 2, 2, 2, 2, 2, 1.88], range(8), True),  # by six per cent
            ([9, 2, 2, 2, 2, 2, 1, 1], (0, 1, 2, 3, 4, 5), False),  # the late ones failed
            ([9, 1, 2, 2, 2, 2, 1.5, 1], (0, 2, 3, 6), True),  # the near early one failed
        ],
    )
    def test_a_success_that_is_nearer_in_the_last_quarter(self, distances, hits, nearer):
        merits = [-distance for distance in distances]
        assert trust(merits, hits={0: tuple(hits)}, smallest=True).still_gaining == float(nearer)
        assert trust(merits, hits={0: tuple(hits)}, smallest=False).still_gaining is None

    def test_a_success_found_late_or_after_few_points_tells_nothing(self):
        assert trust([-1.0] * 8, hits={0: (6, 7)}, smallest=True).still_gaining is None
        assert trust([-3.0, -2.0, -1.0], hits={0: (0, 1, 2)}, smallest=True).still_gaining is None

    def test_samples_that_resisted_and_those_that_fell_are_counted_together(self):
        found = trust(
            [float(place) for place in range(8)],  # resisted, rising
            [-9.0, *[-2.0] * 7],  # fell, as near as it gets
            [-9.0, *[-2.0] * 6, -1.0],  # fell, still nearing
            [1.0] * 8,  # resisted, flat
            hits={1: range(8), 2: range(8)},
            smallest=True,
        )
        assert found.still_gaining == 0.5
        assert found.not_increasing == 0.5


class TestNoStart:
    flat, rising = [1.0] * 8, [float(place) for place in range(8)]

    def test_is_a_share_of_all_samples(self):
        assert trust(self.flat, self.flat, no_start=[False, True, False, False]).no_start == 0.25
        assert Trace().trust(smallest=True, no_start=torch.tensor([True])) == Trust(no_start=1.0)

    def test_is_not_told_where_every_sample_had_one(self):
        assert trust(self.flat, no_start=[False]).no_start is None
        assert trust(self.flat).no_start is None

    @pytest.mark.parametrize("smallest", [True, False])
    def test_such_samples_are_no_evidence_of_anything_else(self, smallest):
        found = trust(self.flat, self.rising, self.flat, smallest=smallest, no_start=[True, False, True])
        assert found == Trust(None, not_increasing=0.0, still_gaining=1.0, no_start=2 / 3)
        assert trust(self.rising, no_start=[True], smallest=smallest) == Trust(no_start=1.0)


def test_the_trace_of_a_batch_is_kept_though_its_tensors_are_written_over():
    """An attack may use the same tensor of rows again for other samples."""
    trace, rows = Trace(), torch.tensor([0])
    for sample, merits in enumerate(([1.0, 2.0], [3.0, 1.0])):
        rows.fill_(sample)
        for merit in merits:
            trace.note(rows, torch.tensor([merit]), torch.tensor([False]))
    assert trace.trust(smallest=False).not_increasing == 0.5
