"""Restarts of `minimum-norm`: each begins after what fewer restarts would do, and takes nothing away."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from advrisk.engine import Goal, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks
from advrisk.parts.attacks.boundary import Nearest
from advrisk.testing import toys

MODEL, X0 = toys.conv_net(), toys.images(24)
PART = attacks.get("minimum-norm")


def make_probe(norm, *, rows=None, keep="smallest", model=MODEL):
    rows = range(len(X0)) if rows is None else rows
    x0 = X0[list(rows)]
    goal = Goal(model.ask(x0).argmax(1).detach())
    return Probe(
        model, Task(x0, goal, Space.box(0, 1), norm, None, "margin", keep, within_eps=False), Noise(list(rows))
    )


def run(norm, restarts, **options):
    probe = make_probe(norm, **options)
    PART.function(probe, **PART.bind({"steps": 6, "restarts": restarts}))
    return probe


def distances(probe):
    distance = probe.space.distance(probe.memory.kept, probe.x0, probe.norm)
    return torch.where(probe.memory.success, distance, torch.inf)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_more_restarts_are_never_farther_and_sometimes_nearer(norm):
    found = [distances(run(norm, restarts)) for restarts in range(5)]
    for fewer, more in pairwise(found):
        assert (more <= fewer).all()
    assert (found[-1] < found[0]).any()


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_the_last_point_is_the_nearest_of_all_restarts(norm):
    last, first = distances(run(norm, 4, keep="last")), distances(run(norm, 0, keep="last"))
    assert (last <= first).all()


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_restarts_do_not_depend_on_batch_mates(norm):
    together, alone = run(norm, 2), run(norm, 2, rows=range(5, 9))
    assert torch.equal(together.memory.kept[5:9], alone.memory.kept)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_a_sample_that_nothing_breaks_takes_no_more_passes_than_the_traits_say(norm):
    stubborn = replace(MODEL, answer=lambda x: MODEL.ask(x) * 0 + torch.tensor([1.0, 0, 0, 0]))
    probe = make_probe(norm, model=stubborn)
    settings = PART.bind({"steps": 4, "restarts": 3})
    PART.function(probe, **settings)
    n_forward, n_backward = PART.traits.passes(settings, 4)
    assert not probe.memory.success.any()
    assert int(probe.memory.n_forward.max()) <= n_forward
    assert int(probe.memory.n_backward.max()) <= n_backward


def test_the_nearer_of_two_searches_is_taken():
    probe = make_probe("l2", rows=range(3))
    one, two = Nearest(probe), Nearest(probe)
    one.distance, two.distance = torch.tensor([1.0, 2.0, torch.inf]), torch.tensor([2.0, 1.0, torch.inf])
    one.point, two.point = torch.zeros_like(probe.x0), torch.ones_like(probe.x0)
    one.take(two)
    assert one.distance.tolist() == [1.0, 1.0, torch.inf]
    assert one.point.flatten(1).amax(1).tolist() == [0.0, 1.0, 0.0]
