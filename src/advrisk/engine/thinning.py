"""Networks thinned by dropout: each is the same for all inputs and can be drawn again.

torch draws one mask per row from a global generator in training; an answer would then depend on earlier queries and on
batch mates. Nothing here knows detectors.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.utils.checkpoint import checkpoint

from advrisk.core.seeds import generator
from advrisk.engine.layers import all_layers, hooked, module_of, modules_in, numbered, refuse_without_dropout
from advrisk.engine.model import Model

_BY_CHANNEL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.FeatureAlphaDropout)
_ALPHA = -1.7580993408473766  # replaces a value that alpha dropout drops: the lowest output of SELU


def thinned_answers(model: Model, x: Tensor, *, draws: int, seed: int) -> Iterator[Tensor]:
    """Answers of `draws` networks thinned by dropout, each the same network for all rows.

    The mask depends on the seed, the draw and the layer alone; no global generator is touched. Layers before the first
    dropout give the same output in every draw: they run once, and their output is reused.
    """
    refuse_without_dropout(model)
    layers, module = all_layers(model), module_of(model)
    dropping = {layer.name for layer in layers if layer.kind == "dropout"}
    first = next(index for index, layer in enumerate(layers) if layer.kind == "dropout")
    steady = {layer.name for layer in layers[:first] if layer.leaf}
    kept: dict[str, _Kept] = {}

    def thinned(x: Tensor, draw: int) -> Tensor:
        def thin(name: str, layer: nn.Module, inputs: Any, output: Any) -> Any:
            if name in dropping:
                return _dropped(layer, inputs, generator("dropout", seed, draw, name))
            if draw == 0 and name in steady and isinstance(output, Tensor):
                kept[name] = _Kept.of(output)
            return None

        with _replaying(module, kept if draw else {}), hooked(module, thin):
            return model.original.ask(x)

    yield thinned(x, 0)
    for draw in range(1, draws):
        if torch.is_grad_enabled() and x.requires_grad:  # computed again for its slope: one draw in memory at a time
            yield checkpoint(thinned, x, draw, use_reentrant=False, preserve_rng_state=False)
        else:
            yield thinned(x, draw)


@dataclass(frozen=True)
class _Kept:
    """A layer's output; a copy, as what follows may work in place."""

    copy: Tensor
    original: Tensor
    version: int | None  # torch raises it with every change in place; None where it does not count

    @staticmethod
    def of(output: Tensor) -> "_Kept":
        return _Kept(output.clone(), output, None if output.is_inference() else output._version)

    def again(self) -> Tensor:
        untouched = self.version is not None and self.original._version == self.version
        return self.copy if untouched else self.copy.clone()


@contextmanager
def _replaying(module: nn.Module, kept: Mapping[str, _Kept]) -> Iterator[None]:
    """Let modules return their kept outputs instead of computing them again."""
    replaced = []
    for name, layer in modules_in(module) if kept else ():
        replaced.append((layer, layer.__dict__.get("forward")))
        layer.forward = _replay(name, kept, layer.forward)
    try:
        yield
    finally:
        for layer, own in replaced:
            del layer.forward
            if own is not None:
                layer.forward = own


def _replay(name: str, kept: Mapping[str, _Kept], forward: Callable[..., Any]) -> Callable[..., Any]:
    calls = itertools.count(1)

    def replayed(*args: Any, **kwargs: Any) -> Any:
        stored = kept.get(numbered(name, next(calls)))
        return forward(*args, **kwargs) if stored is None else stored.again()

    return replayed


def _dropped(layer: nn.Module, inputs: Any, rng: np.random.Generator) -> Tensor:
    """The output of dropout with the same features dropped in every row."""
    assert isinstance(layer, _DropoutNd)
    args, kwargs = inputs
    x: Tensor = args[0] if args else kwargs["input"]
    shape = (x.shape[1], *[1] * (x.dim() - 2)) if isinstance(layer, _BY_CHANNEL) else tuple(x.shape[1:])
    keep = torch.from_numpy(rng.random(shape) >= layer.p).to(x)
    if not isinstance(layer, nn.AlphaDropout | nn.FeatureAlphaDropout):
        return x * (keep / (1 - layer.p) if layer.p < 1 else keep)
    stretch = ((1 - layer.p) * (1 + layer.p * _ALPHA**2)) ** -0.5 if layer.p < 1 else 0.0
    return stretch * (x * keep + _ALPHA * (1 - keep) + _ALPHA * -layer.p)
