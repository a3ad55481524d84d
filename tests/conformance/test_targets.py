"""Every attack towards a target class: what succeeds is that class, and enough succeeds."""

import pytest
import torch

from advrisk.core.flags import NO_START_MESSAGE
from advrisk.parts.attacks import attacks
from advrisk.study import TargetSpec
from advrisk.testing import toys
from advrisk.testing.conformance import checkable

EVERY = [(part.name, norm) for part in checkable(attacks) for norm in part.traits.norms]
QUICK = {
    "apgd": {"steps": 15},
    "apgd-t": {"steps": 15},
    "autoattack": {"steps": 10, "targets": 2, "queries": 50},
    "carlini-wagner": {"searches": 5, "steps": 100},
    "fab": {"steps": 15},
    "fab-t": {"steps": 15},
    "feature-search": {"queries": 400},
    "hopskipjump": {"steps": 6, "starts": 30},
    "nes": {"steps": 20, "samples": 30, "step_size": 0.05},
    "pgd": {"steps": 15},
    "pgd-adam": {"steps": 15},
    "pixel": {"population": 20, "generations": 50},
    "square": {"queries": 1000},
    "threshold": {"population": 20, "generations": 50},
}
TARGETS = [TargetSpec(target="next"), TargetSpec(target="least-likely"), TargetSpec(target=1)]
# At these sizes some samples can become their target, and some cannot.
DEMO_EPS = {"linf": 0.15, "l2": 2.0, "l1": 15.0, "l0": 20}


def settings_of(name, norm, eps, success):
    return {"norm": norm, "eps": eps, "params": QUICK.get(name), "success": success}


def wanted(success, label, model, x0):
    if success.target == "next":
        return (label + 1) % model.n_classes
    if success.target == "least-likely":
        return model.ask(x0).argmin(1)
    return torch.full_like(label, success.target)


def assert_targets_met(model, x0, label, name, settings, verdict_of):
    """Successes, which must be points that the model gives the target; gives how many there are."""
    verdict, attempt = verdict_of(model, x0, label, name, **settings)
    target = wanted(settings["success"], label, model, x0)
    hit = torch.tensor([outcome == "success" for outcome in verdict.outcome])
    with torch.no_grad():
        said = model.ask(attempt.kept).argmax(1)
    assert set(verdict.outcome) <= {"success", "resisted"}, verdict.message
    assert torch.equal(said[hit], target[hit])
    assert bool((target[hit] != label[hit]).all())
    assert verdict.n_unconfirmed == 0
    return int(hit.sum())


@pytest.mark.parametrize(("name", "norm"), EVERY)
@pytest.mark.parametrize("success", TARGETS, ids=lambda success: str(success.target))
def test_successes_on_the_linear_toy_are_the_target(name, norm, success, verdict_of):
    """A limit at which the exact way to the target is open for half of the samples that have another class."""
    toy = toys.linear(features=12, classes=5)
    x0 = toy.inputs(30)
    label = toy.model.ask(x0).argmax(1)
    least = distances_to(toy, x0, wanted(success, label, toy.model, x0), norm)
    eps = float(least[least > 0].median())
    n_hits = assert_targets_met(toy.model, x0, label, name, settings_of(name, norm, eps, success), verdict_of)
    reachable = int(((least > 0) & (least <= eps)).sum())
    assert n_hits <= reachable
    assert n_hits > (0 if name == "fgsm" else 0.4 * reachable)


def distances_to(toy, x, target, norm):
    """A bound on the distance at which the target leads the class there is: no attack can come nearer."""
    if norm == "l0":
        return toy.n_features_to(x, target)
    dual = {"linf": 1, "l2": 2, "l1": float("inf")}[norm]
    scores = toy.model.ask(x).double()
    best = scores.argmax(1)
    lead = scores.amax(1) - scores.gather(1, target[:, None]).squeeze(1)
    slope = torch.linalg.vector_norm((toy.weight[best] - toy.weight[target]).double(), ord=dual, dim=1)
    return torch.where(best == target, 0.0, lead / slope.clamp_min(1e-9))


@pytest.mark.parametrize(("name", "norm"), EVERY)
def test_successes_on_images_are_the_target(name, norm, demo_net, verdict_of):
    success = TargetSpec(target="next")
    conv, x0 = toys.conv_net(), toys.images(20)
    eps = {"linf": 0.25, "l2": 1.5, "l1": 10.0, "l0": 12}[norm]
    settings = settings_of(name, norm, eps, success)
    assert assert_targets_met(conv, x0, conv.ask(x0).argmax(1), name, settings, verdict_of) > 0
    net = demo_net("plain", 20)
    settings = settings_of(name, norm, 2 * DEMO_EPS[norm], success)
    assert assert_targets_met(net.model, net.x, net.y, name, settings, verdict_of) > 0


@pytest.mark.parametrize(
    ("name", "norm"),
    [
        (name, norm)
        for name, norm in EVERY
        if not attacks.get(name).traits.needs_eps and attacks.get(name).traits.needs != "labels"
    ],
)
def test_without_a_limit_every_sample_becomes_its_target(name, norm, demo_net, verdict_of):
    net = demo_net("plain", 20)
    settings = settings_of(name, norm, None, TargetSpec(target="next")) | {"params": None, "keep": "smallest"}
    assert assert_targets_met(net.model, net.x, net.y, name, settings, verdict_of) == 20


@pytest.mark.parametrize(
    ("name", "norm"),
    [("hopskipjump", "l2"), ("hopskipjump", "linf"), ("feature-search", "l0"), ("feature-search", "l1")],
)
def test_from_labels_every_sample_becomes_its_target_if_a_random_input_is_one(name, norm, demo_net, verdict_of):
    """Random inputs belong to few classes: the others cannot be begun from, and say so."""
    net = demo_net("plain", 20)
    settings = settings_of(name, norm, None, TargetSpec(target="next")) | {"keep": "smallest"}
    verdict, _ = verdict_of(net.model, net.x, net.y, name, **settings)
    begun = ["resisted" if message == NO_START_MESSAGE else "success" for message in verdict.message]
    assert verdict.outcome == begun
    assert 0 < begun.count("success") < 20
