"""The rarity of an input in the last hidden layer, and the uncertainty of the model about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Gt
from torch import Tensor

from advrisk.core.errors import DataError
from advrisk.core.seeds import generator, key
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model, predicted
from advrisk.engine.layers import (
    activations,
    last_hidden,
    last_layer,
    named_layers,
    refuse_without_dropout,
)
from advrisk.engine.thinning import thinned_answers
from advrisk.parts.detectors.contrast import contrast, fit_logistic, in_batches, log_odds
from advrisk.parts.detectors.neighbours import log_density, squared_distances
from advrisk.parts.detectors.registry import Examples, State, detectors

ENOUGH = 10  # points of a class, for a density of its own
FOLDS = 5
Reader = Callable[[Tensor], tuple[Tensor, Tensor]]  # inputs -> the model's answer, and hidden activations

_GRID = np.logspace(-2, 0.5, 26)  # bandwidths, in standard deviations of a feature within a class


@detectors.register(
    "kd-bu",
    traits=DetectorTraits(
        "you know what attacks to expect and the model has dropout",
        needs="gradients",
        learns="attacks",
        inside=True,
        dropout=True,
    ),
)
@dataclass(frozen=True, kw_only=True)
class DensityAndUncertainty:
    """Feinman et al. (2017), "Detecting Adversarial Samples from Artifacts": kernel density and dropout variance.

    The density of what goes into the last layer with weights (or comes out of `layer`) under the training inputs of the
    predicted class, with a Gaussian kernel, and the variance of the predicted probabilities over `draws` networks
    thinned by dropout, averaged over classes. A logistic regression of the logarithm of the first and of the second, on
    z-scores, separates adversarial inputs from clean and noisy ones. The score is its log-odds.

    `bandwidth` is one number for all classes; without it, the one with the largest likelihood in 5-fold
    cross-validation, of 26 from 0.01 to 3.2 standard deviations. A class keeps `points` training inputs at most, drawn
    by the seed; one with fewer than 10 uses the density of all classes. The fit never compares an input, or a change of
    it, with itself. The logistic regression learns from at most `examples` inputs of each kind. The thinned networks
    are drawn once, by the seed, and are the same for every input.
    """

    draws: Annotated[int, Ge(2)] = 50
    bandwidth: Annotated[float, Gt(0)] | None = None
    points: Annotated[int, Ge(ENOUGH)] = 1000
    examples: Annotated[int, Ge(10)] = 2000
    layer: str | None = None

    @property
    def fewest(self) -> int:
        """Clean inputs to learn from."""
        return ENOUGH

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> State:
        refuse_without_dropout(model)
        read, learned = self._reader(model), contrast(examples, model, "kd-bu", most=self.examples)
        hidden = in_batches(examples.clean, lambda x: read(x)[1])
        density = _density(hidden, examples, model.n_classes, most=self.points, bandwidth=self.bandwidth)
        seed = key("kd-bu", examples.seed) >> 1  # fits into 63 bits

        def features(rows: Tensor) -> Tensor:
            return self._features(learned.x[rows], model, read, density, seed, origin=learned.origin[rows])

        values = in_batches(torch.arange(len(learned.x)), features, on_progress)
        logistic = fit_logistic(values, learned.attacked, model)
        return {**density.state(), "seed": torch.tensor([seed]), **logistic}

    def score(self, x: Tensor, model: Model, state: State) -> Tensor:
        density, seed = Density.of(state, x.device), int(state["seed"])
        return log_odds(self._features(x, model, self._reader(model), density, seed), state)

    def _reader(self, model: Model) -> Reader:
        if self.layer is None:
            last = last_layer(model)
            return lambda x: last_hidden(model, x, last=last)
        (layer,) = named_layers(model, [self.layer])

        def read(x: Tensor) -> tuple[Tensor, Tensor]:
            answer, (hidden,) = activations(model, x, [layer])
            return answer, hidden

        return read

    def _features(
        self, x: Tensor, model: Model, read: Reader, density: "Density", seed: int, *, origin: Tensor | None = None
    ) -> Tensor:
        answer, hidden = read(x)
        rarity = density.log(hidden, predicted(model, answer), origin=origin)
        return torch.stack([rarity, dropout_variance(model, x, draws=self.draws, seed=seed)], 1)


@dataclass(frozen=True)
class Density:
    """A kernel density for each class: that of `points[start:stop]`, with the bounds from the class's row of `span`."""

    points: Tensor
    span: Tensor
    bandwidth: float
    source: Tensor  # the clean input of each point

    @staticmethod
    def of(state: State, device: torch.device) -> "Density":
        points = state["points"].to(device)
        return Density(points, state["span"], float(state["bandwidth"]), torch.full((len(points),), -1))

    def state(self) -> dict[str, Tensor]:
        return {
            "points": self.points,
            "span": self.span,
            "bandwidth": torch.tensor([self.bandwidth], dtype=torch.float64),
        }

    def log(self, hidden: Tensor, classes: Tensor, *, origin: Tensor | None = None) -> Tensor:
        """The logarithm of the density under each row's class, without the point of the row's origin."""
        order, densities = [], []
        for number in sorted(set(classes.tolist())):
            rows = (classes == number).nonzero().squeeze(1)
            start, stop = self.span[number].tolist()
            squared = squared_distances(hidden[rows], self.points[start:stop])
            if origin is not None:
                own = origin[rows.cpu()][:, None] == self.source[start:stop]
                squared = squared.masked_fill(own.to(squared.device), torch.inf)
            order.append(rows)
            densities.append(log_density(squared, self.bandwidth, hidden.shape[1]))
        return torch.cat(densities)[torch.cat(order).argsort()]


def dropout_variance(model: Model, x: Tensor, *, draws: int, seed: int) -> Tensor:
    """The variance of the predicted probabilities over thinned networks, averaged over classes."""
    mean = scatter = torch.zeros(())
    for count, answer in enumerate(thinned_answers(model, x, draws=draws, seed=seed), start=1):
        probability = torch.softmax(answer.double(), 1)
        change = probability - mean
        mean = mean + change / count
        scatter = scatter + change * (probability - mean)
    return (scatter / draws).mean(1)


def cross_validated_bandwidth(groups: Sequence[Tensor], seed: int) -> float:
    """The bandwidth with the largest likelihood of the held-out points of all groups."""
    features, rng = groups[0].shape[1], generator("folds", seed)
    fold = [torch.from_numpy(rng.permutation(len(group)) % FOLDS).to(group.device) for group in groups]
    squared = [squared_distances(group, group) for group in groups]
    held_out = [part.masked_fill(own[:, None] == own, torch.inf) for part, own in zip(squared, fold, strict=True)]
    grid = bandwidths(squared, features)
    likelihood = [sum(float(log_density(part, width, features).sum()) for part in held_out) for width in grid]
    return grid[int(np.argmax(likelihood))]


def bandwidths(squared: Sequence[Tensor], features: int) -> list[float]:
    """The grid, in units of the data: √(mean ‖a − b‖² / 2D) is a feature's standard deviation within a group."""
    pairs = sum(len(part) * (len(part) - 1) for part in squared)
    unit = (sum(float(part.sum()) for part in squared) / pairs / (2 * features)) ** 0.5
    return [float(step * (unit or 1.0)) for step in _GRID]


def _density(hidden: Tensor, examples: Examples, n_classes: int, *, most: int, bandwidth: float | None) -> Density:
    """Points by class, and at the end those of all classes, for classes with too few."""
    if len(hidden) < ENOUGH:
        raise DataError(f"kd-bu learns from at least {ENOUGH} clean inputs, found {len(hidden)}")
    rng, label = generator("points", examples.seed), examples.label.cpu().numpy()
    members = [np.flatnonzero(label == number) for number in range(n_classes)]
    own = [some[np.sort(rng.permutation(len(some))[:most])] for some in members if len(some) >= ENOUGH]
    everyone = np.sort(rng.permutation(len(hidden))[:most])
    groups = own if len(own) == n_classes else [*own, everyone]
    ends = np.cumsum([len(group) for group in groups])
    group_index = iter(range(len(own)))
    numbers = [next(group_index) if len(some) >= ENOUGH else len(groups) - 1 for some in members]
    span = torch.from_numpy(np.stack([ends - [len(group) for group in groups], ends], 1)[numbers])
    points = [hidden[torch.from_numpy(group)] for group in groups]
    if bandwidth is None:
        bandwidth = cross_validated_bandwidth(points[: len(own)] or points, examples.seed)
    return Density(torch.cat(points), span, bandwidth, torch.from_numpy(np.concatenate(groups)))
