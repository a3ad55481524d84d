"""Whether a law holds on samples that it has not seen: fitted on half of them, calibrated on the other half."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.risk.survival.calibration import Calibration, calibration
from advrisk.risk.survival.checks import FEWEST_CLUSTERS
from advrisk.risk.survival.fitting import fit_survival

SHARES = (0.25, 0.5, 0.75)  # of the events, at whose times a law is calibrated


def calibrated_on_half(
    frame: Mapping[str, Any], options: Mapping[str, Any], family: str, rng: np.random.Generator
) -> tuple[tuple[Calibration, ...], str]:
    """The calibrations at the quartiles of the times of events, the worst first; or none, and why.

    A law may be right about the middle and wrong about the rest, so that one time is not enough. What chance explains
    is that of all of them together: each at the level 1 - (1 - level)/3.

    `frame` has a column `sample`: whole samples are in one half or the other, however few there are. Errors allow for
    rows of a sample to be alike; where a half has too few samples for that, the calibration has none.
    """
    groups, event = np.asarray(frame["sample"]), np.asarray(frame["event"], dtype=np.bool_)
    names = np.unique(groups)
    first = np.isin(groups, rng.permutation(names)[: len(names) // 2])
    recurring = len(names) < len(groups)
    clustered = recurring and len(names) // 2 >= FEWEST_CLUSTERS
    how = {name: value for name, value in options.items() if name != "cluster"}
    how |= {"cluster": "sample"} if clustered else {}
    how |= {"level": 1 - (1 - how["level"]) / len(SHARES)}
    found, refused = [], ""
    try:
        half = fit_survival({name: column[first] for name, column in frame.items()}, family=family, **how)
    except RiskError as error:
        return (), str(error)
    for time in np.unique(np.quantile(frame["duration"][event], SHARES, method="inverted_cdf")):
        try:
            found.append(calibration(half, {name: column[~first] for name, column in frame.items()}, float(time)))
        except RiskError as error:
            refused = str(error)
    if not found:
        return (), refused
    checked = found if clustered or not recurring else [one.without_errors() for one in found]
    return tuple(sorted(checked, key=_badness, reverse=True)), ""


def _badness(one: Calibration) -> float:
    """How far off, in units of what chance explains where that is known."""
    return one.ici / one.by_chance if one.by_chance else one.ici
