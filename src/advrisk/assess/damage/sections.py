"""What is shown of damage: the decision table, pairs of models, what it takes to break them, and examples."""

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


def sections(found: DamageAssessment, models: Sequence[str] = ()) -> Iterator[Section]:
    """The models, least damage first, and what tells them apart."""
    places = model_places(models)
    yield Headline(headline(found))
    yield from summaries(found)
    yield front(found, places)
    yield Text(_how(found), how=True)
    yield _decision_table(found)
    yield Text(tuple(findings(found, pairs=found.decided)))
    if found.comparison:
        about = "Damage of each model with its interval; the same numbers stand in the table above."
        yield Figure("Intervals", damage_intervals(found, places=places), about)
    if len(found.pairs) > 1 or (found.pairs and not found.decided):
        yield Group("Pairwise comparison", tuple(_pairwise(found)), folded=found.decided)
    yield Group("How much it takes to break each model", tuple(_curves(found, places)))
    if found.examples:
        yield Group("Adversarial examples", tuple(example_sections(found)), folded=True)


def quantities(found: DamageAssessment) -> Iterator[NamedEstimate]:
    """Every estimate of every model, and the difference of every two."""
    norm = found.distances.norm
    goal = "driven to the target class by some attack of the study" if found.targeted else ""
    for one in found.models:
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
    yield from pair_quantities("damage_difference", damage_name(relative=found.relative), found.pairs)


# The decision table


def _how(found: DamageAssessment) -> tuple[str, ...]:
    share = (
        "The attack success rate is the share of samples that an attack turned to its target within that size."
        if found.targeted
        else "Robust accuracy is the share of samples that are correct and that no attack broke within that size."
    )
    return (
        f"Least damage first. Brackets hold {level_text(found.level)} intervals. {share} “Of it clean error” is the "
        "part of the damage that comes from samples incorrect from the start. A model is called undecided when the "
        "interval of its difference to another one contains zero, or when two numbers disagree.",
    )


def _decision_table(found: DamageAssessment) -> Table:
    fields = list(_fields(found))
    rows = tuple(tuple(of(row) for _, of in fields) for row in found.models)
    return Table(f"Decision table, {found.distances.norm}", tuple(column for column, _ in fields), rows)


def _fields(found: DamageAssessment) -> Iterator[Field]:
    """Each column, and what stands there of a model."""
    kind = damage_kind(found)
    yield Column("model"), lambda row: row.model
    yield Column("verdict"), lambda row: Cell(row.verdict, mark="best" if row.verdict == LEAST else "")
    for name, eps in size_columns(found).items():
        yield Column(name, "share"), _at_size(eps, found)
    yield Column("clean accuracy", "share"), lambda row: row.clean_accuracy
    if any(row.clean_rejection for row in found.models):
        yield Column("clean inputs refused", "share"), lambda row: row.clean_rejection
    if found.comparison:
        yield Column(damage_name(relative=found.relative), kind), lambda row: row.ranked_by
        yield Column("of it clean error", kind, detail=True), lambda row: row.clean_error_part
    if found.detector is not None:
        yield from _detector_fields(found)
    if any(row.by_people for row in found.models):
        yield Column("unnoticed by people", "share"), lambda row: row.by_people
    if found.cost is not None:
        yield Column("cost of an attacked input", "amount"), lambda row: row.operational_risk
    if any(row.probability_best is not None for row in found.models):
        yield Column("probability of being best", "share", detail=True), lambda row: row.probability_best
    yield (
        Column("minimal adversarial distance", "magnitude", detail=True),
        lambda row: row.minimal_size.value if row.minimal_size else None,
    )
    yield (
        Column("mean adversarial distance", "magnitude", detail=True),
        lambda row: row.mean_size.estimate if row.mean_size else None,
    )


def _at_size(eps: float, found: DamageAssessment) -> Callable[[ModelDamage], Shown]:
    return lambda row: shares_at(row, found)[eps]


def _detector_fields(found: DamageAssessment) -> Iterator[Field]:
    """What the detector leaves; its own damage is the ranked one unless an evasion curve was given."""
    names = {"asked about the attacks": "any_arm"} if found.comparison is not found.detector else {}
    names |= {"of the nearest success alone": "monte_carlo", "by its fitted curve": "by_curve"}
    for name, attribute in (names | {"false alarms": "false_alarms"}).items():
        yield Column(name, "share"), _by_detector(attribute)


def _by_detector(name: str) -> Callable[[ModelDamage], Shown]:
    return lambda row: getattr(row.by_detector, name, None)


# Pairs of models, and what it takes


def _pairwise(found: DamageAssessment) -> Iterator[Section]:
    yield Text(
        (
            "The difference of their damage on the same samples, what both share cancelling out. If its interval "
            "contains zero, they are undecided; the number of samples that would probably decide is an order of "
            "magnitude.",
        ),
        how=True,
    )
    columns = (
        Column("less damage"),
        Column("more damage"),
        Column("difference", damage_kind(found)),
        Column("decided"),
    )
    rows = tuple(
        (
            pair.lower,
            pair.higher,
            pair.difference,
            f"undecided: {what_would_decide(pair, found.samples_left)}" if pair.undecided else "yes",
        )
        for pair in found.pairs
    )
    yield Table("Pairwise difference of damage", columns, rows)


def _curves(found: DamageAssessment, places: Places) -> Iterator[Section]:
    how = (
        "For every size of perturbation, the share of samples that some attack broke within that size. A curve further "
        "right and lower is a model that is harder to break."
    )
    if found.comparison:
        how += " Ψ is the share of perturbations of that size that go undetected."
    if found.comparison and found.relative:
        how += " Without a detector it comes from the compared models themselves, so the damage is relative."
    yield Text((how,), how=True)
    about = "Share of samples broken against the size of the perturbation, one curve per model."
    yield Figure("Samples broken by size", success_curves(found, places=places), about)


def summaries(found: DamageAssessment) -> Iterator[Summary]:
    """Its sentences for each part."""
    yield Summary("sure", (*filter(None, _on_best(found)), _rests_on(found)))
    yield Summary("drivers", tuple(_on_clean_error(found)))
    yield Summary("undecided", (*_on_pairs(found), *_on_order(found)))
    yield Summary("untested", (*_on_notice(found), *_on_left_out(found)))


def _on_best(found: DamageAssessment) -> Iterator[str]:
    best = found.models[0]
    if (number := best.ranked_by) is not None:
        often = (
            ""
            if best.probability_best is None or not found.decided
            else f", best in {percent_text(best.probability_best, 1)} of resampled evaluations"
        )
        shown = f"{estimate_text(number, damage_kind(found))} ({level_text(found.level)} interval)"
        yield f"{best.model}: {damage_name(relative=found.relative)} {shown}{often}."
    if best.operational_risk is not None:
        yield f"An attacked input of {best.model} costs {estimate_text(best.operational_risk, 'amount')} on average."
    yield from (_on_next(pair, found) for pair in found.pairs[:1] if not pair.undecided)
    close = [best.model, *([] if found.decided else undecided_with(best.model, found.pairs))]
    yield from (_on_shares(row, found) for row in [row for row in found.models if row.model in close][:_MOST])
    if isinstance(found.comparison, DamageComparison):
        yield "Relative damage compares these models on these samples; it is no probability of an accident."


def _on_shares(row: ModelDamage, found: DamageAssessment) -> str:
    """Robust accuracy at each size, and clean accuracy, with their intervals."""
    named = size_columns(found).items()
    told = [
        f"{name} {bound_text(found, eps)}{estimate_text(shares_at(row, found)[eps], 'share')}" for name, eps in named
    ]
    if row.clean_accuracy is not None:
        told.append(f"clean accuracy {estimate_text(row.clean_accuracy, 'share')}")
    return f"{row.model}: {', '.join(told)} ({found.distances.norm})." if told else ""


def _on_next(pair: Pair, found: DamageAssessment) -> str:
    gap = estimate_text(pair.difference, damage_kind(found))
    if not found.decided:
        return f"{pair.higher} suffers {gap} more than {pair.lower} on the same samples."
    return f"The next best, {pair.higher}, suffers {gap} more on the same samples."


def _rests_on(found: DamageAssessment) -> str:
    return (
        f"This rests on {counted(len(found.distances.samples), 'sample')} and "
        f"{counted(len(found.distances.arms), 'attack configuration')}. Robust accuracy is an upper bound: a better "
        "attack can only break more."
    )


def _on_clean_error(found: DamageAssessment) -> Iterator[str]:
    best = found.models[0]
    if best.ranked_by is not None and best.clean_error_part is not None:
        clean, attack = best.clean_error_part, max(best.ranked_by.value - best.clean_error_part, 0.0)
        shown = [number_text(part, damage_kind(found)) for part in (clean, attack)]
        yield f"Of the damage of {best.model}, {shown[0]} is clean error and {shown[1]} is attack."


def _on_pairs(found: DamageAssessment) -> list[str]:
    if len(found.models) == 1:
        return ["Whether another model would be better: only one was assessed."]
    if found.distances.too_few:
        return [f"{found.models[0].model} is {found.models[0].verdict}. Finish the run, or mend the attacks that fail."]
    pairs = [pair for pair in found.pairs if pair.undecided]
    told = [f"{pair.lower} or {pair.higher}: {what_would_decide(pair, found.samples_left)}." for pair in pairs]
    return few(told, "more pairs of models are undecided.")


def _on_order(found: DamageAssessment) -> Iterator[str]:
    if isinstance(found.comparison, DamageComparison):
        for change in found.comparison.order_changes[:_MOST]:
            yield f"Without {change.dropped}, the order of {change.lower} and {change.higher} turns round."


def _on_notice(found: DamageAssessment) -> Iterator[str]:
    if found.relative:
        so = "damage is relative to these models, and no probability" if found.comparison else "there is no damage"
        yield f"No evasion curve and no alarm was given, so nobody knows what goes unnoticed: {so}."


def _on_left_out(found: DamageAssessment) -> Iterator[str]:
    distances = found.distances
    left_out = []
    if distances.n_unfinished:
        left_out.append(f"{counted(distances.n_unfinished, 'sample')} not finished")
    if distances.n_without_verdict:
        left_out.append(f"{counted(distances.n_without_verdict, 'sample')} on which an attack gave no verdict")
    if left_out:
        yield f"Left out of {distances.n_samples:,} samples: {', '.join(left_out)}."
