"""The same model in another precision: what it computes, what flows back, and what it is called."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.engine.layers import activations
from advrisk.engine.model import wide
from advrisk.parts.data import Dataset
from advrisk.parts.models import Loaded, checked_model, models
from advrisk.parts.models.precision import eight_bit
from advrisk.parts.models.residual import ResNet
from advrisk.parts.models.small import SmallCnn
from advrisk.parts.models.torch_module import from_module
from advrisk.testing import check_model

HALF = ("bfloat16", "float16")
ALL = ("float64", "float32", *HALF, "int8")


def seeded(make: Any, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        module: nn.Module = make()
    return module.eval()


def net() -> nn.Module:
    return seeded(lambda: SmallCnn(size=8, width=4, classes=3))


def perceptron() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 200), nn.ReLU(), nn.Linear(200, 3)))


def images(n: int = 24) -> Tensor:
    return torch.from_numpy(np.random.default_rng(1).random((n, 1, 8, 8), dtype=np.float32))


def dataset() -> Dataset:
    return Dataset("toy", images(4).numpy(), np.array([0, 1, 2, 0]), 3)


def model(module: nn.Module, precision: Any = None) -> Any:
    return checked_model("net", from_module(module), dataset(), precision=precision)


@pytest.mark.parametrize("precision", ["float64", "bfloat16", "float16"])
def test_a_model_computes_what_torch_computes_in_that_type(precision: str) -> None:
    dtype = getattr(torch, precision)
    with torch.no_grad():
        expected = copy.deepcopy(net()).to(dtype)(images().to(dtype))
    scores = model(net(), precision).ask_owner(images())
    assert scores.dtype == torch.float32
    assert torch.equal(scores, expected.float())


@pytest.mark.parametrize("precision", ALL)
@pytest.mark.parametrize("make", [net, perceptron, lambda: seeded(lambda: ResNet(width=4, classes=3))])
def test_a_row_does_not_depend_on_its_neighbours_and_gradients_come_in_float32(make: Any, precision: str) -> None:
    made = model(make(), precision)
    check_model(made, images(20))
    x = images().requires_grad_(True)
    (slope,) = torch.autograd.grad(made.ask(x).logsumexp(1).sum(), x)
    assert slope.dtype == torch.float32
    assert bool((slope != 0).flatten(1).any(1).all())


@pytest.mark.parametrize("precision", HALF)
def test_slopes_too_small_for_half_precision_do_not_vanish(precision: str) -> None:
    """float16 knows nothing between 0 and 6e-8; a net in it would look robust to every attack by gradients."""
    x = images(4)
    slopes = []
    for asked in (None, precision):
        point = x.clone().requires_grad_(True)
        slopes.append(torch.autograd.grad(1e-12 * model(net(), asked).ask(point)[:, 0].sum(), point)[0] * 1e12)
    assert float((slopes[1] - slopes[0]).abs().max()) < 0.05 * float(slopes[0].abs().max())


def test_gradients_of_several_classes_come_from_one_pass() -> None:
    made = model(net(), "float16")
    x = images(16).requires_grad_(True)
    scores = made.ask(x)
    together = [torch.autograd.grad(s * scores[:, k].sum(), x, retain_graph=True)[0] for k, s in ((0, 1.0), (1, 1e-9))]
    for k, scale in ((0, 1.0), (1, 1e-9)):
        point = images(16).requires_grad_(True)
        (alone,) = torch.autograd.grad(scale * made.ask(point)[:, k].sum(), point)
        assert torch.equal(together[k], alone)


def test_eight_bits_are_those_of_torch_and_its_observers() -> None:
    from torch.ao.quantization import FakeQuantize, PerChannelMinMaxObserver

    values = torch.randn(6, 3, 5, 5, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, 6).view(
        -1, 1, 1, 1
    )
    settings: dict[str, Any] = {"quant_min": -127, "quant_max": 127, "dtype": torch.qint8, "ch_axis": 0}
    peer = FakeQuantize(observer=PerChannelMinMaxObserver, qscheme=torch.per_channel_symmetric, eps=1e-30, **settings)
    torch.testing.assert_close(eight_bit(values), peer(values), rtol=1e-6, atol=0)
    steps = eight_bit(values) / (values.abs().flatten(1).amax(1) / 127).view(-1, 1, 1, 1)
    assert float((steps - steps.round()).abs().max()) < 1e-4
    assert float(steps.abs().max()) < 127.001
    assert torch.equal(eight_bit(torch.zeros(2, 3)), torch.zeros(2, 3))


def test_eight_bits_give_what_whole_numbers_would() -> None:
    """The product of integers, summed exactly and scaled afterwards, as a processor with int8 arithmetic does it."""
    linear = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    x = images().flatten(1).double()
    weight = linear[1].weight.detach().double()  # type: ignore[index]
    steps = [values.abs().amax(1, keepdim=True) / 127 for values in (x, weight)]
    whole = [(values / step).round().long() for values, step in zip((x, weight), steps, strict=True)]
    expected = (whole[0] @ whole[1].T) * steps[0] * steps[1].T + linear[1].bias.detach()  # type: ignore[index]
    found = model(linear, "int8").ask_owner(images())
    # A value within float32 rounding of the middle between two steps may go the other way: one step of one factor.
    assert float((found - expected).abs().max()) < 1e-4
    with torch.no_grad():
        assert float((found - linear(images())).abs().max()) > 1e-4, "8 bits are fewer than 32"


def test_slopes_pass_eight_bits_straight_through() -> None:
    linear = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    x = images(16).requires_grad_(True)
    (slope,) = torch.autograd.grad(model(linear, "int8").ask(x)[:, 1].sum(), x)
    weight = eight_bit(linear[1].weight.detach())[1]  # type: ignore[index]
    torch.testing.assert_close(slope.flatten(1), weight.expand(16, -1))


def test_the_digest_names_the_precision_unless_it_is_what_the_model_has_anyway() -> None:
    digests = {precision: model(net(), precision).digest for precision in (None, *ALL)}
    assert digests["float32"] == digests[None]
    assert len(set(digests.values())) == 5
    assert digests["int8"] == model(net(), "int8").digest


def test_only_a_float32_model_gets_an_optimised_copy() -> None:
    assert model(net(), "float32").owner is not None
    assert [model(net(), precision).owner for precision in ("float64", *HALF, "int8")] == [None] * 4


def test_a_double_module_needs_no_code_to_take_float32_inputs() -> None:
    with pytest.raises(ModelError, match="cannot take the inputs"):
        model(net().double())
    assert model(net().double(), "float64").ask(images()).dtype == torch.float32


class Strict(nn.Module):
    """Names a type in its code."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.linear(x.flatten(1).to(torch.float32))
        return answer


class NoHalf(nn.Module):
    """Uses an operation that torch does not have in half precision on the processor."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.qr(self.linear(x.flatten(1)).unsqueeze(2))[1][:, :, 0] + self.linear(x.flatten(1))


class ColumnsFirst(nn.Module):
    """Hands its linear layer the features first and the inputs last."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        answer: Tensor = self.linear(x.flatten(1).view(-1, 8, 8).transpose(0, 1)).sum(0)
        return answer


@pytest.mark.parametrize(
    ("module", "precision", "complaint"),
    [
        (Strict(), "float16", "net cannot compute in float16 here: .*choose another `precision`"),
        (NoHalf(), "float16", "net cannot compute in float16 here: .*not implemented for 'Half'"),
        (ColumnsFirst(), "int8", "depends on the others in its batch"),
        (nn.Flatten(), "int8", "no linear or convolutional layer as a module"),
        (nn.Sequential(nn.Flatten(), nn.MultiheadAttention(64, 2), nn.Linear(64, 3)), "int8", "'1' is attention"),
    ],
)
def test_what_cannot_be_had_is_refused_before_the_run(module: nn.Module, precision: str, complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        model(module, precision)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("precision", ["float64", *HALF])
def test_torchscript_is_cast_and_not_quantised(precision: str, tmp_path: Path) -> None:
    torch.jit.save(torch.jit.trace(net(), images(2)), str(tmp_path / "net.pt"))
    source = models.get("torchscript")
    loaded = source.function(**source.bind({"path": str(tmp_path / "net.pt")}))
    scores = checked_model("net", loaded, dataset(), precision=precision).ask(images())  # type: ignore[arg-type]
    assert torch.equal(scores, model(net(), precision).ask(images()))
    with pytest.raises(ModelError, match="net is TorchScript, whose layers cannot be quantised"):
        checked_model("net", loaded, dataset(), precision="int8")


def test_numbers_past_what_float16_holds_are_named() -> None:
    large = seeded(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    large[1].weight.data *= 1e6  # type: ignore[index]
    with pytest.raises(ModelError, match="not finite; float16 holds at most 65504"):
        model(large, "float16")


def test_a_function_has_no_precision() -> None:
    loaded = Loaded(lambda x: x.flatten(1)[:, :3], "f", capability="scores")
    with pytest.raises(ModelError, match="precision: float16 is for torch modules, and net is a function"):
        checked_model("net", loaded, dataset(), precision="float16")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_a_model_answers_in_half_precision_comes_in_as_float32(dtype: torch.dtype) -> None:
    class Casting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net().to(dtype)

        def forward(self, x: Tensor) -> Tensor:
            answer: Tensor = self.inner(x.to(dtype))
            return answer

    made = model(Casting())
    x = images().requires_grad_(True)
    scores = made.ask(x)
    assert scores.dtype == torch.float32
    assert made.ask_owner(images()).dtype == torch.float32
    (slope,) = torch.autograd.grad(scores.sum(), x)
    assert slope.dtype == torch.float32
    assert bool((slope != 0).any())


@pytest.mark.parametrize("precision", ALL)
def test_hidden_layers_are_read_in_float32_under_their_own_names(precision: str) -> None:
    made = model(perceptron(), precision)
    answer, (hidden,) = activations(made, images(), ["2"])
    assert torch.equal(answer, made.original.ask(images()))
    assert (hidden.dtype, tuple(hidden.shape)) == (
        torch.float64 if precision == "float64" else torch.float32,
        (24, 200),
    )


def test_classes_come_in_as_int64_and_float64_stays() -> None:
    assert wide(torch.tensor([1], dtype=torch.int16)).dtype == torch.int64
    assert wide(torch.ones(1, dtype=torch.float64)).dtype == torch.float64
