"""The tables of survival: models, covariates, laws, costs, and the Pareto front."""

from collections.abc import Mapping, Sequence

from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.assess.survival.coefficients import coefficient_table, factor_names
from advrisk.assess.survival.models import ModelSurvival
from advrisk.assess.survival.money import ModelCost
from advrisk.assess.survival.words import front_words, median_value, refusing, standing_text, time_kind, verdict_text
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Cell, Column, Kind, Table, Value
from advrisk.core.values import number_text
from advrisk.risk.survival.choice import FamilyRow
from advrisk.risk.survival.cost import Rate
from advrisk.risk.survival.fit import is_extrapolated
from advrisk.risk.survival.paired import ACCURACY, FAILURES, TRAINING
from advrisk.risk.survival.records import AccelerationFactor

_MODEL = Column("model")
_REFUSED = Column("clean inputs refused", "share")
_CRITERIA: Mapping[str, Kind] = {ACCURACY: "share", FAILURES: "magnitude", TRAINING: "seconds"}
_FAILURES = ("some clean input passing by is incorrect", "an attacker at work breaks some sample")


def model_table(assessment: SurvivalAssessment) -> Table:
    """The survival of each model, and the outcomes of its attempts."""
    unit = assessment.durations.one_unit
    columns = (
        _MODEL,
        Column(f"mean up to {assessment.until:.4g}", "magnitude", assessment.unit),
        Column("median", time_kind(assessment.durations)),
        Column("broken", "count"),
        Column("held", "count"),
        Column("incorrect already", "count", detail=True),
        Column("clean accuracy", "share"),
        *([_REFUSED] if refusing(assessment) else []),
        Column(f"clean inputs incorrect, per {unit} (f_ben)", "magnitude", detail=True),
        Column(f"samples broken, per {unit} of an attacker (f_adv)", "magnitude", detail=True),
    )
    rows = (
        (
            one.model,
            one.mean,
            median_value(one, assessment.durations),
            one.tally.events,
            Cell(one.tally.censored, (f"{one.tally.rejected} refused",) if one.tally.rejected else ()),
            one.tally.at_zero,
            *_clean(one, assessment),
            _rate(one.benign),
            _rate(one.adversarial),
        )
        for one in assessment.models
    )
    notes = (front_words(assessment),) if assessment.pareto else ()
    return Table("Survival of each model", columns, tuple(rows), notes)


def _clean(one: ModelSurvival, assessment: SurvivalAssessment) -> list[Value]:
    """Clean accuracy and, if any model refuses inputs, how many clean ones this one refuses."""
    return [one.clean_accuracy, *([one.clean_rejection] if refusing(assessment) else [])]


def _rate(rate: Rate | None) -> Estimate | None:
    return None if rate is None else rate.estimate


def probability_table(assessment: SurvivalAssessment) -> Table:
    """The rates as probabilities of at least one failure, clean and under attack, within each of the models' times."""
    times = assessment.models[0].times
    spans = [f"one {assessment.durations.one_unit}" if time == 1 else f"{time:.4g} {assessment.unit}" for time in times]
    columns = [Column(f"{failure}, within {span}", "risk") for failure in _FAILURES for span in spans]
    rows = (
        (one.model, *_probabilities(one.benign, times), *_probabilities(one.adversarial, times))
        for one in assessment.models
    )
    return Table("Probability of at least one failure", (_MODEL, *columns), tuple(rows))


def _probabilities(rate: Rate | None, times: Sequence[float]) -> list[Estimate | None]:
    return [None if rate is None else rate.probability(time) for time in times]


def factor_table(assessment: SurvivalAssessment, factors: Sequence[AccelerationFactor]) -> Table:
    """Acceleration factors of the covariates; named levels have no unit."""
    columns = (
        Column("covariate"),
        Column("times as long, whole range", "magnitude"),
        Column("for one unit", "magnitude"),
        Column("unit"),
    )
    names = factor_names(assessment)
    rows = (
        (names[one.name], one.per_range, *((None, None) if "=" in one.name else (one.per_unit, one.unit_text)))
        for one in factors
    )
    return Table("What makes it survive longer (above 1) or shorter", columns, tuple(rows))


def coefficients_table(assessment: SurvivalAssessment) -> Table:
    """All laws side by side."""
    columns = (Column("coefficient"), *(Column(_family(one), "magnitude") for one in assessment.families))
    rows = tuple((row.name, *row.effects) for row in coefficient_table(assessment))
    return Table("Coefficients on the log of time, whole range", columns, rows)


def family_table(assessment: SurvivalAssessment) -> Table:
    """The fit of each law and, if a law is quoted, its means over all rows."""
    columns = [Column("law"), *(Column(name, "number") for name in ("AIC", "BIC", "log-likelihood", "concordance"))]
    columns.append(Column("behind", "magnitude"))
    if assessment.law is not None:
        names = f"mean up to {assessment.until:.4g}", "mean, extrapolated"
        columns += [Column(name, "magnitude") for name in names]
    rows: list[tuple[Value, ...]] = []
    for one in assessment.families:
        fit = (_family(one), one.aic, one.bic, one.log_likelihood, one.concordance, one.behind)
        times = (_timed(one.mean), one.endless_mean) if assessment.law is not None else ()
        rows.append((*fit, *times))
    return Table("Laws that were fitted", tuple(columns), tuple(rows))


def _family(one: FamilyRow) -> str:
    return f"{one.family}{' (taken)' if one.chosen else ''}"


def _timed(estimate: Estimate) -> Cell:
    """A time, marked if it lies beyond the observed ones."""
    return Cell(estimate, ("extrapolated",) if is_extrapolated(estimate) else ())


def cost_table(assessment: SurvivalAssessment) -> Table:
    """The cost of breaking a sample against that of training on one."""
    columns = (
        _MODEL,
        Column("cheap to break"),
        Column("seconds to break", "seconds"),
        Column("ratio, attacked", "magnitude"),
        Column("ratio, extrapolated", "magnitude"),
        Column("ratio, benign", "magnitude", detail=True),
        Column("ratio, clean", "magnitude", detail=True),
        Column("training, s", "seconds", detail=True),
        Column("whole training over breaking", "magnitude", detail=True),
        *([Column("cost to break", "amount"), Column("cost of training", "amount")] if assessment.hardware else []),
    )
    rows = tuple(
        (one.model, *_cost(one.cost), *((one.cost.break_cost, one.cost.train_cost) if assessment.hardware else ()))
        for one in assessment.models
        if one.cost is not None
    )
    return Table("Breaking beside training", columns, rows)


def _cost(cost: ModelCost) -> tuple[Value, ...]:
    each = cost.train_s / cost.train_samples if cost.train_s and cost.train_samples else None
    return (
        verdict_text(cost),
        cost.break_s,
        cost.adversarial,
        cost.extrapolated,
        Cell(cost.benign, ("outside the data",) if cost.benign and cost.benign_outside else ()),
        cost.benign_rate,
        Cell(cost.train_s, (f"{number_text(each, 'seconds')} per sample",) if each else ()),
        cost.total,
    )


def pareto_table(assessment: SurvivalAssessment) -> Table:
    """Every model with the criteria of the Pareto front, and its standing."""
    columns = (
        _MODEL,
        *(Column(one.name, _CRITERIA[one.name]) for one in assessment.criteria),
        *([_REFUSED] if refusing(assessment) else []),
        Column("standing"),
    )
    rows: list[tuple[Value, ...]] = []
    for standing in assessment.pareto:
        one = assessment.of(standing.model)
        values = [
            one.clean_accuracy if each.name == ACCURACY else each.values[one.model] for each in assessment.criteria
        ]
        refused = [one.clean_rejection] if refusing(assessment) else []
        best = standing.on_front and standing.decided
        standing_cell = Cell(standing_text(standing, assessment.criteria), mark="best" if best else "")
        rows.append((one.model, *values, *refused, standing_cell))
    return Table("Each model beside the Pareto front", columns, tuple(rows))
