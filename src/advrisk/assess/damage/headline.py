"""The headline of damage: the least bad of the compared models and its numbers, or why none is named."""

from collections.abc import Iterable, Sequence

from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage
from advrisk.assess.damage.words import behind, bound_text, damage_name, share_name, shares_at, what_would_decide
from advrisk.core.estimate import Estimate
from advrisk.core.names import listed
from advrisk.core.numbers import percent_text
from advrisk.risk.decision import Pair, undecided_with
from advrisk.risk.evasion import ThresholdEvasion
from advrisk.risk.paired_share import share_difference

_MODELS = 3  # number of models in an undecided headline


def headline(assessment: DamageAssessment) -> str:
    """The least bad model and its numbers, or why none is named."""
    return f"{least_bad_words(assessment)}."


def least_bad_words(assessment: DamageAssessment) -> str:
    """The headline without its full stop, so that a caller can continue it."""
    best, n = assessment.models[0], len(assessment.models)
    if n == 1:
        why = "was asked for" if assessment.part else "was assessed"
        return f"Only {best.model} {why}: {_absolute(best, assessment)}{how_bad(best, assessment)}"
    if not assessment.decided:
        return _undecided(assessment)
    absolute = _absolute(best, assessment)
    loss = best.clean_loss
    if loss is not None and loss.low > 0:
        clean = _clean_pair(best, assessment.of(assessment.best_clean or ""))
        return (
            f"A trade-off: of {n} models {best.model} is the least bad under attack "
            f"({absolute}{_under_attack(best, assessment)}), but gives up {_points(loss.value)} of clean accuracy "
            f"against {assessment.best_clean} ({clean}){_other_side(assessment)}"
        )
    return f"{best.model} is the least bad of {n} models: {absolute}{how_bad(best, assessment)}"


def _absolute(row: ModelDamage, assessment: DamageAssessment) -> str:
    """`damage probability 20.0 % behind the detector confidence, `; empty for relative damage."""
    if row.damage is None:
        return ""
    return f"damage probability {_least(assessment)}{_share(row.damage)}{behind(assessment)}, "


def _least(assessment: DamageAssessment) -> str:
    """`at least ` if no attack had the size up to which everything goes undetected; else empty."""
    return (
        "at least "
        if isinstance(assessment.curve, ThresholdEvasion) and assessment.curve.tau in assessment.untried
        else ""
    )


def _other_side(assessment: DamageAssessment) -> str:
    """The share of the best clean model under attack at the largest size; empty if there is none."""
    row = assessment.of(assessment.best_clean or "")
    if row is None or not assessment.thresholds:
        return ""
    eps = assessment.thresholds[-1]
    share = f"{bound_text(assessment, eps)}{_share(shares_at(row, assessment)[eps])}"
    return f", whose {share_name(assessment)} is {share} at {_size(assessment, eps)}"


def _undecided(assessment: DamageAssessment) -> str:
    best = assessment.models[0]
    if assessment.distances.too_few:
        return f"No model is named yet, {best.verdict}"
    open_ones = [pair for pair in assessment.pairs if pair.undecided and best.model in (pair.lower, pair.higher)]
    names = [best.model, *undecided_with(best.model, assessment.pairs)]
    if conflicts := list(dict.fromkeys(text for pair in open_ones for text in pair.conflicts)):
        return f"Undecided between {listed(names)}: {conflicts[0].rstrip('.')}"
    rows = [row for row in assessment.models if row.model in names][:_MODELS]
    if len(names) == 2 and (trade_off := _open_trade_off(rows, assessment)):
        return trade_off
    return f"Undecided between {listed(names)}: {_side_by_side(rows, assessment)}{_to_decide(open_ones, assessment)}"


def _open_trade_off(rows: Sequence[ModelDamage], assessment: DamageAssessment) -> str:
    """The trade-off of two undecided models, one better under attack, the other on clean inputs; else empty."""
    hardy = next((row for row in rows if row.clean_loss is not None and row.clean_loss.low > 0), None)
    clean = next((row for row in rows if row.model == assessment.best_clean), None)
    if hardy is None or clean is None:
        return ""
    tried = [eps for eps in assessment.thresholds if eps not in assessment.untried]
    for eps in () if assessment.targeted else reversed(tried):
        hardy_correct, clean_correct = (assessment.distances.by_model[row.model] > eps for row in (hardy, clean))
        gain = share_difference(
            int((hardy_correct & ~clean_correct).sum()),
            int((clean_correct & ~hardy_correct).sum()),
            len(hardy_correct),
            level=assessment.level,
        )
        if gain.low > 0:
            shares = (row.robust_accuracy[eps] for row in (hardy, clean))
            damage = " against ".join(_share(row.damage) for row in (hardy, clean) if row.damage is not None)
            beside = f" (damage probability {_least(assessment)}{damage})" if damage else ""
            return (
                f"A trade-off that damage does not decide{beside}: {hardy.model} is better under attack "
                f"(robust accuracy at {assessment.size_text(eps)} {' against '.join(map(_share, shares))}), "
                f"{clean.model} on clean inputs ({_clean_pair(clean, hardy)})"
            )
    return ""


def _to_decide(pairs: Sequence[Pair], assessment: DamageAssessment) -> str:
    return f"; {what_would_decide(pairs[0], assessment.samples_left)}" if len(pairs) == 1 else ""


def _side_by_side(rows: Sequence[ModelDamage], assessment: DamageAssessment) -> str:
    """`robust accuracy at 8/255 20.0 % and 22.0 %, clean accuracy 80.0 % and 78.0 %`; also damage if it is absolute
    or the only number under attack."""
    damage = [row.ranked_by for row in rows if row.ranked_by is not None]
    parts = []
    if damage and not (assessment.relative and assessment.thresholds):
        shown = [f"{one.value:.3f}" if assessment.relative else _share(one) for one in damage]
        parts.append(f"{damage_name(relative=assessment.relative)} {_least(assessment)}{listed(shown)}")
    parts += [
        f"{share_name(assessment)} at {_size(assessment, eps)} {bound_text(assessment, eps)}"
        f"{_each(shares_at(row, assessment)[eps] for row in rows)}"
        for eps in assessment.thresholds
    ]
    clean = [row.clean_accuracy for row in rows if row.clean_accuracy is not None]
    parts += [f"clean accuracy {_each(clean)}"] if len(clean) == len(rows) else []
    return ", ".join(parts) or "no difference that these samples show"


def how_bad(row: ModelDamage, assessment: DamageAssessment) -> str:
    """`robust accuracy 95.4 % at 0.1, 46.6 % at 0.2; clean accuracy 97.4 %, 0.2 points below plain`."""
    clean = _on_clean(row, assessment)
    return "; ".join([_under_attack(row, assessment), *([clean] if clean else [])])


def _under_attack(row: ModelDamage, assessment: DamageAssessment) -> str:
    if assessment.thresholds:
        shares = shares_at(row, assessment)
        at = [
            f"{bound_text(assessment, eps)}{_share(shares[eps])} at {_size(assessment, eps)}"
            for eps in assessment.thresholds
        ]
        return f"{share_name(assessment)} {', '.join(at)}"
    if row.mean_size is None:
        return "no attack broke a sample that was correct"
    return f"mean adversarial distance {row.mean_size.value:.3g} ({assessment.distances.norm})"


def _size(assessment: DamageAssessment, eps: float) -> str:
    return assessment.size_text(eps) + (" (no attack had this size)" if eps in assessment.untried else "")


def _on_clean(row: ModelDamage, assessment: DamageAssessment) -> str:
    if row.clean_accuracy is None:
        return ""
    best = None if assessment.best_clean is None else assessment.of(assessment.best_clean)
    gap = 0.0 if best is None or best.clean_accuracy is None else best.clean_accuracy.value - row.clean_accuracy.value
    text = f"clean accuracy {_share(row.clean_accuracy)}"
    if len(assessment.models) == 1:
        return text
    if best is None or gap <= 0:
        return f"{text}, the highest of these"
    sure = row.clean_loss is not None and row.clean_loss.low > 0
    return f"{text}, {_points(gap)} below {best.model}{'' if sure else ' (within chance)'}"


def _clean_pair(row: ModelDamage, other: ModelDamage | None) -> str:
    pair = (row.clean_accuracy, other.clean_accuracy if other else None)
    return " against ".join("unknown" if one is None else _share(one) for one in pair)


def _share(estimate: Estimate) -> str:
    return percent_text(estimate.value, 1)


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _each(estimates: Iterable[Estimate]) -> str:
    return listed([_share(one) for one in estimates])
