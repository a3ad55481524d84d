"""Our attacks against those of Foolbox and ART on the models of the demo: same samples, eps and number of steps.

What a peer calls a success is not believed: its points are asked again, and must lie in the box and within eps. The
tests on one of the models always run, those on the others are slow.
"""

import random
import warnings
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from statistics import mean
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import nn

from advrisk.engine.norms import length
from advrisk.parts import REGISTRIES
from advrisk.study import TargetSpec

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import art.attacks.evasion as art
    import foolbox
    from art.estimators.classification import PyTorchClassifier

N = 100
STEPS = 20
QUERIES = 200
SEEDS = range(4)
MANY_SEEDS = range(16)
# At these sizes some samples of each model fall to each attack, and some do not.
EPS = {
    "plain": {"linf": 0.06, "l2": 0.8, "l1": 6.0},
    "noise-augmented": {"linf": 0.1, "l2": 1.2, "l1": 9.0},
    "pgd-trained": {"linf": 0.2, "l2": 1.6, "l1": 8.0},
    "trades": {"linf": 0.2, "l2": 1.6, "l1": 8.0},
}
MODELS = [name if name == "pgd-trained" else pytest.param(name, marks=pytest.mark.slow) for name in EPS]
ART_NORM = {"linf": np.inf, "l2": 2, "l1": 1}


@contextmanager
def seeded(seed):
    """The peers draw from the global generators; what they do to them is undone."""
    states = torch.random.get_rng_state(), random.getstate(), np.random.get_state()
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.random.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])


def by_foolbox(net, attack, eps=None, *, target=None, seed=0, **settings):
    """The points of an attack of Foolbox."""
    criterion = net.y if target is None else foolbox.criteria.TargetedMisclassification(target)
    with seeded(seed):
        model = foolbox.PyTorchModel(net.module, bounds=(0, 1), device="cpu")
        _, points, _ = getattr(foolbox.attacks, attack)(**settings)(model, net.x, criterion, epsilons=eps)
    return points.detach()


def by_art(net, attack, *, seed=0, **settings):
    """The points of an attack of ART."""
    with seeded(seed):
        shape = tuple(net.x.shape[1:])
        model = PyTorchClassifier(net.module, nn.CrossEntropyLoss(), shape, 10, clip_values=(0, 1), device_type="cpu")
        quiet = {} if attack == "FastGradientMethod" else {"verbose": False}
        made = getattr(art, attack)(model, batch_size=len(net.x), **quiet, **settings)
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


def success_of(net, verdict_of, attack, norm, eps, *, seeds, **settings):
    """Our mean share of successes, after a look at each verdict: every sample has one, and no claim was false."""
    shares = []
    for seed in seeds:
        verdict, _ = verdict_of(net.model, net.x, net.y, attack, norm=norm, eps=eps, seed=seed, **settings)
        assert verdict.n_unconfirmed == 0
        assert set(verdict.outcome) <= {"success", "resisted"}, verdict.message
        shares.append(share([outcome == "success" for outcome in verdict.outcome]))
    return mean(shares)


def iterated(eps):
    """As many steps, of the same length, for all."""
    return {"steps": STEPS, "step_size": 2.5 * eps / STEPS}


def foolbox_steps(eps, *, start):
    return {"steps": STEPS, "abs_stepsize": 2.5 * eps / STEPS, "random_start": start}


def art_steps(norm, eps, *, starts):
    settings = {"norm": ART_NORM[norm], "eps": eps, "eps_step": 2.5 * eps / STEPS, "max_iter": STEPS}
    return settings | {"num_random_init": starts}


def auto_pgd(net, norm, eps, loss, seed):
    settings = {"norm": ART_NORM[norm], "eps": eps, "eps_step": 2 * eps, "max_iter": STEPS, "nb_random_init": 1}
    return by_art(net, "AutoProjectedGradientDescent", seed=seed, loss_type=loss, **settings)


def fgsm(net, norm, eps, seed):
    return [
        by_foolbox(net, f"{norm.capitalize()}FastGradientAttack", eps),
        by_art(net, "FastGradientMethod", norm=ART_NORM[norm], eps=eps),
    ]


def bim(net, norm, eps, seed):
    return [
        by_foolbox(net, f"{norm.capitalize()}BasicIterativeAttack", eps, **foolbox_steps(eps, start=False)),
        by_art(net, "ProjectedGradientDescent", **art_steps(norm, eps, starts=0)),
    ]


def pgd(net, norm, eps, seed):
    return [
        by_foolbox(net, f"{norm.capitalize()}PGD", eps, seed=seed, **foolbox_steps(eps, start=True)),
        by_art(net, "ProjectedGradientDescent", seed=seed, **art_steps(norm, eps, starts=1)),
    ]


def pgd_adam(net, norm, eps, seed):
    return [by_foolbox(net, f"{norm.capitalize()}AdamPGD", eps, seed=seed, **foolbox_steps(eps, start=True))]


def apgd_ce(net, norm, eps, seed):
    return [auto_pgd(net, norm, eps, "cross_entropy", seed)]


def apgd_dlr(net, norm, eps, seed):
    return [auto_pgd(net, norm, eps, "difference_logits_ratio", seed)]


PEERS = {
    ("fgsm", "ace"): fgsm,
    ("bim", "ace"): bim,
    ("pgd", "ace"): pgd,
    ("pgd-adam", "ace"): pgd_adam,
    ("apgd", "ace"): apgd_ce,
    ("apgd", "dlr"): apgd_dlr,
}


def at_a_size():
    """Every attack, norm and model; what takes long is slow."""
    for attack, objective in PEERS:
        for norm in REGISTRIES.attacks.get(attack).traits.norms:
            for name in EPS:
                quick = name == "pgd-trained" and (norm == "linf" or attack in ("fgsm", "bim"))
                yield pytest.param(attack, objective, norm, name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("attack", "objective", "norm", "name"), list(at_a_size()))
def test_success_at_a_size_is_not_lower(attack, objective, norm, name, demo_net, verdict_of):
    """In the mean over seeds: one random start more or less moves a share by several points."""
    net, eps = demo_net(name, N), EPS[name][norm]
    params = {"fgsm": {}, "apgd": {"steps": STEPS}}.get(attack, iterated(eps))
    seeds = SEEDS if REGISTRIES.attacks.get(attack).traits.random else [0]
    ours = success_of(net, verdict_of, attack, norm, eps, seeds=seeds, params=params, objective=objective)
    runs = [PEERS[attack, objective](net, norm, eps, seed) for seed in seeds]
    theirs = [mean(share(broken(net, points, norm, eps)) for points in of_peer) for of_peer in zip(*runs, strict=True)]
    assert 0.02 < max(theirs) < 0.98  # else the comparison would say nothing
    assert ours >= max(theirs) - 0.02, (ours, theirs)


# ART's divides the new square by the length that it should be given, so that nearly all of eps gathers there. With 200
# queries that breaks more on these two models; with 1000, the same division in ours breaks fewer on all four.
WEAKER = pytest.mark.xfail(strict=True, reason="breaks 9 and 10 % of the samples, ART's 15 and 21 %")
IN_L2 = {"plain": [], "noise-augmented": [], "pgd-trained": [WEAKER], "trades": [WEAKER]}


@pytest.mark.parametrize(
    ("norm", "name"),
    [
        *[pytest.param("linf", name, marks=[] if name == "pgd-trained" else [pytest.mark.slow]) for name in EPS],
        *[pytest.param("l2", name, marks=[pytest.mark.slow, *known]) for name, known in IN_L2.items()],
    ],
)
def test_square_breaks_as_many_as_arts(norm, name, demo_net, verdict_of):
    """With as many queries, of which ours leaves out those that change nothing."""
    net, eps = demo_net(name, N), EPS[name][norm]
    ours = success_of(net, verdict_of, "square", norm, eps, seeds=SEEDS, params={"queries": QUERIES})
    settings = {"norm": ART_NORM[norm], "eps": eps, "max_iter": QUERIES}
    runs = [by_art(net, "SquareAttack", seed=seed, **settings) for seed in SEEDS]
    theirs = mean(share(broken(net, points, norm, eps)) for points in runs)
    assert 0.02 < theirs < 0.98
    assert ours >= theirs - 0.02, (ours, theirs)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_success_towards_a_target_is_not_lower(norm, name, demo_net, verdict_of):
    """Many seeds: with four, the difference of two means of 100 samples still wanders by two points."""
    net, eps = demo_net(name, N), {"linf": 1.25, "l2": 2}[norm] * EPS[name][norm]
    target = (net.y + 1) % 10
    settings = {"params": iterated(eps), "success": TargetSpec(target="next")}
    ours = success_of(net, verdict_of, "pgd", norm, eps, seeds=MANY_SEEDS, **settings)
    steps = foolbox_steps(eps, start=True)
    runs = [by_foolbox(net, f"{norm.capitalize()}PGD", eps, target=target, seed=seed, **steps) for seed in MANY_SEEDS]
    theirs = mean(share(broken(net, points, norm, eps, target=target)) for points in runs)
    assert 0.02 < theirs < 0.98
    assert ours >= theirs - 0.02, (ours, theirs)


def least_distances(net, verdict_of, attack, norm, *, max_queries=None, seed=0, **params):
    """The distance of our nearest success; infinite where there was none."""
    settings = {"norm": norm, "eps": None, "keep": "smallest", "max_queries": max_queries, "seed": seed}
    verdict, _ = verdict_of(net.model, net.x, net.y, attack, params=params, **settings)
    assert verdict.n_unconfirmed == 0
    assert set(verdict.outcome) <= {"success", "resisted"}, verdict.message
    hit = torch.tensor([outcome == "success" for outcome in verdict.outcome])
    return torch.where(hit, verdict.distances[norm], torch.inf)


def assert_not_larger(ours, net, points, norm):
    """On 95 % of the samples; a point of theirs that is no success is infinitely far."""
    theirs = torch.where(broken(net, points, norm), distances(net, points, norm), torch.inf)
    assert theirs.isfinite().any()  # else the comparison would say nothing
    found = share(ours <= 1.001 * theirs)
    assert found >= 0.95, (found, ours.median().item(), theirs.median().item())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_deepfool_is_as_near_as_foolboxs(norm, name, demo_net, verdict_of, request):
    if (norm, name) == ("l2", "trades"):
        reason = "on 94 % of the samples; the median is smaller, 2.477 against 2.496"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    net = demo_net(name, N)
    points = by_foolbox(net, f"{norm.capitalize()}DeepFoolAttack", steps=50, candidates=10, overshoot=0.02)
    assert_not_larger(least_distances(net, verdict_of, "deepfool", norm, steps=50), net, points, norm)


@pytest.mark.parametrize("name", MODELS)
def test_deepfool_is_as_near_as_arts(name, demo_net, verdict_of):
    """With the overshoot that is our default, and Foolbox's; theirs is 10⁻⁶, which leaves samples unbroken."""
    net = demo_net(name, 50)
    points = by_art(net, "DeepFool", max_iter=50, nb_grads=10, epsilon=0.02)
    assert_not_larger(least_distances(net, verdict_of, "deepfool", "l2", steps=50), net, points, "l2")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("step_size", [pytest.param(0.01, marks=pytest.mark.slow), 0.05])
def test_carlini_wagner_is_as_near_as_foolboxs(step_size, name, demo_net, verdict_of):
    """With the step size that is their default, and with ours."""
    net = demo_net(name, 50)
    settings = {"binary_search_steps": 6, "steps": 50, "initial_const": 0.01, "stepsize": step_size}
    points = by_foolbox(net, "L2CarliniWagnerAttack", **settings)
    ours = least_distances(net, verdict_of, "carlini-wagner", "l2", searches=6, steps=50, initial_const=0.01)
    assert_not_larger(ours, net, points, "l2")


@pytest.mark.parametrize("name", MODELS)
def test_carlini_wagner_is_as_near_as_arts(name, demo_net, verdict_of):
    net = demo_net(name, 20)
    points = by_art(net, "CarliniL2Method", binary_search_steps=3, max_iter=20, initial_const=1.0)
    ours = least_distances(net, verdict_of, "carlini-wagner", "l2", searches=3, steps=20, initial_const=1.0)
    assert_not_larger(ours, net, points, "l2")


@pytest.mark.slow
@pytest.mark.parametrize("name", EPS)
def test_carlini_wagner_is_as_near_as_arts_in_linf(name, demo_net, verdict_of):
    """Theirs takes one sample at a time, and many more searches than ours is given."""
    net = demo_net(name, 10)
    settings = {"max_iter": 20, "learning_rate": 0.1, "initial_const": 0.1, "const_factor": 5.0, "decrease_factor": 0.7}
    points = by_art(net, "CarliniLInfMethod", **settings)
    ours = least_distances(net, verdict_of, "carlini-wagner", "linf", searches=9, steps=20)
    assert_not_larger(ours, net, points, "linf")


class Counting(nn.Module):
    """Counts the queries to a module; with NumPy 2, ART's HopSkipJump asks in float64."""

    def __init__(self, module):
        super().__init__()
        self.module, self.n_queries = module, 0
        self.eval()

    def forward(self, x):
        self.n_queries += len(x)
        return self.module(x.float())


def hopskipjump_of_foolbox(net, norm, seed):
    return by_foolbox(net, "HopSkipJumpAttack", steps=5, constraint=norm, seed=seed)


def hopskipjump_of_art(net, norm, seed):
    """Its starts come from a generator that it makes anew for each sample, without a seed."""
    with patch.object(np.random, "RandomState", partial(np.random.RandomState, seed)):
        return by_art(net, "HopSkipJump", norm=ART_NORM[norm], max_iter=5, seed=seed)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("peer", "n", "seeds", "norm"),
    [
        (hopskipjump_of_foolbox, 40, SEEDS, "l2"),
        pytest.param(hopskipjump_of_foolbox, 40, SEEDS, "linf", marks=pytest.mark.slow),
        pytest.param(hopskipjump_of_art, 10, [0], "l2", marks=pytest.mark.slow),
        (hopskipjump_of_art, 10, [0], "linf"),
    ],
)
def test_hopskipjump_is_as_near_with_as_many_queries(peer, n, seeds, norm, name, demo_net, verdict_of, request):
    """In the median of the samples, and in the mean over seeds: where a walk begins is a matter of chance.

    Theirs end after five steps, which take about 1000 queries, ours with its queries.
    """
    if (peer, norm, name) == (hopskipjump_of_foolbox, "linf", "plain"):
        request.applymarker(
            pytest.mark.xfail(strict=True, reason="0.161, Foolbox's 0.157: on these digits, not on others")
        )
    net = demo_net(name, n)
    ours, theirs = [], []
    for seed in seeds:
        counting = Counting(net.module)
        points = peer(replace(net, module=counting), norm, seed)
        theirs.append(torch.where(broken(net, points, norm), distances(net, points, norm), torch.inf).median().item())
        queries = counting.n_queries // n
        assert 800 < queries < 1500
        found = least_distances(net, verdict_of, "hopskipjump", norm, max_queries=queries, seed=seed, steps=40)
        ours.append(found.median().item())
    assert mean(theirs) < float("inf")
    assert mean(ours) <= 1.001 * mean(theirs), (ours, theirs)
