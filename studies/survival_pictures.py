"""What the pictures of the survival study show, read from two runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.survival import SurvivalFit, kaplan_meier
from studies.figures import photograph
from studies.survival_figures import Curve, Dots, factor_plot, network_dots, survival_curves
from studies.survival_findings import BARE, PASSES, Findings, Reading, noise_of
from studies.survival_networks import network_survival, spent_per_pass
from studies.survival_sections import best_family, factors_of

_COLOURS = 64
_FAMILY = "pgd"


def draw(defended: Findings, trained: Findings, folder: Path) -> dict[str, Path]:
    """Place of a page -> its picture, drawn."""
    panels = {"networks of others, bare": curves(defended), "networks of our own": curves(trained)}
    figures = {
        "figure-curves": survival_curves(panels, unit="forward passes of PGD"),
        "figure-factors": factor_plot({"networks of others": _factors(defended), "of our own": _factors(trained)}),
        "figure-networks": network_dots(dots(trained), titles=("passes until broken", "processor ms of a pass")),
    }
    paths = {place: folder / f"survival-{place.removeprefix('figure-')}.png" for place in figures}
    photograph({paths[place]: figure for place, figure in figures.items()}, colours=_COLOURS)
    return paths


def curves(found: Findings) -> list[Curve]:
    """A curve for each depth over the arms of PGD, which all go on for as long: of bare models where some are defended.

    Arms that end early and arms that go on must not be put together: later on, only the latter would be seen.
    """
    frame, arms = found.frames[PASSES], found.durations[PASSES].arms
    chosen = [arm for arm, known in arms.items() if known["family"] == _FAMILY] or list(arms)
    fit = found.fit(Reading(PASSES, unit="sample"), best_family(found))
    found_curves = []
    for depth in np.unique(frame["depth"]):
        rows = (frame["defence"] == BARE) & (frame["depth"] == depth) & np.isin(frame["arm"], chosen)
        seen = kaplan_meier(frame["duration"][rows], frame["event"][rows])
        at = {"depth": float(depth)} | ({"defence": BARE} if "defence" in found.beside else {})
        fitted = [_fitted(fit, float(time), at, chosen if "arm" in found.beside else []) for time in seen.times]
        found_curves.append(Curve(f"{depth:g} layers", seen.times, seen.survival, np.array(fitted)))
    return found_curves


def _fitted(fit: SurvivalFit, time: float, at: Mapping[str, Any], arms: Sequence[str]) -> float:
    """Survival past a time, the mean over arms."""
    asked = [dict(at) | {"arm": arm} for arm in arms] or [dict(at)]
    return float(np.mean([fit.survival(time, at=one).value for one in asked]))


def _factors(found: Findings) -> dict[str, Estimate]:
    return {name: pair[0] for name, pair in factors_of(found).items()}


def dots(found: Findings) -> dict[str, list[Dots]]:
    """Two panels of networks by noise: passes until broken, and what a pass takes."""
    survival, speed = network_survival(found), spent_per_pass(found)
    noises = sorted({noise_of(found.tag(model, "noise")) for model in found.models}, key=float)
    panels: dict[str, list[Dots]] = {"how many passes": [], "how long a pass takes": []}
    for noise in noises:
        own = [model for model in found.models if noise_of(found.tag(model, "noise")) == noise]
        depths = [float(found.tag(model, "depth")) for model in own]
        name = "trained without noise" if noise == "0" else f"noise {noise}"
        panels["how many passes"].append(Dots(name, depths, [survival[model] for model in own]))
        panels["how long a pass takes"].append(Dots(name, depths, [1e3 * speed[model] for model in own]))
    return panels
