"""Whether a law holds on samples that it has not seen: fitted on half of them, calibrated on the other half."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from advrisk.core.errors import RiskError
from advrisk.risk.survival.calibration import Calibration, calibration
from advrisk.risk.survival.checks import FEWEST_CLUSTERS
from advrisk.risk.survival.fitting import fit_survival


def calibrated_on_half(
    frame: Mapping[str, Any], options: Mapping[str, Any], family: str, rng: np.random.Generator
) -> tuple[Calibration | None, str]:
    """The calibration at the median time of an event; or None, and why.

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
    try:
        half = fit_survival({name: column[first] for name, column in frame.items()}, family=family, **how)
        time = float(np.median(frame["duration"][event]))
        found = calibration(half, {name: column[~first] for name, column in frame.items()}, time)
    except RiskError as error:
        return None, f"it could not be checked on samples held out: {error}"
    return (found, "") if clustered or not recurring else (found.without_errors(), "")
