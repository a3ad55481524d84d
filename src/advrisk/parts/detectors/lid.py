"""The intrinsic dimension around an input inside the model: higher for adversarial inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from advrisk.core.errors import DataError, StudyError
from advrisk.core.seeds import generator
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model
from advrisk.engine.layers import activations, hidden_layers, named_layers
from advrisk.parts.detectors.contrast import contrast, fit_logistic, in_batches, log_odds
from advrisk.parts.detectors.neighbours import local_dimension, squared_distances
from advrisk.parts.detectors.registry import Examples, State, detectors


@detectors.register(
    "lid",
    traits=DetectorTraits(
        "you know what attacks to expect and the model is a torch module",
        needs="gradients",
        learns="attacks",
        inside=True,
    ),
)
@dataclass(frozen=True, kw_only=True)
class LocalIntrinsicDimension:
    """Ma et al. (2018), "Characterizing Adversarial Subspaces …": the local intrinsic dimension in each hidden layer.

    −(1/k Σ_i log(r_i / r_k))⁻¹, with r_1 … r_k the distances to the `neighbours` nearest of a minibatch of clean
    inputs, in each layer; a logistic regression of these, on z-scores, separates adversarial inputs from clean and
    noisy ones. The score is its log-odds.

    The paper draws a new minibatch for every batch that it scores. Here `batches` minibatches of `minibatch` training
    inputs each are drawn once, their activations are kept, and the dimensions are averaged: an input always gets the
    same score, for one pass. The fit leaves out attacks on these inputs. `layers` names the layers to read; by default
    these are the activation modules if there are two or more, else the layers with weights but the last.
    """

    neighbours: Annotated[int, Ge(2)] = 20
    minibatch: Annotated[int, Ge(3)] = 100
    batches: Annotated[int, Ge(1)] = 1
    layers: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.neighbours >= self.minibatch:
            raise StudyError(
                f"lid: found neighbours {self.neighbours} and minibatch {self.minibatch}; a minibatch must hold more "
                "inputs than there are neighbours"
            )
        if self.layers is not None and not self.layers:
            raise StudyError("lid: found an empty list of layers; name at least one, or leave `layers` out")

    @property
    def fewest(self) -> int:
        """Clean inputs to learn from: the minibatches, and one to compare with them."""
        return self.minibatch * self.batches + 1

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> State:
        layers = self._layers(model)
        if len(examples.clean) < self.fewest:
            raise DataError(
                f"lid learns from more than {self.fewest - 1} clean inputs (minibatch × batches), found "
                f"{len(examples.clean)}; give the split `train` more samples, or choose a smaller minibatch"
            )
        drawn = generator("lid", examples.seed).permutation(len(examples.clean))[: self.fewest - 1]
        rows = torch.from_numpy(drawn)
        learned = contrast(examples, model, "lid", without=rows)
        with torch.no_grad():
            _, reference = activations(model, examples.clean[rows], layers)

        def dimensions(x: Tensor) -> Tensor:
            return self._dimensions(x, model, layers, reference)

        features = in_batches(learned.x, dimensions, on_progress)
        kept = {f"reference.{index}": outputs for index, outputs in enumerate(reference)}
        return {**kept, **fit_logistic(features, learned.attacked, model)}

    def score(self, x: Tensor, model: Model, state: State) -> Tensor:
        layers = self._layers(model)
        if "reference" in state:
            raise DataError(
                f"lid: its fit for {model.name} is stored in an older form, as inputs; delete that file in the folder "
                "`detectors` of the run and run again: lid learns the same once more"
            )
        reference = [state[f"reference.{index}"] for index in range(len(layers))]
        return log_odds(self._dimensions(x, model, layers, reference), state)

    def _layers(self, model: Model) -> tuple[str, ...]:
        return hidden_layers(model) if self.layers is None else named_layers(model, self.layers)

    def _dimensions(self, x: Tensor, model: Model, layers: Sequence[str], reference: Sequence[Tensor]) -> Tensor:
        """One dimension for each row and layer, from the layers' outputs for the minibatches."""
        points = dict(zip(layers, reference, strict=True))

        def dimension(layer: str, outputs: Tensor) -> Tensor:
            squared = squared_distances(outputs, points[layer].to(outputs.device))
            return local_dimension(squared.view(len(x), self.batches, self.minibatch), self.neighbours).mean(1)

        return torch.stack(activations(model, x, layers, each=dimension)[1], 1)
