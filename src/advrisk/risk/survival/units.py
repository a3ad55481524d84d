"""The unit of an effect: for how much of a number a factor is reported, where its whole range would be too much."""

from collections.abc import Mapping, Sequence

import numpy as np

from advrisk.risk.survival.durations import Durations

EPS, STEP, STEPS = "eps", "1/255", 255
_MOST_STEPS = 128  # an eps above half of the range is no matter of grey levels


def default_units(
    durations: Durations, names: Sequence[str], given: Mapping[str, float | str]
) -> dict[str, float | str]:
    """The units given, and one grey level, 1/255, for an eps in linf of at most half of [0, 1].

    What is not named is left to the fit: 1 for small whole numbers, else one standard deviation.
    """
    units = {name: unit for name, unit in given.items() if name in names}
    norms = {durations.arms[arm]["norm"] for arm in np.unique(durations.columns["arm"]).tolist()}
    if EPS in names and EPS not in units and norms == {"linf"}:
        sizes = durations.columns[EPS]
        if float(np.max(sizes)) <= _MOST_STEPS / STEPS:
            units[EPS] = STEP
    return units
