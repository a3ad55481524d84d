"""CLEVER: the closed form of linear models, a slope whose largest value is known, and where distributions end."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from advrisk.core.errors import StudyError
from advrisk.engine import Model, Noise, Space
from advrisk.parts.measures import measures
from advrisk.parts.measures.extremes import FARTHEST, end_points, profile_likelihood
from advrisk.testing import toys

CLEVER = measures.get("clever")
WIDE = Space.box(-10.0, 10.0)


def clever(x, label, model, *, space=WIDE, seed=0, **params):
    return CLEVER.function(x, label, model, space, Noise([seed]), **CLEVER.bind({"batches": 10, "batch": 4} | params))


class TestLinear:
    @pytest.mark.parametrize("norm", ["l2", "linf", "l1"])
    def test_is_the_distance_to_the_nearest_class(self, norm):
        toy = toys.linear(features=12, classes=4)
        x = toy.inputs(6)
        labels = toy.model.ask(x).argmax(1).tolist()
        found = [clever(x[[row]], labels[row], toy.model, norm=norm, radius=100.0) for row in range(6)]
        assert found == pytest.approx(toy.minimal_distances(x, norm).tolist(), rel=1e-5)

    def test_no_more_than_the_radius(self):
        toy = toys.linear()
        x = toy.inputs(20)
        labels = toy.model.ask(x).argmax(1).tolist()
        exact = toy.minimal_distances(x, "l2").tolist()
        radius = float(np.median(exact))
        found = [clever(x[[row]], labels[row], toy.model, radius=radius) for row in range(20)]
        assert found == pytest.approx([min(each, radius) for each in exact], rel=1e-5)

    def test_zero_where_the_model_is_wrong(self):
        toy = toys.linear(classes=3)
        x = toy.inputs(1)
        wrong = (int(toy.model.ask(x).argmax()) + 1) % 3
        assert clever(x, wrong, toy.model) == 0.0

    def test_in_units_of_the_scale_and_without_what_cannot_move(self):
        """A model that weighs two features, of which one is fixed and the other has the scale 10."""
        model = toys.Linear(torch.tensor([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]), torch.zeros(2)).model
        x = torch.tensor([[1.0, 1.0, 0.0]])
        scaled = Space(torch.tensor(-50.0), torch.tensor(50.0), torch.tensor([1.0, 10.0, 1.0]))
        assert clever(x, 0, model, space=scaled, radius=1.0) == pytest.approx(7 / (9 + 1600) ** 0.5)
        for mask in ("immutable", "category"):
            fixed = replace(scaled, **{mask: torch.tensor([True, False, False])})
            assert clever(x, 0, model, space=fixed, radius=1.0) == pytest.approx(7 / 40)

    def test_a_model_that_never_changes_is_as_far_as_the_radius(self):
        model = Model(
            "flat", lambda x: x.flatten(1)[:, :2] * 0 + torch.tensor([1.0, 0.0]), "gradients", (3,), 2, (-1, 1), "f"
        )
        assert clever(torch.zeros(1, 3), 0, model, radius=0.25) == 0.25

    def test_the_default_radius_depends_on_the_norm(self):
        model = Model(
            "flat", lambda x: x.flatten(1)[:, :2] * 0 + torch.tensor([1.0, 0.0]), "gradients", (3,), 2, (-1, 1), "f"
        )
        found = {norm: clever(torch.zeros(1, 3), 0, model, norm=norm) for norm in ("l2", "linf", "l1")}
        assert found == {"l2": 5.0, "linf": 0.3, "l1": 40.0}


def bowl():
    """The lead of class 0 is 1.3 − ‖x‖²: its slope, 2‖x‖, is largest at the point of the ball farthest from zero."""
    return Model(
        "bowl",
        lambda x: torch.stack([1.3 - x.flatten(1).square().sum(1), torch.zeros(len(x))], 1),
        "gradients",
        (2,),
        2,
        (-10.0, 10.0),
        "bowl",
    )


class TestCurved:
    def test_the_steepest_slope_is_found_between_the_points(self):
        x = torch.tensor([[0.6, 0.8]])
        stated = 0.3 / (2 * (1 + 0.5))
        found = [clever(x, 0, bowl(), radius=0.5, batches=50, batch=64, seed=seed) for seed in range(8)]
        assert np.mean(found) == pytest.approx(stated, rel=0.01)
        assert max(found) - min(found) < 0.05 * stated

    def test_points_keep_to_the_bounds(self):
        x, seen = torch.tensor([[0.9, 0.0]]), []

        def answer(points):
            seen.append(points.detach())
            return bowl().answer(points)

        clever(x, 0, replace(bowl(), answer=answer), space=Space.box(0.0, 1.0), radius=0.5)
        points = torch.cat(seen[1:])
        assert points.min() == 0
        assert points.max() == 1
        assert len(points) == 40

    def test_the_same_seed_gives_the_same_number_and_another_another(self):
        x = torch.tensor([[0.6, 0.8]])
        one, same, other = (clever(x, 0, bowl(), radius=0.5, seed=seed) for seed in (1, 1, 2))
        assert one == same != other

    def test_passes_are_counted_as_they_happen(self):
        n_asked = 0
        toy = toys.linear(classes=5)

        def answer(points):
            nonlocal n_asked
            n_asked += len(points)
            return toy.model.answer(points)

        x = toy.inputs(1)
        clever(x, int(toy.model.ask(x).argmax()), replace(toy.model, answer=answer), batches=20, batch=30)
        forward, backward = CLEVER.traits.passes({"batches": 20, "batch": 30}, 5)
        assert (forward, backward) == (n_asked, 4 * 600) == (601, 2400)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"norm": "l0"}, "found 'l0'"),
        ({"radius": 0}, "more than 0"),
        ({"batches": 2}, "at least 10"),
        ({"batch": 0}, "at least 1"),
    ],
)
def test_wrong_settings_are_refused(given, complaint):
    with pytest.raises(StudyError, match=complaint):
        CLEVER.bind(given)


class TestEndPoints:
    @pytest.mark.parametrize("shape", [1.5, 3.0, 5.0])
    def test_are_those_of_scipys_fit(self, shape):
        values = stats.weibull_max.rvs(shape, loc=7, scale=2, size=(60, 12), random_state=np.random.default_rng(1))
        found = end_points(values)
        for column, location in zip(values.T, found, strict=True):
            c, theirs, scale = stats.weibull_max.fit(column, shape, loc=column.max() + 0.5, scale=2)
            likelihood = profile_likelihood((location - column)[:, None])[0]
            if c > 1.05 and theirs < column.max() + 0.9 * FARTHEST * np.ptp(column):
                assert location == pytest.approx(theirs, rel=2e-3)
            assert likelihood > stats.weibull_max.logpdf(column, c, theirs, scale).mean() - 2e-3 or c < 1

    @pytest.mark.parametrize("shape", [2.0, 4.0])
    def test_are_near_the_truth_when_there_is_much_to_see(self, shape):
        values = stats.weibull_max.rvs(shape, loc=3, scale=1, size=(400, 40), random_state=np.random.default_rng(2))
        found = end_points(values)
        assert np.median(found) == pytest.approx(3, abs=0.03)
        assert np.all(found >= values.max(0))

    def test_of_the_largest_of_many_uniform_numbers(self):
        """A batch of 64 uniform numbers has no value above 1; its largest follows the law with shape 1 in the limit."""
        values = np.random.default_rng(3).random((50, 64, 30)).max(1)
        assert end_points(values) == pytest.approx(np.ones(30), abs=0.01)

    def test_no_end_in_sight(self):
        """Of Pareto's law there is none: the likelihood rises for ever, and the search ends ten spreads away."""
        values = np.random.default_rng(4).pareto(3, size=(50, 64, 20)).max(1)
        found = (end_points(values) - values.max(0)) / np.ptp(values, axis=0)
        assert found == pytest.approx(np.full(20, FARTHEST))

    def test_values_that_are_all_the_same(self):
        values = np.stack([np.full(10, 2.0), np.zeros(10), np.full(10, 5.0) * (1 + 1e-9 * np.arange(10))], 1)
        assert end_points(values) == pytest.approx([2.0, 0.0, 5.0], rel=1e-8)

    def test_many_ties_at_the_largest(self):
        values = np.array([[1.0]] * 45 + [[0.9], [0.95], [0.8], [0.7], [0.99]])
        assert end_points(values)[0] == pytest.approx(1.0, abs=1e-3)

    def test_another_unit_is_another_unit(self):
        values = np.random.default_rng(5).random((50, 3))
        assert end_points(values * 1e-20) == pytest.approx(end_points(values) * 1e-20, rel=1e-6)
