"""The distance between an input and its reconstruction by auto-encoders trained on clean inputs."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
import torch.nn.functional as F  # noqa: N812
from annotated_types import Ge, Gt, Lt
from torch import Tensor
from torch.autograd.function import once_differentiable

from advrisk.core.errors import DataError, StudyError
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model, padded
from advrisk.parts.detectors.registry import Examples, State, detectors

# Two auto-encoders: the filters of their layers go by name, "half" and "double" change the size of the image.
POOLED, SHALLOW = "pooled", "shallow"
_LAYERS = {POOLED: ("conv", "half", "conv", "conv", "double", "conv"), SHALLOW: ("conv", "conv")}
FEWEST = 10  # clean inputs to learn from
MIN_ROWS = 16  # fewer are padded: below, convolutions sum in another order (see `engine.model.Model`)
_ROWS = 256  # per batch
_LEAST = 1e-12  # threshold, in place of 0
_HUGE = 1e9


@detectors.register(
    "magnet",
    traits=DetectorTraits(
        "you do not know the attacks beforehand: it learns from clean images only",
        needs="scores",
        images=True,
        learns="clean",
    ),
)
@dataclass(frozen=True, kw_only=True)
class MagNet:
    """Meng & Chen (2017), "MagNet": the error with which auto-encoders trained on clean inputs restore an input.

    Four numbers: the mean of (x − ae(x))² with an auto-encoder that halves the image on its way, the mean of
    |x − ae(x)| with a shallow one, and the Jensen–Shannon divergence of softmax(logits / T) between x and the former's
    ae(x), T = 10 and 40 (`temperatures`). Each has a threshold that a share `false_alarms` of clean inputs, `held_out`
    from training, lie above; the score is the largest number / threshold, so the paper's alarm is a score above 1.

    `pooled: false` leaves out the halving one, as the paper does for photographs; its `noise` and `false_alarms` are
    0.025 and 0.005 there. It trains longer: 100 epochs of all digits in batches of 256, at a learning rate of 0.001.
    """

    epochs: Annotated[int, Ge(1)] = 15
    batch: Annotated[int, Ge(1)] = 64
    learning_rate: Annotated[float, Gt(0)] = 0.01
    filters: Annotated[int, Ge(1)] = 3
    noise: Annotated[float, Ge(0)] = 0.1
    regularisation: Annotated[float, Ge(0)] = 1e-9
    pooled: bool = True
    temperatures: tuple[float, ...] = (10.0, 40.0)
    held_out: Annotated[float, Gt(0), Lt(1)] = 0.2
    false_alarms: Annotated[float, Ge(0), Lt(1)] = 0.001

    def __post_init__(self) -> None:
        if not all(0 < temperature < math.inf for temperature in self.temperatures):
            raise StudyError(f"magnet.temperatures: must be more than 0, found {list(self.temperatures)}")

    @property
    def fewest(self) -> int:
        """Clean inputs to learn from."""
        return FEWEST

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> State:
        if len(examples.clean) < FEWEST:
            problem = f"magnet learns from at least {FEWEST} clean inputs, found {len(examples.clean)}"
            raise DataError(f"{problem}; give the split `train` more samples")
        generator = torch.Generator().manual_seed(examples.seed)
        x, held_out = self._split(examples, generator)
        x = _unit(x, model.bounds)
        names = [POOLED, SHALLOW] if self.pooled else [SHALLOW]
        state: dict[str, Tensor] = {}
        for done, name in enumerate(names):
            weights = self._trained(name, x, generator, _share_of(on_progress, done, len(names)))
            state |= {f"{name}.{key}": value for key, value in weights.items()}
        with torch.no_grad():
            marks = torch.cat([self.marks(part, model, state) for part in torch.split(held_out, _ROWS)])
        state["thresholds"] = thresholds(marks, self.false_alarms)
        return {name: value.cpu() for name, value in state.items()}

    def doubt(self, examples: Examples, model: Model, state: State) -> str:
        """The reason to doubt an auto-encoder that restores images no better than their mean image; "" if none."""
        x, held_out = self._split(examples, torch.Generator().manual_seed(examples.seed))
        baseline = float((held_out - x.mean(0)).square().mean())
        for name in (POOLED, SHALLOW) if self.pooled else (SHALLOW,):
            with torch.no_grad():
                errors = [restored(part, name, model.bounds, state) - part for part in torch.split(held_out, _ROWS)]
            error = float(torch.cat(errors).square().mean())
            if not error < baseline:
                return (
                    f"its {name} auto-encoder restores clean images no better than their mean image would (mean square "
                    f"{error:.3g} and {baseline:.3g}, on {len(held_out)} held out); train longer (`epochs`), on more "
                    "samples of `train`, or with another `learning_rate`"
                )
        return ""

    def _split(self, examples: Examples, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Clean inputs to train on, and those held out."""
        order = torch.randperm(len(examples.clean), generator=generator).to(examples.clean.device)
        n_held_out = min(max(1, round(self.held_out * len(order))), len(order) - 1)
        return examples.clean[order[n_held_out:]], examples.clean[order[:n_held_out]]

    def score(self, x: Tensor, model: Model, state: State) -> Tensor:
        return (self.marks(x, model, state) / state["thresholds"].to(x.device)).amax(1)

    def marks(self, x: Tensor, model: Model, state: State) -> Tensor:
        """The numbers of each sub-detector for each input, in float64: mean square, mean difference, divergences."""
        reformer = POOLED if self.pooled else SHALLOW
        reformed = restored(x, reformer, model.bounds, state)
        shallow = restored(x, SHALLOW, model.bounds, state) if self.pooled else reformed
        low, high = model.bounds
        columns = [
            ((x - reformed).double() / (high - low)).square().flatten(1).mean(1),
            ((x - shallow).double() / (high - low)).abs().flatten(1).mean(1),
        ]
        if self.temperatures:
            before, after = model.ask(x), model.ask(reformed)
            columns += [jensen_shannon(before, after, temperature) for temperature in self.temperatures]
        return torch.stack(columns, 1)

    def _trained(
        self, name: str, x: Tensor, generator: torch.Generator, on_progress: Callable[[float], None]
    ) -> Mapping[str, Tensor]:
        """The weights of one auto-encoder: Adam on the mean square, from inputs with normal noise to those without."""
        weights = _fresh_weights(name, x.shape[1], self.filters, generator, x.device)
        optimiser = torch.optim.Adam(weights.values(), lr=self.learning_rate)
        for epoch in range(self.epochs):
            for rows in torch.split(torch.randperm(len(x), generator=generator), self.batch):
                clean = x[rows.to(x.device)]
                noise = torch.randn(clean.shape, generator=generator).to(x.device)
                *activations, output = _layers(name, (clean + self.noise * noise).clamp(0, 1), weights)
                loss = F.mse_loss(output, clean)
                if self.regularisation > 0:
                    size = sum(part.square().sum() for part in (*activations, output)) / len(rows)
                    loss = loss + self.regularisation * size
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            on_progress((epoch + 1) / self.epochs)
        return {key: value.detach() for key, value in weights.items()}


def thresholds(marks: Tensor, false_alarms: float) -> Tensor:
    """For each column the smallest value that at most the share `false_alarms` exceeds."""
    n_above = math.floor(false_alarms * len(marks) + 1e-9)  # 0.001 · 1000 is less than 1 by rounding
    return marks.sort(0, descending=True).values[n_above].clamp_min(_LEAST)


def jensen_shannon(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    """½ KL(p ‖ m) + ½ KL(q ‖ m) in nats, p and q the softmax of each row's logits / T, m their mean: 0 to ln 2."""
    p, q = (F.log_softmax(logits.double().clamp_min(-_HUGE) / temperature, 1) for logits in (one, other))
    middle = torch.logaddexp(p, q) - math.log(2)
    return (p.exp() * (p - middle) + q.exp() * (q - middle)).sum(1).clamp_min(0) / 2


def restored(x: Tensor, name: str, bounds: tuple[float, float], state: State) -> Tensor:
    """ae(x), within the bounds."""
    prefix = f"{name}."
    weights = {key.removeprefix(prefix): value.to(x.device) for key, value in state.items() if key.startswith(prefix)}
    *_, output = _layers(name, _unit(padded(x, MIN_ROWS), bounds), weights)
    low, high = bounds
    return output[: len(x)] * (high - low) + low


def _layers(name: str, x: Tensor, weights: Mapping[str, Tensor]) -> Iterator[Tensor]:
    """The activations of each convolution: 3 × 3, sigmoid, all of the input's size but between halving and doubling."""
    size, index = x.shape[-2:], 0
    for layer in (*_LAYERS[name], "conv"):
        if layer == "half":
            x = F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False)
        elif layer == "double":
            x = F.interpolate(x, scale_factor=2, mode="nearest")[..., : size[0], : size[1]]
        else:
            x = torch.sigmoid(_Convolution.apply(x, weights[f"{index}.weight"], weights[f"{index}.bias"]))  # type: ignore[no-untyped-call]
            index += 1
            yield x


class _Convolution(torch.autograd.Function):
    """F.conv2d(…, padding=1), whose backward to few channels is three times as fast: another convolution."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return F.conv2d(x, weight, bias, padding=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: torch.autograd.function.FunctionCtx, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        to_input, to_weight, to_bias = ctx.needs_input_grad  # type: ignore[attr-defined]
        back = F.conv2d(slope, weight.flip(2, 3).transpose(0, 1), padding=1) if to_input else None
        ones, zeros, wanted = [1, 1], [0, 0], [False, to_weight, to_bias]
        _, *others = torch.ops.aten.convolution_backward(
            slope, x, weight, [len(weight)], ones, ones, ones, False, zeros, 1, wanted
        )
        return back, *others


def _fresh_weights(
    name: str, n_channels: int, filters: int, generator: torch.Generator, device: torch.device
) -> dict[str, Tensor]:
    """Uniform weights as in Glorot & Bengio (2010), and biases of 0: the defaults of the authors' library."""
    widths = [n_channels, *[filters] * _LAYERS[name].count("conv"), n_channels]
    weights = {}
    for index, (before, after) in enumerate(itertools.pairwise(widths)):
        limit = math.sqrt(6 / (9 * (before + after)))
        drawn = torch.rand(after, before, 3, 3, generator=generator)
        weights[f"{index}.weight"] = ((2 * drawn - 1) * limit).to(device).requires_grad_(True)
        weights[f"{index}.bias"] = torch.zeros(after, device=device, requires_grad=True)
    return weights


def _unit(x: Tensor, bounds: tuple[float, float]) -> Tensor:
    low, high = bounds
    return (x - low) / (high - low)


def _share_of(on_progress: Callable[[float], None], done: int, n: int) -> Callable[[float], None]:
    return lambda share: on_progress((done + share) / n)
