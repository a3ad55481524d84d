"""What the pictures of the survival study show, read from two runs."""

from pathlib import Path

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.survival import kaplan_meier
from studies.figures import photograph
from studies.survival_figures import Curve, Dots, factor_plot, network_dots, survival_curves
from studies.survival_findings import BARE, PASSES, Findings, Reading, noise_of
from studies.survival_networks import network_survival, spent_per_pass
from studies.survival_sections import best_family, factors_of

_COLOURS = 64
_POINTS = 40


def draw(defended: Findings, trained: Findings, folder: Path) -> dict[str, Path]:
    """Place of a page -> its picture, drawn."""
    panels = {"networks of others, bare": curves(defended), "networks of our own": curves(trained)}
    figures = {
        "figure-curves": survival_curves(panels, unit="forward passes"),
        "figure-factors": factor_plot({"networks of others": _factors(defended), "of our own": _factors(trained)}),
        "figure-networks": network_dots(dots(trained), titles=("passes until broken", "processor ms of a pass")),
    }
    paths = {place: folder / f"survival-{place.removeprefix('figure-')}.png" for place in figures}
    photograph({paths[place]: figure for place, figure in figures.items()}, colours=_COLOURS)
    return paths


def curves(found: Findings) -> list[Curve]:
    """A curve for each depth over all fitted arms: of bare models where some are defended."""
    frame = found.frames[PASSES]
    fit = found.fit(Reading(PASSES, unit="sample"), best_family(found))
    bare = frame["defence"] == BARE
    found_curves = []
    for depth in np.unique(frame["depth"]):
        rows = bare & (frame["depth"] == depth)
        seen = kaplan_meier(frame["duration"][rows], frame["event"][rows])
        times = _thinned(seen.times)
        at = {"depth": float(depth)} | ({"defence": BARE} if "defence" in found.beside else {})
        fitted = [fit.survival(float(time), at=at).value for time in times]
        known = [seen.at(float(time)).value for time in times]
        found_curves.append(Curve(f"{depth:g} layers", times, np.array(known), np.array(fitted)))
    return found_curves


def _thinned(times: np.ndarray) -> np.ndarray:
    """Some of the times, dense where they are small."""
    wanted = np.geomspace(times[0], times[-1], _POINTS)
    return np.unique(times[np.searchsorted(times, wanted, side="left").clip(0, times.size - 1)])


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
