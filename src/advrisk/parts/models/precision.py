"""The same model computed in another precision: float64, float32, bfloat16, float16, or 8-bit integers.

Attacks work on float32 inputs and read float32 scores: the model casts its inputs and outputs. For float64 this also
removes the last digits, which depend on the number of rows in a batch. `int8` is simulated: weights and activations
take 8-bit values, the sums between them are float32.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from advrisk.core.digest import digest
from advrisk.core.errors import ModelError
from advrisk.core.traits import Precision
from advrisk.parts.models.registry import Loaded

_TYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_LEVELS = 127  # of int8, on each side of zero
_WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_INT8_VERSION = 1  # raised when the scheme changes
MIXED_ROWS = (
    "the answer to an input depends on the others in its batch, because a layer does not take one row per input; use "
    "bfloat16 or float16"
)


def in_precision(name: str, loaded: Loaded, precision: Precision) -> Loaded:
    """The model in this precision; itself if it already computes in it."""
    module = loaded.module
    if module is None or loaded.answer is not module:
        raise ModelError(f"precision: {precision} is for torch modules, and {name} is a function; remove it")
    if precision == "float32" and own_precision(loaded) == precision:
        return loaded
    made = _quantised(name, module) if precision == "int8" else _cast(module, _TYPES[precision])
    mark = [precision, _INT8_VERSION] if precision == "int8" else [precision]
    return replace(loaded, answer=made, module=made, content=digest([loaded.content, *mark]), precision=precision)


def own_precision(loaded: Loaded) -> str | None:
    """The precision of a model: its setting, or the type of its weights; None where they have several or none."""
    if loaded.precision is not None or loaded.module is None:
        return loaded.precision
    tensors = [*loaded.module.parameters(), *loaded.module.buffers()]
    types = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    names = [name for name, dtype in _TYPES.items() if types == {dtype}]
    return names[0] if names else None


def _cast(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy whose weights and arithmetic have this type; inputs and outputs are float32."""
    made = _copied(module).to(dtype)
    if isinstance(made, torch.jit.ScriptModule):  # which takes no hooks
        made = nn.Sequential(made)
    ends = _Ends(dtype)
    made.register_forward_pre_hook(ends.enter)
    made.register_forward_hook(ends.leave)
    return made


def _copied(module: nn.Module) -> nn.Module:
    made = copy.deepcopy(module)
    for parameter in made.parameters():  # TorchScript has no `requires_grad_` of its own
        parameter.requires_grad_(False)
    return made


@dataclass
class _Ends:
    """The casts at both ends of a module, as its hooks. Nothing is kept between two passes."""

    dtype: torch.dtype
    _gain: "_Gain | None" = None

    def enter(self, _: nn.Module, args: Any) -> Any:
        x = args[0]
        if self.dtype.itemsize >= 4:
            return (x.to(self.dtype), *args[1:])
        self._gain = _Gain()
        return (_Narrowed.apply(x, self.dtype, self._gain), *args[1:])  # type: ignore[no-untyped-call]

    def leave(self, _: nn.Module, __: Any, answer: Any) -> Any:
        gain, self._gain = self._gain, None
        if not isinstance(answer, Tensor) or answer.dtype != self.dtype:
            return answer
        if gain is None:
            return answer.float()
        return _Widened.apply(answer, gain)  # type: ignore[no-untyped-call]


@dataclass
class _Gain:
    """The factor that shrinks each row's gradients on their way through a module in half precision."""

    of_row: Tensor | None = None


class _Widened(torch.autograd.Function):
    """Half precision to float32. The backward pass scales each row's largest entry to 1, as small ones would vanish."""

    @staticmethod
    def forward(ctx: Any, answer: Tensor, gain: _Gain) -> Tensor:
        ctx.gain, ctx.dtype = gain, answer.dtype
        return answer.float()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        size = slope.abs().flatten(1).amax(1)
        size = torch.where((size > 0) & torch.isfinite(size), size, 1.0)
        ctx.gain.of_row = size
        return (slope / _beside(size, slope)).to(ctx.dtype), None


class _Narrowed(torch.autograd.Function):
    """float32 to half precision. The backward pass restores the scale of the gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype, gain: _Gain) -> Tensor:
        ctx.gain = gain
        return x.to(dtype)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        size = ctx.gain.of_row
        slope = slope.float()
        return slope if size is None else slope * _beside(size, slope), None, None


def _beside(of_row: Tensor, values: Tensor) -> Tensor:
    return of_row.view(-1, *[1] * (values.dim() - 1))


def _quantised(name: str, module: nn.Module) -> nn.Module:
    """A float32 copy whose linear and convolutional layers have 8-bit weights and take 8-bit inputs."""
    if any(isinstance(layer, torch.jit.ScriptModule) for layer in module.modules()):
        raise ModelError(f"{name} is TorchScript, whose layers cannot be quantised; load it with the source `torch`")
    made = _copied(module).float()
    ends = _Ends(torch.float32)
    made.register_forward_pre_hook(ends.enter)
    layers = [(path, layer) for path, layer in made.named_modules() if isinstance(layer, _WEIGHTED)]
    if not layers:
        raise ModelError(
            f"{name} has no linear or convolutional layer as a module of its own, so int8 has nothing to quantise "
            "(advrisk cannot reach what a forward computes by functions, nor the inside of a torch.export file)"
        )
    for path, layer in made.named_modules():
        if isinstance(layer, nn.MultiheadAttention):
            raise ModelError(f"{name}: {path!r} is attention, which int8 does not support; use bfloat16 or float16")
        others = [weight for weight in layer.parameters(recurse=False) if weight.dim() > 1]
        if others and not isinstance(layer, _WEIGHTED):
            kind = type(layer).__name__
            raise ModelError(
                f"{name}: {path!r} is a {kind}, whose weights int8 would leave in float32; use bfloat16 or float16"
            )
    for path, layer in layers:
        _quantise_layer(name, path, layer)
    return made


def _quantise_layer(name: str, path: str, layer: nn.Module) -> None:
    if parametrize.is_parametrized(layer, "weight"):
        parametrize.remove_parametrizations(layer, "weight")
    weight = layer._parameters.get("weight")
    if weight is None:
        raise ModelError(f"{name}: each pass computes the weights of {path!r} anew; int8 needs stored weights")
    layer.weight = nn.Parameter(eight_bit(weight.detach()), requires_grad=False)
    layer.register_forward_pre_hook(_eight_bit_input)


def _eight_bit_input(_: nn.Module, args: Any) -> Any:
    return (eight_bit(args[0]), *args[1:])


def eight_bit(values: Tensor) -> Tensor:
    """Values rounded to −127 … 127 steps, the step of each row (first dimension) being its largest size / 127.

    Rounded to the nearest, ties to even. Nothing is clipped, so gradients pass as if nothing were rounded.
    """
    step = values.detach().abs().flatten(1).amax(1) / _LEVELS
    step = step.clamp_min(torch.finfo(torch.float32).tiny)
    zero = torch.zeros(len(values), dtype=torch.int32, device=values.device)
    return torch.fake_quantize_per_channel_affine(values, step, zero, 0, -_LEVELS, _LEVELS)
