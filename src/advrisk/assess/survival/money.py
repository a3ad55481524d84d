"""The cost of breaking one sample of each model, compared with that of training on one.

Meyers et al., Eq. 8. The mean time until a sample breaks comes from the rows (Kaplan and Meier), up to a limit. Only
the mean beyond the limit and the benign ratio at eps = 0 come from the fitted law, and only if it holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from advrisk.core.estimate import Estimate
from advrisk.risk.survival.cost import BROKEN_FACTOR, CostVerdict, Rate, broken, mean_of, over_mean, scaled
from advrisk.risk.survival.durations import COUNTED, Durations, Facts, Flags, model_curve
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.kaplan_meier import KaplanMeier

NO_TRAINING = (
    "its training time is not known: state `train_s` and `train_samples` of the model in the study, or train it with "
    "`advrisk train`, which keeps them beside the weights"
)
NO_PROCESSORS = (
    "processor seconds of its training are not known: state `train_process_s` and `train_samples` of the model in the "
    "study, or measure durations in seconds"
)
NO_PRICE = "its training has a cost and no seconds: name the `hardware` and its price, so that breaking has a cost, too"
NO_SAMPLES = "it is not known how many samples it was trained on: state `train_samples` of the model in the study"
NO_SECONDS = "no seconds were kept of its rows: run the study in another folder"
NO_ROWS = "no attack of a size that counts has a duration"
_HOUR = 3600.0


@dataclass(frozen=True)
class Hardware:
    """A machine and its price per hour."""

    name: str
    per_hour: float


@dataclass(frozen=True)
class ModelCost:
    """One model. Ratios are training seconds for each training sample over the mean seconds until a sample breaks.

    With a price of the machine they are ratios of costs, which are equal unless the study states the cost of training.
    """

    model: str
    train_s: float | None  # processor seconds if durations are
    train_samples: int | None
    break_s: Estimate | None = None  # mean seconds until a sample breaks, up to the limit
    adversarial: Estimate | None = None  # the ratio for 0 < eps <= eps_max
    by_attack: Mapping[str, Estimate] = field(default_factory=dict)  # the same of each attack
    benign: Estimate | None = None  # the ratio at eps = 0, by the law
    benign_outside: bool = False  # no arm has an eps of 0
    benign_rate: Estimate | None = None  # the ratio with the mean time until a clean input fails: 1/f_ben
    extrapolated: Estimate | None = None  # the ratio with the mean beyond the limit, by the law
    total: Estimate | None = None  # the whole training time over the mean time
    verdict: CostVerdict | None = None
    break_cost: Estimate | None = None  # of one sample, in the unit of the hardware's price
    train_cost: float | None = None
    why_not: str | None = None  # why there is no ratio


@dataclass(frozen=True)
class CostLimits:
    """The limit of means, the sizes that count, and the factor for the verdict."""

    until: float
    level: float
    eps_max: float | None = None
    factor: float = BROKEN_FACTOR
    hardware: Hardware | None = None


def model_cost(
    model: str,
    durations: Durations,
    limits: CostLimits,
    *,
    law: SurvivalFit | None,
    at: Mapping[str, Any],
    benign: Rate | None,
) -> ModelCost:
    """The cost of breaking a sample; `law` is None if it does not hold, `at` are the model's own covariates.

    Intervals come from the rows: the seconds per unit are taken as exact.
    """
    facts = durations.facts[model]
    train_s = facts.training_seconds(durations.measure)
    unit_s = seconds_per_unit(durations, model)
    counting = sizes_that_count(durations, limits.eps_max)
    curve = model_curve(durations, model, limits.level, among=counting)
    if unit_s is None or curve is None:
        why = NO_SECONDS if unit_s is None else NO_ROWS
        return ModelCost(model, train_s, facts.train_samples, why_not=why)
    mean = curve.mean(min(limits.until, curve.end))
    break_s = scaled(mean, unit_s, f"{mean.method}{_clock(durations, unit_s)}")
    costs: dict[str, Any] = {"break_s": break_s}
    if limits.hardware is not None:
        price = limits.hardware.per_hour / _HOUR
        costs["break_cost"] = scaled(break_s, price, f"{break_s.method}; {limits.hardware.name}")
        worth = None if train_s is None else train_s * price
        costs["train_cost"] = worth if facts.train_cost is None else facts.train_cost
    else:
        costs["train_cost"] = facts.train_cost
    seconds, why = _training(facts, train_s, durations, limits.hardware)
    if seconds is None or not facts.train_samples:
        return ModelCost(model, train_s, facts.train_samples, **costs, why_not=why)
    each = seconds / facts.train_samples
    costs |= _ratios(model, durations, (each, seconds, unit_s), (curve, mean), limits, counting)
    costs |= _by_law(durations, (each, unit_s), curve, limits, law, at)
    costs["verdict"] = broken(
        costs["adversarial"], limits.factor, extrapolated=costs["extrapolated"], censored=curve.survival[-1] > 0
    )
    per_second = None if benign is None else _per_second(benign, facts, durations)
    costs["benign_rate"] = None if per_second is None else scaled(per_second, each, f"{each:.4g} s x f_ben")
    return ModelCost(model, train_s, facts.train_samples, **costs)


def _training(
    facts: Facts, train_s: float | None, durations: Durations, hardware: Hardware | None
) -> tuple[float | None, str]:
    """Training in seconds of the attacking machine, as measured or as its cost buys; or why there are none."""
    if facts.train_cost is not None and hardware is not None and hardware.per_hour > 0:
        seconds: float | None = facts.train_cost / hardware.per_hour * _HOUR
    else:
        seconds = train_s
    if seconds is not None and facts.train_samples:
        return seconds, ""
    if seconds is not None:
        return None, NO_SAMPLES
    if facts.train_cost is not None:
        return None, NO_PRICE
    return None, NO_PROCESSORS if durations.measure == "process-seconds" and facts.train_s is not None else NO_TRAINING


def _ratios(
    model: str,
    durations: Durations,
    seconds: tuple[float, float, float],
    observed: tuple[KaplanMeier, Estimate],
    limits: CostLimits,
    counting: Flags,
) -> dict[str, Any]:
    """The ratios from the rows alone: for all attacks, and for each."""
    (each, whole, unit_s), (_, mean) = seconds, observed
    attacks = np.array([str(durations.arms[arm]["family"]) for arm in durations.columns["arm"]], dtype=object)
    by_attack = {}
    for attack in sorted(set(attacks[durations.of_model(model) & counting].tolist())):
        own = model_curve(durations, model, limits.level, among=counting & np.asarray(attacks == attack))
        if own is not None:
            by_attack[attack] = over_mean(each, own.mean(min(limits.until, own.end)), seconds_per_unit=unit_s)
    return {
        "adversarial": over_mean(each, mean, seconds_per_unit=unit_s),
        "total": over_mean(whole, mean, seconds_per_unit=unit_s),
        "by_attack": by_attack,
    }


def _by_law(
    durations: Durations,
    seconds: tuple[float, float],
    curve: KaplanMeier,
    limits: CostLimits,
    law: SurvivalFit | None,
    at: Mapping[str, Any],
) -> dict[str, Any]:
    """The ratios beyond the rows: the mean without a limit, and at eps = 0."""
    each, unit_s = seconds
    ratios: dict[str, Any] = {"extrapolated": None, "benign": None, "benign_outside": False}
    if curve.survival[-1] == 0:  # every attempt succeeded: the mean has no limit, and needs no law
        ratios["extrapolated"] = over_mean(each, curve.mean(curve.longest), seconds_per_unit=unit_s)
    if law is None:
        return ratios
    if ratios["extrapolated"] is None:
        ratios["extrapolated"] = over_mean(each, _endless(durations, law, at, limits), seconds_per_unit=unit_s)
    if "eps" in law.covariates:
        at_zero = law.mean(at={**at, "eps": 0.0}, until=limits.until)
        ratios["benign"] = over_mean(each, at_zero, seconds_per_unit=unit_s)
        ratios["benign_outside"] = bool(law.outside({"eps": 0.0}))
    return ratios


def _endless(durations: Durations, law: SurvivalFit, at: Mapping[str, Any], limits: CostLimits) -> Estimate:
    """The mean of the law without a limit, over the sizes that count."""
    if "eps" not in law.covariates:
        return law.mean(at=at)
    sizes = [row["eps"] for row in durations.arms.values() if _counts(row["eps"], limits.eps_max) and row["eps"]]
    return mean_of([law.mean(at={**at, "eps": float(eps)}) for eps in sorted(set(sizes))], of="sizes eps")


def _per_second(benign: Rate, facts: Facts, durations: Durations) -> Estimate | None:
    """f_ben in failures per second."""
    if durations.measure == "seconds":
        return benign.estimate
    if durations.measure != "forward" or not facts.inference_s:
        return None
    return scaled(benign.estimate, 1 / facts.inference_s, benign.estimate.method)


def sizes_that_count(durations: Durations, eps_max: float | None) -> Flags:
    """Whether each row's arm has 0 < eps <= eps_max; without a limit also arms without eps count."""
    arms = {arm: _counts(row["eps"], eps_max) for arm, row in durations.arms.items()}
    return np.array([arms[arm] for arm in durations.columns["arm"]], dtype=np.bool_)


def _counts(eps: float | None, eps_max: float | None) -> bool:
    if eps is None:
        return eps_max is None
    return eps > 0 and (eps_max is None or eps <= eps_max)


def seconds_per_unit(durations: Durations, model: str) -> float | None:
    """Mean seconds per unit of the measure on a model, over its rows; None if unknown."""
    if durations.measure in ("seconds", "process-seconds"):
        return 1.0
    own = durations.of_model(model) & np.isfinite(durations.seconds)
    spent = float(durations.columns["duration"][own].sum())
    seconds = float(durations.seconds[own].sum())
    return seconds / spent if spent > 0 and seconds > 0 else None


def _clock(durations: Durations, unit_s: float) -> str:
    """The conversion of units to seconds, as text."""
    if durations.measure not in COUNTED:
        return ""
    return f"; {unit_s:.4g} s for each {durations.one_unit}, taken as exact"
