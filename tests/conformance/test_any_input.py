"""Whatever the inputs, sizes, seeds and objectives: every attack stays where it may, and samples stand alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from advrisk.engine import Goal, Noise, Probe, Space, Task, within_rounding
from advrisk.engine.objectives import NEUTRAL, objectives
from advrisk.parts.attacks import attacks
from advrisk.testing import toys
from advrisk.testing.conformance import checkable

EVERY = [(part.name, norm) for part in checkable(attacks) for norm in part.traits.norms or (None,)]
QUICK = {
    "adaptive": {"steps": 2, "rounds": 2},
    "apgd": {"steps": 4},
    "apgd-t": {"steps": 3, "targets": 3},
    "autoattack": {"steps": 2, "targets": 3, "queries": 4},
    "bim": {"steps": 4},
    "carlini-wagner": {"searches": 2, "steps": 4},
    "deepfool": {"steps": 5},
    "fab": {"steps": 3, "restarts": 2},
    "fab-t": {"steps": 2, "targets": 3, "restarts": 2},
    "feature-search": {"queries": 12, "tries": 3},
    "fmn": {"steps": 5},
    "hopskipjump": {"steps": 2, "initial_evaluations": 10, "starts": 5},
    "minimum-norm": {"steps": 4, "restarts": 2},
    "nes": {"steps": 2, "samples": 6},
    "pgd": {"steps": 4},
    "pgd-adam": {"steps": 4},
    "pixel": {"population": 4, "generations": 3},
    "spatial": {"rotations": 3, "translations": 3},
    "spatial-gradient": {"steps": 3, "restarts": 1},
    "square": {"queries": 8},
    "threshold": {"population": 4, "generations": 3},
}
LARGEST = {"linf": 0.5, "l2": 4.0, "l1": 30.0, "l0": 40.0}
SPACE = Space.box(0, 1)
CONV = toys.conv_net()


@st.composite
def images(draw):
    """A few images with many pixels at the bounds, some all alike."""
    n = draw(st.integers(1, 5))
    x = toys.images(n, seed=draw(st.integers(0, 10_000)))
    contrast = draw(st.sampled_from([0.0, 1.0, 3.0, 100.0]))
    return ((x - 0.5) * contrast + draw(st.floats(0, 1, width=32))).clamp(0, 1)


def fitting(traits, *, targeted):
    """The objectives that an attack can climb."""
    if traits.objective is None:
        return [NEUTRAL]
    return [part.name for part in objectives if part.traits.targeted or not (targeted or traits.aims)]


@st.composite
def tasks(draw, name, norm):
    traits = attacks.get(name).traits
    x0 = draw(images())
    targeted = draw(st.booleans())
    with torch.no_grad():
        clean = CONV.ask(x0)
    target = (clean.argmax(1) + 1) % CONV.n_classes if targeted else None
    sizes = st.floats(0, LARGEST[norm]) if norm else st.none()
    keeps = ["first", "smallest", "strongest", "last"] if norm else ["first", "strongest", "last"]
    return Task(
        x0=x0,
        goal=Goal(clean.argmax(1), target, clean),
        space=SPACE,
        norm=norm,
        eps=draw(sizes if traits.needs_eps else st.none() | sizes),
        objective=draw(st.sampled_from(fitting(traits, targeted=targeted))),
        keep=draw(st.sampled_from(keeps)),
        within_eps=traits.stays_within_eps(norm),
        suspicion=toys.suspicion() if traits.watches else None,
    )


def memory_of(name, task, seed, rows):
    x0, goal = task.x0[rows], task.goal.of(torch.tensor(rows))
    part = Task(**{**vars(task), "x0": x0, "goal": goal})
    probe = Probe(CONV, part, Noise([seed + row for row in rows]))
    attacks.get(name).function(probe, **attacks.get(name).bind(QUICK.get(name, {})))
    return probe.memory


def assert_equal(whole, other, rows):
    for field in ("kept", "success", "n_forward", "n_backward", "n_forward_first", "n_backward_first"):
        assert torch.equal(getattr(whole, field)[rows], getattr(other, field)), field


@pytest.mark.parametrize(("name", "norm"), EVERY)
@settings(max_examples=5)
@given(data=st.data(), seed=st.integers(0, 2**40))
def test_every_attack_keeps_its_promises(name, norm, data, seed):
    task = data.draw(tasks(name, norm))
    every = list(range(len(task.x0)))
    memory = memory_of(name, task, seed, every)
    assert memory.failed == {}
    assert bool(SPACE.valid(memory.kept, task.x0).all())
    if task.eps is not None:
        reach = within_rounding(task.eps, SPACE, norm, tuple(task.x0.shape[1:]))
        assert bool((SPACE.distance(memory.kept.double(), task.x0.double(), norm) <= reach).all())
    with torch.no_grad():
        met = task.goal.met(CONV.ask(memory.kept).argmax(1))
    assert bool(met[memory.success].all())
    assert_equal(memory, memory_of(name, task, seed, every), every)
    for rows in ([every[-1]], every[::-1]):
        assert_equal(memory, memory_of(name, task, seed, rows), rows)
