"""Square's sizes, start and steps, seen from the points that it asks about; and that it asks no more than needed."""

import math
from dataclasses import replace

import pytest
import torch

from advrisk.engine import Goal, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks
from advrisk.parts.attacks.square import hill_and_hollow, share_at, sides
from advrisk.testing import toys

NET = toys.conv_net(channels=3, size=10)
IMAGES = toys.images(6, channels=3, size=10)
EPS = {"linf": 0.003, "l2": 0.02, "l1": 0.1}  # too small for a success


def attacked(norm, *, x0=IMAGES, model=NET, eps=None, space=None, keep="first", seeds=range(6), min_rows=1, **params):
    """The batches that Square asks the model about, without padding rows if nothing is said, and the probe it used."""
    model, record = toys.recorded(replace(toys.score_only(model), min_rows=min_rows))
    with torch.no_grad():
        reference = model.ask(x0).argmax(1)
    record.passes.clear()
    eps = EPS[norm] if eps is None else eps
    task = Task(x0, Goal(reference), space or Space.box(0, 1), norm, eps, objective="margin", keep=keep)
    probe = Probe(model, task, Noise(list(seeds)))
    part = attacks.get("square")
    part.function(probe, **part.bind(params))
    return [x for x, _ in record.passes], probe


class TestSizes:
    @pytest.mark.parametrize(
        ("place", "halved"),
        [
            (0, 0),
            (10, 0),
            (11, 1),
            (50, 1),
            (51, 2),
            (201, 3),
            (501, 4),
            (1001, 5),
            (2001, 6),
            (4001, 7),
            (8000, 8),
            (8001, 9),
        ],
    )
    def test_the_papers_marks(self, place, halved):
        assert share_at(place, 0.8, 10_000) == 0.8 / 2**halved

    def test_fewer_queries_pass_the_marks_sooner(self):
        assert share_at(5, 0.8, 5000) == 0.8
        assert share_at(6, 0.8, 5000) == 0.4
        assert [share_at(place, 0.8, 1000) for place in range(1000)] == [
            share_at(10 * place, 0.8, 10_000) for place in range(1000)
        ]

    @pytest.mark.parametrize("share", [0.8, 0.4, 0.1, 0.05, 0.8 / 512])
    def test_a_square_covers_the_share(self, share):
        exact = math.sqrt(share * 28 * 28)
        assert sides("linf", (1, 28, 28), share) == (max(1, round(exact)),) * 2
        tall, wide = sides("l2", (3, 28, 28), share)
        assert tall == wide
        assert tall % 2 == 1
        assert tall == 3 if exact < 3 else exact - 0.5 <= tall <= exact + 1.5

    def test_no_square_is_larger_than_the_image(self):
        assert sides("linf", (1, 4, 9), 1.0) == (4, 4)
        assert sides("l2", (1, 2, 9), 0.01) == (2, 2)

    def test_what_is_no_image_is_searched_by_runs(self):
        assert sides("linf", (1, 1, 20), 0.5) == (1, 10)
        assert sides("l1", (1, 1, 20), 0.5) == (1, 11)


class TestHillAndHollow:
    @pytest.mark.parametrize("norm", ["l2", "l1"])
    @pytest.mark.parametrize("side", [(3, 3), (5, 5), (1, 7), (1, 1)])
    def test_two_halves_of_opposite_signs_and_length_one(self, norm, side):
        both = hill_and_hollow(*side, norm)
        assert both.shape == side
        assert both.norm(p={"l2": 2, "l1": 1}[norm]).item() == pytest.approx(1)
        along = both[:, 0] if side[0] > 1 else both[0]
        half = len(along) // 2
        assert (along[:half] > 0).all()
        assert (along[half:] < 0).all()

    def test_by_hand(self):
        """A run of four: halves of two features, the second of which is the middle: 1 + 1/4, and 1/4 beside it."""
        half = torch.tensor([0.25, 1.25])
        half = half / half.norm() / math.sqrt(2)
        torch.testing.assert_close(hill_and_hollow(1, 4, "l2")[0], torch.cat([half, -half]))


class TestSteps:
    def test_linf_starts_with_stripes_and_then_changes_one_square(self):
        x0 = torch.full_like(IMAGES, 0.5)
        points, _ = attacked("linf", x0=x0, queries=40)
        stripes = points[0] - x0
        assert torch.allclose(stripes.abs(), torch.tensor(EPS["linf"]))
        assert (stripes == stripes[:, :, :1]).all()
        assert (stripes.amax((1, 2, 3)) > stripes.amin((1, 2, 3))).all()
        for x in points[1:]:
            assert torch.allclose((x - 0.5).abs(), torch.tensor(EPS["linf"]), atol=1e-6)

    @pytest.mark.parametrize("norm", ["l2", "l1"])
    def test_l2_and_l1_stay_at_eps(self, norm):
        x0 = torch.full_like(IMAGES, 0.5)
        points, probe = attacked(norm, x0=x0, queries=30)
        for x in points:
            distance = probe.space.distance(x, x0[: len(x)], norm)
            torch.testing.assert_close(distance, torch.full_like(distance, EPS[norm]), rtol=1e-3, atol=0)

    @pytest.mark.parametrize("norm", EPS)
    def test_the_height_of_the_best_point_never_falls(self, norm):
        few, many = (attacked(norm, queries=queries)[1].memory.merit for queries in (1, 60))
        assert (many >= few).all()
        assert (many > few).any()


class TestQueries:
    @pytest.mark.parametrize("norm", EPS)
    def test_no_more_than_were_allowed(self, norm):
        _, probe = attacked(norm, queries=25)
        assert probe.memory.n_forward.max() <= 25
        assert not probe.memory.n_backward.any()

    def test_a_step_that_changes_nothing_is_not_asked(self):
        """With one channel, half of the steps move a small square to where it is already."""
        gray = {"x0": toys.images(6), "model": toys.conv_net()}
        points, probe = attacked("linf", queries=200, **gray)
        assert probe.memory.n_forward.max() < 180
        assert sum(len(x) for x in points) == probe.memory.n_forward.sum()

    def test_nothing_is_asked_twice_where_nothing_may_move(self):
        for norm in EPS:
            _, probe = attacked(norm, eps=0.0, queries=20)
            assert (probe.memory.n_forward == 1).all()

    def test_with_keep_last_the_last_query_is_the_best_point(self):
        points, probe = attacked("linf", queries=40, keep="last")
        _, other = attacked("linf", queries=40, keep="strongest")
        torch.testing.assert_close(probe.memory.kept, other.memory.kept)
        assert torch.equal(points[-1], probe.memory.kept)


class TestRows:
    @pytest.mark.parametrize("norm", EPS)
    def test_a_row_does_not_depend_on_its_batch_mates_nor_on_who_has_left(self, norm):
        eps = {"linf": 0.05, "l2": 0.6, "l1": 4.0}[norm]  # some fall, some do not
        settings = {"eps": eps, "queries": 120, "min_rows": NET.min_rows}  # else torch rounds small batches otherwise
        _, whole = attacked(norm, **settings)
        assert 0 < whole.memory.success.sum() < 6
        for row in range(6):
            _, alone = attacked(norm, x0=IMAGES[[row]], seeds=[row], **settings)
            assert torch.equal(alone.memory.kept[0], whole.memory.kept[row])
            assert alone.memory.n_forward[0] == whole.memory.n_forward[row]

    @pytest.mark.parametrize("norm", EPS)
    def test_features_that_cannot_move_do_not(self, norm):
        still = torch.zeros(3, 10, 10, dtype=torch.bool)
        still[:, 2:5] = True
        space = Space(torch.tensor(0.0), torch.tensor(1.0), torch.tensor(1.0), immutable=still)
        _, probe = attacked(norm, space=space, queries=30)
        assert not probe.memory.failed
        assert torch.equal(probe.memory.kept[:, still], IMAGES[:, still])
        assert (probe.memory.kept != IMAGES).any()
