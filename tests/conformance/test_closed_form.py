"""Attacks on linear models, whose minimal distances are known: no attack can do better, and none may do much worse."""

import pytest
import torch

from advrisk.testing import toys

MINIMAL = [
    *[("fab", norm) for norm in ("l1", "l2", "linf")],
    *[("fab-t", norm) for norm in ("l1", "l2", "linf")],
    *[("deepfool", norm) for norm in ("l2", "linf")],
    *[("minimum-norm", norm) for norm in ("l1", "l2", "linf")],
]
LIMITED = [
    *[("apgd", {"steps": 40}, objective, norm) for objective in ("ace", "margin") for norm in ("linf", "l2", "l1")],
    *[("apgd-t", {"steps": 40}, objective, norm) for objective in ("ace", "margin") for norm in ("linf", "l2", "l1")],
    *[("bim", {"steps": 30}, None, norm) for norm in ("linf", "l2", "l1")],
    *[("pgd", {"steps": 30}, None, norm) for norm in ("linf", "l2", "l1")],
    *[("pgd-adam", {"steps": 30}, None, norm) for norm in ("linf", "l2")],
]


def linear(classes):
    """A model, inputs, and none of their minimal distances hindered by the bounds."""
    toy = toys.linear(features=12, classes=classes)
    x0 = toy.inputs(30)
    reach = x0.abs().amax(1) + toy.minimal_distances(x0, "l1")
    assert float(reach.max()) < toy.bounds[1]
    return toy, x0


def assert_near(verdict, distance, norm, share):
    assert set(verdict.outcome) == {"success"}
    assert verdict.n_unconfirmed == 0
    ratio = verdict.distances[norm] / distance
    assert ratio.min() > 1 - 1e-4  # scores are float32
    assert ratio.max() < 1 + share


@pytest.mark.parametrize(("name", "norm"), MINIMAL)
@pytest.mark.parametrize("classes", [2, 5])
def test_the_smallest_perturbation_is_within_one_percent(name, norm, classes, verdict_of):
    toy, x0 = linear(classes)
    verdict, _ = verdict_of(toy.model, x0, None, name, norm=norm, eps=None, keep="smallest")
    assert_near(verdict, toy.minimal_distances(x0, norm), norm, 0.01)


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("classes", [2, 5])
def test_carlini_wagner_is_within_two_percent(norm, classes, verdict_of):
    toy, x0 = linear(classes)
    verdict, _ = verdict_of(toy.model, x0, None, "carlini-wagner", norm=norm, eps=None, keep="smallest")
    assert_near(verdict, toy.minimal_distances(x0, norm), norm, 0.02)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_fmn_is_within_two_percent_of_the_boundary_to_the_only_other_class(norm, verdict_of):
    """Of several it follows the one that leads, which need not be the nearest."""
    toy, x0 = linear(2)
    verdict, _ = verdict_of(toy.model, x0, None, "fmn", norm=norm, eps=None, keep="smallest")
    assert_near(verdict, toy.minimal_distances(x0, norm), norm, 0.02)


@pytest.mark.parametrize("classes", [2, 5])
def test_fmn_changes_as_few_features_as_possible(classes, verdict_of):
    """In l0 each feature may go as far as the bounds: those that gain most are enough, and as many are needed."""
    toy, x0 = linear(classes)
    verdict, _ = verdict_of(toy.model, x0, None, "fmn", norm="l0", eps=None, keep="smallest")
    assert set(verdict.outcome) == {"success"}
    needed = torch.stack([toy.n_features_to(x0, torch.full((len(x0),), other)) for other in range(classes)])
    fewest = needed.masked_fill(needed == 0, torch.inf).amin(0)  # the class itself needs none
    assert bool((verdict.distances["l0"] >= fewest).all())
    assert float((verdict.distances["l0"] == fewest).double().mean()) >= 0.9


@pytest.mark.parametrize(("name", "params", "objective", "norm"), LIMITED)
def test_a_limit_decides_on_two_classes(name, params, objective, norm, verdict_of):
    """At 3 % above the minimal distance every sample falls, at 1 % below none can."""
    assert_falls(linear(2)[0], name, params, objective, norm, verdict_of, n=30 if name in ("bim", "pgd") else 8)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_a_limit_decides_with_the_difference_of_logits_ratio(norm, verdict_of):
    """It needs a third class: here one that is out of reach, or the attack might climb towards it."""
    toy, _ = linear(2)
    third = toys.Linear(torch.cat([toy.weight, torch.zeros(1, 12)]), torch.cat([toy.bias, torch.tensor([-50.0])]))
    assert_falls(third, "apgd", {"steps": 40}, "dlr", norm, verdict_of)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("classes", [4, 5])
def test_a_limit_decides_for_an_attack_that_tries_each_class(classes, norm, verdict_of):
    assert_falls(linear(classes)[0], "apgd-t", {"steps": 40}, "dlr", norm, verdict_of)


def assert_falls(toy, name, params, objective, norm, verdict_of, *, n=8):
    seen = []
    x0 = toy.inputs(n)
    for row, distance in enumerate(toy.minimal_distances(x0, norm).tolist()):
        for factor in (1.03, 0.99):
            settings = {"norm": norm, "eps": factor * distance, "params": params, "objective": objective}
            verdict, _ = verdict_of(toy.model, x0[[row]], None, name, **settings)
            seen += verdict.outcome
    assert seen == ["success", "resisted"] * len(x0)


def test_the_distances_are_those_of_a_brute_force():
    """The oracle itself: of many directions, none leaves the class sooner."""
    toy, x0 = linear(5)
    generator = torch.Generator().manual_seed(0)
    way = torch.nn.functional.normalize(torch.randn(2000, 12, generator=generator).double(), dim=1)
    toy, x0 = toys.Linear(toy.weight.double(), toy.bias.double()), x0.double()
    label = toy.model.ask(x0).argmax(1)
    for row, distance in enumerate(toy.minimal_distances(x0, "l2").tolist()):
        assert bool((toy.model.ask(x0[row] + 0.999 * distance * way).argmax(1) == label[row]).all())
        nearest = min(float((x0[row] - other).norm()) for other in boundary_points(toy, x0[row], int(label[row])))
        assert nearest == pytest.approx(distance, rel=1e-5)


def boundary_points(toy, x, label):
    """The foot of the perpendicular on the boundary to each other class."""
    for other in range(len(toy.bias)):
        if other != label:
            slope = toy.weight[label] - toy.weight[other]
            lead = slope @ x + toy.bias[label] - toy.bias[other]
            yield x - lead / (slope @ slope) * slope
