"""What the paper claims of depth, and what two runs say of it: each answer is put together from their numbers."""

import math
from collections.abc import Mapping, Sequence

from advrisk.core.estimate import Estimate
from studies.survival_findings import LAYERS, PASSES, SECONDS, Findings, Reading, depth_factor, noise_of
from studies.survival_networks import kinds_of, network_survival, network_trend, per_pass
from studies.survival_sections import best_family, factors_of, training_s
from studies.text import band_text, p_text


def claims(defended: Findings, trained: Findings) -> list[str]:
    """A bullet for each claim."""
    return [_longer(defended, trained), _inference(defended, trained), _worth(trained), _defences(defended)]


def _longer(defended: Findings, trained: Findings) -> str:
    own = network_trend(trained, network_survival(trained))
    law = factors_of(trained)[f"{LAYERS:g} layers more"][0]
    four = factors_of(defended)[f"{LAYERS:g} layers more"][0]
    return (
        f"- **Do deeper networks last longer?** Over {own.n} networks of our own, {LAYERS:g} layers more take "
        f"{_text(own.slope)} times as many passes up to the end of the attack (p {_p(own.p_value)}), and {_text(law)} "
        f"times as many by the fit; for the {_count(defended)} networks of others it is {_text(four)}, and that "
        "interval knows of samples only."
    )


def _inference(defended: Findings, trained: Findings) -> str:
    parts = []
    for found, words in ((trained, "our own"), (defended, "those of others")):
        passes = depth_factor(found.fit(Reading(PASSES, unit="sample"), best_family(found)))
        seconds = depth_factor(found.fit(Reading(SECONDS, unit="sample"), best_family(found)))
        parts.append(
            f"of {words}, {LAYERS:g} layers more last {seconds.value:.2f} times as many processor seconds; a pass "
            f"takes {per_pass(found):.2f} times as long, and {passes.value:.2f} times as many are needed"
        )
    return f"- **Is it the time of a pass?** {'; '.join(parts)}.".replace("?** of", "?** Of")


def _worth(trained: Findings) -> str:
    """The deepest against the shallowest, and the most noise against none: what is paid, and what is got."""
    survival, kinds = network_survival(trained), list(kinds_of(trained).values())
    first = kinds[0]
    shallow = [models for models in kinds if trained.tag(models[0], "depth") == trained.tag(first[0], "depth")]
    deep = next(models for models in kinds if trained.tag(models[0], "depth") == trained.tag(kinds[-1][0], "depth"))
    if not training_s(trained, first):
        return "- **Is it worth it?** Nobody says how long the networks were trained."
    told = []
    for models, words in (
        (deep, f"{trained.tag(deep[0], 'depth')} layers"),
        (shallow[-1], _noise(trained, shallow[-1])),
    ):
        paid = training_s(trained, models) / training_s(trained, first)
        got = _mean(survival, models) / _mean(survival, first)
        told.append(
            f"with {words}, training takes {paid:.2f} times as long, and breaking {got:.2f} times as many passes"
        )
    start = f"{trained.tag(first[0], 'depth')} layers and {_noise(trained, first)}"
    return f"- **Is it worth it?** Against {start}: {'; '.join(told)} (each up to the end of the attack)."


def _noise(found: Findings, models: Sequence[str]) -> str:
    return f"noise {noise_of(found.tag(models[0], 'noise'))}"


def _mean(survival: Mapping[str, float], models: Sequence[str]) -> float:
    return math.exp(sum(math.log(survival[model]) for model in models) / len(models))


def _defences(defended: Findings) -> str:
    held = {name: pair[0] for name, pair in factors_of(defended).items() if not name.endswith("more")}
    if not held:
        return "- **Do defences help more than depth?** No model is defended."
    best = max(held, key=lambda name: held[name].value)
    worst = min(held, key=lambda name: held[name].value)
    return (
        f"- **Do defences help more than depth?** Against bare networks, the longest is {best}, with "
        f"{_text(held[best])} times as many passes, the shortest {worst}, with {_text(held[worst])}."
    )


def _text(estimate: Estimate) -> str:
    return band_text(estimate.value, estimate.low, estimate.high)


def _p(value: float) -> str:
    text = p_text(value)
    return text if text.startswith("<") else f"= {text}"


def _count(found: Findings) -> int:
    return len({found.tag(model, "depth") for model in found.models})
