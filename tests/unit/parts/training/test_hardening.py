"""Training methods against closed forms: what each one's loss is, and what it leaves alone."""

import math
from contextlib import suppress

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from advrisk.core.errors import ModelError
from advrisk.parts.training import training
from advrisk.parts.training.inner import as_deployed
from advrisk.parts.training.parseval import departure
from advrisk.testing import toys

EPS = 0.05


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def loss_of(name, module, x, y, seed=0, **settings):
    return training.get(name).function(module, x, y, seeded(seed), **settings)


def linear(seed=0, features=20, classes=2):
    toy = toys.linear(features=features, classes=classes, seed=seed)
    module = nn.Linear(features, classes)
    with torch.no_grad():
        module.weight.copy_(toy.weight)
        module.bias.copy_(toy.bias)
    return module


class Seen(nn.Module):
    """A module that remembers what it was asked while it was being trained."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.inputs = inner, []

    def forward(self, x):
        if self.training:
            self.inputs.append(x.detach())
        return self.inner(x)


@pytest.fixture
def batch():
    return toys.images(30, size=5).flatten(1)[:, :20] * 0.8 + 0.1, torch.arange(30) % 2


def worst(module, x, y):
    """On a linear model of two classes every feature goes eps against the margin."""
    push = (module.weight[1] - module.weight[0]).detach().sign() * EPS
    return x + torch.where(y[:, None] == 0, push, -push)


class TestFgsm:
    @pytest.mark.parametrize("clean", [0, 0.5, 0.9])
    def test_learns_on_clean_inputs_and_on_the_worst_point_of_a_linear_model(self, batch, clean):
        module, (x, y) = linear(), batch
        on_clean, on_worst = (F.cross_entropy(module(one), y).item() for one in (x, worst(module, x, y)))
        found = loss_of("fgsm", module, x, y, eps=EPS, clean=clean).item()
        assert found == pytest.approx(clean * on_clean + (1 - clean) * on_worst, rel=1e-5)

    def test_a_random_start_and_a_step_of_five_quarters(self):
        """From a uniform start a step of 1.25 eps reaches the edge unless the start lies in the far 3/8 of the way."""
        module = Seen(linear(features=50))
        x, y = torch.full((400, 50), 0.5), torch.arange(400) % 2
        loss_of("fgsm", module.train(), x, y, eps=EPS, clean=0.0, random_start=True)
        (asked,) = module.inputs
        way = (asked - x) * (worst(module.inner, x, y) - x).sign()
        at_edge = way > EPS * (1 - 1e-5)
        assert way.max() <= EPS * (1 + 1e-5)
        assert at_edge.double().mean().item() == pytest.approx(0.625, abs=4 * math.sqrt(0.625 * 0.375 / way.numel()))
        rest = way[~at_edge] / EPS  # a start within [-1, -0.25), moved by 1.25
        assert rest.min() >= 0.25 - 1e-5
        assert rest.mean().item() == pytest.approx(0.625, abs=0.02)

    def test_inputs_stay_within_their_bounds(self):
        module = Seen(linear())
        x, y = (toys.images(30, size=5).flatten(1)[:, :20] > 0.5).float(), torch.arange(30) % 2
        loss_of("fgsm", module.train(), x, y, eps=0.3, clean=0.0, random_start=True)
        assert module.inputs[0].min() == 0
        assert module.inputs[0].max() == 1


class TestEnsembleFgsm:
    def test_the_step_is_taken_on_one_of_the_models_drawn_for_each_batch(self, batch):
        models, (x, y) = [linear(seed) for seed in range(3)], batch
        own = Seen(models[0])
        drawn = []
        for seed in range(300):
            own.inputs.clear()
            loss_of("ensemble-fgsm", own.train(), x, y, seed, eps=EPS, sources=tuple(models[1:]), clean=0.5)
            (asked,) = own.inputs
            assert torch.equal(asked[:30], x)
            drawn.append(next(i for i, one in enumerate(models) if torch.allclose(asked[30:], worst(one, x, y))))
        shares = np.bincount(drawn, minlength=3) / 300
        assert shares == pytest.approx(np.full(3, 1 / 3), abs=4 * math.sqrt(2 / 9 / 300))

    def test_the_loss_is_that_of_the_model_itself(self, batch):
        own, source, (x, y) = linear(0), linear(1).requires_grad_(False), batch
        at = {id(one): F.cross_entropy(own(worst(one, x, y)), y).item() for one in (own, source)}
        found = {
            round(loss_of("ensemble-fgsm", own, x, y, seed, eps=EPS, sources=(source,), clean=0.0).item(), 4)
            for seed in range(20)
        }
        assert sorted(found) == pytest.approx(sorted(at.values()), abs=1e-4)

    def test_a_source_stays_as_it_is(self, batch):
        source = nn.Sequential(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).eval().requires_grad_(False)
        before = {name: tensor.clone() for name, tensor in source.state_dict().items()}
        for seed in range(5):
            loss_of("ensemble-fgsm", linear(), *batch, seed, eps=EPS, sources=(source,)).backward()
        assert all(torch.equal(tensor, before[name]) for name, tensor in source.state_dict().items())
        assert all(parameter.grad is None for parameter in source.parameters())
        assert not source.training


class TestDistilled:
    @pytest.mark.parametrize("temperature", [1.0, 10.0, 100.0])
    def test_is_the_cross_entropy_of_the_teachers_probabilities(self, temperature):
        student, teacher = linear(0, classes=5), linear(1, classes=5)
        x = toys.images(30, size=5).flatten(1)[:, :20]
        with torch.no_grad():
            z, soft = (module(x).double().numpy() / temperature for module in (student, teacher))
        soft = np.exp(soft) / np.exp(soft).sum(1, keepdims=True)
        expected = -(soft * (z - np.log(np.exp(z).sum(1, keepdims=True)))).sum(1).mean()
        y = torch.zeros(30, dtype=torch.int64)
        found = loss_of("distilled", student, x, y, teacher=teacher, temperature=temperature).item()
        assert found == pytest.approx(expected, rel=1e-5)

    def test_a_student_that_agrees_has_nothing_to_learn_and_the_teacher_never_has(self):
        student, teacher = linear(0, classes=5), linear(0, classes=5)
        x, y = toys.images(30, size=5).flatten(1)[:, :20], torch.zeros(30, dtype=torch.int64)
        loss_of("distilled", student, x, y, teacher=teacher, temperature=3.0).backward()
        assert student.weight.grad.abs().max() < 1e-6
        assert teacher.weight.grad is None


class TestGuidedComplementEntropy:
    @pytest.mark.parametrize("alpha", [0.2, 1 / 3, 1.0])
    def test_is_the_papers_formula(self, alpha):
        logits = 3 * torch.randn(50, 7, generator=seeded(), dtype=torch.float64)
        y = torch.arange(50) % 7
        total = 0.0
        for row, label in zip(logits.numpy(), y.numpy(), strict=True):
            p = np.exp(row) / np.exp(row).sum()
            q = [p[k] / (1 - p[label]) for k in range(7) if k != label]
            total += p[label] ** alpha * -sum(one * math.log(one) for one in q)
        found = loss_of("guided-complement-entropy", nn.Identity(), logits, y, alpha=alpha).item()
        assert found == pytest.approx(1 - total / 50 / math.log(6), rel=1e-9)

    def test_a_certain_answer_with_the_others_alike_costs_nothing_and_a_wrong_one_all(self):
        y = torch.tensor([2])
        right, wrong = torch.zeros(1, 5), torch.zeros(1, 5)
        right[0, 2], wrong[0, 3] = 200, 200
        assert loss_of("guided-complement-entropy", nn.Identity(), right, y).item() == pytest.approx(0, abs=1e-6)
        assert loss_of("guided-complement-entropy", nn.Identity(), wrong, y).item() == pytest.approx(1)

    def test_its_slope_is_finite_for_logits_of_any_size(self):
        logits = torch.tensor([[500.0, -500.0, 0.0], [0.0, 900.0, -900.0]], requires_grad=True)
        loss_of("guided-complement-entropy", nn.Identity(), logits, torch.tensor([1, 1])).backward()
        assert torch.isfinite(logits.grad).all()


class TestParseval:
    def net(self):
        torch.manual_seed(3)
        return nn.Sequential(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.Flatten(), nn.Linear(6 * 9, 4), nn.Linear(4, 9))

    @pytest.fixture(autouse=True)
    def _own_stream(self):
        with torch.random.fork_rng(devices=()):
            yield

    def test_the_departure_is_that_of_the_singular_values_from_one(self):
        module = self.net()
        expected = 0.0
        for number in (0, 3, 4):
            weight = module[number].weight.detach().double().numpy()
            singular = np.linalg.svd(weight.reshape(len(weight), -1), compute_uv=False)
            expected += ((singular**2 - 1) ** 2).sum()
        assert departure(module).item() == pytest.approx(expected, rel=1e-5)

    def test_it_comes_on_top_of_the_cross_entropy(self):
        module, x, y = self.net().eval(), torch.rand(8, 2, 5, 5), torch.arange(8)
        expected = F.cross_entropy(module(x), y) + 0.3 / 2 * departure(module)
        assert loss_of("parseval", module, x, y, beta=0.3).item() == pytest.approx(expected.item(), rel=1e-6)

    @pytest.mark.parametrize("shape", [(4, 7), (7, 4), (5, 5)])
    def test_its_slope_is_the_same_whichever_way_round_the_norm_is_taken(self, shape):
        layer = nn.Linear(shape[1], shape[0]).double()
        departure(layer).backward()
        for turned in (False, True):
            weight = layer.weight.detach().clone().requires_grad_(True)
            gram = weight.T @ weight if turned else weight @ weight.T
            (gram - torch.eye(len(gram), dtype=torch.float64)).square().sum().backward()
            torch.testing.assert_close(layer.weight.grad, weight.grad)

    def test_descending_on_it_leads_to_tight_frames(self):
        module = self.net()
        optimiser = torch.optim.SGD(module.parameters(), lr=0.05)
        for _ in range(300):
            optimiser.zero_grad()
            departure(module).backward()
            optimiser.step()
        for number in (0, 3, 4):
            singular = torch.linalg.svdvals(module[number].weight.detach().flatten(1))
            torch.testing.assert_close(singular, torch.ones_like(singular), atol=1e-3, rtol=0)

    def test_a_model_without_such_layers_is_refused(self):
        with pytest.raises(ModelError, match="linear and convolutional layers, and this model has none"):
            loss_of("parseval", nn.Identity(), torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64))


SETTINGS = {
    "pgd": {"eps": EPS, "steps": 3},
    "trades": {"eps": EPS, "steps": 3},
    "fgsm": {"eps": EPS},
    "ensemble-fgsm": {"eps": EPS, "sources": ()},
}


class TestAttacksMeetTheModelAsItIsDeployed:
    """Batch normalisation must not learn from the points on the way, nor dropout hide the slope."""

    @pytest.mark.parametrize("name", SETTINGS)
    def test_batch_normalisation_counts_the_passes_of_learning_only(self, name, batch):
        module = nn.Sequential(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).train()
        loss_of(name, module, *batch, **SETTINGS[name])
        assert module[1].num_batches_tracked == (2 if name == "trades" else 1)
        assert all(layer.training for layer in module.modules())

    @pytest.mark.parametrize("name", ["pgd", "fgsm", "ensemble-fgsm"])
    def test_dropout_is_off_while_a_point_is_looked_for(self, name, batch):
        """With all features dropped no slope would be left, and no point would move."""
        inner, (x, y) = linear(), batch
        module = Seen(nn.Sequential(nn.Dropout(1.0), inner)).train()
        loss_of(name, module, x, y, **SETTINGS[name] | ({"steps": 20} if name == "pgd" else {}))
        torch.testing.assert_close(module.inputs[-1][-len(x) :], worst(inner, x, y))

    def test_the_mode_comes_back_after_an_error(self):
        module = nn.Linear(2, 2).train()
        with suppress(KeyError), as_deployed(module):
            assert not module.training
            raise KeyError
        assert module.training
