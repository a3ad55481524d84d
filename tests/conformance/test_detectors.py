"""Every registered detector on toy models; and the kit itself against broken detectors."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from advrisk.core.registry import Part, Registry
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model
from advrisk.parts.detectors import detectors
from advrisk.testing import ConformanceError, check_detector

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "confidence": [{}],
    "feature-squeezing": [
        {},
        {"bits": 1, "median": 3},
        {"bits": None},
        {"median": None, "bits": 4},
        {"non_local_means": "5-3-20"},
    ],
}


@pytest.mark.parametrize("part", [part for part in detectors if not part.traits.learns], ids=lambda part: part.name)
def test_keeps_its_promises(part: Part[DetectorTraits]) -> None:
    for params in SETTINGS[part.name]:
        check_detector(part, params=params)


def part_of(score: Callable[[Tensor, Model], Any]) -> Part[DetectorTraits]:
    class Broken:
        def score(self, x: Tensor, model: Model) -> Any:
            return score(x, model)

    registry: Registry[DetectorTraits] = Registry("detectors")
    registry.register("broken", traits=DetectorTraits("tests"))(Broken)
    return registry.get("broken")


def brightness(x: Tensor, _: Model) -> Tensor:
    return x.flatten(1)[:, 0]


def test_an_honest_detector_passes() -> None:
    check_detector(part_of(brightness))


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda x, model: brightness(x, model)[:, None], r"one score for each input, seen: \(20, 1\)"),
        (lambda x, model: brightness(x, model).tolist(), "to give a tensor, seen: list"),
        (lambda x, model: model.ask(x), "numbers with decimals, seen: torch.int64"),  # no more than labels
        (lambda x, model: brightness(x, model) / 0, "finite scores"),
        (lambda x, model: brightness(x, model) - x.mean(), "whatever their batch mates"),
        (lambda x, model: brightness(x, model) + torch.arange(len(x)), "whatever their batch mates"),
        (lambda x, model: x.mul_(0.5).flatten(1)[:, 0], "to leave its input as it is"),
        (lambda x, model: brightness(x, model).to("meta"), "where its inputs are, on cpu, seen: meta"),
    ],
)
def test_a_broken_one_is_found(score: Callable[[Tensor, Model], Any], message: str) -> None:
    with pytest.raises(ConformanceError, match=message):
        check_detector(part_of(score))


def test_drawing_at_random_is_found() -> None:
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ConformanceError, match="the same input alike each time"):
        check_detector(part_of(lambda x, model: torch.rand(len(x), generator=generator)))


def test_drawing_from_a_global_generator_is_found() -> None:
    def score(x: Tensor, model: Model) -> Tensor:
        torch.rand(1)
        return brightness(x, model)

    with torch.random.fork_rng(devices=()), pytest.raises(ConformanceError, match="a global random generator moved"):
        check_detector(part_of(score))
