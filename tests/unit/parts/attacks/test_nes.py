"""NES: its slopes beside exact ones, its steps, and what it asks."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from advrisk.core.errors import StudyError
from advrisk.engine import Goal, Model, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks, moves, nes
from advrisk.testing import toys

NES = attacks.get("nes")
TOY = toys.linear(features=12, classes=3)
D = 12
WIDE = Space.box(-100, 100)


def smooth():
    """A net without kinks: its slopes change slowly."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(D, 16), nn.Tanh(), nn.Linear(16, 3)).requires_grad_(False)
    return Model("smooth", module, "gradients", (D,), 3, (-100.0, 100.0), digest="smooth", min_rows=16)


def probe_for(model, x0, *, norm="l2", eps=1.0, space=WIDE, keep="last", seed=0, **task):
    with torch.no_grad():
        goal = Goal(model.ask(x0).argmax(1))
    task = Task(x0, goal, space, norm, eps, objective="margin", keep=keep, within_eps=False, **task)
    return Probe(toys.score_only(model), task, Noise([1000 * seed + row for row in range(len(x0))]))


def exact(model, x0):
    """The slope of the margin by autograd."""
    task = probe_for(model, x0).task
    probe = Probe(model, task, Noise(range(len(x0))))
    return probe.forward(x0, torch.arange(len(x0))).gradient("margin")


def estimated(model, x0, pairs, *, sigma=0.001, **task):
    return nes.slopes(probe_for(model, x0, **task), x0, torch.arange(len(x0)), pairs, sigma)


class TestSlope:
    def test_of_a_smooth_model_is_that_of_autograd(self):
        model, x0 = smooth(), TOY.inputs(8)
        cosine = torch.cosine_similarity(estimated(model, x0, 2000, sigma=0.01), exact(model, x0))
        assert cosine.min() > 0.99
        assert estimated(model, x0, 2000, sigma=0.01).norm(dim=1) == pytest.approx(
            exact(model, x0).norm(dim=1), rel=0.15
        )

    def test_the_error_falls_with_the_root_of_the_pairs(self):
        """E‖ĝ − g‖² = (d + 1) ‖g‖² / pairs for normal directions."""
        model, x0 = smooth(), TOY.inputs(40)
        truth = exact(model, x0)
        for pairs in (25, 100, 400, 1600):
            missed = (estimated(model, x0, pairs, sigma=0.01) - truth).norm(dim=1) / truth.norm(dim=1)
            expected = math.sqrt((D + 1) / pairs)
            assert missed.square().mean().sqrt().item() == pytest.approx(expected, rel=0.15)

    def test_of_a_linear_model_is_right_in_the_mean(self):
        """Each of 400 samples at the same place has draws of its own: their mean is within its own noise."""
        x0 = TOY.inputs(1).expand(400, -1).contiguous()
        truth = exact(TOY.model, x0)[0]
        found = estimated(TOY.model, x0, 5)
        off = (found.mean(0) - truth) / (found.std(0) / math.sqrt(400))
        assert off.abs().max() < 4
        assert off.square().mean() < 2.5

    def test_is_counted_in_units_of_the_scale(self):
        space = replace(WIDE, scale=torch.linspace(0.5, 2, D))
        x0 = TOY.inputs(8)
        cosine = torch.cosine_similarity(
            estimated(TOY.model, x0, 2000, space=space), exact(TOY.model, x0) * space.scale
        )
        assert cosine.min() > 0.99

    def test_at_a_bound_points_that_way(self):
        """One of each pair is put back to the bound: half of the slope is seen there."""
        x0 = TOY.inputs(8)
        space = replace(WIDE, low=x0[0].clone())
        probe = probe_for(TOY.model, x0[:1], space=space)
        found = nes.slopes(probe, x0[:1], torch.tensor([0]), 4000, 0.001)
        torch.testing.assert_close(found, exact(TOY.model, x0[:1]) / 2, atol=0.25, rtol=0)

    def test_immutable_features_have_none(self):
        space = replace(WIDE, immutable=torch.arange(D) < 3)
        assert (estimated(TOY.model, TOY.inputs(4), 10, space=space)[:, :3] == 0).all()

    def test_batches_do_not_change_a_bit(self, monkeypatch):
        model, x0 = smooth(), TOY.inputs(8)
        whole = estimated(model, x0, 37)
        monkeypatch.setattr(moves, "_FEATURES_AT_ONCE", 32 * D)
        assert torch.equal(estimated(model, x0, 37), whole)


class TestSteps:
    def moves(self, monkeypatch, slope, **params):
        monkeypatch.setattr(nes, "slopes", lambda *_: slope)
        x0 = TOY.inputs(len(slope))
        probe = probe_for(TOY.model, x0, norm="linf", eps=0.5)
        NES.function(probe, **NES.bind({"steps": 1, "samples": 2} | params))
        return probe.memory.kept - x0

    def test_are_as_long_as_the_slope_is_steep(self, monkeypatch):
        slope = torch.linspace(-3, 3, 4 * D).view(4, D)
        torch.testing.assert_close(self.moves(monkeypatch, slope, step_size=0.1), 0.1 * slope)

    def test_end_at_eps(self, monkeypatch):
        slope = torch.linspace(-9, 9, 4 * D).view(4, D)
        torch.testing.assert_close(self.moves(monkeypatch, slope, step_size=0.1), (0.1 * slope).clamp(-0.5, 0.5))

    def test_signed_ones_are_not(self, monkeypatch):
        slope = torch.linspace(-3, 3, 4 * D).view(4, D)
        moved = self.moves(monkeypatch, slope, step_size=0.1, signed=True)
        torch.testing.assert_close(moved, 0.1 * slope.sign())

    @pytest.mark.parametrize("norm", ["linf", "l2"])
    @pytest.mark.parametrize("signed", [False, True])
    def test_break_a_linear_model_just_beyond_its_least_distance(self, norm, signed):
        toy = toys.linear(features=D, classes=2)
        x0 = toy.inputs(3)
        least = toy.minimal_distances(x0, norm)
        for factor, hit in ((1.1, True), (0.99, False)):
            for row in range(3):
                probe = probe_for(toy.model, x0[[row]], norm=norm, eps=factor * float(least[row]), keep="first")
                NES.function(probe, **NES.bind({"steps": 40, "samples": 20, "step_size": 0.1, "signed": signed}))
                assert probe.memory.success.tolist() == [hit]


class TestQueries:
    @pytest.mark.parametrize(("steps", "samples"), [(1, 2), (3, 10), (2, 50)])
    def test_are_those_that_were_asked_for(self, steps, samples):
        x0 = TOY.inputs(5)
        probe = probe_for(TOY.model, x0, eps=1e-3)
        settings = NES.bind({"steps": steps, "samples": samples})
        NES.function(probe, **settings)
        assert (probe.memory.n_forward == steps * (samples + 1)).all()
        assert not probe.memory.n_backward.any()
        assert NES.traits.passes(settings, 3) == (steps * (samples + 1), 0)

    def test_samples_come_in_pairs(self):
        with pytest.raises(StudyError, match="a multiple of 2"):
            NES.bind({"samples": 7})
