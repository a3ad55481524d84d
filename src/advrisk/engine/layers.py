"""Hidden layers of a torch module, read by hooks.

A layer is one call of a module inside the model. Its name is the one torch gives the module (`features.3`, `head`); the
second call of a module that is used twice is named `relu#2`. What a forward computes by functions (`F.relu`) has no
name and cannot be read; the modules around it can.

Works on modules that run as Python code. TorchScript runs its layers, and a torch.export file its operations, without
calling modules: such models are refused, with the reason. Nothing here knows detectors.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules import activation as _activation
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from advrisk.core.errors import ModelError
from advrisk.core.names import did_you_mean
from advrisk.core.seeds import generator
from advrisk.engine.model import Model, wide

_ROWS = 17  # of the fixed inputs: a prime, so that no other size inside a model is mistaken for the number of inputs
_NO_ACTIVATION = {"MultiheadAttention", "Softmax", "Softmax2d", "Softmin", "LogSoftmax"}
_ACTIVATIONS = tuple(getattr(_activation, name) for name in _activation.__all__ if name not in _NO_ACTIVATION)
_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)

LayerKind = Literal["activation", "weights", "dropout", "other"]
LayerHook = Callable[[str, nn.Module, Any, Any], Any]
ProbedInputs = tuple[tuple[int, ...], tuple[float, float], int]  # input shape, bounds and least rows of a model


@dataclass(frozen=True)
class Layer:
    """One call of a module inside a model.

    `rows`: its output has one row per input; for dropout, which also works on parts of inputs, several rows per input.
    """

    name: str
    kind: LayerKind
    rows: bool
    leaf: bool


_layers: WeakKeyDictionary[nn.Module, dict[ProbedInputs, tuple[Layer, ...]]] = WeakKeyDictionary()


def module_of(model: Model) -> nn.Module:
    """The original torch module of a model; ModelError if it has none that can be inspected."""
    module = model.owner or model.answer
    if model.capability != "gradients":
        raise ModelError(f"{model.name} gives {model.capability} only, so its hidden layers cannot be read")
    if isinstance(module, torch.jit.ScriptModule):
        raise ModelError(
            f"{model.name} is TorchScript, which hides its layers; load it with the source `torch`, from a factory and "
            "weights"
        )
    if not isinstance(module, nn.Module):
        raise ModelError(f"{model.name} is no torch module but {_kind_of(module)}: it has no hidden layers to read")
    return module


def all_layers(model: Model) -> tuple[Layer, ...]:
    """Every call of a module inside the model, in the order in which the calls end; determined with fixed inputs.

    Determined once, as a model's module stays as it was loaded. The fixed inputs go to the module directly, so that
    their passes are not counted with those of scored inputs.
    """
    cache = _layers.setdefault(module_of(model), {})
    inputs = model.input_shape, model.bounds, model.min_rows
    if inputs not in cache:
        cache[inputs] = _list_layers(module_of(model), _fixed_inputs(model))
    return cache[inputs]


def hidden_layers(model: Model) -> tuple[str, ...]:
    """The default layers of a model, in the order in which they run; at least one.

    Of the layers between the first and the last one with weights: the activation modules (ReLU, GELU …) if there are at
    least two, else the layers with weights themselves, without the last, whose output is the answer.
    """
    layers = all_layers(model)
    first, last = _ends(model, layers)
    inner = layers[first:last]
    active = tuple(layer.name for layer in inner if layer.kind == "activation" and layer.rows)
    if len(active) >= 2:
        return active
    weighted = tuple(layer.name for layer in inner if layer.kind == "weights" and layer.rows)
    if not weighted:
        raise ModelError(f"{model.name}: no hidden layer has one row for each input, so none can be read")
    return weighted


def named_layers(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """The same names, after a check that the model has such layers and that they can be read."""
    layers = {layer.name: layer for layer in all_layers(model)}
    for name in names:
        if name not in layers:
            raise ModelError(f"{model.name} has no layer {name!r}; {did_you_mean(name, layers)}")
        if not layers[name].rows:
            raise ModelError(f"{model.name}: the output of layer {name!r} has no row for each input; name another")
    return tuple(names)


def last_layer(model: Model) -> str:
    """The last layer with weights of a model with hidden layers: its input is the last hidden representation."""
    layers = all_layers(model)
    return layers[_ends(model, layers)[1]].name


def dropout_layers(model: Model) -> tuple[str, ...]:
    """The dropout modules that run in a forward pass and would drop something in training."""
    layers = [layer for layer in all_layers(model) if layer.kind == "dropout"]
    for layer in layers:
        if not layer.rows:
            raise ModelError(
                f"{model.name}: dropout {layer.name!r} does not work on rows of inputs, so the same network cannot be "
                "drawn for all of them; let rows come first"
            )
    return tuple(layer.name for layer in layers)


def has_dropout(model: Model) -> bool:
    """Whether the model has dropout modules; `F.dropout` in a forward cannot be read and does not count."""
    return bool(dropout_layers(model))


def refuse_without_dropout(model: Model) -> None:
    """ModelError, with the reason, for a model without dropout modules."""
    if not has_dropout(model):
        raise ModelError(
            f"{model.name} has no dropout to draw from: none of its modules that run is a torch.nn.Dropout with p "
            "above 0 (advrisk cannot reach F.dropout in a forward)"
        )


def activations(
    model: Model, x: Tensor, layers: Sequence[str], *, each: Callable[[str, Tensor], Tensor] | None = None
) -> tuple[Tensor, list[Tensor]]:
    """The model's answer to `x`, and the outputs of the named layers: (rows, features) each.

    `each` gets a layer's name and output and reduces the output at once, so that only one is in memory at a time.
    Small batches are padded as `Model.ask` does; only the rows of `x` come back, also with `each`.
    """
    wanted, outputs = set(layers), dict[str, Tensor]()
    n = max(len(x), model.min_rows)

    def take(name: str, _: nn.Module, __: Any, output: Any) -> None:
        if name in wanted and (rows := _rows_of(output, n)) is not None:
            # A copy: a module that works in place may follow.
            outputs[name] = _flat(rows)[: len(x)].clone() if each is None else each(name, _flat(rows)[: len(x)])

    with hooked(module_of(model), take):
        answer = model.original.ask(x)
    return answer, [_expected(model, outputs, name) for name in layers]


def last_hidden(model: Model, x: Tensor, *, last: str) -> tuple[Tensor, Tensor]:
    """The model's answer to `x`, and the input of its last layer with weights (`last_layer`): (rows, features)."""
    inputs = dict[str, Tensor]()
    n = max(len(x), model.min_rows)

    def take(name: str, _: nn.Module, arguments: Any, __: Any) -> None:
        if name == last and (rows := _rows_of(arguments, n)) is not None:
            inputs[name] = _flat(rows)[: len(x)].clone()

    with hooked(module_of(model), take):
        answer = model.original.ask(x)
    return answer, _expected(model, inputs, last)


@contextmanager
def hooked(module: nn.Module, on_call: LayerHook) -> Iterator[None]:
    """Call `on_call(name, module, inputs, output)` after every call inside a module; its result replaces the output."""
    calls: Counter[str] = Counter()

    def after(name: str) -> Callable[..., Any]:
        def hook(layer: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
            calls[name] += 1
            return on_call(numbered(name, calls[name]), layer, (args, kwargs), output)

        return hook

    handles = [layer.register_forward_hook(after(name), with_kwargs=True) for name, layer in modules_in(module)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def modules_in(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """The modules inside, without those that TorchScript runs and those that compute weights of others."""
    return [
        (name, layer)
        for name, layer in module.named_modules()
        if name and not isinstance(layer, torch.jit.ScriptModule) and "parametrizations" not in name.split(".")
    ]


def numbered(name: str, call: int) -> str:
    """The name of a module's n-th call: `relu`, `relu#2`."""
    return name if call == 1 else f"{name}#{call}"


def _list_layers(module: nn.Module, x: Tensor) -> tuple[Layer, ...]:
    layers = list[Layer]()

    def note(name: str, layer: nn.Module, _: Any, output: Any) -> None:
        kind, rows = _kind(layer), _rows_of(output, len(x)) is not None
        if kind == "dropout":
            rows = output.dim() >= 2 and len(output) % len(x) == 0
        layers.append(Layer(name, kind, rows, leaf=next(layer.children(), None) is None))

    with torch.no_grad(), torch.random.fork_rng(devices=()), hooked(module, note):
        module(x)
    return tuple(layers)


def _ends(model: Model, layers: Sequence[Layer]) -> tuple[int, int]:
    """The indices of the first and the last layer with weights; ModelError where these are the same."""
    indices = [index for index, layer in enumerate(layers) if layer.kind == "weights"]
    if len(indices) < 2:
        count = "one layer" if indices else "no layer"
        raise ModelError(
            f"{model.name} has no hidden layer: {count} with weights runs as a module of its own (advrisk cannot reach "
            "what a forward computes by functions, nor the inside of a torch.export file)"
        )
    return indices[0], indices[-1]


def _kind(layer: nn.Module) -> LayerKind:
    if isinstance(layer, _DropoutNd):
        return "dropout" if layer.p > 0 else "other"
    if isinstance(layer, _ACTIVATIONS):
        return "activation"
    if isinstance(layer, _NORMS):
        return "other"
    own = any(parameter.dim() >= 2 for parameter in layer.parameters(recurse=False))
    return "weights" if own or torch.nn.utils.parametrize.is_parametrized(layer) else "other"


def _kind_of(thing: object) -> str:
    return getattr(thing, "__qualname__", None) or type(thing).__name__


def _fixed_inputs(model: Model) -> Tensor:
    low, high = model.bounds
    unit = generator("layers", str(model.input_shape)).random((max(_ROWS, model.min_rows), *model.input_shape))
    return torch.from_numpy((low + unit * (high - low)).astype("float32")).to(model.device)


def _rows_of(output: Any, n: int) -> Tensor | None:
    """The first floating-point tensor with n rows in a tensor, tuple, list or mapping."""
    if isinstance(output, Tensor):
        return output if output.dim() >= 1 and len(output) == n and output.is_floating_point() else None
    inside = output.values() if isinstance(output, Mapping) else output if isinstance(output, tuple | list) else ()
    return next((rows for rows in (_rows_of(part, n) for part in inside) if rows is not None), None)


def _flat(rows: Tensor) -> Tensor:
    return wide(rows).reshape(len(rows), -1)


def _expected(model: Model, values: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in values:
        raise ModelError(f"{model.name}: layer {name!r} did not run, or not with one row for each input")
    return values[name]
