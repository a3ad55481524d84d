"""The curve of some rows of an assessment, without a law."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from advrisk.risk.survival.durations import Durations, Flags
from advrisk.risk.survival.kaplan_meier import KaplanMeier, kaplan_meier


def rows_curve(columns: Mapping[str, Any], level: float) -> KaplanMeier | None:
    """The curve of these rows, up to where the first of their attacks gave up; None where there is no row.

    Beyond, only the longer attacks go on, and what they do says nothing of those that ended. Rows of one sample depend
    on each other.
    """
    duration, event, samples = columns["duration"], columns["event"].astype(np.bool_), columns["sample"]
    if not duration.size:
        return None
    held = [duration[(columns["arm"] == arm) & ~event] for arm in np.unique(columns["arm"])]
    end = min((float(times.max()) for times in held if times.size), default=float(duration.max()))
    cluster = samples if len(np.unique(samples)) > 1 else None
    return kaplan_meier(np.minimum(duration, end), event & (duration <= end), cluster=cluster, level=level)


def model_curve(durations: Durations, model: str, level: float, *, among: Flags | None = None) -> KaplanMeier | None:
    """The curve of a model's rows, or of some of them."""
    own = durations.of_model(model)
    own = own if among is None else own & among
    return rows_curve({name: column[own] for name, column in durations.columns.items()}, level)


def common_end(curves: Mapping[str, KaplanMeier]) -> float:
    """Up to when the means of all these curves are known: where the first ends, unless nothing is left of it."""
    end = min(curve.end for curve in curves.values())
    return end if np.isfinite(end) else max(curve.longest for curve in curves.values())
