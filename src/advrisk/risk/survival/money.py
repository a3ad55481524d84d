"""What it costs to break one sample of each model, beside what its training cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.survival.cost import BROKEN_FACTOR, Verdict, broken, mean_of, over_mean, scaled
from advrisk.risk.survival.durations import COUNTED, Durations
from advrisk.risk.survival.fit import SurvivalFit

NO_TRAINING = "its training time is not known: train it with `advrisk train`, which keeps that beside the weights"
NO_SECONDS = "no seconds were kept of its rows: run the study in another folder"
_HOUR = 3600.0


@dataclass(frozen=True)
class Hardware:
    """A machine, and what an hour of it costs."""

    name: str
    per_hour: float


@dataclass(frozen=True)
class ModelCost:
    """One model. Ratios are training seconds for each training sample over the mean seconds until a sample breaks."""

    model: str
    train_s: float | None
    train_samples: int | None
    break_s: Estimate | None  # mean seconds until a sample breaks, up to the limit
    adversarial: Estimate | None  # the ratio for 0 < eps <= eps_max
    benign: Estimate | None  # the ratio for eps = 0
    benign_outside: bool  # no arm has an eps of 0
    extrapolated: Estimate | None  # the ratio with the mean of the fitted law, beyond what was seen
    total: Estimate | None  # the whole training time over the mean time: another number
    verdict: Verdict | None
    break_cost: Estimate | None  # of one sample, in the unit of the hardware's price
    train_cost: float | None
    why_not: str | None  # why there is no ratio

    def as_dict(self) -> dict[str, Any]:
        return {name: value.as_dict() if isinstance(value, Estimate) else value for name, value in vars(self).items()}


def model_cost(
    model: str,
    durations: Durations,
    fit: SurvivalFit,
    at: Mapping[str, Any],
    *,
    until: float,
    eps_max: float | None = None,
    factor: float = BROKEN_FACTOR,
    hardware: Hardware | None = None,
    seen: float | None = None,
) -> ModelCost:
    """What breaking a sample costs, by one fit in which eps is a covariate where it varies.

    Intervals are those of the fit: seconds for each unit are taken as exact. `seen` is as for `SurvivalFit.mean`.
    """
    facts = durations.facts[model]
    unit_s = seconds_per_unit(durations, model)
    found: dict[str, Any] = dict.fromkeys(("break_s", "adversarial", "benign", "extrapolated", "total", "verdict"))
    found |= {"benign_outside": False, "break_cost": None, "train_cost": None, "why_not": None}
    if unit_s is None:
        return ModelCost(model, facts.train_s, facts.train_samples, **(found | {"why_not": NO_SECONDS}))
    mean, endless, at_zero = _means(durations, fit, at, until, seen, eps_max)
    found["break_s"] = scaled(mean, unit_s, f"{mean.method}{_clock(durations, unit_s)}")
    if hardware is not None:
        price = hardware.per_hour / _HOUR
        found["break_cost"] = scaled(found["break_s"], price, f"{found['break_s'].method}; {hardware.name}")
        found["train_cost"] = None if facts.train_s is None else facts.train_s * price
    if facts.train_s is None or facts.train_s_per_sample is None:
        return ModelCost(model, facts.train_s, facts.train_samples, **(found | {"why_not": NO_TRAINING}))
    each = facts.train_s_per_sample
    found["adversarial"] = over_mean(each, mean, seconds_per_unit=unit_s)
    found["extrapolated"] = over_mean(each, endless, seconds_per_unit=unit_s)
    found["total"] = over_mean(facts.train_s, mean, seconds_per_unit=unit_s)
    found["verdict"] = broken(found["adversarial"], factor, extrapolated=found["extrapolated"])
    if at_zero is not None:
        found["benign"] = over_mean(each, at_zero, seconds_per_unit=unit_s)
        found["benign_outside"] = bool(fit.outside({"eps": 0.0}))
    return ModelCost(model, facts.train_s, facts.train_samples, **found)


def seconds_per_unit(durations: Durations, model: str) -> float | None:
    """What one unit of the measure took on that model, on average over its rows; None where nobody knows."""
    if durations.measure in ("seconds", "process-seconds"):
        return 1.0
    own = durations.of_model(model) & np.isfinite(durations.seconds)
    spent = float(durations.columns["duration"][own].sum())
    seconds = float(durations.seconds[own].sum())
    return seconds / spent if spent > 0 and seconds > 0 else None


def _clock(durations: Durations, unit_s: float) -> str:
    """How a number of units became seconds."""
    if durations.measure not in COUNTED:
        return ""
    return f"; {unit_s:.4g} s for each {durations.one_unit}, taken as exact"


def _means(
    durations: Durations,
    fit: SurvivalFit,
    at: Mapping[str, Any],
    until: float,
    seen: float | None,
    eps_max: float | None,
) -> tuple[Estimate, Estimate, Estimate | None]:
    """Mean times of the sizes that count: up to the limit, without it, and up to it at eps = 0."""
    if "eps" not in fit.covariates:  # it may have been dropped, as nothing could be told with it
        return fit.mean(at=at, until=until, seen=seen), fit.mean(at=at), None
    sizes = [eps for eps in _sizes(durations) if eps > 0 and (eps_max is None or eps <= eps_max)]
    limited = mean_of([fit.mean(at={**at, "eps": eps}, until=until, seen=seen) for eps in sizes], of="sizes eps")
    endless = mean_of([fit.mean(at={**at, "eps": eps}) for eps in sizes], of="sizes eps")
    return limited, endless, fit.mean(at={**at, "eps": 0.0}, until=until, seen=seen)


def _sizes(durations: Durations) -> list[float]:
    return sorted(set(durations.columns["eps"].tolist()))
