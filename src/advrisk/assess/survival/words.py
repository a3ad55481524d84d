"""Survival in sentences.

They quote the rows (Kaplan and Meier); the fitted law is quoted for covariates only, and only where it holds.
"""

import math
from collections.abc import Sequence

from advrisk.assess.damage.clean import on_rejection
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.assess.survival.coefficients import family_name
from advrisk.assess.survival.models import ModelSurvival
from advrisk.assess.survival.money import ModelCost
from advrisk.core.names import counted, listed
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.sections import Cell, Column, Kind, Value
from advrisk.core.values import estimate_text, number_text, value_text
from advrisk.risk.survival.calibration import Calibration
from advrisk.risk.survival.choice import FamilyChoice
from advrisk.risk.survival.durations import COUNTED, Durations
from advrisk.risk.survival.pareto import Criterion, Standing

ON_RATES = (
    "f_ben and f_adv, and what follows from them, are not to be compared with each other: clean inputs pass by at full "
    "speed, many of them while an attacker still works on one sample. A larger f_ben does not mean that attacks do "
    "less harm than no attack; compare models with each other."
)
ON_PROBABILITY = (
    "The probability of at least one failure within a time t is 1 - exp(-r t), if failures come at a constant rate r: "
    "f_ben of clean inputs that pass by one after another, f_adv of samples that an attacker works on one by one."
)
_ON_COST = (
    "The ratio is training seconds for each training sample over the mean seconds until a sample breaks. Above 1, "
    "breaking one sample takes less time than training on one did. It means something only on like machines."
)
_ON_CHEAP = (
    "Cheap to break: training on one sample took at least {factor:g} times as long as breaking one does, by the "
    "attacked and the extrapolated ratio with their whole intervals. “No” does not say that samples hold: all of them "
    "may break."
)
_FEWER = 0.05  # of samples that are attacked; so many fewer belong into a sentence
_CHEAP = {"broken": "yes", "not broken": "no"}
_SOME = 3  # arms or models that are named


def survival_headline(found: SurvivalAssessment) -> str:
    """Which model survives longest, in a sentence; every number is read off the attempts, none off a law."""
    timed = [one for one in found.models if one.mean is not None]
    if not timed:
        return "No attempt has a duration."
    first = timed[0]
    average = f"{estimate_text(first.mean, 'magnitude')} {found.unit} on average up to {found.until:.4g}"
    medians = {one.model: f"median {median_text(one, found.durations)}" for one in timed}
    if len(timed) == 1:
        return f"A sample of {first.model} survives {average}, {medians[first.model]}."
    alike = [one.model for one in timed[1:] if not found.outlasts(first.model, one.model)]
    if alike:
        return (
            f"Undecided which model survives longest: {first.model}, with {average} ({medians[first.model]}), or "
            f"{_some(alike)}."
        )
    last, leads = timed[-1], f"{first.model} survives longest{_on_few(timed)}: {average} ({medians[first.model]})"
    if not all(found.outlasts(one.model, last.model) for one in timed[1:-1]):
        return f"{leads}; undecided which model fails first."
    return f"{leads}; {last.model} fails first, after {estimate_text(last.mean, 'magnitude')} ({medians[last.model]})."


def _on_few(timed: Sequence[ModelSurvival]) -> str:
    """On which samples the first survives, where clearly fewer of its samples are attacked than of another model's."""
    shares = [one.tally.share_attacked for one in timed]
    if max(shares) - shares[0] < _FEWER:
        return ""
    return f", on the {percent_text(shares[0], 1)} of samples that it reads correctly when clean"


def median_text(one: ModelSurvival, durations: Durations) -> str:
    """`7 [6, 8]`, or that fewer than half of its attempts succeeded."""
    return value_text(median_value(one, durations), Column("median", time_kind(durations)))


def median_value(one: ModelSurvival, durations: Durations) -> Value:
    """The median, or that it, or the end of its interval, was not reached."""
    if (median := one.median) is None or (one.reached and math.isfinite(median.high)):
        return median
    if not one.reached:
        return "not reached"
    return Cell(median.value, (f"[{number_text(median.low, time_kind(durations))}, not reached]",))


def time_kind(durations: Durations) -> Kind:
    """How a time that some attempt took is written: passes are whole numbers."""
    return "count" if durations.measure in COUNTED else "seconds"


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


def law_words(found: SurvivalAssessment) -> list[str]:
    """Which law was taken and what explains it, or why none is quoted."""
    if (law := found.law) is None:
        return [doubt_words(found)] if found.doubt else []
    by = "" if found.choice is None else f" {_on_choice(found.choice)}"
    explained = f" explained by {', '.join(found.covariates)}" if found.covariates else ""
    shaping = [one.name for one in law.shape_coding.covariates]
    explained += f", its shape by {', '.join(shaping)}" if shaping else ""
    doubt = [f"{law.doubt}."] if law.doubt else []
    return [f"The law is {family_name(law.family)}{explained}, from {counted(law.n, 'row')}.{by}", *doubt]


def _on_choice(choice: FamilyChoice) -> str:
    first, second = family_name(choice.family), family_name(choice.runner_up)
    ahead = f"{first[0].upper()}{first[1:]} explains samples that it had not seen better than {second}"
    by = f"by {choice.margin.value:.3g} in log-likelihood (standard error {choice.standard_error:.2g})"
    return f"{ahead}, {by}{'' if choice.decided else ', which does not decide between the two'}."


def calibration_words(found: Calibration) -> str:
    """How far the law is off on samples that it had not seen, beside what chance does to a right one."""
    off = (
        f"On samples that it had not seen, the law is off by {100 * found.ici:.1f} points on average (ICI) in the "
        f"shares that fail by {found.at_time:.4g}, of three times the worst; for one row in ten it is off by more than "
        f"{100 * found.e90:.1f}"
    )
    if found.by_chance is None:
        return f"{off}. There are too few samples to say how far chance alone would take it."
    chance = (
        f"Chance alone takes a correct law up to {100 * found.by_chance:.1f} in {level_text(found.level)} of such runs"
    )
    within = found.ici <= found.by_chance
    return f"{off}. {chance}{': it may be correct' if within else ', so chance hardly explains this'}."


def how_words(found: SurvivalAssessment) -> tuple[str, ...]:
    """How to read the table of models."""
    return (
        f"A duration is the work, in {found.unit}, that an attack did on a sample until its first success within eps. "
        "Samples that held survive for at least as long as they were attacked.",
        f"Means and medians are those of all attempts (Kaplan and Meier), means up to {found.until:.4g}. A median is "
        "not reached where fewer than half of the attempts succeeded. Brackets hold "
        f"{level_text(found.level)} intervals.",
        "Compare f_ben and f_adv between models, not with each other.",
    )


def row_words(found: SurvivalAssessment) -> list[str]:
    """What must be known of the attempts to read the numbers."""
    words = [*_on_outcomes(found), *_on_plateaus(found)]
    words += on_rejection({one.model: one.clean_rejection for one in found.models if one.clean_rejection is not None})
    return [*words, *found.notes, *left_out_words(found)]


def left_out_words(found: SurvivalAssessment) -> list[str]:
    """Which arms have no duration, by the reason."""
    reasons: dict[str, list[str]] = {}
    for arm, why in found.durations.left_out.items():
        reasons.setdefault(why, []).append(arm)
    return [f"Not fitted, as {why}: {_some(arms)}." for why, arms in reasons.items()]


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SOME
    return ", ".join(names[:_SOME]) + (f" and {more} more" if more > 0 else "")


def _on_outcomes(found: SurvivalAssessment) -> list[str]:
    """How many rows of each model are no attempt with an end that was seen."""
    words = []
    for name, what in (
        ("at_zero", "Rows that needed no work, as the sample was incorrect already"),
        ("timeout", "Rows that ran out of time, counted as not broken by then"),
        ("error", "Rows that ended in an error are left out"),
    ):
        if counts := [f"{one.model} {n}" for one in found.models if (n := getattr(one.tally, name))]:
            words.append(f"{what}: {', '.join(counts)}.")
    return words


def _on_plateaus(found: SurvivalAssessment) -> list[str]:
    flat = [(one.model, one.curve.plateau) for one in found.models if one.curve is not None and one.curve.plateau]
    words = [f"{model}: {plateau.message}." for model, plateau in flat if plateau]
    beyond = "A fitted law lets all of these break in the end: beyond the last event, what it says is extrapolated."
    return [*words, beyond] if words and found.law is not None else words


def refusing(found: SurvivalAssessment) -> bool:
    """Whether some model refuses to answer, so that each needs its share of refused clean inputs beside it."""
    return any(one.clean_rejection is not None for one in found.models)


def cost_words(found: SurvivalAssessment) -> list[str]:
    """How costs are meant, and why some are missing."""
    words = [_ON_COST, _ON_CHEAP.format(factor=found.broken_factor)]
    if found.hardware is not None:
        words.append(f"Costs are those of {found.hardware.name} at {found.hardware.per_hour:g} an hour.")
    missing = [one.cost for one in found.models if one.cost is not None and one.cost.why_not]
    return [*words, *(f"{one.model}: no ratio, as {one.why_not}." for one in missing)]


def ratio_words(found: SurvivalAssessment) -> list[str]:
    """What each ratio is, for those who look closer."""
    costs = [one.cost for one in found.models if one.cost is not None]
    words = [
        f"Means are those of the attempts, up to {found.until:.4g} {found.unit}, so true ratios are smaller; beyond, "
        "they are extrapolated by the law, where it holds."
    ]
    if found.durations.measure in COUNTED:
        words.append("Intervals leave out the clock: the seconds of a pass are the mean of this run, taken as exact.")
    if found.durations.measure == "process-seconds":
        words.append("Training seconds are processor seconds, as those of the attacks are.")
    if any(one.benign is not None for one in costs):
        words.append("The benign ratio is that of the same fit at eps = 0: what would happen without an attacker.")
    if any(one.benign_outside for one in costs):
        words.append("No arm has an eps near 0, so the benign ratio lies outside the data: take it as a guess.")
    if any(one.benign_rate is not None for one in costs):
        words.append(
            "The clean ratio is training seconds for each sample over the mean seconds until a clean input fails."
        )
    return words


def verdict_text(cost: ModelCost) -> str | None:
    """Whether a model is cheap to break, by what its training cost."""
    return None if cost.verdict is None else _CHEAP.get(cost.verdict, cost.verdict)


def front_words(found: SurvivalAssessment) -> str:
    """Which models are on the Pareto front, and of which that is not sure."""
    front = [one.model if one.decided else f"{one.model} (not sure)" for one in found.pareto if one.on_front]
    return f"Pareto front of {listed([one.name for one in found.criteria])}: {', '.join(front)}."


def standing_text(one: Standing, criteria: Sequence[Criterion]) -> str:
    """Where a model stands beside the Pareto front of these criteria."""
    if one.on_front:
        doubt = "" if one.decided else f", though that is not sure of {', '.join(one.undecided_against)}"
        return f"on the Pareto front{doubt}"
    verb, doubt = "is" if len(one.dominated_by) == 1 else "are", "" if one.decided else ", though that is not sure"
    return f"{', '.join(one.dominated_by)} {verb} at least as good in {listed([each.name for each in criteria])}{doubt}"
