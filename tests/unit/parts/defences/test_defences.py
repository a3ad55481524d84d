"""Defences against what they say they do: rounding, Pillow, scipy, the tail of the normal distribution, and by hand."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.ndimage import median_filter
from scipy.stats import norm
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.core.seeds import key
from advrisk.engine import Draw, Model, Noise
from advrisk.parts.defences import defences, defended_model
from advrisk.parts.models import optimised
from advrisk.testing import toys

SPACE = (0.0, 1.0)
SEEING = toys.conv_net(channels=3, size=8)


def behind(name: str, inner: Model, **params) -> Model:
    part = defences.get(name)
    return defended_model("defended", inner, part, part.bind(params))


def changed(name: str, x: Tensor, bounds: tuple[float, float] = SPACE, **params) -> Tensor:
    part = defences.get(name)
    return part.function(**part.bind(params)).inputs(x, bounds, streams(len(x)))


def streams(n: int, seed: int = 0) -> Draw:
    return Draw(Noise([key("test", seed, row) for row in range(n)]), torch.arange(n))


class Lookup(nn.Module):
    """Says the logits that stand in its input."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)


def saying(n_classes: int, capability="gradients") -> Model:
    return Model("lookup", Lookup(), capability, (n_classes,), n_classes, (-99.0, 99.0), digest="lookup")


class TestFeatureSqueezing:
    @pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
    def test_is_rounding_to_so_many_levels(self, bits):
        x = torch.rand(50, 1, 4, 4, generator=torch.Generator().manual_seed(1))
        levels = 2**bits - 1
        expected = np.round(x.double().numpy() * levels) / levels
        found = changed("feature-squeezing", x, bits=bits)
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-7 if bits < 16 else 1 / levels)

    def test_minds_the_bounds(self):
        x = torch.tensor([[[[-1.0, -0.3, 0.1, 1.0]]]])
        assert changed("feature-squeezing", x, (-1.0, 1.0), bits=1).flatten().tolist() == [-1, -1, 1, 1]

    @pytest.mark.parametrize("bits", [24, 32, 64])
    def test_has_nothing_to_round_beyond_what_a_number_holds(self, bits):
        x = torch.rand(5, 1, 4, 4)
        assert changed("feature-squeezing", x, bits=bits) is x

    @pytest.mark.parametrize(("gradient", "expected"), [("straight", 1.0), ("exact", 0.0)])
    def test_slopes_pass_straight_through_or_are_what_they_are(self, gradient, expected):
        x = torch.rand(5, 1, 4, 4).requires_grad_(True)
        (slope,) = torch.autograd.grad(changed("feature-squeezing", x, bits=2, gradient=gradient).sum(), x)
        assert torch.equal(slope, torch.full_like(x, expected))


class TestJpeg:
    @pytest.mark.parametrize("quality", [10, 75])
    def test_is_what_pillow_makes_of_the_picture(self, quality):
        x = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(2))
        for row, found in zip(x, changed("jpeg", x, quality=quality), strict=True):
            file = io.BytesIO()
            Image.fromarray((row.permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)).save(
                file, "JPEG", quality=quality
            )
            expected = np.asarray(Image.open(file)).transpose(2, 0, 1) / np.float32(255)
            np.testing.assert_allclose(found.numpy(), expected, atol=1e-7)

    def test_slopes_pass_straight_through_the_whole_model(self):
        x = toys.images(4, channels=3).requires_grad_(True)
        through = changed("jpeg", x, quality=50)
        (slope,) = torch.autograd.grad(behind("jpeg", SEEING, quality=50).ask(x)[:, 0].sum(), x)
        there = through.detach().requires_grad_(True)
        (expected,) = torch.autograd.grad(SEEING.ask(there)[:, 0].sum(), there)
        torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("window", [2, 3, 5])
def test_median_smoothing_is_the_median_of_scipy(window):
    x = torch.rand(3, 2, 9, 7, generator=torch.Generator().manual_seed(3))
    expected = median_filter(x.numpy(), size=(1, 1, window, window), mode="reflect")
    assert np.array_equal(changed("median-smoothing", x, window=window).numpy(), expected)


class TestConf:
    LOGITS = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, math.log(9.0)], [9.0, 0.0]])  # largest: .5, .88, .9, .9999

    @pytest.mark.parametrize(
        ("threshold", "refused"),
        [(0.1, [0, 0, 0, 0]), (0.5, [0, 0, 0, 0]), (0.8999, [1, 1, 0, 0]), (0.9001, [1, 1, 1, 0]), (1.0, [1, 1, 1, 1])],
    )
    def test_refuses_below_its_threshold(self, threshold, refused):
        answer, rejected = behind("conf", saying(2), threshold=threshold).reply(self.LOGITS)
        assert rejected.int().tolist() == refused
        assert torch.equal(answer, self.LOGITS), "what it would have said is known to those who have the model"

    def test_needs_scores(self):
        with pytest.raises(ModelError, match="defended: conf needs scores of a model, but lookup gives labels only"):
            behind("conf", saying(2, "labels"), threshold=0.9)


class TestGaussOut:
    P = torch.tensor([0.7, 0.3])

    @pytest.mark.parametrize("sigma", [0.1, 0.3, 1.0])
    def test_the_class_turns_as_often_as_the_normal_tail_says(self, sigma):
        """p + σn: the second leads if n₂ − n₁ > (p₁ − p₂)/σ, and n₂ − n₁ has the variance 2."""
        n = 20_000
        logits = self.P.log().repeat(n, 1)
        model = behind("gauss-out", saying(2), sigma=sigma)
        turned = (model.drawn(streams(n)).ask(logits).argmax(1) == 1).double().mean().item()
        expected = norm.sf(0.4 / (sigma * math.sqrt(2)))
        assert turned == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / n))

    def test_on_logits_the_noise_is_added_to_them(self):
        n = 5_000
        logits = torch.tensor([3.0, -1.0, 0.0]).repeat(n, 1)
        noise = behind("gauss-out", saying(3), sigma=0.5, noise_on="logits").drawn(streams(n)).ask(logits) - logits
        assert noise.mean().item() == pytest.approx(0, abs=4 * 0.5 / math.sqrt(3 * n))
        assert noise.std().item() == pytest.approx(0.5, rel=0.03)

    def test_gives_logarithms_of_probabilities(self):
        logits = torch.randn(500, 4, generator=torch.Generator().manual_seed(4))
        answer = behind("gauss-out", saying(4), sigma=1.0).drawn(streams(500)).ask(logits)
        assert torch.isfinite(answer).all()
        torch.testing.assert_close(
            answer.double().exp().sum(1), torch.ones(500, dtype=torch.float64), atol=1e-5, rtol=0
        )

    def test_where_nothing_is_left_the_least_negative_has_it_all(self):
        noisy = torch.tensor([[-0.5, -0.1, -0.3]], dtype=torch.float64)
        from advrisk.parts.defences.gauss_out import _logarithms

        assert _logarithms(noisy).exp().tolist()[0] == pytest.approx([1e-12, 1.0, 1e-12])


def test_gauss_at_input_adds_noise_of_that_width_and_stays_within_bounds():
    x = torch.full((400, 1, 4, 4), 0.5)
    noise = changed("gauss-at-input", 2 * x, (0.0, 2.0), sigma=0.01) - 1.0
    assert noise.std().item() == pytest.approx(0.02, rel=0.03)
    wide = changed("gauss-at-input", x, sigma=1.0)
    assert wide.min() == 0.0
    assert wide.max() == 1.0


class TestDefendedModel:
    def test_has_a_digest_of_all_that_made_it(self):
        part = defences.get("gauss-out")
        one = behind("gauss-out", SEEING, sigma=0.1)
        others = [
            behind("gauss-out", SEEING, sigma=0.2),
            behind("gauss-out", SEEING, sigma=0.1, noise_on="logits"),
            behind("gauss-out", replace(SEEING, digest="other"), sigma=0.1),
            behind("gauss-at-input", SEEING, sigma=0.1),
            defended_model("defended", SEEING, replace(part, version=2), part.bind({"sigma": 0.1})),
        ]
        assert len({one.digest, SEEING.digest, *(other.digest for other in others)}) == 7
        assert behind("gauss-out", SEEING, sigma=0.1).digest == one.digest

    def test_inherits_what_training_took_and_what_the_model_gives(self):
        inner = replace(toys.score_only(SEEING), train_s=5.0, train_samples=7)
        model = behind("gauss-out", inner, sigma=0.1)
        assert (model.train_s, model.train_samples, model.capability) == (5.0, 7, "scores")
        assert model.random
        assert not model.rejects

    def test_both_versions_of_a_model_are_defended(self):
        module = SEEING.answer
        x = toys.images(16, channels=3)
        inner = replace(SEEING, answer=optimised.optimised(module, x), owner=module)
        model = behind("feature-squeezing", inner, bits=1)
        squeezed = changed("feature-squeezing", x, bits=1)
        assert torch.equal(model.ask_owner(x), module(squeezed))
        assert torch.equal(model.original.ask(x), module(squeezed))
        assert torch.equal(model.ask(x), inner.answer(squeezed))
        leaf = x.clone().requires_grad_(True)
        assert model.original.ask(leaf).requires_grad, "its owner's version has slopes, too"

    def test_of_stacked_defences_each_does_its_part(self):
        """The inner one refuses what it is unsure of, whatever the outer one then says."""
        logits = torch.tensor([[0.1, 0.0], [5.0, 0.0]])
        model = behind("gauss-out", behind("conf", saying(2), threshold=0.9), sigma=0.5)
        answer, rejected = model.drawn(streams(2)).reply(logits)
        assert rejected.tolist() == [True, False]
        assert torch.equal(answer, behind("gauss-out", saying(2), sigma=0.5).drawn(streams(2)).ask(logits))
        turned = behind("conf", behind("gauss-out", saying(2), sigma=0.5), threshold=0.9)
        answer, rejected = turned.drawn(streams(2)).reply(logits)
        assert torch.equal(rejected, answer.double().softmax(1).amax(1) < 0.9), "this one looks at the noisy answer"

    def test_without_streams_an_input_has_its_own(self):
        x = toys.images(6, channels=3)
        model = behind("gauss-out", SEEING, sigma=0.3)
        once = model.ask(x)
        assert torch.equal(once, model.ask(x))
        assert torch.equal(once.flip(0), model.ask(x.flip(0)))
        assert not torch.equal(once, SEEING.ask(x))

    def test_is_for_images_where_the_defence_is(self):
        with pytest.raises(ModelError, match="jpeg is for images"):
            behind("jpeg", toys.linear().model)
