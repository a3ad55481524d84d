"""What the evolutionary attacks find on models whose optimum is known, what they ask, and what they leave alone."""

import sys
from dataclasses import replace

import pytest
import torch

from advrisk.core.errors import StudyError
from advrisk.engine import Goal, Model, Noise, Probe, Space, Task
from advrisk.engine.objectives import margin
from advrisk.parts.attacks import attacks
from advrisk.parts.attacks.moves import rectangles
from advrisk.parts.attacks.nsga import groups
from advrisk.testing import toys

NET = toys.conv_net(channels=3, size=10)
IMAGES = toys.images(6, channels=3, size=10)
NORM = {"pixel": "l0", "threshold": "linf"}
BOTH = pytest.mark.parametrize("name", NORM)


def attacked(name, model, x0, *, eps=None, space=None, keep="smallest", max_queries=None, seeds=None, **params):
    """The batches that the attack asks the model about, and the probe it used."""
    model, record = toys.recorded(replace(toys.score_only(model), min_rows=1))  # without padding rows
    with torch.no_grad():
        reference = model.ask(x0).argmax(1)
    record.passes.clear()
    space = space or Space.box(*model.bounds)
    task = Task(x0, Goal(reference), space, NORM[name], eps, "margin", keep=keep, max_queries=max_queries)
    probe = Probe(model, task, Noise(list(seeds or range(len(x0)))))
    part = attacks.get(name)
    part.function(probe, **part.bind(params))
    assert not probe.memory.failed
    return [x for x, _ in record.passes], probe


def planted(answer, *, shape=(1, 8, 8)):
    """A model with two classes, of which the second leads by what `answer` says."""
    return Model(
        "planted",
        lambda x: torch.stack([torch.zeros(len(x)), answer(x)], 1),
        "gradients",
        shape,
        2,
        (0.0, 1.0),
        digest="planted",
    )


class TestPlanted:
    """Class 1 if and only if the pixel at (5, 2) is above 0.9."""

    x0 = toys.images(8) * 0.8

    @pytest.mark.parametrize("slope", ["none", "some"])
    @pytest.mark.parametrize("eps", [None, 1, 5])
    def test_one_pixel_is_found(self, slope, eps):
        def lead(x):
            above = x[:, 0, 5, 2] - 0.9
            return above if slope == "some" else above.sign()

        _, probe = attacked("pixel", planted(lead), self.x0, eps=eps, generations=60)
        changed = probe.memory.kept != self.x0
        assert probe.memory.success.all()
        assert (changed.flatten(1).sum(1) == 1).all()
        assert changed[:, 0, 5, 2].all()

    def test_all_channels_of_a_pixel_belong_together(self):
        x0 = toys.images(8, channels=3) * 0.8
        model = planted(lambda x: x[:, :, 5, 2].amin(1) - 0.5, shape=(3, 8, 8))
        _, probe = attacked("pixel", model, x0, generations=100)
        changed = (probe.memory.kept != x0).any(1)
        assert probe.memory.success.all()
        assert (changed.flatten(1).sum(1) == 1).all()
        assert changed[:, 5, 2].all()

    @pytest.mark.parametrize("pixels", [1, 3])
    def test_pixels_are_counted_whatever_their_channels(self, pixels):
        """Four features of an RGB image are one pixel and a bit; four pixels are up to twelve features."""
        x0 = toys.images(8, channels=3) * 0.8
        model = planted(lambda x: (x - 0.9).clamp(min=0).sum((1, 2, 3)) - 0.1 * (3 * pixels - 2.5), shape=(3, 8, 8))
        points, probe = attacked("pixel", model, x0, pixels=pixels, generations=100)
        tried = torch.cat([x.view(8, -1, 3, 8, 8) for x in points], 1)
        changed = (tried != x0[:, None]).any(2).flatten(2).sum(2)
        assert changed.max() == pixels
        kept = probe.memory.kept != x0
        assert probe.memory.success.all()
        features = kept.flatten(1).sum(1)
        assert (features > 3 * pixels - 2.5).all()  # which fewer pixels do not have
        assert (kept.any(1).flatten(1).sum(1) <= pixels).all()

    def test_two_pixels_where_one_is_not_enough(self):
        model = planted(lambda x: torch.minimum(x[:, 0, 5, 2], x[:, 0, 1, 6]) - 0.9)
        _, probe = attacked("pixel", model, self.x0, generations=200)
        changed = probe.memory.kept != self.x0
        assert probe.memory.success.all()
        assert (changed.flatten(1).sum(1) == 2).all()

    def test_the_smallest_threshold_is_found(self):
        """The mean of the left half must rise, that of the right half fall: by 0.1 together, 0.05 each."""
        x0 = 0.4 + 0.2 * toys.images(8)
        base = x0[..., :4].mean() - x0[..., 4:].mean()
        x0 = x0 - torch.cat([torch.full((4,), float(base) / 2), torch.full((4,), -float(base) / 2)])

        def lead(x):
            return x[:, 0, :, :4].mean((1, 2)) - x[:, 0, :, 4:].mean((1, 2)) - 0.1

        least = -lead(x0) / 2
        assert (least > 0.02).all()
        _, probe = attacked("threshold", planted(lead), x0, generations=200)
        size = probe.space.distance(probe.memory.kept, x0, "linf")
        assert probe.memory.success.all()
        assert (size >= least * (1 - 1e-4)).all()
        assert (size <= least * 1.25).all()


@BOTH
class TestQueries:
    def test_a_population_for_each_generation_and_one_more(self, name):
        points, probe = attacked(name, NET, IMAGES, population=8, generations=5)
        assert (probe.memory.n_forward == 8 * 6).all()
        assert not probe.memory.n_backward.any()
        assert sum(len(x) for x in points) == 6 * 8 * 6
        assert [len(x) for x in points] == [6 * 8] * 6  # the populations of all samples in one batch

    def test_batches_are_bounded(self, name):
        many = toys.images(100, channels=3, size=10)
        points, _ = attacked(name, NET, many, population=16, generations=1)
        assert max(len(x) for x in points) == 512

    @pytest.mark.parametrize("limit", [1, 7, 8, 9, 30, 48, 60])
    def test_max_queries_is_exact(self, name, limit):
        points, probe = attacked(name, NET, IMAGES, population=8, generations=5, max_queries=limit)
        assert (probe.memory.n_forward == min(limit, 48)).all()
        assert sum(len(x) for x in points) == 6 * min(limit, 48)

    def test_the_last_point_is_the_smallest_success(self, name):
        settings = {"population": 8, "generations": 20}
        _, smallest = attacked(name, NET, IMAGES, **settings)
        points, last = attacked(name, NET, IMAGES, keep="last", **settings)
        assert (last.memory.n_forward == 8 * 21 + 1).all()
        assert last.memory.success.tolist() == smallest.memory.success.tolist()
        distance = [probe.space.distance(probe.memory.kept, IMAGES, NORM[name]) for probe in (smallest, last)]
        assert torch.equal(*distance)
        assert torch.equal(points[-1], last.memory.kept)

    def test_a_sample_leaves_with_the_generation_of_its_first_success(self, name):
        points, probe = attacked(name, NET, IMAGES, keep="first", population=4, generations=20)
        broken = probe.memory.success
        assert broken.any()
        assert torch.equal(probe.memory.n_forward[broken], probe.memory.n_forward_first[broken])
        assert (probe.memory.n_forward[broken] % 4 == 0).all()
        assert (probe.memory.n_forward[~broken] == 4 * 21).all()
        assert sum(len(x) for x in points) == probe.memory.n_forward.sum()


@BOTH
class TestRows:
    @pytest.mark.parametrize("keep", ["first", "smallest", "last"])
    def test_a_row_does_not_depend_on_its_batch_mates_nor_on_who_has_left(self, name, keep):
        settings = {"eps": {"pixel": 12, "threshold": 0.3}[name], "keep": keep, "population": 6, "generations": 12}
        _, whole = attacked(name, NET, IMAGES, **settings)
        assert 0 < whole.memory.success.sum() < 6
        for row in range(6):
            _, alone = attacked(name, NET, IMAGES[[row]], seeds=[row], **settings)
            assert torch.equal(alone.memory.kept[0], whole.memory.kept[row])
            assert alone.memory.n_forward[0] == whole.memory.n_forward[row]

    def test_groups_change_nothing(self, name, monkeypatch):
        _, whole = attacked(name, NET, IMAGES, population=6, generations=6)
        monkeypatch.setattr(sys.modules[groups.__module__], "_NUMBERS", 2 * 6 * 300)
        points, cut = attacked(name, NET, IMAGES, population=6, generations=6)
        assert [len(x) for x in points] == [12] * 21
        assert torch.equal(cut.memory.kept, whole.memory.kept)

    def test_features_that_cannot_move_do_not(self, name):
        still = torch.zeros(3, 10, 10, dtype=torch.bool)
        still[:, 2:5] = True
        still[0] = True
        space = Space(torch.tensor(0.0), torch.tensor(1.0), torch.tensor(1.0), immutable=still)
        _, probe = attacked(name, NET, IMAGES, space=space, population=6, generations=10)
        assert torch.equal(probe.memory.kept[:, still], IMAGES[:, still])
        assert (probe.memory.kept != IMAGES).flatten(1).any(1).all()

    def test_nothing_can_move_at_all(self, name):
        space = replace(Space.box(0, 1), immutable=torch.ones(3, 10, 10, dtype=torch.bool))
        _, probe = attacked(name, NET, IMAGES, space=space, population=4, generations=2)
        assert torch.equal(probe.memory.kept, IMAGES)

    def test_whole_numbers_and_categories_stay_what_they_are(self, name):
        toy = toys.linear(features=12, classes=3)
        column = torch.arange(12)
        space = Space(
            low=torch.full((12,), -5.0),
            high=torch.linspace(3, 9, 12).floor(),
            scale=torch.linspace(0.5, 2, 12),
            immutable=column < 2,
            integer=(column >= 2) & (column < 5),
            category=(column >= 5) & (column < 8),
        )
        x0 = torch.where(column < 8, toy.inputs(8).round(), toy.inputs(8)).clamp(space.low, space.high)
        points, probe = attacked(name, toy.model, x0, space=space, population=10, generations=30)
        assert probe.memory.success.any()
        for x in points:
            whole = x[:, 2:8]
            assert torch.equal(whole, whole.round())
        assert space.valid(probe.memory.kept, x0).all()
        assert torch.equal(probe.memory.kept[:, :2], x0[:, :2])


class TestSearch:
    def test_more_generations_find_smaller_changes(self):
        for name in NORM:
            few, many = (
                attacked(name, NET, IMAGES, population=10, generations=generations)[1] for generations in (3, 40)
            )
            distance = [probe.space.distance(probe.memory.kept, IMAGES, NORM[name]) for probe in (few, many)]
            assert (distance[1] <= distance[0]).all()
            assert (distance[1] < distance[0]).any()

    def test_no_candidate_has_more_pixels_than_eps(self):
        points, _ = attacked("pixel", NET, IMAGES, eps=7, population=8, generations=10)
        for x in points:
            clean = IMAGES.repeat_interleave(8, 0)
            assert ((x != clean).flatten(1).sum(1) <= 7).all()

    def test_the_first_population_spans_all_sizes(self):
        gray = toys.images(6)
        points, _ = attacked("pixel", toys.conv_net(), gray, population=4, generations=1)
        counts = (points[0] != gray.repeat_interleave(4, 0)).flatten(1).sum(1).view(6, 4)
        assert (counts == torch.tensor([1, 4, 16, 64])).all()

    def test_strongest_climbs_beyond_success(self):
        for name in NORM:
            settings = {"population": 10, "generations": 30}
            goal = Goal(NET.ask(IMAGES).argmax(1))
            kept = [
                attacked(name, NET, IMAGES, keep=keep, **settings)[1].memory.kept for keep in ("strongest", "first")
            ]
            strongest, first = (margin(NET.ask(x), goal) for x in kept)
            assert (strongest >= first).all()
            assert (strongest > 2 * first).sum() >= 4


def test_rectangles_have_all_sizes_and_lie_inside():
    drawn = torch.rand(4000, 4, generator=torch.Generator().manual_seed(0))
    inside = rectangles(drawn, 6, 9)[:, 0]
    tall, wide = inside.any(2).sum(1), inside.any(1).sum(1)
    assert torch.equal(inside.flatten(1).sum(1), tall * wide)
    assert set(tall.tolist()) == set(range(1, 7))
    assert set(wide.tolist()) == set(range(1, 10))
    assert inside.any(0).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"population": 1}, "population: must be at least 2, found 1"),
        ({"generations": 0}, "generations: must be at least 1, found 0"),
    ],
)
@BOTH
def test_impossible_settings_are_refused(name, params, message):
    with pytest.raises(StudyError, match=f"{name}.{message}"):
        attacks.get(name).bind(params)
