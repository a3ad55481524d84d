"""Every registered detector on toy models; and the kit itself against broken detectors."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch
from torch import Tensor

from advrisk.core.registry import Part, Registry
from advrisk.core.traits import DetectorTraits
from advrisk.engine import Model, Space, Suspicion
from advrisk.engine.suspicion import measured, scored
from advrisk.parts.detectors import Examples, detectors
from advrisk.testing import ConformanceError, check_detector, toys
from advrisk.testing.conformance import N_SAMPLES, ToyCase
from advrisk.testing.detectors import toy_examples

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "confidence": [{}],
    "kd-bu": [{"draws": 5}, {"draws": 3, "bandwidth": 0.5}],
    "lid": [{"minibatch": 30, "neighbours": 5, "batches": 2}],
    "magnet": [{"epochs": 2}],
    "nss": [{}],
    "feature-squeezing": [
        {},
        {"bits": 1, "median": 3},
        {"bits": None},
        {"median": None, "bits": 4},
        {"non_local_means": "5-3-20"},
    ],
}


@pytest.mark.parametrize("part", list(detectors), ids=lambda part: part.name)
def test_keeps_its_promises(part: Part[DetectorTraits]) -> None:
    for params in SETTINGS[part.name]:
        check_detector(part, params=params)


@pytest.mark.parametrize("part", list(detectors), ids=lambda part: part.name)
def test_a_score_costs_the_same_whatever_the_batch(part: Part[DetectorTraits]) -> None:
    """Counted by the probe, as seen by the model itself, and measured before the attack begins."""
    model, x = toys.conv_net(dropout=0.3), toys.images(64)
    case = ToyCase("conv", model, Space.box(0, 1), toys.images(N_SAMPLES), 0.1, {})
    for params in SETTINGS[part.name]:
        suspicion = Suspicion(part.name, _scoring(part, params, case), differentiable=part.traits.differentiable)
        passes = measured(suspicion, model, x[:1]).passes
        for n in (1, 2, 8, 64):
            with torch.no_grad():
                assert scored(suspicion, model, x[:n], model.ask(x[:n])).n_forward == passes
            points = x[:n].clone().requires_grad_(True)
            follows = scored(suspicion, model, points, model.ask(points))
            assert follows.n_forward == passes
            if part.traits.differentiable:
                assert follows.n_backward in {passes, passes + 1}  # with the pass that is made anyway


@pytest.mark.parametrize(("name", "expected"), [("lid", 1), ("kd-bu", 6), ("feature-squeezing", 2), ("nss", 0)])
def test_what_a_score_costs(name: str, expected: int) -> None:
    """One look inside; that and five thinned networks; two squeezed copies; none."""
    part, model = detectors.get(name), toys.conv_net(dropout=0.3)
    case = ToyCase("conv", model, Space.box(0, 1), toys.images(N_SAMPLES), 0.1, {})
    score = _scoring(part, SETTINGS[name][0], case)
    fresh = toys.conv_net(dropout=0.3)  # of which nothing is known yet, as in a process that reads what was learned
    assert measured(Suspicion(name, score), fresh, toys.images(1)).passes == expected


def _scoring(part: Part[DetectorTraits], params: dict[str, Any], case: ToyCase) -> Callable[[Tensor, Model], Tensor]:
    detector = part.function(**part.bind(params))
    if not part.traits.learns:
        score: Callable[[Tensor, Model], Tensor] = detector.score
        return score
    examples = toy_examples(case, attacks=part.traits.learns == "attacks")
    state = detector.fit(examples, case.model, on_progress=lambda _: None)
    return lambda x, model: detector.score(x, model, state)


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


class Learner:
    """Learns how bright clean inputs and attacks are; broken in one way or another."""

    def __init__(self, *, flaw: str = "") -> None:
        self.flaw = flaw

    def fit(self, examples: Examples, model: Model, *, on_progress: Callable[[float], None]) -> Any:
        on_progress(2.0 if self.flaw == "share" else 0.5)
        draws = next(DRAWS) if self.flaw == "draws" else 0
        found = {"bright": examples.adversarial.mean() - examples.clean.mean() + draws}
        if self.flaw == "list":
            return {"bright": [1.0]}
        return {"bright": found["bright"] * torch.nan} if self.flaw == "nan" else {} if self.flaw == "empty" else found

    def score(self, x: Tensor, model: Model, state: Any) -> Tensor:
        bright: Tensor = x.flatten(1)[:, 0] * state["bright"]
        return bright.detach() if self.flaw == "cut" else bright


DRAWS = count()


def learner(flaw: str) -> Part[DetectorTraits]:
    registry: Registry[DetectorTraits] = Registry("detectors")
    traits = DetectorTraits("tests", needs="gradients", learns="attacks")
    registry.register("learner", traits=traits)(Learner)
    return registry.get("learner")


def test_an_honest_learner_passes() -> None:
    check_detector(learner(""))


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("share", r"to tell shares from 0 to 1, seen: \[2.0"),
        ("draws", "to learn the same from the same examples"),
        ("list", "to learn tensors, seen: bright is list"),
        ("nan", "to learn finite numbers, seen: bright has others"),
        ("empty", "to learn something by name"),
        ("cut", "differentiable, it says, but its score does not depend on the input"),
    ],
)
def test_a_broken_learner_is_found(flaw: str, message: str) -> None:
    with pytest.raises(ConformanceError, match=message):
        check_detector(learner(flaw), params={"flaw": flaw})
