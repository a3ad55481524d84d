"""What damage adds to the executive summary: how sure it is, what it comes from, and what is undecided."""

from collections.abc import Iterator

from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.words import damage_kind, damage_name, shares_at, size_columns, what_would_decide
from advrisk.core.names import counted, few
from advrisk.core.numbers import level_text, percent_text
from advrisk.core.sections import Summary
from advrisk.core.values import estimate_text, number_text
from advrisk.risk.damage import DamageComparison
from advrisk.risk.decision import Pair

_MOST = 4  # changes of order that are listed one by one


def summaries(found: DamageAssessment) -> Iterator[Summary]:
    """Its sentences for each part."""
    yield Summary("sure", (*_on_best(found), _rests_on(found)))
    yield Summary("drivers", tuple(_on_clean_error(found)))
    yield Summary("undecided", (*_on_pairs(found), *_on_order(found)))


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
    shares = {name: shares_at(best, found)[eps] for name, eps in size_columns(found).items()}
    shares |= {} if best.clean_accuracy is None else {"clean accuracy": best.clean_accuracy}
    if shares:
        told = ", ".join(f"{name} {estimate_text(share, 'share')}" for name, share in shares.items())
        yield f"{best.model}: {told} ({found.distances.norm})."
    if isinstance(found.comparison, DamageComparison):
        yield "Relative damage compares these models on these samples; it is no probability of an accident."


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
