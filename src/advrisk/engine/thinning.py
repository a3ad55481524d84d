"""Networks thinned by dropout, of which each is the same for all inputs and can be drawn again.

What torch does in training, one mask for each row from a global generator, would make an answer depend on whatever was
asked before, and beside it. Nothing here knows detectors.
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
from advrisk.engine.layers import all_layers, module_of, modules_in, numbered, refuse_without_dropout, watching
from advrisk.engine.model import Model

_BY_CHANNEL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.FeatureAlphaDropout)
_ALPHA = -1.7580993408473766  # what alpha dropout puts in the place of a value: the lowest that SELU gives


def thinned_answers(model: Model, x: Tensor, *, draws: int, seed: int) -> Iterator[Tensor]:
    """Answers of `draws` networks that dropout thinned, each the same network for all rows.

    What is dropped depends on the seed, the draw and the layer alone; no generator is touched. Layers that run before
    the first dropout answer every draw alike: they are asked once, and what they gave is given again.
    """
    refuse_without_dropout(model)
    layers, module = all_layers(model), module_of(model)
    dropping = {layer.name for layer in layers if layer.kind == "dropout"}
    first = next(place for place, layer in enumerate(layers) if layer.kind == "dropout")
    steady = {layer.name for layer in layers[:first] if layer.leaf}
    kept: dict[str, _Kept] = {}

    def thinned(x: Tensor, draw: int) -> Tensor:
        def thin(name: str, layer: nn.Module, given: Any, output: Any) -> Any:
            if name in dropping:
                return _dropped(layer, given, generator("dropout", seed, draw, name))
            if draw == 0 and name in steady and isinstance(output, Tensor):
                kept[name] = _Kept.of(output)
            return None

        with _replaying(module, kept if draw else {}), watching(module, thin):
            return model.original.ask(x)

    yield thinned(x, 0)
    for draw in range(1, draws):
        if torch.is_grad_enabled() and x.requires_grad:  # computed again for its slope: one draw in memory at a time
            yield checkpoint(thinned, x, draw, use_reentrant=False, preserve_rng_state=False)
        else:
            yield thinned(x, draw)


@dataclass(frozen=True)
class _Kept:
    """What a layer gave; a copy, as what follows it may work in place."""

    copy: Tensor
    original: Tensor
    version: int | None  # which torch counts up with every change in place; None where it does not count

    @staticmethod
    def of(output: Tensor) -> "_Kept":
        return _Kept(output.clone(), output, None if output.is_inference() else output._version)

    def again(self) -> Tensor:
        untouched = self.version is not None and self.original._version == self.version
        return self.copy if untouched else self.copy.clone()


@contextmanager
def _replaying(module: nn.Module, kept: Mapping[str, _Kept]) -> Iterator[None]:
    """Let the first calls of modules return what was kept of them, in the place of computing it again."""
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
        found = kept.get(numbered(name, next(calls)))
        return forward(*args, **kwargs) if found is None else found.again()

    return replayed


def _dropped(layer: nn.Module, given: Any, rng: np.random.Generator) -> Tensor:
    """What dropout makes of its input, with the same places dropped in every row."""
    assert isinstance(layer, _DropoutNd)
    args, kwargs = given
    x: Tensor = args[0] if args else kwargs["input"]
    shape = (x.shape[1], *[1] * (x.dim() - 2)) if isinstance(layer, _BY_CHANNEL) else tuple(x.shape[1:])
    keep = torch.from_numpy(rng.random(shape) >= layer.p).to(x)
    if not isinstance(layer, nn.AlphaDropout | nn.FeatureAlphaDropout):
        return x * (keep / (1 - layer.p) if layer.p < 1 else keep)
    stretch = ((1 - layer.p) * (1 + layer.p * _ALPHA**2)) ** -0.5 if layer.p < 1 else 0.0
    return stretch * (x * keep + _ALPHA * (1 - keep) + _ALPHA * -layer.p)
