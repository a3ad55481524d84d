"""A run's networks as units: how long each lasts as one number, and how that changes with depth and with noise."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.survival import kaplan_meier
from studies.survival_findings import LAYERS, PASSES, SECONDS, Findings, Frame, noise_of
from studies.survival_nets import Trend, trend


def kinds_of(found: Findings) -> dict[str, list[str]]:
    """Models that differ in nothing that is told of them: by depth, and by noise where it varies."""
    kinds: dict[str, list[str]] = {}
    ordered = sorted(found.models, key=lambda model: (found.tag(model, "depth"), found.tag(model, "noise") or 0, model))
    for model in ordered:
        kinds.setdefault(_kind(found, model), []).append(model)
    return kinds


def _kind(found: Findings, model: str) -> str:
    layers = f"{found.tag(model, 'depth')} layers"
    return f"{layers}, noise {noise_of(found.tag(model, 'noise'))}" if "noise" in found.beside else layers


def arm_survival(found: Findings) -> dict[str, dict[str, float]]:
    """Arm -> model -> its mean passes until broken, restricted to a time up to which every model was tried.

    It is the area under the model's Kaplan-Meier curve, so a sample that holds counts with all that was spent on it.
    """
    frame = found.frames[PASSES]
    means: dict[str, dict[str, float]] = {}
    for arm in found.durations[PASSES].arms:
        own = {model: (frame["arm"] == arm) & (frame["model"] == model) for model in found.models}
        until = min(float(frame["duration"][rows].max()) for rows in own.values())
        curves = {model: kaplan_meier(frame["duration"][rows], frame["event"][rows]) for model, rows in own.items()}
        means[arm] = {model: curve.mean(until).value for model, curve in curves.items()}
    return means


def network_survival(found: Findings, arms: Sequence[str] | None = None) -> dict[str, float]:
    """Model -> the geometric mean of these over arms: one of ten passes counts as much as one of two hundred."""
    means = [own for arm, own in arm_survival(found).items() if arms is None or arm in arms]
    return {model: math.exp(float(np.mean([math.log(own[model]) for own in means]))) for model in found.models}


def network_trend(found: Findings, survival: Mapping[str, float]) -> Trend:
    """How survival changes with ten layers more, over networks, noise apart."""
    depths = [found.tag(model, "depth") / LAYERS for model in found.models]
    noises = [noise_of(found.tag(model, "noise")) for model in found.models]
    return _as_factor(trend([math.log(survival[model]) for model in found.models], depths, noises))


def depth_by_noise(found: Findings, survival: Mapping[str, float]) -> dict[str, Trend]:
    """The same for the networks of each level of noise by themselves."""
    trends = {}
    for level in sorted({noise_of(found.tag(model, "noise")) for model in found.models}, key=float):
        own = [model for model in found.models if noise_of(found.tag(model, "noise")) == level]
        depths = [found.tag(model, "depth") / LAYERS for model in own]
        values = [math.log(survival[model]) for model in own]
        trends[f"noise {level}"] = _as_factor(trend(values, depths, [level] * len(own)))
    return trends


def noise_trends(found: Findings, survival: Mapping[str, float]) -> dict[str, Trend]:
    """The same of each level of noise against none, depths apart."""
    levels = sorted({noise_of(found.tag(model, "noise")) for model in found.models} - {"0"}, key=float)
    trends = {}
    for level in levels:
        own = [model for model in found.models if noise_of(found.tag(model, "noise")) in ("0", level)]
        noisy = [float(noise_of(found.tag(model, "noise")) == level) for model in own]
        depths = [str(found.tag(model, "depth")) for model in own]
        values = [math.log(survival[model]) for model in own]
        trends[f"noise {level}"] = _as_factor(trend(values, noisy, depths))
    return trends


def _as_factor(found: Trend) -> Trend:
    """A slope of logarithms as a factor."""
    own = found.slope
    ends = (math.exp(own.value), math.exp(own.low), math.exp(own.high))
    return Trend(Estimate(*ends, own.level, own.n, own.method), found.p_value, found.n)


def per_pass(found: Findings) -> float:
    """How many times as long a pass takes with ten layers more, noise and defences apart."""
    speed = spent_per_pass(found)
    depths = [found.tag(model, "depth") / LAYERS for model in found.models]
    groups = [f"{noise_of(found.tag(model, 'noise'))} {found.label(model)}" for model in found.models]
    return math.exp(trend([math.log(speed[model]) for model in found.models], depths, groups).slope.value)


def spent_per_pass(found: Findings) -> dict[str, float]:
    """Model -> processor seconds for each forward pass of an attack, with the gradients that belong to it."""
    passes, seconds = found.frames[PASSES], found.frames[SECONDS]
    return {model: _spent(seconds, model) / _spent(passes, model) for model in found.models}


def _spent(frame: Frame, model: str) -> float:
    return float(frame["duration"][frame["model"] == model].sum())
