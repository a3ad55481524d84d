"""Sentences on survival.

They quote the rows (Kaplan and Meier); the fitted law is quoted for covariates only, and only if it holds.
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
    "breaking one sample takes less time than training on one did. It is meaningful only on similar machines."
)
_ON_CHEAP = (
    "Cheap to break: training on one sample took at least {factor:g} times as long as breaking one does, by the "
    "attacked and the extrapolated ratio with their whole intervals. “No” does not say that samples hold: all of them "
    "may break."
)
_FEWER = 0.05  # of samples that are attacked; so many fewer belong into a sentence
_CHEAP = {"broken": "yes", "not broken": "no"}
_SOME = 3  # arms or models that are named


def survival_headline(assessment: SurvivalAssessment) -> str:
    """Which model survives longest; every number comes from the attempts, none from a law."""
    timed = [one for one in assessment.models if one.mean is not None]
    if not timed:
        return "No attempt has a duration."
    first = timed[0]
    average = f"{estimate_text(first.mean, 'magnitude')} {assessment.unit} on average up to {assessment.until:.4g}"
    medians = {one.model: f"median {median_text(one, assessment.durations)}" for one in timed}
    if len(timed) == 1:
        return f"A sample of {first.model} survives {average}, {medians[first.model]}."
    undecided = [one.model for one in timed[1:] if not assessment.outlasts(first.model, one.model)]
    if undecided:
        return (
            f"Undecided which model survives longest: {first.model}, with {average} ({medians[first.model]}), or "
            f"{_some(undecided)}."
        )
    last, leads = timed[-1], f"{first.model} survives longest{_on_few(timed)}: {average} ({medians[first.model]})"
    if not all(assessment.outlasts(one.model, last.model) for one in timed[1:-1]):
        return f"{leads}; undecided which model fails first."
    return f"{leads}; {last.model} fails first, after {estimate_text(last.mean, 'magnitude')} ({medians[last.model]})."


def _on_few(timed: Sequence[ModelSurvival]) -> str:
    """The samples on which the first model survives, if fewer of its samples are attacked than of another model's."""
    shares = [one.tally.share_attacked for one in timed]
    if max(shares) - shares[0] < _FEWER:
        return ""
    return f", on the {percent_text(shares[0], 1)} of samples that it reads correctly when clean"


def median_text(one: ModelSurvival, durations: Durations) -> str:
    """`7 [6, 8]`, or `not reached`."""
    return value_text(median_value(one, durations), Column("median", time_kind(durations)))


def median_value(one: ModelSurvival, durations: Durations) -> Value:
    """The median; `not reached` stands for it or for the end of its interval."""
    if (median := one.median) is None or (one.reached and math.isfinite(median.high)):
        return median
    if not one.reached:
        return "not reached"
    return Cell(median.value, (f"[{number_text(median.low, time_kind(durations))}, not reached]",))


def time_kind(durations: Durations) -> Kind:
    """The format of a time: passes are integers."""
    return "count" if durations.measure in COUNTED else "seconds"


def doubt_words(assessment: SurvivalAssessment) -> str:
    """Why no law is quoted, and what to try; empty if one is quoted."""
    if not assessment.doubt:
        return ""
    if assessment.fit is None:
        return f"No law could be fitted: {assessment.doubt}."
    return (
        f"The fitted law ({family_name(assessment.fit.family)}) is not quoted: {assessment.doubt}. Curves, means and "
        "medians need no law. A law may hold with covariates of its shape (`shape_covariates`), another `family`, "
        "fewer attacks (`arms`) or more samples."
    )


def law_words(assessment: SurvivalAssessment) -> list[str]:
    """The chosen law and its covariates, or why none is quoted."""
    if (law := assessment.law) is None:
        return [doubt_words(assessment)] if assessment.doubt else []
    by = "" if assessment.choice is None else f" {_on_choice(assessment.choice)}"
    explained = f" explained by {', '.join(assessment.covariates)}" if assessment.covariates else ""
    shaping = [one.name for one in law.shape_coding.covariates]
    explained += f", its shape by {', '.join(shaping)}" if shaping else ""
    doubt = [f"{law.doubt}."] if law.doubt else []
    return [f"The law is {family_name(law.family)}{explained}, from {counted(law.n, 'row')}.{by}", *doubt]


def _on_choice(choice: FamilyChoice) -> str:
    first, second = family_name(choice.family), family_name(choice.runner_up)
    ahead = f"{first[0].upper()}{first[1:]} explains samples that it had not seen better than {second}"
    by = f"by {choice.margin.value:.3g} in log-likelihood (standard error {choice.standard_error:.2g})"
    return f"{ahead}, {by}{'' if choice.decided else ', which does not decide between the two'}."


def calibration_words(calibration: Calibration) -> str:
    """The error of the law on held-out samples, compared with that of a correct law by chance."""
    off = (
        f"On samples that it had not seen, the law is off by {100 * calibration.ici:.1f} points on average (ICI) in "
        f"the shares that fail by {calibration.at_time:.4g}, of three times the worst; for one row in ten it is off by "
        f"more than {100 * calibration.e90:.1f}"
    )
    if calibration.by_chance is None:
        return f"{off}. There are too few samples to say how far chance alone would take it."
    chance = (
        f"Chance alone takes a correct law up to {100 * calibration.by_chance:.1f} in "
        f"{level_text(calibration.level)} of such runs"
    )
    within = calibration.ici <= calibration.by_chance
    return f"{off}. {chance}{': it may be correct' if within else ', so chance hardly explains this'}."


def how_words(assessment: SurvivalAssessment) -> tuple[str, ...]:
    """How to read the table of models."""
    return (
        f"A duration is the work, in {assessment.unit}, that an attack did on a sample until its first success within "
        "eps. Samples that held survive for at least as long as they were attacked.",
        f"Means and medians are those of all attempts (Kaplan and Meier), means up to {assessment.until:.4g}. A median "
        "is not reached where fewer than half of the attempts succeeded. Brackets hold "
        f"{level_text(assessment.level)} intervals.",
        "Compare f_ben and f_adv between models, not with each other.",
    )


def row_words(assessment: SurvivalAssessment) -> list[str]:
    """Caveats on the attempts."""
    words = [*_on_outcomes(assessment), *_on_plateaus(assessment)]
    words += on_rejection(
        {one.model: one.clean_rejection for one in assessment.models if one.clean_rejection is not None}
    )
    return [*words, *assessment.notes, *left_out_words(assessment)]


def left_out_words(assessment: SurvivalAssessment) -> list[str]:
    """The arms without a duration, by reason."""
    reasons: dict[str, list[str]] = {}
    for arm, why in assessment.durations.left_out.items():
        reasons.setdefault(why, []).append(arm)
    return [f"Not fitted, as {why}: {_some(arms)}." for why, arms in reasons.items()]


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SOME
    return ", ".join(names[:_SOME]) + (f" and {more} more" if more > 0 else "")


def _on_outcomes(assessment: SurvivalAssessment) -> list[str]:
    """The number of rows of each model that needed no work, timed out, or failed."""
    words = []
    for name, what in (
        ("at_zero", "Rows that needed no work, as the sample was incorrect already"),
        ("timeout", "Rows that ran out of time, counted as not broken by then"),
        ("error", "Rows that ended in an error are left out"),
    ):
        if counts := [f"{one.model} {n}" for one in assessment.models if (n := getattr(one.tally, name))]:
            words.append(f"{what}: {', '.join(counts)}.")
    return words


def _on_plateaus(assessment: SurvivalAssessment) -> list[str]:
    flat = [(one.model, one.curve.plateau) for one in assessment.models if one.curve is not None and one.curve.plateau]
    words = [f"{model}: {plateau.message}." for model, plateau in flat if plateau]
    beyond = "A fitted law lets all of these break in the end: beyond the last event, it is extrapolated."
    return [*words, beyond] if words and assessment.law is not None else words


def refusing(assessment: SurvivalAssessment) -> bool:
    """Whether some model refuses clean inputs, so that tables need a column for that."""
    return any(one.clean_rejection is not None for one in assessment.models)


def cost_words(assessment: SurvivalAssessment) -> list[str]:
    """What costs mean, and why some are missing."""
    words = [_ON_COST, _ON_CHEAP.format(factor=assessment.broken_factor)]
    if assessment.hardware is not None:
        words.append(f"Costs are those of {assessment.hardware.name} at {assessment.hardware.per_hour:g} an hour.")
    missing = [one.cost for one in assessment.models if one.cost is not None and one.cost.why_not]
    return [*words, *(f"{one.model}: no ratio, as {one.why_not}." for one in missing)]


def ratio_words(assessment: SurvivalAssessment) -> list[str]:
    """The definition of each ratio."""
    costs = [one.cost for one in assessment.models if one.cost is not None]
    words = [
        f"Means are those of the attempts, up to {assessment.until:.4g} {assessment.unit}, so true ratios are smaller; "
        "beyond, they are extrapolated by the law, where it holds."
    ]
    if assessment.durations.measure in COUNTED:
        words.append("Intervals leave out the clock: the seconds of a pass are the mean of this run, taken as exact.")
    if assessment.durations.measure == "process-seconds":
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
    """Whether a model is cheap to break."""
    return None if cost.verdict is None else _CHEAP.get(cost.verdict, cost.verdict)


def front_words(assessment: SurvivalAssessment) -> str:
    """The models on the Pareto front, and whether that is certain."""
    front = [one.model if one.decided else f"{one.model} (not sure)" for one in assessment.pareto if one.on_front]
    return f"Pareto front of {listed([one.name for one in assessment.criteria])}: {', '.join(front)}."


def standing_text(one: Standing, criteria: Sequence[Criterion]) -> str:
    """The standing of a model relative to the Pareto front of these criteria."""
    if one.on_front:
        doubt = "" if one.decided else f", though that is not sure of {', '.join(one.undecided_against)}"
        return f"on the Pareto front{doubt}"
    verb, doubt = "is" if len(one.dominated_by) == 1 else "are", "" if one.decided else ", though that is not sure"
    return f"{', '.join(one.dominated_by)} {verb} at least as good in {listed([each.name for each in criteria])}{doubt}"
