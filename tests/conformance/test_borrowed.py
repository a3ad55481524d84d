"""Attacks of Foolbox and ART as arms: the libraries' own points, honest counts, and no row without a verdict."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from advrisk.core.errors import StudyError
from advrisk.core.seeds import key
from advrisk.engine import Goal, Noise, OutOfTimeError, Probe, Space, Task
from advrisk.engine.counted import Counted
from advrisk.parts.attacks import attacks
from advrisk.parts.attacks.borrowed import library, seeded
from advrisk.study import TargetSpec
from advrisk.testing import ConformanceError, check_attack, toys
from advrisk.testing.conformance import cases

foolbox = library("foolbox", extra="foolbox")
evasion = library("art.attacks.evasion", extra="art")
classification = library("art.estimators.classification", extra="art")

N = 24
PGD = {
    "foolbox": {"method": "LinfPGD", "settings": {"steps": 8, "rel_stepsize": 0.2}},
    "art": {
        "method": "ProjectedGradientDescent",
        "settings": {"max_iter": 8, "eps_step": 0.02, "num_random_init": 1, "batch_size": 64},
    },
}
DECISION = {
    "foolbox": {"method": "HopSkipJumpAttack", "settings": {"steps": 2, "initial_gradient_eval_steps": 10}},
    "art": {"method": "HopSkipJump", "settings": {"max_iter": 2, "init_eval": 10, "max_eval": 50}},
}
LIBRARIES = ("foolbox", "art")


class Asked(nn.Module):
    """A model as a module of its own: what a user of the other library would hand to it."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.eval()

    def forward(self, x):
        return self.model.original.ask(x.float())


def directly(attack, model, x, y, *, eps=None):
    """Foolbox's points, called as its guide advises: with bounds of 0 and 1."""
    low, high = model.bounds
    wrapped = foolbox.PyTorchModel(Asked(model), bounds=(low, high), device="cpu").transform_bounds((0, 1))
    shares = (x - low) / (high - low)
    with seeded(seed_of("foolbox", len(x)), x.device):
        found = attack(wrapped, shares, foolbox.criteria.Misclassification(y), epsilons=eps)[1]
    return found * (high - low) + low


def directly_by_art(make, model, x, y):
    shape, classes = tuple(x.shape[1:]), model.n_classes
    wrapped = classification.PyTorchClassifier(
        Asked(model), nn.CrossEntropyLoss(), shape, classes, clip_values=model.bounds, device_type="cpu"
    )
    with seeded(seed_of("art", len(x)), x.device):
        return torch.from_numpy(make(wrapped).generate(x.numpy(), np.eye(classes, dtype=np.float32)[y.numpy()]))


def seed_of(arm, n):
    """The seed that the adapter uses for the shard that `verdict_of` makes."""
    return Noise([key("noise", 0, arm, f"s{row}", 0) for row in range(n)]).seed(torch.arange(n))


@pytest.fixture
def net(digits_net):
    return replace(digits_net, x=digits_net.x[:N], y=digits_net.y[:N])


class TestTheLibrarysOwnPoints:
    def test_foolbox_pgd(self, net, verdict_of):
        verdict, attempt = verdict_of(
            net.model, net.x, net.y, "foolbox", norm="linf", eps=0.1, params=PGD["foolbox"], keep="last"
        )
        theirs = directly(foolbox.attacks.LinfPGD(**PGD["foolbox"]["settings"]), net.model, net.x, net.y, eps=0.1)
        assert torch.equal(attempt.kept, theirs)
        assert set(verdict.outcome) == {"success", "resisted"}
        assert verdict.n_unconfirmed == 0

    def test_foolbox_hopskipjump(self, net, verdict_of):
        params = DECISION["foolbox"]
        verdict, attempt = verdict_of(
            net.model, net.x, net.y, "foolbox", norm="linf", eps=None, params=params, keep="last"
        )
        theirs = foolbox.attacks.HopSkipJumpAttack(constraint="linf", **params["settings"])
        assert torch.equal(attempt.kept, directly(theirs, net.model, net.x, net.y))
        assert set(verdict.outcome) == {"success"}
        assert verdict.n_unconfirmed == 0

    def test_foolbox_deepfool_on_a_table(self, verdict_of):
        toy = toys.linear()
        x0 = toy.inputs(N)
        verdict, attempt = verdict_of(
            toy.model, x0, None, "foolbox", norm="l2", eps=None, params={"method": "L2DeepFoolAttack"}, keep="last"
        )
        y = toy.model.ask(x0).argmax(1)
        theirs = directly(foolbox.attacks.L2DeepFoolAttack(), toy.model, x0, y)
        assert torch.allclose(attempt.kept, theirs, rtol=0, atol=1e-5)
        assert set(verdict.outcome) == {"success"}
        nearest = toy.minimal_distances(x0, "l2")
        assert torch.allclose(verdict.distances["l2"], nearest, rtol=0.03, atol=0.003)

    @pytest.mark.parametrize("norm", ["linf", "l2"])
    def test_art_pgd(self, net, verdict_of, norm):
        eps = {"linf": 0.1, "l2": 0.6}[norm]
        verdict, attempt = verdict_of(
            net.model, net.x, net.y, "art", norm=norm, eps=eps, params=PGD["art"], keep="last"
        )

        def make(classifier):
            order = {"linf": np.inf, "l2": 2}[norm]
            settings = PGD["art"]["settings"]
            return evasion.ProjectedGradientDescent(classifier, norm=order, eps=eps, verbose=False, **settings)

        theirs = directly_by_art(make, net.model, net.x, net.y)
        assert torch.allclose(attempt.kept, theirs, rtol=0, atol=1e-6)  # ART exceeds eps by rounding
        assert set(verdict.outcome) == {"success", "resisted"}

    @pytest.mark.parametrize("name", ["HopSkipJump", "BoundaryAttack"])
    def test_art_decision_attacks(self, net, verdict_of, name):
        settings = {"max_iter": 2}
        verdict, attempt = verdict_of(
            net.model, net.x[:6], net.y[:6], "art", norm="l2", eps=None, params={"method": name, "settings": settings}
        )

        def make(classifier):
            return getattr(evasion, name)(classifier, targeted=False, verbose=False, **settings)

        theirs = directly_by_art(make, net.model, net.x[:6], net.y[:6])
        assert torch.equal(attempt.kept, theirs.clamp(0, 1))
        assert set(verdict.outcome) == {"success"}

    def test_art_pgd_on_a_table(self, verdict_of):
        toy = toys.linear()
        x0 = toy.inputs(N)
        verdict, attempt = verdict_of(toy.model, x0, None, "art", norm="linf", eps=0.1, params=PGD["art"], keep="last")

        def make(classifier):
            return evasion.ProjectedGradientDescent(classifier, eps=0.1, verbose=False, **PGD["art"]["settings"])

        theirs = directly_by_art(make, toy.model, x0, toy.model.ask(x0).argmax(1))
        assert torch.allclose(attempt.kept, theirs, rtol=0, atol=1e-6)
        assert set(verdict.outcome) == {"success", "resisted"}


@pytest.mark.parametrize("of", LIBRARIES)
@pytest.mark.parametrize("which", ["pgd", "decision"])
def test_counts_are_those_of_a_hook_shared_by_all(of, which, net, verdict_of):
    seen = Counter()
    asked = net.model.original.answer
    model = replace(net.model.original, min_rows=1)
    hooks = [
        asked.register_forward_hook(lambda _, given, __: seen.update(forward=len(given[0]))),
        asked.register_full_backward_hook(lambda _, __, slopes: seen.update(backward=len(slopes[0]))),
    ]
    params, eps = (PGD[of], 0.1) if which == "pgd" else (DECISION[of], None)
    verdict, attempt = verdict_of(model, net.x, net.y, of, norm="linf", eps=eps, params=params, keep="last")
    for hook in hooks:
        hook.remove()
    clean_and_judge = N + int(verdict.n_judge.sum())
    assert set(attempt.counts["n_forward"].tolist()) == {-(-(seen["forward"] - clean_and_judge) // N)}
    assert set(attempt.counts["n_backward"].tolist()) == {-(-seen["backward"] // N)}
    assert (seen["backward"] > 0) == (which == "pgd")
    assert attempt.accounting == "batch"
    assert set(attempt.counts["n_forward_first"].tolist()) == set(attempt.counts["n_backward_first"].tolist()) == {-1}
    assert bool(attempt.first_s.isnan().all())
    assert set(vars(attempt.trust).values()) == {None}


@pytest.mark.parametrize("of", LIBRARIES)
@pytest.mark.parametrize("case", cases("gradients"), ids=lambda case: case.name)
class TestWhateverTheSpace:
    def run(self, verdict_of, case, of, **arm):
        return verdict_of(case.model, case.x0, None, of, space=case.space, keep="last", **arm)

    def test_points_lie_in_it_and_within_eps(self, of, case, verdict_of):
        verdict, attempt = self.run(verdict_of, case, of, norm="linf", eps=case.eps["linf"], params=PGD[of])
        assert bool(case.space.valid(attempt.kept, case.x0).all())
        assert set(verdict.outcome) == {"success", "resisted"}
        assert bool((verdict.distances["linf"] <= case.eps["linf"]).all())

    def test_decision_attacks_succeed_in_it(self, of, case, verdict_of):
        verdict, attempt = self.run(verdict_of, case, of, norm="l2", eps=None, params=DECISION[of])
        assert bool(case.space.valid(attempt.kept, case.x0).all())
        assert Counter(verdict.outcome)["success"] >= 15
        assert "error" not in verdict.outcome

    def test_the_same_seed_gives_the_same_rows(self, of, case, verdict_of):
        arm = {"norm": "l2", "eps": None, "params": DECISION[of]}
        (_, one), (_, again) = (self.run(verdict_of, case, of, **arm) for _ in range(2))
        _, other = self.run(verdict_of, case, of, seed=1, **arm)
        assert torch.equal(one.kept, again.kept)
        assert torch.equal(one.counts["n_forward"], again.counts["n_forward"])
        assert not torch.equal(one.kept, other.kept)


def test_what_lies_beyond_eps_is_resisted_and_no_error(verdict_of):
    toy = toys.linear()
    x0 = toy.inputs(N)
    eps = float(toy.minimal_distances(x0, "l2").median())
    params = {"method": "L2DeepFoolAttack"}
    verdict, _ = verdict_of(toy.model, x0, None, "foolbox", norm="l2", eps=eps, params=params, keep="last")
    near = (toy.minimal_distances(x0, "l2") * 1.03 <= eps).tolist()
    far = (toy.minimal_distances(x0, "l2") > eps).tolist()
    assert all(outcome == "success" for outcome, is_near in zip(verdict.outcome, near, strict=True) if is_near)
    assert all(outcome == "resisted" for outcome, is_far in zip(verdict.outcome, far, strict=True) if is_far)
    assert any(near)
    assert any(far)


@pytest.mark.parametrize("of", LIBRARIES)
class TestWhatGoesWrong:
    def test_global_generators_are_left_alone(self, of, net, verdict_of):
        def state():
            return torch.random.get_rng_state().tolist(), str(np.random.get_state()), random.getstate()

        before, kind = state(), np.random.RandomState
        verdict_of(net.model, net.x[:4], net.y[:4], of, norm="l2", eps=None, params=DECISION[of], keep="last")
        assert state() == before
        assert np.random.RandomState is kind

    def test_a_model_that_raises_gives_error_rows(self, of, net, verdict_of):
        model = toys.raising(net.model.original, after=3)
        verdict, _ = verdict_of(model, net.x[:3], net.y[:3], of, norm="linf", eps=0.1, params=PGD[of], keep="last")
        assert set(verdict.outcome) == {"error"}
        assert "as it was told to" in verdict.message[0]

    def test_a_bad_sample_costs_only_itself(self, of, verdict_of):
        toy = toys.linear()
        x0 = toy.inputs(6)

        def answer(x):
            near = ((x.detach() - x0[2]).abs().amax(1) < 0.05).any()
            if near and x.requires_grad:  # whoever climbs from there
                raise RuntimeError("not this one")
            return toy.model.answer(x)

        model = replace(toy.model, answer=answer)
        verdict, attempt = verdict_of(model, x0, None, of, norm="linf", eps=0.03, params=PGD[of], keep="last")
        assert [row for row, outcome in enumerate(verdict.outcome) if outcome == "error"] == [2]
        assert "RuntimeError: not this one" in verdict.message[2]
        assert len(set(attempt.counts["n_forward"].tolist())) == 1

    def test_time_that_is_up_gives_timeout_rows(self, of, net, verdict_of):
        model = toys.slow(net.model.original, pass_s=0.05)
        verdict, attempt = verdict_of(
            model, net.x[:3], net.y[:3], of, norm="linf", eps=0.1, params=PGD[of], keep="last", max_cell_s=0.2
        )
        assert set(verdict.outcome) == {"timeout"}
        assert 0 < int(attempt.counts["n_forward"].max()) < 8

    def test_gradients_are_not_had_from_a_model_without(self, of, verdict_of):
        model = toys.score_only(toys.conv_net())
        verdict, _ = verdict_of(model, toys.images(3), None, of, norm="linf", eps=0.1, params=PGD[of], keep="last")
        assert set(verdict.outcome) == {"error"}
        assert "asked for gradients, but conv-scores gives scores only" in verdict.message[0]

    def test_labels_are_enough_for_decision_attacks(self, of, verdict_of):
        conv = toys.conv_net()
        runs = [
            verdict_of(model, toys.images(6), None, of, norm="l2", eps=None, params=DECISION[of], keep="last")
            for model in (conv, toys.label_only(conv))
        ]
        assert set(runs[1][0].outcome) == {"success"}
        assert torch.equal(runs[0][1].kept, runs[1][1].kept)

    def test_the_kit_refuses_it(self, of):
        with pytest.raises(ConformanceError, match="is not counted by sample"):
            check_attack(attacks.get(of))


def test_a_start_that_fails_costs_only_its_sample(verdict_of):
    """Foolbox's HopSkipJump gives up a whole batch if one sample has no start."""

    def answer(x):
        return torch.stack([0.9 - x.flatten(1).mean(1), x.flatten(1).mean(1) - 0.9], 1)

    model = replace(toys.conv_net(), answer=answer, n_classes=2, min_rows=1)
    x0 = torch.cat([torch.full((2, 1, 8, 8), 0.95), torch.full((2, 1, 8, 8), 0.2)])
    verdict, _ = verdict_of(model, x0, None, "foolbox", norm="l2", eps=None, params=DECISION["foolbox"], keep="last")
    assert verdict.outcome == ["success", "success", "error", "error"]
    assert verdict.message[2] == "ValueError: init_attack failed for 1.0 of 1 inputs"


@pytest.mark.parametrize(
    ("of", "params", "eps"),
    [
        ("foolbox", PGD["foolbox"], 0.3),
        ("art", PGD["art"] | {"settings": {"max_iter": 20, "eps_step": 0.05}}, 0.3),
        ("foolbox", DECISION["foolbox"], None),
        ("art", {"method": "SaliencyMapMethod", "settings": {"theta": 0.5}}, None),
    ],
)
def test_targets_are_aimed_at(of, params, eps, net, verdict_of):
    success = TargetSpec(target="next")
    verdict, _ = verdict_of(
        net.model, net.x[:10], net.y[:10], of, norm="linf", eps=eps, params=params, keep="last", success=success
    )
    hit = [row for row, outcome in enumerate(verdict.outcome) if outcome == "success"]
    assert len(hit) >= 3
    assert verdict.answer.argmax(1)[hit].tolist() == ((net.y[hit] + 1) % 10).tolist()


# Settings that make them quick; the others have none that matter.
FROM_LABELS = [
    ("foolbox", "BinarySearchContrastReductionAttack", {}),
    ("foolbox", "BoundaryAttack", {"steps": 5}),
    ("foolbox", "GaussianBlurAttack", {"steps": 5}),
    ("foolbox", "InversionAttack", {}),
    ("foolbox", "L2ContrastReductionAttack", {}),
    ("foolbox", "L2RepeatedAdditiveGaussianNoiseAttack", {"repeats": 5}),
    ("foolbox", "LinearSearchBlendedUniformNoiseAttack", {"steps": 5, "directions": 20}),
    ("foolbox", "LinearSearchContrastReductionAttack", {"steps": 5}),
    ("foolbox", "PointwiseAttack", {}),
    ("foolbox", "SaltAndPepperNoiseAttack", {"steps": 5}),
    ("foolbox", "SpatialAttack", {"num_rotations": 2}),
    ("art", "BoundaryAttack", {"max_iter": 2}),
    ("art", "SignOPTAttack", {"max_iter": 2, "num_trial": 3, "k": 10}),
    ("art", "SpatialTransformation", {"max_translation": 10.0, "num_translations": 2}),
]
FROM_SCORES = [
    ("art", "SimBA", {"max_iter": 5}),
    ("art", "SquareAttack", {"max_iter": 5}),
    ("art", "VirtualAdversarialMethod", {"max_iter": 2}),
    ("art", "ZooAttack", {"max_iter": 2, "nb_parallel": 16}),
]


@pytest.mark.parametrize(
    ("needs", "of", "name", "settings"),
    [("labels", *each) for each in FROM_LABELS] + [("scores", *each) for each in FROM_SCORES],
)
def test_an_attack_needs_no_more_than_is_said_of_it(needs, of, name, settings, verdict_of):
    part = attacks.get(of)
    params = {"method": name, "settings": settings}
    assert part.traits.resolved(part.bind(params), "l2", 0.5).needs == needs
    model = {"labels": toys.label_only, "scores": toys.score_only}[needs](toys.conv_net())
    verdict, attempt = verdict_of(model, toys.images(3), None, of, norm="l2", eps=0.5, params=params, keep="last")
    assert set(verdict.outcome) <= {"success", "resisted"}
    assert int(attempt.counts["n_forward"].min()) > 1


class TestCounted:
    """The module that other libraries ask."""

    def made(self, model=None, *, space=None, deadline=float("inf")):
        x0 = toys.linear().inputs(3)
        task = Task(x0, Goal(torch.zeros(3, dtype=torch.int64)), space or Space.box(-10, 10), "linf", 0.1)
        return Counted(Probe(model or toys.linear().model, replace(task, deadline=deadline), Noise(range(3)))), x0

    def test_every_slope_counts(self):
        counted, x0 = self.made()
        x = x0.clone().requires_grad_(True)
        answer = counted(x)
        for column in (0, 1):
            torch.autograd.grad(answer[:, column].sum(), x, retain_graph=True)
        counted(x0)
        assert (counted.n_forward, counted.n_backward) == (6, 6)

    def test_lengths_are_in_units_of_the_scale(self):
        space = Space(torch.full((12,), -10.0), torch.full((12,), 10.0), torch.full((12,), 4.0))
        counted, x0 = self.made(space=space)
        assert torch.equal(counted.units(x0), x0 / 4)
        assert torch.allclose(counted(counted.units(x0)), toys.linear().model.ask(x0))
        assert float(counted.bounds[1].max()) == 2.5

    def test_only_inputs_that_could_exist_are_asked_about(self):
        whole = torch.arange(12) == 3
        space = Space(torch.full((12,), -1.0), torch.full((12,), 1.0), torch.ones(()), integer=whole)
        model, record = toys.recorded(toys.linear().model)
        counted, _ = self.made(model, space=space)
        x = torch.full((2, 12), 1.7).requires_grad_(True)
        (slope,) = torch.autograd.grad(counted(x)[:, 0].sum(), x)
        assert bool(space.valid(record.passes[0][0], record.passes[0][0]).all())
        assert torch.allclose(slope[0], toys.linear().weight[0])

    def test_what_may_not_change_is_held_and_has_no_slope(self):
        fixed = torch.arange(12) < 2
        space = Space(torch.full((12,), -10.0), torch.full((12,), 10.0), torch.ones(()), immutable=fixed)
        model, record = toys.recorded(toys.linear().model)
        counted, x0 = self.made(model, space=space)
        counted.clean = x0[:1]
        x = x0.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(counted(x)[:, 0].sum(), x)
        assert bool((slope[:, :2] == 0).all())
        assert bool((slope[:, 2:] != 0).all())
        assert torch.equal(record.passes[0][0], torch.cat([x0[:1, :2].expand(3, 2), x0[:, 2:]], 1))

    def test_time_ends(self):
        counted, x0 = self.made(deadline=0.0)
        with pytest.raises(OutOfTimeError):
            counted(x0)


class TestResolved:
    """What is found out, or refused, before anything runs."""

    @pytest.mark.parametrize(
        ("of", "name", "norm", "eps", "needs", "away", "towards"),
        [
            ("foolbox", "PGD", "linf", 0.1, "gradients", True, True),
            ("foolbox", "FGSM", "linf", 0.1, "gradients", True, False),
            ("foolbox", "HopSkipJumpAttack", "linf", None, "labels", True, True),
            ("foolbox", "L2RepeatedAdditiveGaussianNoiseAttack", "l2", 0.5, "labels", True, True),
            ("foolbox", "SpatialAttack", "l2", None, "labels", True, True),
            ("foolbox", "InversionAttack", "l1", None, "labels", True, True),
            ("foolbox", "GenAttack", "linf", 0.1, "scores", False, True),
            ("art", "HopSkipJump", "linf", None, "labels", True, True),
            ("art", "SquareAttack", "l2", 0.5, "scores", True, False),
            ("art", "DeepFool", "l2", None, "gradients", True, False),
            ("art", "SaliencyMapMethod", "l0", None, "gradients", False, True),
        ],
    )
    def test_what_is_needed(self, of, name, norm, eps, needs, away, towards):
        part = attacks.get(of)
        found = part.traits.resolved(part.bind({"method": name}), norm, eps)
        assert (found.needs, found.away, found.towards) == (needs, away, towards)
        assert found.params["version"][0].isdigit()

    @pytest.mark.parametrize(
        ("of", "params", "norm", "eps", "message"),
        [
            ("foolbox", {"method": "LinfPDG"}, "linf", 0.1, "no attack 'LinfPDG'; did you mean 'LinfPGD'"),
            ("foolbox", {"method": "os"}, "linf", 0.1, "no attack 'os'"),
            ("foolbox", {"method": "Attack"}, "linf", 0.1, "no attack 'Attack'"),
            ("foolbox", {"method": "LinfPGD"}, "l2", 0.1, "works in linf, not in l2; write norm: linf"),
            ("foolbox", {"method": "LinfPGD"}, "linf", None, "needs eps"),
            ("foolbox", {"method": "HopSkipJumpAttack"}, "l1", None, "cannot be made from these settings"),
            ("foolbox", {"method": "VirtualAdversarialAttack"}, "l2", 0.1, "needs steps"),
            ("foolbox", {"method": "DatasetAttack"}, "l2", None, "needs a data set, which a study cannot give"),
            ("foolbox", {"method": "LinfPGD", "version": "1.0"}, "linf", 0.1, "foolbox 1.0 is asked for|version 1.0"),
            ("art", {"method": "HopSkipJmp"}, "l2", None, "did you mean 'HopSkipJump'"),
            ("art", {"method": "BasicIterativeMethod"}, "l2", 0.1, "works in linf, not in l2"),
            ("art", {"method": "CarliniL2Method"}, "linf", None, "works in l2"),
            ("art", {"method": "HopSkipJump"}, "l0", None, "no norm l0"),
            ("art", {"method": "FastGradientMethod"}, "linf", None, "needs eps"),
            ("art", {"method": "DPatch"}, "l2", None, "requires an estimator"),
        ],
    )
    def test_what_cannot_be(self, of, params, norm, eps, message):
        self.refused(of, params, norm, eps, message)

    @pytest.mark.parametrize(
        ("of", "name", "settings", "message"),
        [
            ("foolbox", "LinfPGD", {"step": 5}, "LinfProjectedGradientDescentAttack has no setting 'step'.*'steps'"),
            ("foolbox", "LinfPGD", {"steps": 2.5}, "steps: a whole number is needed, found 2.5"),
            ("foolbox", "LinfPGD", {"rel_stepsize": "much"}, "rel_stepsize: a number"),
            ("foolbox", "LinfPGD", {"random_start": 1}, "random_start: true or false is needed"),
            ("foolbox", "LInfFMNAttack", {"init_attack": "PGD"}, "init_attack: MinimizationAttack is needed"),
            ("foolbox", "InversionAttack", {"distance": "l2"}, "distance follows from the study"),
            ("art", "BasicIterativeMethod", {"iter": 5}, "no setting 'iter'.*'max_iter'"),
            ("art", "BasicIterativeMethod", {"max_iter": "5"}, "max_iter: a whole number"),
            ("art", "BasicIterativeMethod", {"max_iter": -1}, "BasicIterativeMethod cannot be made.*iterations"),
            ("art", "BasicIterativeMethod", {"eps_step": "little"}, "eps_step: a whole number or a number is needed"),
            ("art", "BasicIterativeMethod", {"eps": 0.3}, "eps follows from the study"),
            ("art", "AutoAttack", {"parallel_pool_size": 2}, "parallel_pool_size follows from the study"),
            ("art", "BasicIterativeMethod", {"targeted": True}, "targeted follows from the study"),
        ],
    )
    def test_wrong_settings(self, of, name, settings, message):
        self.refused(of, {"method": name, "settings": settings}, "linf", 0.1, message)

    def refused(self, of, params, norm, eps, message):
        part = attacks.get(of)
        with pytest.raises(StudyError, match=message):
            part.traits.resolved(part.bind(params), norm, eps)

    def test_fractions_are_numbers(self):
        part = attacks.get("art")
        params = {"method": "BasicIterativeMethod", "settings": {"eps_step": "2/255"}}
        part.traits.resolved(part.bind(params), "linf", 8 / 255)
