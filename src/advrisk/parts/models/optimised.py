"""An optimised copy of a module, with faster gradients in its input. CPU only (`make bench` measures the gain).

- A batch normalisation that follows a convolution becomes part of its weights.
- Weights are stored with their channels last, which suits the CPU's convolutions; a linear layer behind a `Flatten`
  takes its features in that order, too.
- Convolutions of few input channels have a backward pass of their own, as torch's is slow there.

A copy replaces a module only if its answers and gradients are equal up to rounding.
"""

import copy
from collections import Counter

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, fx, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.fusion import fuse_conv_bn_eval

FEW_CHANNELS = 4
_TOLERANCE = 1e-9  # of the largest answer or slope, in float64
_ROUNDING = 1e-3  # of the largest answer, in float32; it is 1e-6 where nothing is badly scaled


def optimised(module: nn.Module, x: Tensor) -> nn.Module:
    """An optimised copy with the same answers to `x`, or the module itself.

    The changes are checked on a copy in float64: in float32, rounding alone moves some ReLUs of a deep net over their
    kink, where slopes jump. A module that cannot be copied, or cannot compute in float64, stays as it is.
    """
    if isinstance(module, torch.jit.ScriptModule):
        return module
    pairs = _pairs(module)
    images = all(parameter.dim() <= 4 for parameter in module.parameters())
    # Channels last is for images, and for modules that torch can trace.
    for last in (True, False) if images and pairs is not None else (False,):
        try:
            quick = _proved(module, pairs or [], x, last=last)
        except Exception:  # the user's code may fail in any way when it is copied or computes in float64
            continue
        if quick is not None:
            return quick
    return module


def _proved(module: nn.Module, pairs: list[tuple[str, str]], x: Tensor, *, last: bool) -> nn.Module | None:
    """The copy, if it has the same answers and gradients in float64, and about the same answers in float32."""
    exact = copy.deepcopy(module).double()
    expected = _answer_and_slope(exact, x.double())
    actual = _answer_and_slope(_version(exact, pairs, x.double(), last=last), x.double())
    if any(bool((a - b).abs().amax() > _TOLERANCE * b.abs().amax()) for a, b in zip(actual, expected, strict=True)):
        return None
    del exact
    quick = _version(module, pairs, x, last=last)
    with torch.no_grad():
        answer = module(x)
        close = bool((answer - quick(x)).abs().amax() <= _ROUNDING * answer.abs().amax())
    return quick if close else None


def _version(module: nn.Module, pairs: list[tuple[str, str]], x: Tensor, *, last: bool) -> nn.Module:
    """An optimised copy, with channels last or not."""
    quick = copy.deepcopy(module)
    for before, after in pairs:
        conv, norm = quick.get_submodule(before), quick.get_submodule(after)
        if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None:
            quick.set_submodule(before, fuse_conv_bn_eval(conv, norm).requires_grad_(False))
            quick.set_submodule(after, nn.Identity())
    for name, layer in list(quick.named_modules()):
        if type(layer) is nn.Conv2d and _is_plain(layer) and _has_few_channels(layer):
            quick.set_submodule(name, FewChannels(layer))
    if last:
        quick = quick.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        _flatten_last(quick, pairs, x)
    return quick


def _flatten_last(module: nn.Module, pairs: list[tuple[str, str]], x: Tensor) -> None:
    """Let linear layers behind a `Flatten` take their features in memory order."""
    for before, after in pairs:
        flatten, linear = module.get_submodule(before), module.get_submodule(after)
        if isinstance(flatten, nn.Flatten) and isinstance(linear, nn.Linear):
            shape = _input_shape(module, flatten, x)
            if len(shape) == 4 and flatten.start_dim == 1 and flatten.end_dim in (-1, 3):
                weight = linear.weight.detach().view(-1, *shape[1:]).permute(0, 2, 3, 1).flatten(1)
                linear.weight = nn.Parameter(weight, requires_grad=False)
                module.set_submodule(before, FlattenLast())


def _input_shape(module: nn.Module, layer: nn.Module, x: Tensor) -> tuple[int, ...]:
    shapes: list[tuple[int, ...]] = []
    with layer.register_forward_pre_hook(lambda _, args: shapes.append(args[0].shape)), torch.no_grad():
        module(x)
    return shapes[0]


def _answer_and_slope(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Answers, and the gradient of their sum with unequal weights."""
    x = x.clone().requires_grad_(True)
    answer = module(x)
    weights = torch.linspace(1, 2, answer.shape[1], dtype=answer.dtype).cos()
    (slope,) = torch.autograd.grad((answer * weights).sum(), x)
    return answer.detach(), slope


def _is_plain(layer: nn.Module) -> bool:
    """Whether a layer does what its class says and nothing more."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks)
    return type(layer) in (nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear) and not any(hooks)


def _pairs(module: nn.Module) -> list[tuple[str, str]] | None:
    """Names of plain layers where only the second takes the output of the first; None if torch cannot trace them."""
    try:
        graph = fx.Tracer().trace(module)
    except Exception:  # the user's code may fail in any way when torch traces it
        return None
    calls = [node for node in graph.nodes if node.op == "call_module"]
    once = {name for name, count in Counter(str(node.target) for node in calls).items() if count == 1}
    plain = {name for name in once if _is_plain(module.get_submodule(name))}
    befores = ((node.args[0] if node.args else None, node) for node in calls)
    alone = ((before, node) for before, node in befores if isinstance(before, fx.Node) and len(before.users) == 1)
    pairs = [(str(before.target), str(node.target)) for before, node in alone if before.op == "call_module"]
    return [pair for pair in pairs if plain.issuperset(pair)]


def _has_few_channels(layer: nn.Conv2d) -> bool:
    simple = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
    return simple and layer.in_channels <= FEW_CHANNELS and not isinstance(layer.padding, str)


class FlattenLast(nn.Module):
    """Flattens features in memory order, with the channel as the last index."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).flatten(1)


class FewChannels(nn.Module):
    """A convolution of few input channels, with a backward pass of its own."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.kernel_size, self.stride = layer.kernel_size, layer.stride
        self.padding = (int(layer.padding[0]), int(layer.padding[1]))

    def forward(self, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() and x.requires_grad:
            answer: Tensor = _Pulled.apply(x, self)  # type: ignore[no-untyped-call]
            return answer
        return self.convolved(x)

    def convolved(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding)

    def pull_back(self, slope: Tensor, size: torch.Size) -> Tensor:
        """The gradient in the input: one matrix product for all positions of the kernel, whose planes are added."""
        (rows, columns), (down, right), (top, left) = self.kernel_size, self.stride, self.padding
        n, n_out, height, width = slope.shape
        weight = self.weight.permute(2, 3, 1, 0).reshape(-1, n_out)
        sent = weight @ slope.permute(0, 2, 3, 1).reshape(-1, n_out).t()
        sent = sent.view(rows, columns, -1, n, height, width)
        padded = slope.new_zeros(sent.shape[2], n, size[0] + 2 * top + down - 1, size[1] + 2 * left + right - 1)
        for row in range(rows):
            for column in range(columns):
                padded[:, :, row : row + down * height : down, column : column + right * width : right] += sent[
                    row, column
                ]
        return padded[:, :, top : top + size[0], left : left + size[1]].transpose(0, 1).contiguous()


class _Pulled(torch.autograd.Function):
    """A convolution with the backward pass of its layer."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, layer: FewChannels) -> Tensor:
        ctx.layer, ctx.size = layer, x.shape[2:]  # type: ignore[attr-defined]
        return layer.convolved(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: torch.autograd.function.FunctionCtx, slope: Tensor) -> tuple[Tensor, None]:
        return ctx.layer.pull_back(slope, ctx.size), None  # type: ignore[attr-defined]
