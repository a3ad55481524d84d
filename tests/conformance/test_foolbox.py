"""Our FGSM, BIM and PGD against Foolbox's: same net, same samples, same eps, steps and step size."""

import copy
import warnings

import pytest
import torch

from advrisk.engine import Space
from advrisk.testing import toys

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Please import `gaussian_filter`", category=DeprecationWarning)
    import foolbox

EPS = {"linf": (0.06, 0.12), "l2": (0.4, 0.8)}
STEPS = 10
CASES = [(attack, norm, eps) for attack in ("fgsm", "bim", "pgd") for norm in EPS for eps in EPS[norm]]
THEIRS = {
    ("fgsm", "linf"): foolbox.attacks.LinfFastGradientAttack,
    ("fgsm", "l2"): foolbox.attacks.L2FastGradientAttack,
    ("bim", "linf"): foolbox.attacks.LinfBasicIterativeAttack,
    ("bim", "l2"): foolbox.attacks.L2BasicIterativeAttack,
    ("pgd", "linf"): foolbox.attacks.LinfPGD,
    ("pgd", "l2"): foolbox.attacks.L2PGD,
}


def theirs(net, attack, norm, eps, *, dtype=torch.float32):
    """Foolbox's points, and whether each is a success."""
    settings = {"random_start": attack == "pgd"}
    if attack != "fgsm":
        settings |= {"abs_stepsize": 2.5 * eps / STEPS, "steps": STEPS}
    module = copy.deepcopy(net.module).to(dtype)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model = foolbox.PyTorchModel(module, bounds=(0, 1), device="cpu")
        _, points, success = THEIRS[attack, norm](**settings)(model, net.x.to(dtype), net.y, epsilons=eps)
    return points, success


def params(attack, eps):
    return {} if attack == "fgsm" else {"steps": STEPS, "step_size": 2.5 * eps / STEPS}


@pytest.mark.parametrize(("attack", "norm", "eps"), CASES)
def test_success_is_not_lower(attack, norm, eps, digits_net, verdict_of):
    verdict, _ = verdict_of(
        digits_net.model, digits_net.x, digits_net.y, attack, norm=norm, eps=eps, params=params(attack, eps)
    )
    _, success = theirs(digits_net, attack, norm, eps)
    ours = sum(outcome == "success" for outcome in verdict.outcome) / len(digits_net.x)
    expected = success.double().mean().item()
    assert 0.02 < expected < 0.99  # else the comparison would say nothing
    assert ours >= expected - 0.02


@pytest.mark.parametrize(("norm", "eps"), [(norm, eps) for norm in EPS for eps in EPS[norm]])
def test_fgsm_finds_the_very_same_points(norm, eps, digits_net, verdict_of):
    """Theirs in float64: in float32 the slope of their cross-entropy is mostly rounding where the net is sure."""
    _, attempt = verdict_of(digits_net.model, digits_net.x, digits_net.y, "fgsm", norm=norm, eps=eps, keep="last")
    points, success = theirs(digits_net, "fgsm", norm, eps, dtype=torch.float64)
    assert torch.equal(attempt.claimed, success)
    torch.testing.assert_close(attempt.kept.double(), points, atol=1e-5, rtol=0)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("sureness", [0.05, 1.0, 3.0])
def test_fgsm_flips_a_linear_model_at_exactly_the_closed_form_distance(norm, sureness, verdict_of):
    """Two classes: the gradient points straight at the other class, so one step is the shortest way.

    Larger answers make the model surer of itself (at 3.0 by up to e^64), and move no boundary.
    """
    toy = two_classes(sureness)
    x0 = toy.inputs(40)
    for row, distance in enumerate(toy.minimal_distances(x0, norm).tolist()):
        for factor, expected in ((1 - 1e-4, "resisted"), (1 + 1e-4, "success")):
            settings = {"norm": norm, "eps": factor * distance, "space": Space.box(-100, 100)}
            verdict, _ = verdict_of(toy.model, x0[[row]], None, "fgsm", **settings)
            assert verdict.outcome == [expected]
            if expected == "success":
                assert verdict.distances[norm].item() == pytest.approx(factor * distance, rel=1e-5)


def two_classes(sureness):
    toy = toys.linear(features=12, classes=2)
    return toys.Linear(toy.weight * sureness, toy.bias * sureness)


@pytest.mark.parametrize("attack", ["linf", "l2"])
def test_the_closed_form_agrees_with_foolbox(attack):
    """The oracle itself, against the other library's FGSM; its cross-entropy needs a model that is not too sure."""
    toy = two_classes(0.05)
    x0 = toy.inputs(40)
    label = toy.model.ask(x0).argmax(1)
    module = torch.nn.Linear(12, 2)
    with torch.no_grad():
        module.weight.copy_(toy.weight)
        module.bias.copy_(toy.bias)
    model = foolbox.PyTorchModel(module.eval(), bounds=(-100, 100), device="cpu")
    distances = toy.minimal_distances(x0, attack).tolist()
    for row, distance in enumerate(distances):
        _, _, success = THEIRS["fgsm", attack]()(
            model, x0[[row]], label[[row]], epsilons=[distance * 0.999, distance * 1.001]
        )
        assert success.flatten().tolist() == [False, True]
