"""Sections of damage: the decision table, pairs of models, success curves, and examples."""

from collections.abc import Callable, Iterator, Sequence

from advrisk.assess.damage.assessment import LEAST, DamageAssessment, ModelDamage
from advrisk.assess.damage.figures import damage_intervals, success_curves
from advrisk.assess.damage.front import example_sections, front
from advrisk.assess.damage.headline import headline
from advrisk.assess.damage.words import (
    bound_text,
    damage_kind,
    damage_name,
    findings,
    shares_at,
    size_columns,
    what_would_decide,
)
from advrisk.assess.pairs import pair_quantities
from advrisk.core.estimate import NamedEstimate
from advrisk.core.names import counted, few
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.palette import Places, model_places
from advrisk.core.sections import (
    Cell,
    Column,
    Figure,
    Group,
    Headline,
    Section,
    Summary,
    Table,
    Text,
)
from advrisk.core.sections import Value as Shown
from advrisk.core.values import estimate_text, number_text
from advrisk.risk.damage import DamageComparison
from advrisk.risk.decision import Pair, undecided_with

Field = tuple[Column, Callable[[ModelDamage], Shown]]
_MOST = 4  # changes of order that are listed one by one


def sections(assessment: DamageAssessment, models: Sequence[str] = ()) -> Iterator[Section]:
    """The models, least damage first, and their differences."""
    places = model_places(models)
    yield Headline(headline(assessment))
    yield from summaries(assessment)
    yield front(assessment, places)
    yield Text(_how(assessment), how=True)
    yield _decision_table(assessment)
    yield Text(tuple(findings(assessment, pairs=assessment.decided)))
    if assessment.comparison:
        about = "Damage of each model with its interval; the table above has the same numbers."
        yield Figure("Intervals", damage_intervals(assessment, places=places), about)
    if len(assessment.pairs) > 1 or (assessment.pairs and not assessment.decided):
        yield Group("Pairwise comparison", tuple(_pairwise(assessment)), folded=assessment.decided)
    yield Group("How much it takes to break each model", tuple(_curves(assessment, places)))
    if assessment.examples:
        yield Group("Adversarial examples", tuple(example_sections(assessment)), folded=True)


def quantities(assessment: DamageAssessment) -> Iterator[NamedEstimate]:
    """Every estimate of every model, and every pairwise difference."""
    norm = assessment.distances.norm
    goal = "driven to the target class by some attack of the study" if assessment.targeted else ""
    for one in assessment.models:
        own = {
            "clean_accuracy": one.clean_accuracy,
            "clean_loss": one.clean_loss,
            "clean_rejection": one.clean_rejection,
            "damage": one.damage,
            "relative_damage": one.relative_damage,
            "cost": one.operational_risk,
            "unnoticed_by_people": one.by_people,
        }
        if one.by_detector is not None:
            own |= {f"detector_{name}": estimate for name, estimate in vars(one.by_detector).items()}
        yield from (NamedEstimate(name, one.model, estimate) for name, estimate in own.items() if estimate is not None)
        for name, shares, note in (("robust_accuracy", one.robust_accuracy, ""), ("broken", one.success_ratio, goal)):
            for eps, share in shares.items():
                yield NamedEstimate(name, one.model, share, of=norm, eps=eps, note=note)
        if one.mean_size is not None:
            yield NamedEstimate(
                "mean_distance", one.model, one.mean_size.estimate, of=norm, text=f"mean adversarial distance, {norm}"
            )
    yield from pair_quantities("damage_difference", damage_name(relative=assessment.relative), assessment.pairs)


# The decision table


def _how(assessment: DamageAssessment) -> tuple[str, ...]:
    share = (
        "The attack success rate is the share of samples that an attack moved to its target class within that size."
        if assessment.targeted
        else "Robust accuracy is the share of samples that are correct and that no attack broke within that size."
    )
    return (
        f"Least damage first. Brackets hold {level_text(assessment.level)} intervals. {share} “Of it clean error” is "
        "the part of the damage that comes from samples incorrect from the start. A model is called undecided when the "
        "interval of its difference to another one contains zero, or when two numbers disagree.",
    )


def _decision_table(assessment: DamageAssessment) -> Table:
    fields = list(_fields(assessment))
    rows = tuple(tuple(of(row) for _, of in fields) for row in assessment.models)
    return Table(f"Decision table, {assessment.distances.norm}", tuple(column for column, _ in fields), rows)


def _fields(assessment: DamageAssessment) -> Iterator[Field]:
    """Each column, and a function from a model to its value."""
    kind = damage_kind(assessment)
    yield Column("model"), lambda row: row.model
    yield Column("verdict"), lambda row: Cell(row.verdict, mark="best" if row.verdict == LEAST else "")
    for name, eps in size_columns(assessment).items():
        yield Column(name, "share"), _at_size(eps, assessment)
    yield Column("clean accuracy", "share"), lambda row: row.clean_accuracy
    if any(row.clean_rejection for row in assessment.models):
        yield Column("clean inputs refused", "share"), lambda row: row.clean_rejection
    if assessment.comparison:
        yield Column(damage_name(relative=assessment.relative), kind), lambda row: row.ranked_by
        yield Column("of it clean error", kind, detail=True), lambda row: row.clean_error_part
    if assessment.detector is not None:
        yield from _detector_fields(assessment)
    if any(row.by_people for row in assessment.models):
        yield Column("unnoticed by people", "share"), lambda row: row.by_people
    if assessment.cost is not None:
        yield Column("cost of an attacked input", "amount"), lambda row: row.operational_risk
    if any(row.probability_best is not None for row in assessment.models):
        yield Column("probability of being best", "share", detail=True), lambda row: row.probability_best
    yield (
        Column("minimal adversarial distance", "magnitude", detail=True),
        lambda row: row.minimal_size.value if row.minimal_size else None,
    )
    yield (
        Column("mean adversarial distance", "magnitude", detail=True),
        lambda row: row.mean_size.estimate if row.mean_size else None,
    )


def _at_size(eps: float, assessment: DamageAssessment) -> Callable[[ModelDamage], Shown]:
    return lambda row: shares_at(row, assessment)[eps]


def _detector_fields(assessment: DamageAssessment) -> Iterator[Field]:
    """Columns of the detector; its damage ranks the models unless there is an evasion curve."""
    names = {"asked about the attacks": "any_arm"} if assessment.comparison is not assessment.detector else {}
    names |= {"of the nearest success alone": "monte_carlo", "by its fitted curve": "by_curve"}
    for name, attribute in (names | {"false alarms": "false_alarms"}).items():
        yield Column(name, "share"), _by_detector(attribute)


def _by_detector(name: str) -> Callable[[ModelDamage], Shown]:
    return lambda row: getattr(row.by_detector, name, None)


# Pairs of models, and what it takes


def _pairwise(assessment: DamageAssessment) -> Iterator[Section]:
    yield Text(
        (
            "The difference of their damage on the same samples, where common errors cancel out. If its interval "
            "contains zero, they are undecided; the number of samples that would probably decide is an order of "
            "magnitude.",
        ),
        how=True,
    )
    columns = (
        Column("less damage"),
        Column("more damage"),
        Column("difference", damage_kind(assessment)),
        Column("decided"),
    )
    rows = tuple(
        (
            pair.lower,
            pair.higher,
            pair.difference,
            f"undecided: {what_would_decide(pair, assessment.samples_left)}" if pair.undecided else "yes",
        )
        for pair in assessment.pairs
    )
    yield Table("Pairwise difference of damage", columns, rows)


def _curves(assessment: DamageAssessment, places: Places) -> Iterator[Section]:
    how = (
        "For every size of perturbation, the share of samples that some attack broke within that size. A curve further "
        "right and lower is a model that is harder to break."
    )
    if assessment.comparison:
        how += " Ψ is the share of perturbations of that size that go undetected."
    if assessment.comparison and assessment.relative:
        how += " Without a detector it comes from the compared models themselves, so the damage is relative."
    yield Text((how,), how=True)
    about = "Share of samples broken against the size of the perturbation, one curve per model."
    yield Figure("Samples broken by size", success_curves(assessment, places=places), about)


def summaries(assessment: DamageAssessment) -> Iterator[Summary]:
    """Sentences for each part of the executive summary."""
    yield Summary("sure", (*filter(None, _on_best(assessment)), _evidence(assessment)))
    yield Summary("drivers", tuple(_on_clean_error(assessment)))
    yield Summary("undecided", (*_on_pairs(assessment), *_on_order(assessment)))
    yield Summary("untested", (*_on_notice(assessment), *_on_left_out(assessment)))


def _on_best(assessment: DamageAssessment) -> Iterator[str]:
    best = assessment.models[0]
    if (number := best.ranked_by) is not None:
        often = (
            ""
            if best.probability_best is None or not assessment.decided
            else f", best in {percent_text(best.probability_best, 1)} of resampled evaluations"
        )
        shown = f"{estimate_text(number, damage_kind(assessment))} ({level_text(assessment.level)} interval)"
        yield f"{best.model}: {damage_name(relative=assessment.relative)} {shown}{often}."
    if best.operational_risk is not None:
        yield f"An attacked input of {best.model} costs {estimate_text(best.operational_risk, 'amount')} on average."
    yield from (_on_next(pair, assessment) for pair in assessment.pairs[:1] if not pair.undecided)
    close = [best.model, *([] if assessment.decided else undecided_with(best.model, assessment.pairs))]
    yield from (_on_shares(row, assessment) for row in [row for row in assessment.models if row.model in close][:_MOST])
    if isinstance(assessment.comparison, DamageComparison):
        yield "Relative damage compares these models on these samples; it is not a probability of an accident."


def _on_shares(row: ModelDamage, assessment: DamageAssessment) -> str:
    """Robust accuracy at each size, and clean accuracy, with their intervals."""
    named = size_columns(assessment).items()
    parts = [
        f"{name} {bound_text(assessment, eps)}{estimate_text(shares_at(row, assessment)[eps], 'share')}"
        for name, eps in named
    ]
    if row.clean_accuracy is not None:
        parts.append(f"clean accuracy {estimate_text(row.clean_accuracy, 'share')}")
    return f"{row.model}: {', '.join(parts)} ({assessment.distances.norm})." if parts else ""


def _on_next(pair: Pair, assessment: DamageAssessment) -> str:
    gap = estimate_text(pair.difference, damage_kind(assessment))
    if not assessment.decided:
        return f"{pair.higher} suffers {gap} more than {pair.lower} on the same samples."
    return f"The next best, {pair.higher}, suffers {gap} more on the same samples."


def _evidence(assessment: DamageAssessment) -> str:
    return (
        f"This uses {counted(len(assessment.distances.samples), 'sample')} and "
        f"{counted(len(assessment.distances.arms), 'attack configuration')}. Robust accuracy is an upper bound: a "
        "better attack can only break more."
    )


def _on_clean_error(assessment: DamageAssessment) -> Iterator[str]:
    best = assessment.models[0]
    if best.ranked_by is not None and best.clean_error_part is not None:
        clean, attack = best.clean_error_part, max(best.ranked_by.value - best.clean_error_part, 0.0)
        shown = [number_text(part, damage_kind(assessment)) for part in (clean, attack)]
        yield f"Of the damage of {best.model}, {shown[0]} is clean error and {shown[1]} is attack."


def _on_pairs(assessment: DamageAssessment) -> list[str]:
    if len(assessment.models) == 1:
        return ["Whether another model would be better: only one was assessed."]
    if assessment.distances.too_few:
        best = assessment.models[0]
        return [f"{best.model} is {best.verdict}. Finish the run, or fix the failing attacks."]
    pairs = [pair for pair in assessment.pairs if pair.undecided]
    sentences = [
        f"{pair.lower} or {pair.higher}: {what_would_decide(pair, assessment.samples_left)}." for pair in pairs
    ]
    return few(sentences, "more pairs of models are undecided.")


def _on_order(assessment: DamageAssessment) -> Iterator[str]:
    if isinstance(assessment.comparison, DamageComparison):
        for change in assessment.comparison.order_changes[:_MOST]:
            yield f"Without {change.dropped}, the order of {change.lower} and {change.higher} reverses."


def _on_notice(assessment: DamageAssessment) -> Iterator[str]:
    if assessment.relative:
        so = "damage is relative to these models, not a probability" if assessment.comparison else "there is no damage"
        yield f"Without an evasion curve or a detector, the share that goes unnoticed is unknown: {so}."


def _on_left_out(assessment: DamageAssessment) -> Iterator[str]:
    distances = assessment.distances
    left_out = []
    if distances.n_unfinished:
        left_out.append(f"{counted(distances.n_unfinished, 'sample')} not finished")
    if distances.n_without_verdict:
        left_out.append(f"{counted(distances.n_without_verdict, 'sample')} on which an attack gave no verdict")
    if left_out:
        yield f"Left out of {distances.n_samples:,} samples: {', '.join(left_out)}."
