"""What the paper claims of depth, and what two runs say of it: each answer is put together from their numbers."""

from advrisk.core.estimate import Estimate
from studies.survival_findings import LAYERS, PASSES, SECONDS, Findings, Reading, depth_factor
from studies.survival_networks import kinds_of, network_survival, network_trend, per_pass
from studies.survival_sections import best_family, factors_of
from studies.text import band_text, p_text


def claims(defended: Findings, trained: Findings) -> list[str]:
    """A bullet for each claim."""
    return [_longer(defended, trained), _inference(defended, trained), _worth(trained), _defences(defended)]


def _longer(defended: Findings, trained: Findings) -> str:
    own = network_trend(trained, network_survival(trained))
    four = depth_factor(defended.fit(Reading(PASSES, unit="sample"), best_family(defended)))
    return (
        f"- **Do deeper networks last longer?** {LAYERS:g} layers more take {_text(own.slope)} times as many passes "
        f"over {own.n} networks of our own (p {_p(own.p_value)}), and {_text(four)} times as many for the "
        f"{_count(defended)} networks of others, whose interval knows of samples only."
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
    by_depth: dict[str, list[float]] = {}
    for models in kinds_of(trained).values():
        depth = str(trained.tag(models[0], "depth"))
        seconds = [trained.durations[PASSES].facts[model].clean_accuracy or 0.0 for model in models]
        by_depth.setdefault(depth, []).extend(seconds)
    text = ", ".join(f"{sum(own) / len(own):.1%} at {depth} layers" for depth, own in by_depth.items())
    return f"- **Does depth pay in accuracy?** Clean inputs that are right: {text}."


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
