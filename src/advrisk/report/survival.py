"""Survival in words and tables, and which figures the report shows of it.

Sentences quote the rows (Kaplan and Meier); the fitted law is quoted for covariates only, and only where it holds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.assess.damage.clean import on_rejection
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.assess.survival.models import ModelSurvival
from advrisk.assess.survival.money import ModelCost
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted, listed
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.palette import Places, Plot
from advrisk.report.survival_figures import (
    MOST_MODELS,
    calibration_plot,
    coefficient_plot,
    covariate_curves,
    factor_plot,
    hazard_plot,
    pareto_plot,
    survival_curves,
)
from advrisk.report.survival_laws import coefficient_table, factor_names, family_name
from advrisk.report.survival_paper import paper_figures, paper_sections, why_no_strength
from advrisk.risk.survival.calibration import Calibration
from advrisk.risk.survival.choice import FamilyChoice
from advrisk.risk.survival.durations import COUNTED
from advrisk.risk.survival.fit import is_extrapolated
from advrisk.risk.survival.paired import ACCURACY, FAILURES
from advrisk.risk.survival.pareto import Criterion, Standing
from advrisk.risk.survival.records import AccelerationFactor

ON_TIME = (
    "A duration is the work that an attack did until its first success within eps. Samples that held survive for at "
    "least as long as they were attacked; samples that were incorrect from the start are counted apart. Means and "
    "medians are those of the attempts (Kaplan and Meier); a mean is restricted to the limit."
)
ON_COST = (
    "The ratio is training seconds for each training sample over the mean seconds until a sample breaks. Above 1, "
    "breaking one sample takes less time than training on one did. It means something only if both were measured on "
    "like machines."
)
ON_PROCESS = "Training seconds are processor seconds, as those of the attacks are."
ON_CONCORDANCE = "Concordance says how often the covariates order two times correctly; 0.5 is chance."
ON_RATES = (
    "f_ben and f_adv, and what follows from them, are not to be held against each other: clean inputs pass by at full "
    "speed, many of them while an attacker is still at work on one sample. A larger f_ben does not mean that attacks "
    "do less harm than no attack; compare models with each other."
)
ON_PROBABILITY = (
    "The probability of at least one failure within a time t is 1 - exp(-r t), if failures come at a constant rate r: "
    "f_ben of clean inputs that pass by one after another, f_adv of samples that an attacker works on one by one."
)
ON_CHEAP = (
    "A model is called cheap to break where training on one sample took at least {factor:g} times as long as breaking "
    "one does, also beyond where attacks gave up (by the fitted law, where it holds), and both intervals say so. “No” "
    "says that breaking one costs more than 1/{factor:g} of training on one. It does not say that samples hold: all of "
    "them may break."
)
_FEWER = 0.05  # of clean accuracy, that belongs into a sentence
_CHEAP = {"broken": "yes", "not broken": "no"}
_KINDS = ("some clean input passing by is wrong", "an attacker at work breaks some sample")
_REASONS = 3  # arms that are named for each reason


@dataclass(frozen=True)
class Choice:
    """One of several figures that a reader can choose."""

    figure: str
    label: str


def survival_content(found: SurvivalAssessment | str, *, places: Places | None = None) -> dict[str, Any]:
    """What the template shows of survival, or why it cannot."""
    if isinstance(found, str):
        return {"lasts": None, "lasts_not": found, "lasts_figures": {}}
    figures: dict[str, Plot] = {}
    shown = found.models[:MOST_MODELS]
    figures["survival curves"] = survival_curves(found, shown, places=places)
    choices = []
    factors: Sequence[AccelerationFactor] = ()
    if found.law is not None:
        factors = found.law.acceleration_factors()
        for name in (one.name for one in found.law.scale_coding.covariates):
            figures[f"survival by {name}"] = covariate_curves(found, name, places=places)
            choices.append(Choice(f"survival by {name}", name))
        if factors:
            figures["survival factors"] = factor_plot(factors, factor_names(found))
        figures["survival hazard"] = hazard_plot(found, shown, places=places)
        if len(found.families) > 1:
            figures["survival coefficients"] = coefficient_plot(found)
    if found.calibrated is not None:
        figures["survival calibration"] = calibration_plot(found.calibrated)
    if found.pareto and {ACCURACY, FAILURES} <= {one.name for one in found.criteria}:
        figures["survival pareto"] = pareto_plot(found, places=places)
    figures |= paper_figures(found, places=places)
    return {
        "lasts": found,
        "lasts_not": "",
        "lasts_figures": figures,
        "lasts_headline": survival_headline(found),
        "lasts_words": [word for word in survival_words(found) if word != doubt_words(found)],
        "lasts_choices": choices,
        "lasts_factors": factors,
        "lasts_names": factor_names(found),
        "lasts_doubt": doubt_words(found),
        "lasts_laws": coefficient_table(found),
        "lasts_costs": any(one.cost is not None for one in found.models),
        "lasts_paper": paper_sections(figures),
        "median_text": median_text,
        "lasts_more": len(found.models) - len(shown),
        "lasts_left_out": left_out_words(found),
        "on_cost": cost_words(found),
        "on_standing": standing_text,
        "on_verdict": verdict_text,
        "on_calibration": "" if found.calibrated is None else calibration_words(found.calibrated),
        "number_text": number_text,
        "on_probability": ON_PROBABILITY,
        "on_rates": ON_RATES,
        "probability_columns": probability_columns(found),
        "probabilities": probabilities,
        "on_extrapolated": extrapolated_text,
        "lasts_refusing": refusing(found),
        "on_concordance": ON_CONCORDANCE,
    }


def survival_headline(found: SurvivalAssessment) -> str:
    """Which model survives longest, in a sentence; every number is read off the attempts, none off a law."""
    told = [one for one in found.models if one.mean is not None]
    if not told:
        return "No attempt has a duration."
    first = told[0]
    average = f"{_in_brackets(first.mean)} {found.unit} on average up to {found.until:.4g}"
    if len(told) == 1:
        return f"A sample of {first.model} survives {average}, {_median_words(first)}."
    alike = [one.model for one in told[1:] if not found.outlasts(first.model, one.model)]
    if alike:
        return (
            f"Undecided which model survives longest: {first.model}, with {average} ({_median_words(first)}), or "
            f"{_some(alike)}."
        )
    last, leads = told[-1], f"{first.model} survives longest{_on_few(told)}: {average} ({_median_words(first)})"
    if not all(found.outlasts(one.model, last.model) for one in told[1:-1]):
        return f"{leads}; undecided which model fails first."
    return f"{leads}; {last.model} fails first, after {_in_brackets(last.mean)} ({_median_words(last)})."


def _on_few(told: Sequence[ModelSurvival]) -> str:
    """On which samples the first survives, where it reads clearly fewer clean ones correctly than another model."""
    shares = [one.clean_accuracy.value for one in told if one.clean_accuracy is not None]
    own = told[0].clean_accuracy
    if own is None or max(shares) - own.value < _FEWER:
        return ""
    return f", on the {percent_text(own.value, 1)} of samples that it reads correctly when clean"


def _median_words(one: ModelSurvival) -> str:
    return f"median {median_text(one)}"


def median_text(one: ModelSurvival) -> str:
    """`7 [6, 8]`, or that fewer than half of its attempts succeeded."""
    if one.median is None:
        return "–"
    return _in_brackets(one.median, whole=True) if one.reached else "not reached"


def doubt_words(found: SurvivalAssessment) -> str:
    """Why no law is quoted, and what might help; empty where one is."""
    if not found.doubt:
        return ""
    if found.fit is None:
        return f"No law could be fitted: {found.doubt}."
    return (
        f"The fitted law ({family_name(found.fit.family)}) is not quoted: {found.doubt}. Curves, means and medians "
        "need no law. A law may hold with covariates of its shape (`shape_covariates`), another `family`, fewer "
        "attacks (`arms`) or more samples."
    )


def calibration_words(found: Calibration) -> str:
    """How far the law is off on samples that it had not seen, beside what chance does to a right one."""
    off = (
        f"On samples that it had not seen, the law is off by {100 * found.ici:.1f} points on average (ICI) in the "
        f"shares that fail by {found.at_time:.4g}, of three times the worst"
    )
    if found.by_chance is None:
        return f"{off}; there are too few samples to say how far chance alone would take it."
    chance = (
        f"chance alone takes a correct law up to {100 * found.by_chance:.1f} in {level_text(found.level)} of such runs"
    )
    within = found.ici <= found.by_chance
    return f"{off}; {chance}{': it may be correct' if within else ', so chance hardly explains this'}."


def survival_words(found: SurvivalAssessment) -> list[str]:
    """What must be known to read the numbers."""
    words = [ON_TIME, *_on_family(found), *_on_zero(found), *_on_plateaus(found)]
    words += on_rejection({one.model: one.clean_rejection for one in found.models if one.clean_rejection is not None})
    strength = [why] if (why := why_no_strength(found)) else []
    return [*words, *found.notes, *strength, *left_out_words(found)]


def left_out_words(found: SurvivalAssessment) -> list[str]:
    """Which arms have no duration, by the reason."""
    reasons: dict[str, list[str]] = {}
    for arm, why in found.durations.left_out.items():
        reasons.setdefault(why, []).append(arm)
    return [f"Not fitted, as {why}: {_some(arms)}." for why, arms in reasons.items()]


def _some(arms: Sequence[str]) -> str:
    more = len(arms) - _REASONS
    return ", ".join(arms[:_REASONS]) + (f" and {more} more" if more > 0 else "")


def _on_family(found: SurvivalAssessment) -> list[str]:
    if (law := found.law) is None:
        return [doubt_words(found)] if found.doubt else []
    by = "" if found.choice is None else f" {_on_choice(found.choice)}"
    explained = f" explained by {', '.join(found.covariates)}" if found.covariates else ""
    shaping = [one.name for one in law.shape_coding.covariates]
    explained += f", its shape by {', '.join(shaping)}" if shaping else ""
    doubt = [f"{law.doubt}."] if law.doubt else []
    return [f"The law is {family_name(law.family)}{explained}, from {counted(law.n, 'row')}.{by}", *doubt]


def refusing(found: SurvivalAssessment) -> bool:
    """Whether some model refuses to answer, so that each needs its share of refused clean inputs beside it."""
    return any(one.clean_rejection is not None for one in found.models)


def extrapolated_text(estimate: Estimate | None) -> str:
    """What stands below a number that goes beyond what was seen; else nothing."""
    return "extrapolated" if is_extrapolated(estimate) else ""


def _on_choice(choice: FamilyChoice) -> str:
    first, second = family_name(choice.family), family_name(choice.runner_up)
    ahead = f"{first} explains samples that it had not seen better than {second}"
    by = f"by {choice.margin.value:.3g} in log-likelihood (standard error {choice.standard_error:.2g})"
    return f"{ahead}, {by}{'' if choice.decided else ', which does not decide between the two'}."


def _on_zero(found: SurvivalAssessment) -> list[str]:
    told = [f"{one.model} {one.tally.at_zero}" for one in found.models if one.tally.at_zero]
    lost = [f"{one.model} {one.tally.error}" for one in found.models if one.tally.error]
    cut = [f"{one.model} {one.tally.timeout}" for one in found.models if one.tally.timeout]
    words = [f"Rows that needed no work, as the sample was incorrect already: {', '.join(told)}."] if told else []
    if cut:
        words.append(f"Rows that ran out of time, counted as not broken by then: {', '.join(cut)}.")
    return [*words, *([f"Rows that ended in an error are left out: {', '.join(lost)}."] if lost else [])]


def _on_plateaus(found: SurvivalAssessment) -> list[str]:
    flat = [(one.model, one.curve.plateau) for one in found.models if one.curve is not None and one.curve.plateau]
    words = [f"{model}: {plateau.message}." for model, plateau in flat if plateau]
    beyond = "A fitted law lets all of these break in the end: beyond the last event, what it says is extrapolated."
    return [*words, beyond] if words and found.law is not None else words


def cost_words(found: SurvivalAssessment) -> list[str]:
    """How costs are meant, and why some are missing."""
    costs = [one.cost for one in found.models if one.cost is not None]
    words = [ON_COST, ON_CHEAP.format(factor=found.broken_factor)]
    words.append(
        f"Means are those of the attempts, up to {found.until:.4g} {found.unit}, so true ratios are smaller; beyond, "
        "they are extrapolated by the law, where it holds."
    )
    if found.durations.measure in COUNTED:
        words.append("Intervals leave out the clock: the seconds of a pass are the mean of this run, taken as exact.")
    if found.durations.measure == "process-seconds":
        words.append(ON_PROCESS)
    if any(one.benign is not None for one in costs):
        words.append("The benign ratio is that of the same fit at eps = 0: what would happen without an attacker.")
    if any(one.benign_outside for one in costs):
        words.append("No arm has an eps near 0, so the benign ratio lies outside the data: take it as a guess.")
    if found.hardware is not None:
        words.append(f"Costs are those of {found.hardware.name} at {found.hardware.per_hour:g} an hour.")
    if any(one.benign_rate is not None for one in costs):
        words.append(
            "The clean ratio is training seconds for each sample over the mean seconds until a clean input fails."
        )
    words += [f"{one.model}: no ratio, as {one.why_not}." for one in costs if one.why_not]
    return words


def probability_columns(found: SurvivalAssessment) -> list[str]:
    """What each entry of `probabilities` is."""
    times = found.models[0].times if found.models else ()
    spans = [found.durations.one_unit if time == 1 else f"{time:.4g} {found.unit}" for time in times]
    return [
        f"{kind}, within {'one ' if span == found.durations.one_unit else ''}{span}"
        for kind in _KINDS
        for span in spans
    ]


def probabilities(one: ModelSurvival) -> list[Estimate | None]:
    """Of at least one failure, clean and under attack, within each of the model's times."""
    rates = (one.benign, one.adversarial)
    return [None if rate is None else rate.probability(time) for rate in rates for time in one.times]


def verdict_text(cost: ModelCost | None) -> str:
    """Whether a model is cheap to break, by what its training cost."""
    return "–" if cost is None or cost.verdict is None else _CHEAP.get(cost.verdict, cost.verdict)


def standing_text(one: Standing, criteria: Sequence[Criterion]) -> str:
    """Where a model stands beside the Pareto front of these criteria."""
    if one.on_front:
        doubt = "" if one.decided else f", though that is not sure of {', '.join(one.undecided_against)}"
        return f"on the Pareto front{doubt}"
    verb, doubt = "is" if len(one.dominated_by) == 1 else "are", "" if one.decided else ", though that is not sure"
    return f"{', '.join(one.dominated_by)} {verb} at least as good in {listed([each.name for each in criteria])}{doubt}"


def number_text(value: float | None) -> str:
    """Three digits, without an exponent where people read none."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "infinite"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
        return f"{value:,.{digits}f}"
    return f"{value:.2e}"


def _in_brackets(estimate: Estimate | None, *, whole: bool = False) -> str:
    """A number and its interval; with `whole`, numbers of passes without digits that they do not have."""
    if estimate is None:
        return "–"
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = (f"{end:,.0f}" if whole and end == _rounded(end) else number_text(end) for end in ends)
    return f"{value} [{low}, {'not reached' if whole and not math.isfinite(estimate.high) else high}]"


def _rounded(value: float) -> float | None:
    """The nearest whole number; None where there is none."""
    return float(round(value)) if math.isfinite(value) else None
