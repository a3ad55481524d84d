"""What would explain that a model gets few clean samples right: other inputs and other labels, tried and measured."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advrisk.core.numbers import parse_number, percent_text
from advrisk.parts.data import Dataset
from advrisk.risk.accuracy import LEVEL, Classes, best_shift, paired_p_value, relabelling
from advrisk.study import ModelSpec

Inputs = NDArray[np.float32]
Ask = Callable[[Inputs], Classes]
Change = tuple[str, Callable[[Inputs], NDArray[np.floating[Any]]]]

# A change that brings so much of accuracy, with so small a p-value, stops a run that states no accuracy.
CLEAR_GAIN, CLEAR_P = 0.1, 0.001
_AS_GOOD = 0.05  # of accuracy: what halves of the samples differ by anyway
# Means and standard deviations that published networks are trained with.
_PUBLISHED: dict[int, dict[str, tuple[tuple[float, ...], tuple[float, ...]]]] = {
    3: {
        "ImageNet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        "CIFAR-10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    },
    1: {"MNIST": ((0.1307,), (0.3081,))},
}


@dataclass(frozen=True)
class WiringTrial:
    """Another way to give inputs or to read labels, and the accuracy that was measured with it."""

    what: str
    before: float
    after: float
    p_value: float
    n: int

    @property
    def helps(self) -> bool:
        return self.after > self.before and self.p_value <= LEVEL

    @property
    def is_clear(self) -> bool:
        return self.after >= self.before + CLEAR_GAIN and self.p_value <= CLEAR_P

    def __str__(self) -> str:
        return f"with {self.what} the accuracy is {percent_text(self.after, 1)} ({self.n} samples)"


def other_labels(said: Classes, labels: Classes) -> list[WiringTrial]:
    """Labels one higher or lower, and in the best other order, unless one step explains as much."""
    shift, _ = best_shift(said, labels)
    one = _compared(f"labels one {'higher' if shift > 0 else 'lower'}", said == labels, said == labels + shift)
    if len(said) < 4:
        return [one]
    order = _compared("labels in another order (chosen on the other half)", *relabelling(said, labels))
    return [one] if one.helps and one.after > order.after - _AS_GOOD else [one, order]


def other_inputs(
    ask: Ask, x: Inputs, said: Classes, labels: Classes, data: Dataset, spec: ModelSpec, *, max_s: float
) -> Iterator[WiringTrial]:
    """Inputs given in other ways, one after the other until `max_s` have passed."""
    began = time.monotonic()
    for what, change in _changes(data, spec):
        try:
            after = ask(np.ascontiguousarray(change(x), dtype=np.float32)) == labels
        except Exception:  # whatever the user's model does with inputs outside the data's bounds
            continue
        yield _compared(what, said == labels, after)
        if time.monotonic() - began > max_s:
            return


def _compared(what: str, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> WiringTrial:
    return WiringTrial(what, float(before.mean()), float(after.mean()), paired_p_value(before, after), len(before))


def _changes(data: Dataset, spec: ModelSpec) -> Iterator[Change]:
    """Ways in which inputs are often given wrongly: a name, and what the model should have been given."""
    low, high = float(np.min(data.low)), float(np.max(data.high))
    shape = data.x.shape[1:]
    if len(shape) != 3:
        mean, std = data.x.mean(0), data.x.std(0)
        yield "every feature standardised over the data", lambda x: (x - mean) / np.where(std > 0, std, 1)
        return
    if shape[0] == 3:
        yield "channels reversed (RGB as BGR)", lambda x: x[:, ::-1]
    yield from _normalisations(shape[0], spec, low, high)
    yield "inputs × 255", lambda x: x * 255
    yield "inputs / 255", lambda x: x / 255
    if shape[0] == 3:
        yield "channels reversed and inputs × 255", lambda x: x[:, ::-1] * 255
    yield "light and dark exchanged", lambda x: low + high - x
    if shape[1] == shape[2]:
        yield "rows and columns exchanged", lambda x: x.swapaxes(2, 3)


def _normalisations(channels: int, spec: ModelSpec, low: float, high: float) -> Iterator[Change]:
    """Other means and standard deviations, of inputs in [0, 1]. What the study states itself is undone first."""
    stated = _stated(spec)
    mean, std = stated if stated is not None else (np.zeros(1, np.float32), np.ones(1, np.float32))

    def undone(x: Inputs) -> Inputs:
        return x * _per_channel(std) + _per_channel(mean)

    def normalised(numbers: tuple[float, ...], spread: tuple[float, ...]) -> Callable[[Inputs], Inputs]:
        by = [_per_channel(np.array(one, np.float32)) for one in (numbers, spread)]
        return lambda x: undone(((x - low) / (high - low) - by[0]) / by[1])

    if stated is not None:
        yield "`mean` and `std` left out", undone
    for name, (numbers, spread) in _PUBLISHED.get(channels, {}).items():
        yield f"mean {list(numbers)} and std {list(spread)} ({name})", normalised(numbers, spread)
    yield "mean [0.5] and std [0.5]", normalised((0.5,), (0.5,))


def _stated(spec: ModelSpec) -> tuple[Inputs, Inputs] | None:
    given = [spec.params.get(name) for name in ("mean", "std")]
    if not all(isinstance(numbers, list | tuple) and numbers for numbers in given):
        return None
    mean, std = (np.array([parse_number(one) for one in numbers or ()], dtype=np.float32) for numbers in given)
    return mean, std


def _per_channel(values: Inputs) -> Inputs:
    return values.reshape(1, -1, 1, 1)
