"""Our attacks against those of Foolbox and ART on the models of the demo: same samples, eps and number of steps.

What a peer calls a success is not believed: its points are asked again, and must lie in the box and within eps. The
tests on two of the models always run, the rest is slow.
"""

import random
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

from advrisk.engine.norms import length

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import art.attacks.evasion as art
    import foolbox
    from art.estimators.classification import PyTorchClassifier

N = 100
STEPS = 20
# At these sizes some samples of each model fall to each attack, and some do not.
EPS = {
    "plain": {"linf": 0.06, "l2": 0.8, "l1": 6.0},
    "noise-augmented": {"linf": 0.1, "l2": 1.2, "l1": 9.0},
    "pgd-trained": {"linf": 0.2, "l2": 1.6, "l1": 8.0},
    "trades": {"linf": 0.2, "l2": 1.6, "l1": 8.0},
}
MODELS = [
    "plain",
    pytest.param("noise-augmented", marks=pytest.mark.slow),
    "pgd-trained",
    pytest.param("trades", marks=pytest.mark.slow),
]
ART_NORM = {"linf": np.inf, "l2": 2, "l1": 1}


@contextmanager
def seeded():
    """The peers draw from the global generators; what they do to them is undone."""
    states = torch.random.get_rng_state(), random.getstate(), np.random.get_state()
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.random.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])


def by_foolbox(net, attack, eps=None, *, target=None, **settings):
    """The points of an attack of Foolbox."""
    criterion = net.y if target is None else foolbox.criteria.TargetedMisclassification(target)
    with seeded():
        model = foolbox.PyTorchModel(net.module, bounds=(0, 1), device="cpu")
        _, points, _ = getattr(foolbox.attacks, attack)(**settings)(model, net.x, criterion, epsilons=eps)
    return points.detach()


def by_art(net, attack, **settings):
    """The points of an attack of ART."""
    with seeded():
        shape = tuple(net.x.shape[1:])
        model = PyTorchClassifier(net.module, nn.CrossEntropyLoss(), shape, 10, clip_values=(0, 1), device_type="cpu")
        made = getattr(art, attack)(model, verbose=False, batch_size=len(net.x), **settings)
        return torch.from_numpy(made.generate(net.x.numpy(), np.eye(10, dtype=np.float32)[net.y.numpy()]))


def broken(net, points, norm, eps=float("inf"), *, target=None):
    """Whether each point is what a success must be, by a pass of our own."""
    with torch.no_grad():
        said = net.module(points).argmax(1)
    hit = said != net.y if target is None else said == target
    inside = ((points >= 0) & (points <= 1)).flatten(1).all(1)
    return hit & inside & (distances(net, points, norm) <= eps * (1 + 1e-4) + 1e-5)


def distances(net, points, norm):
    return length((points - net.x).double(), norm)


def share(hits):
    return float(torch.as_tensor(hits).double().mean())
