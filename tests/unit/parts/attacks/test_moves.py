import torch

from advrisk.engine import Goal, Noise, Probe, Space, Task
from advrisk.parts.attacks.boundary import Nearest
from advrisk.parts.attacks.moves import chosen, towards_classes
from advrisk.testing import toys

TOY = toys.linear(features=6, classes=5)


def make_probe(n, *, keep="first"):
    x0 = TOY.inputs(n)
    reference = TOY.model.ask(x0).argmax(1)
    return Probe(TOY.model, Task(x0, Goal(reference), Space.box(-10, 10), "l2", None, keep=keep), Noise(range(n)))


class TestTowardsClasses:
    def test_the_likeliest_class_first_then_the_others_of_what_is_left(self):
        probe = make_probe(6)
        ranked = TOY.model.ask(probe.x0).argsort(1, descending=True)
        batches = towards_classes(probe, 4)
        rows, classes = next(batches)
        assert torch.equal(rows, torch.arange(6))
        assert torch.equal(classes, ranked[:, 1])
        probe._done[[0, 4]] = True
        pairs = []
        for rows, classes in batches:
            assert len(rows) <= 6  # no more than the shard
            pairs += zip(rows.tolist(), classes.tolist(), strict=True)
        assert pairs == [(row, int(wrong)) for row in (1, 2, 3, 5) for wrong in ranked[row, 2:5]]

    def test_a_sample_with_more_classes_than_the_shard_has_rows(self):
        assert [len(rows) for rows, _ in towards_classes(make_probe(2), 4)] == [2, 3, 3]

    def test_one_class_only(self):
        assert [rows.tolist() for rows, _ in towards_classes(make_probe(3), 1)] == [[0, 1, 2]]

    def test_nothing_to_do(self):
        probe = make_probe(3)
        probe._done[:] = True
        assert not list(towards_classes(probe, 4))


def test_chosen_takes_whole_rows_as_where_does():
    yes, no = torch.rand(5, 2, 3), torch.rand(5, 2, 3)
    for marks in ([True] * 5, [False] * 5, [True, False, False, True, False]):
        mask = torch.tensor(marks)
        assert torch.equal(chosen(mask, yes, no), torch.where(mask[:, None, None], yes, no))


def test_the_nearest_of_several_points_of_a_sample_is_remembered():
    probe = make_probe(2, keep="smallest")
    nearest = Nearest(probe)
    other = toys.linear(features=6, classes=5).inputs(40, seed=3)
    rows = torch.arange(2).repeat_interleave(20)
    answered = probe.forward(other, rows)
    hit = nearest.note(other, rows, answered)
    distance = (other - probe.x0[rows]).norm(dim=1)
    for row in range(2):
        candidates = ((rows == row) & hit).nonzero().squeeze(1)
        best = candidates[distance[candidates].argmin()]
        assert torch.equal(nearest.point[row], other[best])


def test_successes_measured_in_another_norm_keep_their_points():
    probe = make_probe(3, keep="smallest")
    nearest = Nearest(probe, "linf")
    x = -probe.x0
    hit = nearest.note(x, torch.arange(3), probe.forward(x, torch.arange(3)))
    other = nearest.measured_in("l1")
    assert hit.any()
    torch.testing.assert_close(other.distance[hit], (2 * probe.x0[hit]).abs().sum(1))
    assert other.distance[~hit].isinf().all()
    assert torch.equal(other.point, nearest.point)
