"""Checks that a defence keeps its promises: a sound model comes out, rows stand alone, it draws from its streams."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from advrisk.core.registry import Part
from advrisk.core.seeds import key
from advrisk.core.traits import DefenceTraits
from advrisk.engine import Draw, Model, Noise, Reply
from advrisk.engine.threads import one_thread
from advrisk.parts.defences import defended_model
from advrisk.testing.conformance import CUTS, N_SAMPLES, ConformanceError, ToyCase, cases, global_generators_untouched

Promise = Callable[[bool, str], None]


def check_defence(part: Part[DefenceTraits], *, params: Mapping[str, object] | None = None) -> None:
    """Check a defence around toys that give no more than it says it needs, with its defaults but for `params`."""
    settings = part.bind(params or {})
    capabilities = dict.fromkeys([part.traits.needs, "gradients"])
    with one_thread(), global_generators_untouched(part.name):
        for needs in capabilities:
            for case in cases(needs, images=part.traits.images):
                promise = _promises(part, case)
                model = defended_model("defended", case.model, part, settings)
                _check_answers(model, case, part, promise)
                _check_rows_stand_alone(model, case, promise)
                if model.capability == "gradients":
                    _check_slope(model, case, promise)


def _promises(part: Part[DefenceTraits], case: ToyCase) -> Promise:
    def promise(kept: bool, what: str) -> None:
        if not kept:
            raise ConformanceError(f"{part.name} ({case.name}) is {what}")

    return promise


def asked(model: Model, x: Tensor, rows: Sequence[int], seed: int = 0) -> Reply:
    """What a model says of inputs, with the streams of their rows."""
    keys = [key("sample", seed, row) for row in rows]
    with torch.no_grad():
        return model.drawn(Draw(Noise(keys), torch.arange(len(keys)))).reply(x)


def _check_answers(model: Model, case: ToyCase, part: Part[DefenceTraits], promise: Promise) -> None:
    every = range(N_SAMPLES)
    given = case.x0.clone()
    with torch.no_grad():  # past `Model.reply`, which hands over a copy
        model.drawn(Draw(Noise([key("sample", 0, row) for row in every]), torch.arange(N_SAMPLES))).answer(given)
    promise(torch.equal(given, case.x0), "to leave its input as it is")
    answer, rejected = asked(model, case.x0.clone(), every)
    promise(answer.dtype == case.model.ask(case.x0).dtype, f"to answer as the model inside does, seen: {answer.dtype}")
    promise(not answer.is_floating_point() or bool(torch.isfinite(answer).all()), "to answer with finite numbers")
    promise((rejected is not None) == part.traits.rejects, "to refuse answers exactly if its traits say so")
    promise(torch.equal(answer, asked(model, given, every).answer), "to answer the same from the same streams")
    other = asked(model, given, every, seed=1).answer
    promise(torch.equal(answer, other) != part.traits.random, "to be random exactly if its traits say so")
    promise(model.digest != case.model.digest, "to be another model")


def _check_rows_stand_alone(model: Model, case: ToyCase, promise: Promise) -> None:
    whole = asked(model, case.x0, range(N_SAMPLES))
    for cut in CUTS:
        for rows in cut:
            some = asked(model, case.x0[list(rows)], rows)
            alike = torch.equal(whole.answer[list(rows)], some.answer)
            if whole.rejected is not None and some.rejected is not None:
                alike &= torch.equal(whole.rejected[list(rows)], some.rejected)
            promise(alike, f"to answer {list(rows)} alike whatever their batch mates")


def _check_slope(model: Model, case: ToyCase, promise: Promise) -> None:
    x = case.x0.clone().requires_grad_(True)
    keys = [key("sample", 0, row) for row in range(N_SAMPLES)]
    answer = model.drawn(Draw(Noise(keys), torch.arange(N_SAMPLES))).ask(x)
    promise(answer.requires_grad, "to let slopes through, where the model inside has them")
    (slope,) = torch.autograd.grad(answer[:, 0].sum(), x)
    promise(bool(torch.isfinite(slope).all()), "to have a finite slope")
