"""Checks that a detector keeps its promises: one sound number for each input, whatever shares its batch; and one that
learns, learns the same from the same examples, in a form that can be stored as plain tensors."""

from collections.abc import Callable, Mapping, Sequence

import safetensors.torch
import torch
from torch import Tensor

from advrisk.core.registry import Part
from advrisk.core.traits import DetectorTraits
from advrisk.engine import predicted
from advrisk.engine.threads import one_thread
from advrisk.parts.detectors import Examples, State
from advrisk.testing import toys
from advrisk.testing.conformance import CUTS, N_SAMPLES, ConformanceError, ToyCase, cases, global_generators_untouched

N_EXAMPLES = 120
_PUSH = 0.4  # how far examples of attacks lie from where they began

Score = Callable[[Tensor], object]


def check_detector(part: Part[DetectorTraits], *, params: Mapping[str, object] | None = None) -> None:
    """Check a detector on toys that give no more than it says it needs, with its defaults but for `params`."""
    import sklearn.svm  # noqa: F401  (the import itself draws from Python's generator)

    settings = part.bind(params or {})
    for case in _cases(part.traits):
        promise = _promises(part, case)
        with one_thread(), global_generators_untouched(part.name):
            score = _ready(part, settings, case, promise)
            _check_scores(score, case, promise)
            if part.traits.differentiable:
                _check_slope(score, case, promise)


def _cases(traits: DetectorTraits) -> list[ToyCase]:
    """The toys, or those that have what the detector looks at."""
    if traits.inside:
        (conv,) = cases(traits.needs, images=True)
        return [ToyCase("conv", toys.conv_net(dropout=0.3), conv.space, conv.x0, conv.eps, {})]
    return cases(traits.needs, images=traits.images)


def _promises(part: Part[DetectorTraits], case: ToyCase) -> Callable[[bool, str], None]:
    def promise(kept: bool, what: str) -> None:
        if not kept:
            raise ConformanceError(f"{part.name} ({case.name}) is {what}")

    return promise


def _ready(
    part: Part[DetectorTraits], settings: Mapping[str, object], case: ToyCase, promise: Callable[[bool, str], None]
) -> Score:
    """The detector's score, after it has learned if it must."""
    if not part.traits.learns:
        return lambda x: part.function(**settings).score(x, case.model)

    def learned(seed: int) -> State:
        examples = toy_examples(case, attacks=part.traits.learns == "attacks", seed=seed)
        state: object = part.function(**settings).fit(examples, case.model, on_progress=shares.append)
        promise(isinstance(state, Mapping) and len(state) > 0, f"to learn something by name, seen: {state!r}")
        assert isinstance(state, Mapping)
        for name, value in state.items():
            promise(isinstance(value, Tensor), f"to learn tensors, seen: {name} is {type(value).__name__}")
            promise(bool(torch.isfinite(value).all()), f"to learn finite numbers, seen: {name} has others")
        return state

    shares: list[float] = []
    state = learned(1)
    promise(all(0 <= share <= 1 for share in shares), f"to tell shares from 0 to 1, seen: {shares}")
    promise(sorted(shares) == shares, f"to tell shares that grow, seen: {shares}")
    promise(_bytes(state) == _bytes(learned(1)), "to learn the same from the same examples")
    stored = safetensors.torch.load(_bytes(state))
    return lambda x: part.function(**settings).score(x, case.model, stored)


def _bytes(state: State) -> bytes:
    return safetensors.torch.save({name: state[name].contiguous() for name in sorted(state)})


def toy_examples(case: ToyCase, *, attacks: bool, seed: int = 1) -> Examples:
    """Inputs around a case's own, and noisy ones among them that the model takes for another class."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(case.x0), (N_EXAMPLES,), generator=generator)
    clean = case.space.project(
        case.x0[rows] + 0.1 * torch.randn(case.x0[rows].shape, generator=generator), case.x0[rows]
    )
    noise = torch.randint(0, 2, (4 * N_EXAMPLES, *clean.shape[1:]), generator=generator).mul(2).sub(1) * _PUSH
    origin = torch.arange(N_EXAMPLES).repeat(4)
    pushed = case.space.project(clean[origin] + noise * case.space.scale, clean[origin])
    with torch.no_grad():
        label = predicted(case.model, case.model.ask(clean))
        other = predicted(case.model, case.model.ask(pushed)) != label[origin]
    other &= torch.tensor(attacks)
    return Examples(clean, label, pushed[other], origin[other], seed)


def _check_scores(score: Score, case: ToyCase, promise: Callable[[bool, str], None]) -> None:
    def scores_of(rows: Sequence[int]) -> Tensor:
        x = case.x0[list(rows)]
        with torch.no_grad():
            scores = score(x)
        promise(torch.equal(x, case.x0[list(rows)]), "to leave its input as it is")
        promise(isinstance(scores, Tensor), f"to give a tensor, seen: {type(scores).__name__}")
        assert isinstance(scores, Tensor)
        promise(tuple(scores.shape) == (len(rows),), f"to give one score for each input, seen: {tuple(scores.shape)}")
        promise(scores.is_floating_point(), f"to give numbers with decimals, seen: {scores.dtype}")
        promise(scores.device == x.device, f"to work where its inputs are, on {x.device}, seen: {scores.device}")
        return scores

    whole = scores_of(range(N_SAMPLES))
    promise(bool(torch.isfinite(whole).all()), "to give finite scores")
    promise(torch.equal(whole, scores_of(range(N_SAMPLES))), "to score the same input alike each time")
    for cut in CUTS:
        for rows in cut:
            what = f"to score {list(rows)} alike whatever their batch mates"
            promise(torch.equal(whole[list(rows)], scores_of(rows)), what)


def _check_slope(score: Score, case: ToyCase, promise: Callable[[bool, str], None]) -> None:
    """Where the model's answer can be followed back to the input, so can the score."""
    if case.model.capability != "gradients":
        return
    x = case.x0.clone().requires_grad_(True)
    scores = score(x)
    assert isinstance(scores, Tensor)
    promise(scores.requires_grad, "differentiable, it says, but its score does not depend on the input for torch")
    (slope,) = torch.autograd.grad(scores.sum(), x)
    promise(bool(torch.isfinite(slope).all()), "to have a finite slope")
    promise(bool((slope != 0).any()), "to have a slope that is not zero everywhere")
