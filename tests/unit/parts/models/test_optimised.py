"""Quicker modules give the same answers and slopes as the user's own; what cannot be made quicker is left alone.

The truth is the user's module in float64, asked before anything was done to it.
"""

import copy
import sys
from typing import ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from advrisk.parts.data import Dataset
from advrisk.parts.models import checked_model
from advrisk.parts.models.optimised import FEW_CHANNELS, FewChannels, optimised
from advrisk.parts.models.torch_module import from_module
from advrisk.testing import toys


def seeded(make, seed=0, *, spread=True):
    """A module with random weights and (unless not to be spread) random normalisations, ready to answer."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        module = make()
        for layer in module.modules() if spread else ():
            if isinstance(layer, nn.BatchNorm2d) and layer.running_mean is not None:
                layer.running_mean.normal_()
                layer.running_var.uniform_(0.3, 3.0)
            if isinstance(layer, nn.BatchNorm2d) and layer.affine:
                nn.init.normal_(layer.weight)
                nn.init.normal_(layer.bias)
    return module.eval().requires_grad_(False)


def answer_and_slope(module, x, dtype=torch.float32):
    """Answers, and the slopes of a sum of the scores with unequal weights."""
    leaf = x.to(dtype).requires_grad_(True)
    answer = module(leaf)
    weights = torch.linspace(-1, 1, answer.numel(), dtype=dtype).view_as(answer).cos()
    (slope,) = torch.autograd.grad((answer * weights).sum(), leaf)
    return answer.detach(), slope


def in_both(module):
    """A module as it is, and in float64."""
    return (module, torch.float32), (copy.deepcopy(module).double(), torch.float64)


def assert_same(quick, module, x):
    exact = answer_and_slope(copy.deepcopy(module).double(), x, torch.float64)
    for found, expected in zip(answer_and_slope(quick, x), exact, strict=True):
        scale = float(expected.abs().max())
        torch.testing.assert_close(found.double(), expected, atol=2e-5 * scale, rtol=0)


def names(module):
    return [type(layer).__name__ for layer in module.modules()]


def head(*layers, channels, classes=4):
    """Layers, then the mean over the picture, and a linear layer."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def images(n=6, channels=3, size=9, seed=1):
    return toys.images(n, channels=channels, size=size, seed=seed)


def checked(module, *, channels=3, size=9):
    x = np.random.default_rng(0).random((4, channels, size, size), dtype=np.float32)
    return checked_model("mine", from_module(module), Dataset("toy", x, np.array([0, 1, 2, 3]), 4))


class TestFusing:
    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("affine", [False, True])
    def test_a_normalisation_after_a_convolution_goes_into_its_weights(self, bias, affine):
        module = seeded(
            lambda: head(
                nn.Conv2d(3, 8, 3, padding=1, bias=bias),
                nn.BatchNorm2d(8, affine=affine),
                nn.ReLU(),
                nn.Conv2d(8, 8, 3, stride=2, bias=bias),
                nn.BatchNorm2d(8, affine=affine),
                channels=8,
            )
        )
        quick = optimised(module, images(16))
        assert "BatchNorm2d" not in names(quick)
        assert_same(quick, module, images(n=5, seed=7))

    def test_the_users_module_is_left_as_it_is(self):
        module = seeded(lambda: head(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3), channels=8))
        before, kinds = copy.deepcopy(module.state_dict()), names(module)
        optimised(module, images(16))
        assert names(module) == kinds
        for name, value in module.state_dict().items():
            assert torch.equal(value, before[name])
            assert value.is_contiguous() == before[name].is_contiguous()

    @pytest.mark.parametrize("between", [nn.ReLU(), nn.Identity(), nn.MaxPool2d(2)])
    def test_not_where_something_stands_between(self, between):
        module = seeded(lambda: head(nn.Conv2d(3, 8, 3), between, nn.BatchNorm2d(8), channels=8))
        quick = optimised(module, images(16))
        assert names(quick).count("BatchNorm2d") == 1
        assert_same(quick, module, images())

    def test_a_normalisation_before_a_convolution_stays(self):
        """At the border its constant would not be the zeros of the padding."""
        module = seeded(lambda: head(nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3, padding=1), channels=8))
        quick = optimised(module, images(16))
        assert names(quick).count("BatchNorm2d") == 1
        assert_same(quick, module, images())

    def test_a_normalisation_without_statistics_stays(self):
        module = seeded(
            lambda: head(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, track_running_stats=False), nn.ReLU(), channels=8)
        )
        quick = optimised(module, images(16))
        assert names(quick).count("BatchNorm2d") == 1
        assert_same(quick, module, images(16))

    @pytest.mark.parametrize("kind", ["norm twice", "convolution twice", "answer twice", "weight again", "alias"])
    def test_not_where_a_layer_serves_twice(self, kind):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
                self.norm = nn.BatchNorm2d(3)
                self.also = self.first
                self.end = nn.Linear(3, 4)

            def forward(self, x):
                if kind == "norm twice":
                    x = self.norm(self.second(self.norm(self.first(x)).relu()))
                elif kind == "convolution twice":
                    x = self.norm(self.first(self.first(x).relu()))
                elif kind == "answer twice":
                    y = self.first(x)
                    x = self.norm(y) + y
                elif kind == "alias":
                    x = self.norm(self.first(x)) + self.also(x)
                else:
                    x = self.norm(self.first(x)) + F.conv2d(x, self.first.weight, padding=1)
                return self.end(x.mean((2, 3)))

        module = seeded(Twice)
        quick = optimised(module, images(16))
        assert names(quick).count("BatchNorm2d") == 1
        assert_same(quick, module, images())

    def test_a_residual_net_is_fused_where_it_can_be(self):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv1, self.bn1 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
                self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)

            def forward(self, x):
                return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))

        module = seeded(lambda: head(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), Block(), Block(), channels=8))
        quick = optimised(module, images(16))
        assert "BatchNorm2d" not in names(quick)
        assert_same(quick, module, images())

    def test_a_deep_net_is_fused_though_rounding_takes_a_unit_over_its_kink(self):
        """There float32 gives another slope than float64, and so would any other order of summing."""

        def block(before):
            return nn.Conv2d(before, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()

        def deep():
            return head(*block(3), *(layer for _ in range(6) for layer in block(16)), channels=16)

        def jumps(module):
            slope, exact = (answer_and_slope(one, x, dtype)[1].double() for one, dtype in in_both(module))
            return float((slope - exact).abs().max() / exact.abs().max()) > 1e-3

        x = images(16, size=32)
        module = next(module for module in (seeded(deep, seed, spread=False) for seed in range(200)) if jumps(module))
        assert "BatchNorm2d" not in names(optimised(module, x))

    @pytest.mark.parametrize("place", ["convolution", "norm"])
    @pytest.mark.parametrize("kind", ["forward", "pre", "backward"])
    def test_hooks_go_on_working(self, place, kind):
        module = seeded(lambda: head(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), channels=8))
        layer = module[0 if place == "convolution" else 1]
        calls = []
        if kind == "forward":
            layer.register_forward_hook(lambda _, __, out: calls.append(1) or out * 2 + 1)
        elif kind == "pre":
            layer.register_forward_pre_hook(lambda _, given: calls.append(1) or (given[0] * 2 + 1,))
        else:
            layer.register_full_backward_hook(lambda _, slope, __: calls.append(1) or (slope[0] * 2,))
        quick = optimised(module, images(16))
        calls.clear()
        answer_and_slope(quick, images())
        assert calls
        assert_same(quick, module, images())


class TestFlattening:
    @pytest.mark.parametrize("end", [-1, 3])
    def test_features_are_taken_as_they_lie_in_memory(self, end):
        def made():
            layers = nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Flatten(1, end), nn.Linear(5 * 7 * 7, 6), nn.ReLU()
            return nn.Sequential(*layers, nn.Linear(6, 4))

        module = seeded(made)
        quick = optimised(module, images(16))
        assert "FlattenLast" in names(quick)
        assert_same(quick, module, images())

    @pytest.mark.parametrize(
        "kind", ["rows only", "all of it", "vectors", "twice", "linear twice", "hook", "weight again"]
    )
    def test_not_where_that_would_change_answers(self, kind):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.flatten, self.linear = nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 7 * 7, 4)
                if kind == "rows only":
                    self.flatten, self.linear = nn.Flatten(2), nn.Linear(49, 4)
                if kind == "all of it":
                    self.flatten = nn.Flatten(-3)
                self.end = nn.Linear(4 * 7 * 7, 4) if kind == "twice" else nn.Linear(4, 4)

            def forward(self, x):
                x = self.conv(x)
                if kind == "vectors":
                    x = x.flatten(2).flatten(1)
                x = self.flatten(x)
                y = self.linear(x)
                if kind == "rows only":
                    y = y.mean(1)
                if kind == "linear twice":
                    return y + self.linear(x.flip(1))
                if kind == "weight again":
                    return y + x @ self.linear.weight.t()
                return y + self.end(x) if kind == "twice" else self.end(y)

        module = seeded(Net)
        if kind == "hook":
            module.flatten.register_forward_hook(lambda _, __, answer: answer.flip(1))
        quick = optimised(module, images(16))
        assert "FlattenLast" not in names(quick)
        assert_same(quick, module, images())


class TestConvolutions:
    @pytest.mark.parametrize("channels", [1, 3, FEW_CHANNELS])
    @pytest.mark.parametrize(
        "settings",
        [
            {"kernel_size": 3},
            {"kernel_size": 3, "padding": 1},
            {"kernel_size": 3, "padding": 1, "stride": 2},
            {"kernel_size": (1, 4), "padding": (0, 2), "stride": (3, 1)},
            {"kernel_size": 1, "stride": 2},
            {"kernel_size": 5, "padding": 3, "stride": 3, "bias": False},
            {"kernel_size": 9},
        ],
    )
    def test_of_few_channels_pull_slopes_back_their_own_way(self, channels, settings):
        for size in (9, 10, 12):
            module = seeded(lambda: head(nn.Conv2d(channels, 5, **settings), nn.Tanh(), channels=5))
            quick = optimised(module, images(16, channels=channels, size=size))
            assert "FewChannels" in names(quick)
            assert_same(quick, module, images(channels=channels, size=size))

    @pytest.mark.parametrize(
        ("channels", "settings"),
        [
            (3, {"padding": 1, "padding_mode": "reflect"}),
            (3, {"padding": 2, "padding_mode": "circular"}),
            (3, {"padding": 1, "padding_mode": "replicate"}),
            (3, {"padding": "same"}),
            (3, {"dilation": 2}),
            (3, {"groups": 3}),
            (FEW_CHANNELS + 1, {"padding": 1}),
            (FEW_CHANNELS + 1, {"padding": 1, "stride": 2}),
            (FEW_CHANNELS + 1, {"padding": 1, "stride": 3}),
            (FEW_CHANNELS + 1, {"padding": 1, "stride": (2, 1)}),
            (6, {"padding": 1, "stride": 2, "groups": 2}),
            (6, {"padding": 1, "stride": 2, "dilation": 2}),
            (6, {"padding": 1, "stride": 2, "padding_mode": "reflect"}),
        ],
    )
    @pytest.mark.parametrize("fused", [False, True])
    def test_of_other_kinds_keep_torchs_own(self, channels, settings, fused):
        norm = [nn.BatchNorm2d(6)] if fused else []
        module = seeded(lambda: head(nn.Conv2d(channels, 6, 3, **settings), *norm, nn.Tanh(), channels=6))
        quick = optimised(module, images(16, channels=channels))
        assert names(quick).count("Conv2d") == 1
        assert_same(quick, module, images(channels=channels))

    @pytest.mark.parametrize(
        ("padding", "shape"),
        [
            *((padding, shape) for padding in (0, 1, 2, (2, 0)) for shape in ((3, 3), (5, 8), (8, 5), (6, 6), (7, 7))),
            (1, (1, 12)),
            ((2, 0), (1, 12)),
        ],
    )
    def test_every_slope_of_a_layer_is_exact(self, padding, shape):
        """Each output's own slope in each input, against torch in float64."""
        layer = seeded(lambda: nn.Conv2d(2, 3, 3, stride=2, padding=padding))
        x = torch.rand(2, 2, *shape, generator=torch.Generator().manual_seed(0))
        leaf, exact = x.clone().requires_grad_(True), x.double().requires_grad_(True)
        answer, truth = FewChannels(layer)(leaf), copy.deepcopy(layer).double()(exact)
        torch.testing.assert_close(answer.double(), truth, atol=1e-6, rtol=0)
        for place in range(answer[0].numel()):
            outputs = [part.flatten(1)[:, place].sum() for part in (answer, truth)]
            (found,) = torch.autograd.grad(outputs[0], leaf, retain_graph=True)
            (expected,) = torch.autograd.grad(outputs[1], exact, retain_graph=True)
            torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=0)

    def test_without_gradient_the_answers_are_the_same(self):
        layer = seeded(lambda: nn.Conv2d(3, 5, 3, stride=2, padding=1))
        with torch.no_grad():
            assert torch.equal(FewChannels(layer)(images()), layer(images()))

    def test_a_class_of_the_users_own_is_not_taken_for_torchs(self):
        class Doubled(nn.Conv2d):
            def forward(self, x):
                return 2 * super().forward(x)

        module = seeded(lambda: head(Doubled(3, 6, 3), nn.BatchNorm2d(6), channels=6))
        quick = optimised(module, images(16))
        assert names(quick).count("Doubled") == names(quick).count("BatchNorm2d") == 1
        assert_same(quick, module, images())

    def test_a_parametrised_weight_is_computed_as_before(self):
        module = seeded(
            lambda: head(
                nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 6, 3)), nn.BatchNorm2d(6), nn.ReLU(), channels=6
            )
        )
        assert_same(optimised(module, images(16)), module, images())


class Viewed(nn.Module):
    """A `view` that needs channels to come first in memory."""

    def __init__(self):
        super().__init__()
        self.conv, self.end = nn.Conv2d(3, 6, 3), nn.Linear(6 * 7 * 7, 4)

    def forward(self, x):
        return self.end(self.conv(x).relu().view(len(x), -1))


class Choosing(nn.Module):
    """What it does follows from what it sees: torch cannot trace it."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.end = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Linear(6, 4)

    def forward(self, x):
        x = self.norm(self.conv(x))
        x = x.relu() if x.mean() > 1000 else x.tanh()
        return self.end(x.mean((2, 3)))


class Asserting(nn.Module):
    """Code that insists on channels coming first, in its own words."""

    def __init__(self):
        super().__init__()
        self.conv, self.end = nn.Conv2d(3, 6, 3), nn.Linear(6, 4)

    def forward(self, x):
        x = self.conv(x)
        if not x.is_contiguous():
            raise ValueError("channels must come first")
        return self.end(x.mean((2, 3)))


class Branching(nn.Module):
    """What fixed inputs do not show: bright ones take a way that needs channels first. torch cannot trace it."""

    def __init__(self):
        super().__init__()
        self.conv, self.end = nn.Conv2d(3, 6, 3), nn.Linear(6 * 7 * 7, 4)

    def forward(self, x):
        y = self.conv(x).relu()
        flat = y.view(len(x), -1) if bool(x.mean() > 0.9) else y.flatten(1)
        return self.end(flat)


class OnlyFloat32(nn.Module):
    """Refuses float64, in its own words."""

    ERRORS: ClassVar = {"assert": AssertionError, "value": ValueError, "key": KeyError, "own": Exception}

    def __init__(self, kind):
        super().__init__()
        self.kind, self.conv, self.end = kind, nn.Conv2d(3, 6, 3), nn.Linear(6, 4)

    def forward(self, x):
        if x.dtype != torch.float32:
            raise self.ERRORS[self.kind]("float32 only")
        return self.end(self.conv(x).mean((2, 3)))


class Unsteady(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.end = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Linear(6, 4)

    def forward(self, x):
        return self.end(F.dropout(self.norm(self.conv(x)).relu(), 0.5, training=True).mean((2, 3)))


class TestCheckedModel:
    @pytest.mark.parametrize("make", [Viewed, Choosing])
    def test_modules_that_cannot_have_all_of_it_answer_alike(self, make):
        module = seeded(make)
        model = checked(module)
        assert_same(model.answer, module, images(16))
        assert not model.random

    def test_a_module_that_insists_on_its_memory_layout_is_left_alone(self):
        module = seeded(Asserting)
        assert_same(checked(module).answer, module, images(16))

    @pytest.mark.parametrize("kind", ["assert", "value", "key", "own"])
    def test_a_module_that_refuses_float64_is_left_alone(self, kind):
        module = seeded(lambda: OnlyFloat32(kind))
        model = checked(module)
        assert torch.equal(model.ask(images(16)), module(images(16)))

    def test_a_module_that_cannot_be_traced_keeps_its_memory_layout(self):
        module = seeded(Branching)
        bright = torch.ones(16, 3, 9, 9)
        torch.testing.assert_close(checked(module).ask(bright), module(bright))

    def test_log_probabilities_are_no_hindrance(self):
        module = seeded(
            lambda: nn.Sequential(
                head(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), channels=8), nn.LogSoftmax(dim=1)
            )
        )
        quick = optimised(module, images(16))
        assert "BatchNorm2d" not in names(quick)
        assert_same(quick, module, images())

    def test_weights_that_rounding_would_spoil_are_left_alone(self):
        """The convolution's large bias goes away only after the normalisation's equally large mean."""
        module = seeded(lambda: head(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), channels=8))
        module[0].bias.fill_(1e7)
        module[1].running_mean.fill_(1e7)
        quick = optimised(module, images(16))
        error = (quick(images(16)) - module(images(16))).abs().max() / module(images(16)).abs().max()
        assert error <= 1e-3

    def test_what_is_not_traced_is_not_fused(self):
        quick = checked(seeded(Choosing)).answer
        assert names(quick).count("BatchNorm2d") == 1

    def test_a_module_that_answers_at_random_is_the_users_own_frozen_copy(self):
        module = seeded(Unsteady)
        model = checked(module)
        assert model.random
        assert names(model.answer) == names(module)
        assert "BatchNorm2d" in names(model.answer)

    def test_a_wrong_replacement_would_be_noticed(self, monkeypatch):
        """The last resort: answers and slopes are compared before a replacement is used."""
        module = seeded(lambda: head(nn.Conv2d(3, 8, 3), nn.Tanh(), channels=8))
        right = FewChannels.pull_back
        monkeypatch.setattr(FewChannels, "pull_back", lambda self, slope, size: 1.1 * right(self, slope, size))
        quick = optimised(module, images(16))
        assert quick is module

    def test_the_name_of_a_model_does_not_depend_on_whether_it_was_made_quicker(self, monkeypatch):
        module = seeded(lambda: head(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), channels=8))
        quick = checked(module)
        monkeypatch.setattr(sys.modules[checked_model.__module__], "optimised", lambda module, _: module)
        own = checked(module)
        assert "BatchNorm2d" not in names(quick.answer)
        assert "BatchNorm2d" in names(own.answer)
        assert quick.digest == own.digest

    @pytest.mark.parametrize("channels", [1, 3, 6])
    @pytest.mark.parametrize("stride", [1, 2])
    def test_a_row_does_not_depend_on_its_batch_mates_bit_for_bit(self, channels, stride):
        module = seeded(
            lambda: nn.Sequential(
                nn.Conv2d(channels, 8, 3, stride=stride, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.Conv2d(8, 16, 3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(16),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(2),
                nn.Flatten(),
                nn.Linear(64, 4),
            )
        )
        model = checked(module, channels=channels, size=12)
        x = images(70, channels=channels, size=12)

        def asked(rows):
            leaf = x[rows].clone().requires_grad_(True)
            answer = model.ask(leaf)
            (slope,) = torch.autograd.grad((answer[:, 1] - answer[:, 3]).double().sum(), leaf)
            return answer.detach(), slope

        whole = asked(torch.arange(70))
        order = torch.randperm(70, generator=torch.Generator().manual_seed(0))
        for rows in (torch.arange(1), torch.arange(5, 12), torch.arange(40, 63), torch.arange(64), order, order[:33]):
            for found, expected in zip(asked(rows), whole, strict=True):
                assert torch.equal(found, expected[rows])
