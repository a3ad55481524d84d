"""Toy models whose behaviour is known in advance.

    toy = linear(features=12, classes=3)
    x = toy.inputs(8)
    toy.minimal_distances(x, "l2")      # what no attack can beat
    label_only(toy.model)               # the same model, stingier

The wrappers change what a model says or allows: `score_only`, `label_only`, `noisy`, `answering_nan`,
`answering_wrong_shape`, `raising`, `slow`, `recorded`. `suspicion` is a detector for attacks that know one. Nothing
here knows attacks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from advrisk.core.errors import ModelError
from advrisk.engine import Model, Suspicion, predicted
from advrisk.study import Norm

_DUAL = {"linf": 1.0, "l2": 2.0, "l1": float("inf")}  # norm of a move -> the norm that measures slopes


@dataclass(frozen=True)
class Linear:
    """The classifier argmax(W x + b): its minimal adversarial distances have a closed form."""

    weight: Tensor  # classes × features
    bias: Tensor
    bounds: tuple[float, float] = (-10.0, 10.0)

    @property
    def model(self) -> Model:
        """The model as the engine sees it; each row is computed by itself, so small batches need no padding."""

        def answer(x: Tensor) -> Tensor:
            scores: Tensor = (x.flatten(1)[:, None] * self.weight).sum(2) + self.bias
            return scores

        n_classes, features = self.weight.shape
        return Model("linear", answer, "gradients", (features,), n_classes, self.bounds, digest="linear")

    def inputs(self, n: int, *, seed: int = 0) -> Tensor:
        """n inputs, normal around zero and well inside the bounds."""
        return torch.randn(n, self.weight.shape[1], generator=torch.Generator().manual_seed(seed))

    def minimal_distances(self, x: Tensor, norm: Norm) -> Tensor:
        """The distance from each input to the nearest other class, bounds left aside:

        min over k of (f_c(x) − f_k(x)) / ‖w_c − w_k‖*, with c the predicted class and ‖·‖* the dual norm.
        """
        weight, bias = self.weight.double(), self.bias.double()
        scores = x.double().flatten(1) @ weight.T + bias
        best = scores.argmax(1)
        lead = scores.gather(1, best[:, None]) - scores
        slope: Tensor = torch.linalg.vector_norm(weight[best][:, None] - weight, ord=_DUAL[norm], dim=2)
        distance: Tensor = (lead / slope).scatter(1, best[:, None], torch.inf)
        return distance.amin(1)

    def n_features_to(self, x: Tensor, target: Tensor) -> Tensor:
        """How many features must move, each as far as the bounds, for a class to lead; 0 where it leads already."""
        scores = self.model.ask(x)
        best, (low, high) = scores.argmax(1), self.bounds
        slope = self.weight[target] - self.weight[best]
        gain = (slope * torch.where(slope > 0, high - x, low - x)).sort(1, descending=True).values.cumsum(1)
        lead = scores.amax(1) - scores.gather(1, target[:, None]).squeeze(1)
        return torch.where(best == target, 0.0, (gain < lead[:, None]).sum(1) + 1.0)


def linear(*, features: int = 12, classes: int = 3, seed: int = 1) -> Linear:
    """A linear classifier with random weights; keep `features` below 30 for exact l1 steps."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(classes, features, generator=generator)
    return Linear(weight, torch.randn(classes, generator=generator) / 4)


def conv_net(*, channels: int = 1, size: int = 8, classes: int = 4, dropout: float = 0.0, seed: int = 0) -> Model:
    """An untrained convolutional net on images in [0, 1], whose small batches are padded (`min_rows`)."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        module = nn.Sequential(
            nn.Conv2d(channels, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            *([nn.Dropout(dropout)] if dropout else []),
            nn.Linear(16 * ((size + 1) // 2) ** 2, classes),
        )
    module.eval().requires_grad_(False)
    return Model("conv", module, "gradients", (channels, size, size), classes, (0.0, 1.0), digest="conv", min_rows=16)


def images(n: int, *, channels: int = 1, size: int = 8, seed: int = 0) -> Tensor:
    """n images of uniform noise in [0, 1]."""
    return torch.rand(n, channels, size, size, generator=torch.Generator().manual_seed(seed))


def score_only(model: Model) -> Model:
    """The same model, answering log-probabilities; asking for gradients raises."""

    def answer(x: Tensor) -> Tensor:
        _refuse_gradients(x)
        return F.log_softmax(model.answer(x), 1).detach()

    return replace(model, name=f"{model.name}-scores", answer=answer, capability="scores")


def label_only(model: Model) -> Model:
    """The same model, answering class numbers; asking for gradients raises."""

    def answer(x: Tensor) -> Tensor:
        _refuse_gradients(x)
        return predicted(model, model.answer(x)).detach()

    return replace(model, name=f"{model.name}-labels", answer=answer, capability="labels")


def _refuse_gradients(x: Tensor) -> None:
    if x.requires_grad:
        raise ModelError("gradients were asked of a model that has none")


def noisy(model: Model, *, sigma: float = 1.0, seed: int = 0) -> Model:
    """The same model with normal noise on its answers: no two answers are alike."""
    generator = torch.Generator().manual_seed(seed)

    def answer(x: Tensor) -> Tensor:
        exact = model.answer(x)
        return exact + sigma * torch.randn(exact.shape, generator=generator)

    return replace(model, name=f"{model.name}-noisy", answer=answer, random=True)


def answering_nan(model: Model, *, where: Callable[[Tensor], Tensor] | None = None) -> Model:
    """The same model, answering NaN for the rows that `where` marks (all, if it is not given)."""

    def answer(x: Tensor) -> Tensor:
        marked = torch.ones(len(x), dtype=torch.bool) if where is None else where(x.detach())
        return model.answer(x).masked_fill(marked[:, None], torch.nan)

    return replace(model, name=f"{model.name}-nan", answer=answer)


def answering_wrong_shape(model: Model) -> Model:
    """The same model with one class too many in every answer."""

    def answer(x: Tensor) -> Tensor:
        return F.pad(model.answer(x), (0, 1))

    return replace(model, name=f"{model.name}-wrong-shape", answer=answer)


def raising(model: Model, *, after: int = 0, error: Exception | None = None) -> Model:
    """The same model for `after` passes; then every pass raises."""
    passes = 0

    def answer(x: Tensor) -> Tensor:
        nonlocal passes
        passes += 1
        if passes > after:
            raise error or RuntimeError("the toy model raised, as it was told to")
        return model.answer(x)

    return replace(model, name=f"{model.name}-raising", answer=answer)


def slow(model: Model, *, pass_s: float) -> Model:
    """The same model, resting before every answer."""

    def answer(x: Tensor) -> Tensor:
        time.sleep(pass_s)
        return model.answer(x)

    return replace(model, name=f"{model.name}-slow", answer=answer)


@dataclass(frozen=True)
class Record:
    """Every batch a model was asked, with its answers, in order; padding included."""

    passes: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return sum(len(x) for x, _ in self.passes)


def recorded(model: Model) -> tuple[Model, Record]:
    """The same model, and a record of all that it is asked from now on."""
    record = Record()

    def answer(x: Tensor) -> Tensor:
        answered = model.answer(x)
        record.passes.append((x.detach().clone(), answered.detach().clone()))
        return answered

    return replace(model, answer=answer), record


def suspicion(*, differentiable: bool = True) -> Suspicion:
    """A detector that looks for inputs unlike a pattern, and asks the model twice: about the point and far outside.

    The second pass has no part in the score; it is there to be counted, and no attack takes it for a point of its own.
    """

    def score(x: Tensor, model: Model) -> Tensor:
        sure = model.ask(x).double().softmax(1).amax(1)
        elsewhere = model.ask(x + 1000.0).double().sum(1)
        flat = x.flatten(1).double()
        pattern = torch.linspace(-1, 1, flat.shape[1], dtype=torch.float64, device=x.device)
        return (flat * pattern).sum(1) - sure + 0 * elsewhere

    return Suspicion("toy", score, passes=1, differentiable=differentiable)
