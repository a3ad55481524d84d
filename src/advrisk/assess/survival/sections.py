"""Sections of survival: how long each model survives, what that depends on, and what breaking it costs."""

from collections.abc import Iterator, Sequence

from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.assess.survival.coefficients import factor_names
from advrisk.assess.survival.figures import (
    MOST_MODELS,
    calibration_plot,
    coefficient_plot,
    covariate_curves,
    factor_plot,
    hazard_plot,
    pareto_plot,
    survival_curves,
)
from advrisk.assess.survival.models import ModelSurvival
from advrisk.assess.survival.paper import paper_sections
from advrisk.assess.survival.tables import (
    coefficients_table,
    cost_table,
    factor_table,
    family_table,
    model_table,
    pareto_table,
    probability_table,
)
from advrisk.assess.survival.words import (
    ON_PROBABILITY,
    ON_RATES,
    calibration_words,
    cost_words,
    how_words,
    law_words,
    ratio_words,
    row_words,
    survival_headline,
)
from advrisk.core.estimate import NamedEstimate
from advrisk.core.palette import Places, model_places
from advrisk.core.sections import Alternatives, Figure, Group, Headline, Section, Summary, Text
from advrisk.risk.survival.paired import ACCURACY, FAILURES
from advrisk.risk.survival.records import AccelerationFactor


def sections(assessment: SurvivalAssessment, models: Sequence[str] = ()) -> Iterator[Section]:
    """The models and their curves, covariates, and costs; laws and the paper's figures are folded."""
    places = model_places(models)
    yield Headline(survival_headline(assessment))
    yield Summary("sure", (survival_headline(assessment),))
    yield Summary("headlines", (survival_headline(assessment),))
    yield from _models(assessment, places)
    if depends := tuple(_depends(assessment, places)):
        yield Group("What it depends on", depends)
    yield from _costs(assessment)
    yield from _pareto(assessment, places)
    if any(one.benign or one.adversarial for one in assessment.models):
        how = Text((ON_PROBABILITY, f"Read down a column, not along a row. {ON_RATES}"), how=True)
        yield Group("Failures as probabilities", (how, probability_table(assessment)), folded=True)
    if laws := tuple(_laws(assessment, places)):
        yield Group("Fitted laws", laws, folded=True)
    if paper := tuple(paper_sections(assessment, places)):
        yield Group("Figures of Meyers et al.", paper, folded=True)


def quantities(assessment: SurvivalAssessment) -> Iterator[NamedEstimate]:
    """Mean, median, failure rates and the cost ratio of every model."""
    for one in assessment.models:
        clean, attacked = (None if rate is None else rate.estimate for rate in (one.benign, one.adversarial))
        numbers = (
            ("survival", f"mean {assessment.unit} until a sample breaks, up to {assessment.until:g}", one.mean),
            ("survival_median", f"median {assessment.unit} until a sample breaks", one.median if one.reached else None),
            ("failure_rate_clean", f"failures of clean inputs per {assessment.unit}", clean),
            ("failure_rate_attacked", f"failures under attack per {assessment.unit}", attacked),
            ("training_cost_ratio", "", None if one.cost is None else one.cost.adversarial),
        )
        for name, text, number in numbers:
            if number is not None:
                yield NamedEstimate(name, one.model, number, of=assessment.durations.measure, text=text)


def _models(assessment: SurvivalAssessment, places: Places) -> Iterator[Section]:
    """Every model in a table and as a curve, and caveats on the attempts."""
    yield Text(how_words(assessment), how=True)
    yield model_table(assessment)
    steps = (
        "A line falls when samples break; the higher it stays, the longer the model survives. Solid steps are what was "
        "seen, up to where the first of the attacks gave "
        f"up{'; dashed lines are the fitted law' if assessment.law else ''}."
    )
    some = [f"The first {MOST_MODELS} models are drawn."] if len(assessment.models) > MOST_MODELS else []
    yield Text((steps, *some), how=True)
    about = "Share of samples not broken yet, over the work of the attack, for each model."
    yield Figure("Survival curves", survival_curves(assessment, _shown(assessment), places=places), about)
    if words := row_words(assessment):
        yield Text(tuple(words), "What to know of the attempts")


def _depends(assessment: SurvivalAssessment, places: Places) -> Iterator[Section]:
    """The law, or why none is quoted; how covariates change the curve, and their acceleration factors."""
    yield from [Text(tuple(words))] if (words := law_words(assessment)) else []
    if assessment.law is None or not (factors := assessment.law.acceleration_factors()):
        return
    yield Text(("The curves that the law gives if every attempt had one value, all else as it was.",), how=True)
    yield Alternatives("Survival", _by_covariate(assessment, places))
    yield Text(
        (
            "A covariate right of the dotted line makes samples survive longer, one left of it shorter; an interval "
            "that crosses the line leaves that open. Numbers are compared over their whole range, names with the one "
            "that is given.",
        ),
        how=True,
    )
    yield _factor_figure(assessment, factors)
    yield factor_table(assessment, factors)


def _by_covariate(assessment: SurvivalAssessment, places: Places) -> tuple[Figure, ...]:
    """A figure for each covariate."""
    names = [] if assessment.law is None else [one.name for one in assessment.law.scale_coding.covariates]
    return tuple(
        Figure(
            f"by {name}", covariate_curves(assessment, name, places=places), f"Survival curves by the values of {name}."
        )
        for name in names
    )


def _factor_figure(assessment: SurvivalAssessment, factors: Sequence[AccelerationFactor]) -> Figure:
    about = "Acceleration factors with their intervals; the table below has the same numbers."
    return Figure("Acceleration factors", factor_plot(factors, factor_names(assessment)), about)


def _costs(assessment: SurvivalAssessment) -> Iterator[Section]:
    if any(one.cost is not None for one in assessment.models):
        parts = cost_table(assessment), Text((*cost_words(assessment), *ratio_words(assessment)))
        yield Group("What breaking costs", parts)


def _pareto(assessment: SurvivalAssessment, places: Places) -> Iterator[Section]:
    if not assessment.pareto:
        return
    names = [one.name for one in assessment.criteria]
    parts: list[Section] = [
        Text(
            (
                "Up and left is better, and a small mark was cheap to train. Hollow marks are dominated: another model "
                f"is at least as good by {', '.join(names)}. Where intervals leave that open, the table says “not "
                "sure”.",
            ),
            how=True,
        )
    ]
    if {ACCURACY, FAILURES} <= set(names):
        about = "Clean accuracy against failures under attack; the size of a mark is its training time."
        parts.append(Figure("Accuracy against failures", pareto_plot(assessment, places=places), about))
    yield Group("Pareto front", (*parts, pareto_table(assessment)), folded=True)


def _laws(assessment: SurvivalAssessment, places: Places) -> Iterator[Section]:
    """All laws side by side, the hazard, which law fits, and whether it may be trusted."""
    if assessment.law is not None:
        yield from _coefficients(assessment)
        how = (
            f"Of the samples that are left at a time, how many fail in the next {assessment.durations.one_unit}, by "
            "the law (Eq. 3 of Meyers et al.)."
        )
        hazard = hazard_plot(assessment, _shown(assessment), places=places)
        about = "Hazard over the work of the attack, for each model."
        yield Group("Hazard", (Text((how,), how=True), Figure("Hazard of each model", hazard, about)))
    if assessment.families:
        how = (
            "A smaller AIC or BIC is better. “Behind” is what decides: by how much the law explains samples worse that "
            "it had not seen. Concordance says how often the covariates order two times correctly; 0.5 is chance."
        )
        yield Group("Which law fits", (Text((how,), how=True), family_table(assessment)))
    yield from _calibration(assessment)


def _coefficients(assessment: SurvivalAssessment) -> Iterator[Section]:
    how = (
        "The effect of each covariate on the logarithm of time, over its whole range, by each law (Fig. 1 of Meyers et "
        "al.). Right of the dotted line samples survive longer. Where the laws agree, the effect does not depend on "
        "which is taken. Log sigma is the spread of log times."
    )
    about = "Coefficients of the three laws; the table below has the same numbers."
    figures = (
        [Figure("Coefficients of all laws", coefficient_plot(assessment), about)]
        if len(assessment.families) > 1
        else []
    )
    yield Group("Coefficients", (Text((how,), how=True), *figures, coefficients_table(assessment)))


def _calibration(assessment: SurvivalAssessment) -> Iterator[Section]:
    if (calibration := assessment.calibrated) is None:
        return
    how = (
        f"The share of attempts that are broken by {calibration.at_time:.4g} {assessment.unit}, as the law predicts it "
        "from half of the samples, and as it was in the other half. On the dotted line its prediction is correct; "
        "below the line it expects too many to break."
    )
    figure = Figure("Calibration", calibration_plot(calibration), "Observed against predicted shares.")
    parts = Text((how,), how=True), Text((calibration_words(calibration),)), figure
    yield Group("Can the law be trusted", parts)


def _shown(assessment: SurvivalAssessment) -> Sequence[ModelSurvival]:
    """The models that fit into one figure."""
    return assessment.models[:MOST_MODELS]
