import functools
import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from advrisk.core.errors import StudyError
from advrisk.parts.data import data
from advrisk.parts.training import training
from advrisk.parts.training.inner import perturbed
from advrisk.testing import toys

SETTINGS = {
    "plain": {},
    "gaussian-noise": {"sigma": 0.2},
    "pgd": {"eps": 0.1, "steps": 2},
    "trades": {"eps": 0.1, "steps": 2, "beta": 2},
    "fgsm": {"eps": 0.1},
    "ensemble-fgsm": {"eps": 0.1, "sources": ["other"]},
    "distilled": {"teacher": "other", "temperature": 1},
    "guided-complement-entropy": {},
    "parseval": {},
}
RANDOM = ["gaussian-noise", "pgd", "trades", "ensemble-fgsm"]


@pytest.fixture(scope="module")
def digits():
    loaded = data.get("digits").function()
    return torch.from_numpy(loaded.x[:256]), torch.from_numpy(loaded.y[:256])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def net(inputs=64, classes=10):
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, classes))


@functools.cache
def other():
    """A model that reads the digits, for others to learn from."""
    loaded = data.get("digits").function()
    x, y = torch.from_numpy(loaded.x[:256]), torch.from_numpy(loaded.y[:256])
    module = net()
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(100):
        optimiser.zero_grad()
        F.cross_entropy(module(x), y).backward()
        optimiser.step()
    return module.eval().requires_grad_(False)


def loss_of(name, module, x, y, generator, **changes):
    part = training.get(name)
    handed = {key: value for key, value in changes.items() if part.parameters[key].by_name}
    settings = part.bind(SETTINGS[name] | {key: value for key, value in changes.items() if key not in handed})
    if "teacher" in settings:
        settings["teacher"] = other()
    if "sources" in settings:
        settings["sources"] = (other(),)
    return part.function(module, x, y, generator, **settings | handed)


def test_every_method_is_tested():
    assert {part.name for part in training} == set(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_loss_falls_and_the_model_learns(name, digits):
    module, generator = net(), seeded()
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    losses = []
    for _ in range(40):
        loss = loss_of(name, module, *digits, generator)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert (module(digits[0]).argmax(1) == digits[1]).double().mean() > 0.8


@pytest.mark.parametrize("name", SETTINGS)
def test_the_generator_is_the_only_source_of_chance(name, digits):
    before = torch.random.get_rng_state()
    first, again, other = (loss_of(name, net(), *digits, seeded(seed)).item() for seed in (1, 1, 2))
    assert first == again
    assert (first != other) == (name in RANDOM)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_batch_is_left_as_it_is(name, digits):
    x, y = digits[0][:8].clone(), digits[1][:8].clone()
    loss_of(name, net(), x, y, seeded())
    assert torch.equal(x, digits[0][:8])
    assert not x.requires_grad


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("pgd", {"eps": 0}),
        ("trades", {"beta": 0}),
        ("gaussian-noise", {"sigma": 0}),
        ("fgsm", {"eps": 0}),
        ("ensemble-fgsm", {"eps": 0}),
        ("distilled", {"temperature": 0}),
        ("plain", {"temperature": 0}),
        ("guided-complement-entropy", {"alpha": 0}),
        ("parseval", {"beta": 0}),
    ],
)
def test_settings_that_would_do_nothing_are_refused(name, changes):
    with pytest.raises(StudyError, match="must be more than 0"):
        training.get(name).bind(SETTINGS[name] | changes)


def test_plain_is_cross_entropy(digits):
    module = net()
    probabilities = torch.softmax(module(digits[0]).double(), 1)
    expected = -probabilities[torch.arange(256), digits[1]].log().mean().item()
    assert loss_of("plain", module, *digits, seeded()).item() == pytest.approx(expected, rel=1e-5)
    warm = torch.softmax(module(digits[0]).double() / 7, 1)
    expected = -warm[torch.arange(256), digits[1]].log().mean().item()
    assert loss_of("plain", module, *digits, seeded(), temperature=7).item() == pytest.approx(expected, rel=1e-5)


class TestGaussianNoise:
    class Spy(nn.Module):
        def forward(self, x):
            self.seen = x
            return torch.zeros(len(x), 2, requires_grad=True)

    def seen(self, x, **settings):
        spy = self.Spy()
        loss_of("gaussian-noise", spy, x, torch.zeros(len(x), dtype=torch.int64), seeded(), **settings)
        return spy.seen

    def test_a_share_of_the_samples_gets_noise_of_that_size(self):
        x = torch.full((2000, 50), 0.5)
        noise = self.seen(x, sigma=0.05, share=0.3) - x
        noisy = noise.abs().sum(1) > 0
        assert noisy.double().mean().item() == pytest.approx(0.3, abs=4 * math.sqrt(0.3 * 0.7 / 2000))
        assert noise[noisy].std().item() == pytest.approx(0.05, rel=0.03)
        assert noise[noisy].mean().item() == pytest.approx(0, abs=0.002)

    @pytest.mark.parametrize(("share", "expected"), [(0, 0.0), (1, 1.0)])
    def test_none_and_all(self, share, expected):
        x = torch.full((100, 50), 0.5)
        changed = (self.seen(x, share=share) != x).any(1)
        assert changed.double().mean().item() == expected

    def test_inputs_stay_in_their_bounds(self):
        seen = self.seen(toys.images(200).flatten(1), sigma=2, share=1)
        assert 0 == seen.min() < seen.max() == 1


class TestInner:
    """On a linear model of two classes the worst point is known: every feature goes eps against the margin."""

    EPS = 0.05

    def setup_method(self):
        toy = toys.linear(features=20, classes=2)
        self.module = nn.Linear(20, 2)
        with torch.no_grad():
            self.module.weight.copy_(toy.weight)
            self.module.bias.copy_(toy.bias)
        self.x = toys.images(30, size=5).flatten(1)[:, :20] * 0.8 + 0.1
        self.y = torch.arange(30) % 2

    def worst(self):
        push = (self.module.weight[1] - self.module.weight[0]).sign() * self.EPS
        return self.x + torch.where(self.y[:, None] == 0, push, -push)

    def test_finds_the_worst_point(self):
        found = perturbed(
            *(self.module, self.x, lambda logits: F.cross_entropy(logits, self.y), seeded()),
            eps=self.EPS,
            steps=10,
            step_size=None,
        )
        torch.testing.assert_close(found, self.worst())

    @pytest.mark.parametrize("steps", [1, 3])
    def test_stays_within_eps_and_bounds(self, steps):
        x = toys.images(30, size=5).flatten(1)[:, :20]
        found = perturbed(self.module, x, lambda logits: logits.sum(), seeded(), eps=0.2, steps=steps, step_size=1.0)
        assert (found - x).abs().max() <= 0.2 + 1e-6
        assert 0 <= found.min() < found.max() <= 1

    def test_pgd_trains_on_the_worst_point(self):
        loss = loss_of("pgd", self.module, self.x, self.y, seeded(), eps=self.EPS, steps=10)
        expected = F.cross_entropy(self.module(self.worst()), self.y)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)

    def test_trades_adds_beta_times_the_divergence_at_a_worst_point(self):
        """KL(f(x) ‖ f(x')) has two maxima, where the margin moved furthest up or down; the start decides."""
        push = (self.module.weight[1] - self.module.weight[0]).sign() * self.EPS
        calm = self.module(self.x).double().softmax(1)
        up, down = (
            (calm * (calm.log() - self.module(x).double().log_softmax(1))).sum(1)
            for x in (self.x + push, self.x - push)
        )
        base = F.cross_entropy(self.module(self.x), self.y).item()
        losses = {
            beta: loss_of("trades", self.module, self.x, self.y, seeded(), eps=self.EPS, steps=20, beta=beta).item()
            for beta in (1.0, 6.0)
        }
        found = losses[1.0] - base
        lowest, highest = torch.minimum(up, down).mean().item(), torch.maximum(up, down).mean().item()
        assert lowest * (1 - 1e-3) <= found <= highest * (1 + 1e-3)
        assert losses[6.0] - base == pytest.approx(6 * found, rel=1e-3)
