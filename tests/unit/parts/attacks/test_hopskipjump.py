"""HopSkipJump's start, slopes, steps and bisections, seen from the points that it asks about."""

import math
from dataclasses import replace

import pytest
import torch

from advrisk.engine import Goal, Model, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks, hopskipjump, moves
from advrisk.testing import toys

TOY = toys.linear(features=12, classes=2)
X0 = TOY.inputs(6)
SPACE = Space.box(*TOY.bounds)
HOPSKIPJUMP = attacks.get("hopskipjump")


def probe_for(norm="l2", *, model=TOY.model, x0=X0, space=SPACE, keep="smallest", keys=range(6), **task):
    """A probe of a model that says its class and nothing else, and the record of what it is asked."""
    model, record = toys.recorded(toys.label_only(model))
    reference = model.ask(x0)
    record.passes.clear()
    goal = Goal(reference, task.pop("target", None))
    settings = {"eps": None, "within_eps": False} | task
    return Probe(model, Task(x0, goal, space, norm, keep=keep, **settings), Noise(list(keys))), record


def attacked(norm="l2", *, params=None, **task):
    probe, record = probe_for(norm, **task)
    HOPSKIPJUMP.function(probe, **HOPSKIPJUMP.bind(params or {}))
    return probe, record


def stubborn():
    """A model that gives every input the same class."""
    return Model("stubborn", lambda x: torch.zeros(len(x), 2), "gradients", (12,), 2, TOY.bounds, digest="stubborn")


class TestStart:
    def test_a_sample_without_one_is_given_up_after_so_many_tries(self):
        probe, _ = attacked(model=stubborn(), params={"starts": 7})
        assert probe.memory.no_start.all()
        assert (probe.memory.n_forward == 7).all()
        assert not probe.memory.success.any()
        assert not len(probe.active())

    def test_one_that_fails_does_not_touch_the_others(self):
        """Class 1 is never said: a sample of class 0 stays, one that should become class 0 is broken."""
        model = replace(
            TOY.model, answer=lambda x: TOY.model.answer(x) * torch.tensor([1.0, 0.0]) + torch.tensor([99.0, 0.0])
        )
        x0 = X0[:2]
        probe, _ = probe_for(model=model, x0=x0, keys=range(2))
        probe.goal = Goal(torch.tensor([0, 1]))
        HOPSKIPJUMP.function(probe, **HOPSKIPJUMP.bind({"steps": 1, "starts": 5}))
        assert probe.memory.no_start.tolist() == [True, False]
        assert probe.memory.success.tolist() == [False, True]
        assert probe.memory.n_forward[0] == 5

    def test_no_more_is_tried_than_needed(self):
        """Half of the box is of either class, so a start is found within a few tries."""
        probe, record = probe_for()
        rows, x = hopskipjump._start(probe, 100)
        assert rows.tolist() == list(range(6))
        assert not probe.memory.no_start.any()
        assert (toys.label_only(TOY.model).ask(x) != probe.goal.reference).all()
        assert record.n_rows == probe.memory.n_forward.sum()
        assert probe.memory.n_forward.min() == 1
        assert probe.memory.n_forward.max() < 12
        assert torch.equal(probe.memory.n_forward, probe.memory.n_forward_first)

    def test_out_of_queries_counts_as_none(self):
        probe, _ = attacked(model=stubborn(), max_queries=3)
        assert probe.memory.no_start.all()
        assert (probe.memory.n_forward == 3).all()

    def test_a_target_is_met_from_the_start(self):
        toy = toys.linear(features=12, classes=5)
        target = (toy.model.ask(X0).argmax(1) + 1) % 5
        probe, _ = probe_for(model=toy.model, target=target)
        rows, x = hopskipjump._start(probe, 100)
        assert torch.equal(toy.model.ask(x).argmax(1), target[rows])


class TestSlope:
    """At points on the boundary of a linear model the slope is known."""

    @staticmethod
    def on_boundary(space=SPACE):
        slope = (TOY.weight[1] - TOY.weight[0]).expand_as(X0)
        gap = -(X0 @ slope[0] + TOY.bias[1] - TOY.bias[0])
        return X0 + (gap / slope[0].square().sum())[:, None] * slope

    def estimated(self, evaluations, **task):
        probe, record = probe_for(**task)
        rows = torch.arange(6)
        away = torch.where(probe.goal.reference == 0, 1.0, -1.0)[:, None]
        truth = away * (TOY.weight[1] - TOY.weight[0]) * probe.space.scale
        found = hopskipjump._slopes(probe, self.on_boundary(), rows, torch.full((6,), 0.1), evaluations)
        return torch.cosine_similarity(found, truth), probe, record

    def test_points_the_right_way_the_more_points_the_better(self):
        """A direction from B signs misses by an angle of about √(π d / 2B)."""
        for evaluations in (200, 3200):
            cosine, probe, _ = self.estimated(evaluations)
            expected = 1 / math.sqrt(1 + math.pi * 12 / 2 / evaluations)
            assert cosine.mean().item() == pytest.approx(expected, abs=(1 - expected))
            assert cosine.mean() > 1 - 2 * (1 - expected)
            assert (probe.memory.n_forward == evaluations).all()

    def test_a_unit_counts_as_much_as_another(self):
        space = replace(SPACE, scale=torch.linspace(0.5, 2, 12))
        cosine, _, _ = self.estimated(3200, space=space)
        assert cosine.min() > 0.98

    def test_points_are_as_far_as_asked(self):
        _, _, record = self.estimated(64)
        ((points, _),) = record.passes
        away = (points - self.on_boundary().repeat_interleave(64, 0)).norm(dim=1)
        assert away.square().mean().sqrt().item() == pytest.approx(0.1, rel=0.03)
        assert away.std() < 0.03

    def test_directions_do_not_lead_beyond_a_bound_at_which_a_feature_stands(self):
        """The slope is made of the moves that were asked about, not of those that the bounds took away."""
        x = self.on_boundary()[:1]
        low = torch.where(torch.arange(12) < 4, x[0], -10.0)
        high = torch.where(torch.arange(12) >= 8, x[0], 10.0)
        probe, record = probe_for(x0=X0[:1], keys=[0], space=replace(SPACE, low=low, high=high))
        found = hopskipjump._slopes(probe, x, torch.tensor([0]), torch.tensor([0.1]), 300)
        points, labels = (torch.cat(parts) for parts in zip(*record.passes, strict=True))
        moves = ((points - x) * math.sqrt(2 * 12) / 0.1).round()
        met = (labels != probe.goal.reference).float()
        assert (moves[:, :4].amin(), moves[:, :4].amax()) == (0, 4)
        assert (moves[:, 8:].amin(), moves[:, 8:].amax()) == (-4, 0)
        assert torch.equal(found[0], 300 * met @ moves - met.sum() * moves.sum(0))

    @pytest.mark.parametrize("evaluations", [1, 31, 33, 100])
    def test_batches_do_not_change_a_bit(self, evaluations, monkeypatch):
        _, probe, _ = self.estimated(evaluations)
        assert (probe.memory.n_forward == evaluations).all()
        found = []
        for n in (1, 4, 100):
            monkeypatch.setattr(moves, "_FEATURES_AT_ONCE", n * 32 * 12)
            probe, _ = probe_for()
            rows = torch.arange(6)
            found.append(hopskipjump._slopes(probe, self.on_boundary(), rows, torch.full((6,), 0.1), evaluations))
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])

    @pytest.mark.parametrize("inside", [True, False])
    def test_where_all_say_the_same_the_mean_direction_is_taken(self, inside):
        """Far from the boundary; uphill if all succeed, else back."""
        probe, _ = probe_for()
        probe.goal = Goal(1 - probe.goal.reference if inside else probe.goal.reference)
        rows = torch.arange(6)
        ways = Noise(list(range(6))).bell(rows.repeat_interleave(20), (12,)).view(6, 20, 12).sum(1)
        found = hopskipjump._slopes(probe, X0, rows, torch.full((6,), 1e-6), 20)
        assert torch.equal(found, ways if inside else -ways)

    def test_immutable_features_have_none(self):
        space = replace(SPACE, immutable=torch.arange(12) < 3)
        probe, _ = probe_for(space=space)
        slope = hopskipjump._slopes(probe, X0, torch.arange(6), torch.full((6,), 0.1), 50)
        assert (slope[:, :3] == 0).all()
        assert (slope[:, 3:] != 0).any(0).all()


class TestBisection:
    @pytest.mark.parametrize("norm", ["l2", "linf"])
    @pytest.mark.parametrize("bisections", [1, 8, 20])
    def test_ends_at_a_success_beside_a_failure(self, norm, bisections):
        probe, _ = probe_for(norm)
        rows, far = hopskipjump._start(probe, 100)
        x = hopskipjump._to_boundary(probe, far, rows, bisections)
        ask = toys.label_only(TOY.model).ask
        assert (ask(x) != probe.goal.reference).all()
        reach = probe.space.distance(far, X0, norm)
        nearer = probe.space.distance(x, X0, norm) - reach * (2**-bisections + 1e-6)
        if norm == "linf":
            before = torch.clamp(far, *SPACE.linf_bounds(X0, nearer))
        else:
            before = X0 + (nearer / reach)[:, None] * (far - X0)
        assert (ask(before) == probe.goal.reference).all()

    def test_in_linf_the_box_shrinks_and_in_l2_the_line(self):
        for norm in ("linf", "l2"):
            probe, _ = probe_for(norm)
            rows, far = hopskipjump._start(probe, 100)
            move = hopskipjump._to_boundary(probe, far, rows, 10) - X0
            if norm == "linf":
                size = move.abs().amax(1, keepdim=True)
                assert ((move.abs() - size).abs() < 1e-5).sum() > 30  # most features stand at the box's walls
            else:
                assert torch.cosine_similarity(move, far - X0).min() > 1 - 1e-5


class TestStep:
    def test_is_halved_until_it_succeeds(self):
        """In a slab between 1 and 1.3, from its edge: a step of 1 is too long, so is ½, and ¼ is not."""

        def slab(x):
            inside = ((x[:, 0] >= 1) & (x[:, 0] <= 1.3)).float()
            return torch.stack([0.5 * torch.ones_like(inside), inside], 1)

        probe, _ = probe_for(model=replace(stubborn(), answer=slab), x0=torch.zeros(2, 12), keys=range(2))
        way = torch.eye(12)[[0, 0]]
        moved = hopskipjump._step(probe, way, torch.arange(2), way, torch.tensor([1.0, 0.25]))
        torch.testing.assert_close(moved, 1.25 * way)
        assert probe.memory.n_forward.tolist() == [3, 1]

    def test_a_sample_stays_where_no_step_succeeds(self):
        probe, _ = probe_for()
        x = X0.clone()
        moved = hopskipjump._step(probe, x, torch.arange(6), torch.zeros_like(x), torch.ones(6))
        assert torch.equal(moved, x)
        assert (probe.memory.n_forward == hopskipjump._HALVINGS).all()


class TestWhole:
    @pytest.mark.parametrize("norm", ["l2", "linf"])
    def test_comes_near_the_least_distance_from_labels_alone(self, norm):
        probe, _ = attacked(norm, params={"steps": 12})
        ratio = probe.space.distance(probe.memory.kept, X0, norm) / TOY.minimal_distances(X0, norm)
        assert ratio.min() > 1 - 1e-4
        assert ratio.max() < 1.05

    def test_evaluations_grow_with_the_root_of_the_step(self):
        counts = [hopskipjump._evaluations(step, 100, 250) for step in (1, 2, 4, 6, 7, 99)]
        assert counts == [100, 141, 200, 244, 250, 250]

    def test_asks_as_often_as_it_says(self):
        params = {"steps": 4, "initial_evaluations": 10, "max_evaluations": 15}
        probe, record = attacked(params=params)
        bisections = math.ceil(math.log2(12**1.5))
        needed = 10 + 14 + 15 + 15 + 5 * bisections
        steps_and_start = probe.memory.n_forward - needed
        assert (steps_and_start >= 1 + 4).all()
        assert (steps_and_start <= 12 + 4 * 8).all()
        assert record.n_rows == probe.memory.n_forward.sum()
        assert probe.memory.n_forward.max() <= HOPSKIPJUMP.traits.passes(HOPSKIPJUMP.bind(params), 2)[0]

    def test_a_larger_gamma_bisects_less(self):
        spent = [attacked(params={"steps": 1, "gamma": gamma})[0].memory.n_forward.sum() for gamma in (0.1, 1.0, 1e9)]
        assert spent[0] > spent[1] > spent[2]

    def test_with_keep_last_the_last_point_is_the_success_it_found(self):
        probe, record = attacked(keep="last", params={"steps": 2})
        assert probe.memory.success.all()
        assert torch.equal(record.passes[-1][0], probe.memory.kept)

    def test_nothing_to_attack(self):
        probe, _ = probe_for()
        probe.no_start(torch.arange(6))
        HOPSKIPJUMP.function(probe, **HOPSKIPJUMP.bind({}))
        assert not probe.memory.n_forward.any()
