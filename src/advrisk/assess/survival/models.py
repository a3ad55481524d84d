"""One model of an assessment: the tally of its rows, its survival, and its failure rates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from advrisk.assess.damage.clean import CleanShares
from advrisk.assess.survival.covariates import of_model
from advrisk.assess.survival.law import Fitted
from advrisk.assess.survival.money import CostLimits, ModelCost, model_cost
from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson, plain, plain_fields
from advrisk.risk.survival.cost import Rate, benign_rate, failure_rate
from advrisk.risk.survival.durations import Durations, Facts, Tally
from advrisk.risk.survival.fit import SurvivalFit
from advrisk.risk.survival.kaplan_meier import KaplanMeier

_TIMES = 20  # at which hazard and density are reported


@dataclass(frozen=True)
class ModelSurvival:
    """One model. Mean and median are those of its rows (Kaplan and Meier); `law_…` those of the fitted law."""

    model: str
    tally: Tally
    facts: Facts
    curve: KaplanMeier | None  # None where it has no row with a duration
    clean_accuracy: Estimate | None
    clean_rejection: Estimate | None  # None also if no model refuses anything
    at: Mapping[str, Any]  # its values of the law's covariates
    mean: Estimate | None  # restricted to the limit of the assessment
    median: Estimate | None  # infinite where it was not reached
    law_mean: Estimate | None  # up to the limit; None, as is the next one, where no law holds
    endless_mean: Estimate | None
    hazard: tuple[tuple[float, Estimate, Estimate], ...]  # time, h(t) and f(t) by the law
    benign: Rate | None  # failures of clean inputs
    adversarial: Rate | None  # failures under attack
    cost: ModelCost | None
    times: tuple[float, ...]  # for which rates are given as probabilities: one unit, and the limit

    in_json: ClassVar[InJson] = {
        **dict.fromkeys(("facts", "times")),
        "tally": "rows",
        **{f"facts.{name}": name for name in ("inference_s", "train_s", "train_process_s", "train_samples")},
        "facts.n_clean_rejected": "clean_rejected",
        "curve": "kaplan_meier",
        "curve.plateau.message": "plateau",
        "reached": "median_reached",
        "benign": "f_ben",
        "adversarial": "f_adv",
    }

    @property
    def reached(self) -> bool:
        """Whether half of its attempts succeeded by the end of the curve."""
        return self.median is not None and bool(np.isfinite(self.median.value))

    def as_dict(self) -> dict[str, Any]:
        names = ("time", "hazard", "density")
        rates = {"f_ben": self._in_times(self.benign), "f_adv": self._in_times(self.adversarial)}
        return (
            plain_fields(self) | {"hazard": [dict(zip(names, plain(one), strict=True)) for one in self.hazard]} | rates
        )

    def _in_times(self, rate: Rate | None) -> dict[str, Any] | None:
        """A rate, and the probability of a failure within each of the times."""
        if rate is None:
            return None
        return plain_fields(rate) | {
            "probabilities": [{"time": t, **rate.probability(t).as_dict()} for t in self.times]
        }


def model_survival(
    model: str,
    whole: Durations,
    curve: KaplanMeier | None,
    law: SurvivalFit | None,
    at: Mapping[str, Any],
    limits: CostLimits,
    clean: CleanShares,
) -> ModelSurvival:
    """Curve, tally, rates and costs are of all its rows; `law` is None where it does not hold for this model."""
    facts = whole.facts[model]
    benign = _benign(whole, facts, limits.level)
    return ModelSurvival(
        model=model,
        tally=whole.tallies[model],
        facts=facts,
        curve=curve,
        clean_accuracy=clean.accuracy.get(model),
        clean_rejection=clean.rejection.get(model),
        at=at,
        mean=None if curve is None else curve.mean(min(limits.until, curve.end)),
        median=None if curve is None else curve.median(),
        law_mean=None if law is None else law.mean(at=at, until=limits.until),
        endless_mean=None if law is None else law.mean(at=at),
        hazard=() if law is None else _hazard(law, at, limits.until),
        benign=benign,
        adversarial=_adversarial(whole, model, limits.level),
        cost=None if curve is None else model_cost(model, whole, limits, law=law, at=at, benign=benign),
        times=tuple(dict.fromkeys((1.0, float(limits.until)))),
    )


def own_covariates(fitted: Fitted, durations: Durations, model: str) -> dict[str, Any]:
    """The model's values of the law's covariates."""
    names = fitted.names if fitted.fit is None else fitted.fit.covariates
    return of_model(durations, model, names)


def _hazard(law: SurvivalFit, at: Mapping[str, Any], until: float) -> tuple[tuple[float, Estimate, Estimate], ...]:
    times = [float(time) for time in np.linspace(0, until, _TIMES + 1)[1:]]
    return tuple((time, law.hazard(time, at=at), law.density(time, at=at)) for time in times)


def _benign(durations: Durations, facts: Facts, level: float) -> Rate | None:
    """Clean inputs follow each other: one forward pass apart, or so many seconds. A refusal is no failure."""
    time = {"forward": 1.0, "seconds": facts.inference_s}.get(durations.measure)
    if not facts.right or not time:
        return None
    return benign_rate(list(facts.wrong.values()), time, unit=durations.unit, level=level)


def _adversarial(durations: Durations, model: str, level: float) -> Rate | None:
    failures, spent = durations.by_sample(model)
    return failure_rate(failures, spent, unit=durations.unit, level=level) if spent.sum() > 0 else None
