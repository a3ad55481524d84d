"""The same module, but quicker to differentiate in its input. CPU only (`make bench` measures what it gains).

- A batch normalisation that follows a convolution becomes part of its weights.
- Weights are stored with their channels last, which is what the CPU's convolutions want.
- Convolutions of few input channels pull slopes back in another way than torch's own backward, which is slow there.

A module is only ever replaced by one that gives the same answers and slopes but for rounding.
"""

import copy

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, fx, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.fusion import fuse_conv_bn_eval

FEW_CHANNELS = 4
_TOLERANCE = 1e-3  # of the largest answer or slope; rounding gives 1e-6


def quickened(module: nn.Module, x: Tensor) -> nn.Module:
    """A quicker module that answers `x` alike, or the module itself."""
    if isinstance(module, torch.jit.ScriptModule):
        return module
    try:
        versions = _versions(module)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError):
        return module  # it cannot be copied, or not laid out anew
    return next((quick for quick in versions if _alike(module, quick, x)), module)


def _versions(module: nn.Module) -> list[nn.Module]:
    """Quicker versions, the quickest first."""
    plain = copy.deepcopy(module)
    for name, fused in _fused_pairs(plain).items():
        plain.set_submodule(name, fused)
    for name, layer in list(plain.named_modules()):
        if isinstance(layer, nn.Conv2d) and _is_plain(layer):
            pulled = _quick_convolution(layer)
            if pulled is not None:
                plain.set_submodule(name, pulled)
    if any(parameter.dim() > 4 for parameter in plain.parameters()):  # channels last is for images
        return [plain]
    return [copy.deepcopy(plain).to(memory_format=torch.channels_last), plain]  # type: ignore[call-overload]


def _alike(module: nn.Module, quick: nn.Module, x: Tensor) -> bool:
    try:
        pairs = zip(_answer_and_slope(module, x), _answer_and_slope(quick, x), strict=True)
        return all(bool((a - b).abs().amax() <= _TOLERANCE * a.abs().amax()) for a, b in pairs)
    except (RuntimeError, ValueError, IndexError, AssertionError, TypeError):  # a `view` that needs channels first, …
        return False


def _answer_and_slope(module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_(True)
    answer = module(x)
    (slope,) = torch.autograd.grad(answer.logsumexp(1).sum(), x)
    return answer.detach(), slope


def _is_plain(layer: nn.Module) -> bool:
    """Whether a layer does what its class says and nothing more."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks)
    return type(layer) in (nn.Conv2d, nn.BatchNorm2d) and not any(hooks)


def _fused_pairs(module: nn.Module) -> dict[str, nn.Module]:
    """Layers to put in place: convolutions with the batch normalisation after them in their weights."""
    try:
        graph = fx.Tracer().trace(module)
    except Exception:  # whatever the user's code does when torch traces it: then nothing is fused
        return {}
    layers = dict(module.named_modules())
    calls = [node.target for node in graph.nodes if node.op == "call_module"]
    fused: dict[str, nn.Module] = {}
    for node in graph.nodes:
        before = node.args[0] if node.args else None
        if node.op != "call_module" or not isinstance(before, fx.Node) or before.op != "call_module":
            continue
        norm, conv = layers[str(node.target)], layers[str(before.target)]
        once = calls.count(node.target) == calls.count(before.target) == 1 and len(before.users) == 1
        if once and _fit(conv, norm):
            fused[str(before.target)] = fuse_conv_bn_eval(conv, norm).requires_grad_(False)
            fused[str(node.target)] = nn.Identity()
    return fused


def _fit(conv: nn.Module, norm: nn.Module) -> bool:
    pair = isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None
    return pair and _is_plain(conv) and _is_plain(norm)


def _quick_convolution(layer: nn.Conv2d) -> nn.Module | None:
    simple = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
    few = layer.in_channels <= FEW_CHANNELS and not isinstance(layer.padding, str)
    return FewChannels(layer) if simple and few else None


class FewChannels(nn.Module):
    """A convolution of few input channels, whose slope is pulled back by one product of matrices and a fold."""

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
        columns = slope.flatten(2).transpose(1, 2) @ self.weight.flatten(1)
        return F.fold(columns.transpose(1, 2), size, self.kernel_size, 1, self.padding, self.stride)


class _Pulled(torch.autograd.Function):
    """A convolution that differentiates as its layer says."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, layer: FewChannels) -> Tensor:
        ctx.layer, ctx.size = layer, x.shape[2:]  # type: ignore[attr-defined]
        return layer.convolved(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: torch.autograd.function.FunctionCtx, slope: Tensor) -> tuple[Tensor, None]:
        return ctx.layer.pull_back(slope, ctx.size), None  # type: ignore[attr-defined]
