"""What goes on inside a torch module: its hidden layers, found by hooks.

A layer is one call of a module inside the model. Its name is the one torch gives the module (`features.3`, `head`); the
second call of a module that is used twice is called `relu#2`. What a forward computes by functions (`F.relu`) has no
name and cannot be looked at; the modules around it can.

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

_ROWS = 17  # of the fixed inputs: a prime, so that no other size inside a model is taken for the number of inputs
_NO_ACTIVATION = {"MultiheadAttention", "Softmax", "Softmax2d", "Softmin", "LogSoftmax"}
_ACTIVATIONS = tuple(getattr(_activation, name) for name in _activation.__all__ if name not in _NO_ACTIVATION)
_NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)

LayerKind = Literal["activation", "weights", "dropout", "other"]
Seen = Callable[[str, nn.Module, Any, Any], Any]
ProbedInputs = tuple[tuple[int, ...], tuple[float, float], int]  # what the fixed inputs follow from


@dataclass(frozen=True)
class Layer:
    """One call of a module inside a model.

    `rows`: its output has one row for each input; of dropout, which also works on parts of inputs, any number of rows.
    """

    name: str
    kind: LayerKind
    rows: bool
    leaf: bool


_known: WeakKeyDictionary[nn.Module, dict[ProbedInputs, tuple[Layer, ...]]] = WeakKeyDictionary()


def module_of(model: Model) -> nn.Module:
    """The torch module that a model is, as its owner gave it; ModelError where there is none to look into."""
    module = model.owner or model.answer
    if model.capability != "gradients":
        raise ModelError(f"{model.name} gives {model.capability} only, so its hidden layers are out of reach")
    if isinstance(module, torch.jit.ScriptModule):
        raise ModelError(
            f"{model.name} is TorchScript, which runs its layers out of sight; load it with the source `torch`, from a "
            "factory and weights"
        )
    if not isinstance(module, nn.Module):
        raise ModelError(f"{model.name} is no torch module but {_kind_of(module)}: it has no hidden layers to look at")
    return module


def all_layers(model: Model) -> tuple[Layer, ...]:
    """Every call of a module inside the model, in the order in which they end; found by asking it fixed inputs.

    Looked for once, as a model's module stays as it was loaded. These inputs are nobody's: they go to the module, so
    that they are not counted with the passes of those that are scored.
    """
    known = _known.setdefault(module_of(model), {})
    asked = model.input_shape, model.bounds, model.min_rows
    if asked not in known:
        known[asked] = _found_layers(module_of(model), _fixed_inputs(model))
    return known[asked]


def hidden_layers(model: Model) -> tuple[str, ...]:
    """The layers that stand for a model where none are named, in the order in which they run; at least one.

    Among those between the first layer with weights and the last one: the activation modules (ReLU, GELU …) if there
    are at least two, else the layers with weights themselves, without the last, whose output is the answer.
    """
    layers = all_layers(model)
    first, last = _ends(model, layers)
    inner = layers[first:last]
    active = tuple(layer.name for layer in inner if layer.kind == "activation" and layer.rows)
    if len(active) >= 2:
        return active
    weighted = tuple(layer.name for layer in inner if layer.kind == "weights" and layer.rows)
    if not weighted:
        raise ModelError(f"{model.name}: no hidden layer has one row for each input, so none can be looked at")
    return weighted


def named_layers(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """The same names, once it is sure that the model has layers of these names that can be looked at."""
    known = {layer.name: layer for layer in all_layers(model)}
    for name in names:
        if name not in known:
            raise ModelError(f"{model.name} has no layer {name!r}; {did_you_mean(name, known)}")
        if not known[name].rows:
            raise ModelError(f"{model.name}: the output of layer {name!r} has no row for each input; name another")
    return tuple(names)


def last_layer(model: Model) -> str:
    """The last layer with weights, of a model with hidden ones: what goes into it is the last that is hidden."""
    layers = all_layers(model)
    return layers[_ends(model, layers)[1]].name


def dropout_layers(model: Model) -> tuple[str, ...]:
    """The dropout modules that run when the model is asked and would drop something, in training."""
    found = [layer for layer in all_layers(model) if layer.kind == "dropout"]
    for layer in found:
        if not layer.rows:
            raise ModelError(
                f"{model.name}: dropout {layer.name!r} does not work on rows of inputs, so the same network cannot be "
                "drawn for all of them; let rows come first"
            )
    return tuple(layer.name for layer in found)


def has_dropout(model: Model) -> bool:
    """Whether there is any; `F.dropout` in a forward is out of reach and does not count."""
    return bool(dropout_layers(model))


def refuse_without_dropout(model: Model) -> None:
    """ModelError, with the reason, for a model without dropout modules."""
    if not has_dropout(model):
        raise ModelError(
            f"{model.name} has no dropout to draw from: none of its modules that run is a torch.nn.Dropout with p "
            "above 0 (F.dropout in a forward is out of reach)"
        )


def activations(
    model: Model, x: Tensor, layers: Sequence[str], *, each: Callable[[str, Tensor], Tensor] | None = None
) -> tuple[Tensor, list[Tensor]]:
    """The model's answer to `x`, and what the layers of these names gave: (rows, features) each.

    `each` reduces what a layer, given by name, gave as soon as it is there, so that no more than one is held at a time.
    Small batches are padded as `Model.ask` does; with `each`, too, only the rows of `x` come back.
    """
    wanted, found = set(layers), dict[str, Tensor]()
    n = max(len(x), model.min_rows)

    def take(name: str, _: nn.Module, __: Any, output: Any) -> None:
        if name in wanted and (given := _rows_of(output, n)) is not None:
            # A copy: a module that works in place may follow.
            found[name] = _flat(given)[: len(x)].clone() if each is None else each(name, _flat(given)[: len(x)])

    with watching(module_of(model), take):
        answer = model.original.ask(x)
    return answer, [_expected(model, found, name) for name in layers]


def last_hidden(model: Model, x: Tensor, *, last: str) -> tuple[Tensor, Tensor]:
    """The model's answer to `x`, and what went into its last layer with weights (`last_layer`): (rows, features)."""
    found = dict[str, Tensor]()
    n = max(len(x), model.min_rows)

    def take(name: str, _: nn.Module, given: Any, __: Any) -> None:
        if name == last and (rows := _rows_of(given, n)) is not None:
            found[name] = _flat(rows)[: len(x)].clone()

    with watching(module_of(model), take):
        answer = model.original.ask(x)
    return answer, _expected(model, found, last)


@contextmanager
def watching(module: nn.Module, seen: Seen) -> Iterator[None]:
    """Show every call inside a module: name, module, what went in and what came out. What is returned replaces that."""
    calls: Counter[str] = Counter()

    def after(name: str) -> Callable[..., Any]:
        def hook(layer: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
            calls[name] += 1
            return seen(numbered(name, calls[name]), layer, (args, kwargs), output)

        return hook

    handles = [layer.register_forward_hook(after(name), with_kwargs=True) for name, layer in modules_in(module)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def modules_in(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """The modules inside, but for those that TorchScript runs and those that make weights of others."""
    return [
        (name, layer)
        for name, layer in module.named_modules()
        if name and not isinstance(layer, torch.jit.ScriptModule) and "parametrizations" not in name.split(".")
    ]


def numbered(name: str, call: int) -> str:
    """What a call of a module is called: `relu`, `relu#2`."""
    return name if call == 1 else f"{name}#{call}"


def _found_layers(module: nn.Module, x: Tensor) -> tuple[Layer, ...]:
    found = list[Layer]()

    def note(name: str, layer: nn.Module, _: Any, output: Any) -> None:
        kind, rows = _kind(layer), _rows_of(output, len(x)) is not None
        if kind == "dropout":
            rows = output.dim() >= 2 and len(output) % len(x) == 0
        found.append(Layer(name, kind, rows, leaf=next(layer.children(), None) is None))

    with torch.no_grad(), torch.random.fork_rng(devices=()), watching(module, note):
        module(x)
    return tuple(found)


def _ends(model: Model, layers: Sequence[Layer]) -> tuple[int, int]:
    """The places of the first layer with weights and of the last one; ModelError where that is the same."""
    places = [place for place, layer in enumerate(layers) if layer.kind == "weights"]
    if len(places) < 2:
        found = "one layer" if places else "no layer"
        raise ModelError(
            f"{model.name} has no hidden layer: {found} with weights runs as a module of its own (what a forward "
            "computes by functions, and what a torch.export file holds, is out of reach)"
        )
    return places[0], places[-1]


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


def _rows_of(found: Any, n: int) -> Tensor | None:
    """The first tensor of decimals with n rows, in what may be a tuple, a list or a mapping."""
    if isinstance(found, Tensor):
        return found if found.dim() >= 1 and len(found) == n and found.is_floating_point() else None
    inside = found.values() if isinstance(found, Mapping) else found if isinstance(found, tuple | list) else ()
    return next((rows for rows in (_rows_of(part, n) for part in inside) if rows is not None), None)


def _flat(rows: Tensor) -> Tensor:
    return wide(rows).reshape(len(rows), -1)


def _expected(model: Model, found: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in found:
        raise ModelError(f"{model.name}: layer {name!r} did not run, or not with one row for each input")
    return found[name]
