"""Damage in one sentence: the least bad of the compared models and how bad it is, or why the evidence names none."""

from collections.abc import Iterable, Sequence

from advrisk.assess.damage.assessment import DamageAssessment, ModelDamage
from advrisk.assess.damage.words import behind, bound_text, damage_name, share_name, shares_at, what_would_decide
from advrisk.core.estimate import Estimate
from advrisk.core.names import listed
from advrisk.core.numbers import percent_text
from advrisk.risk.decision import Pair, undecided_with
from advrisk.risk.evasion import ThresholdEvasion
from advrisk.risk.paired_share import share_difference

_MODELS = 3  # whose numbers an undecided headline gives


def headline(found: DamageAssessment) -> str:
    """The least bad model and how bad it is, or why the evidence names none."""
    return f"{least_bad_words(found)}."


def least_bad_words(found: DamageAssessment) -> str:
    """The headline without its full stop, to be gone on with."""
    best, n = found.models[0], len(found.models)
    if n == 1:
        absolute = _absolute(best, found)
        return (
            f"Only {best.model} {'was asked for' if found.part else 'was assessed'}: {absolute}{how_bad(best, found)}"
        )
    if not found.decided:
        return _undecided(found)
    absolute = _absolute(best, found)
    loss = best.clean_loss
    if loss is not None and loss.low > 0:
        return (
            f"A trade-off: of {n} models {best.model} is the least bad under attack "
            f"({absolute}{_under_attack(best, found)}), but gives up {_points(loss.value)} of clean accuracy against "
            f"{found.best_clean} ({_clean_pair(best, found.of(found.best_clean or ''))}){_other_side(found)}"
        )
    return f"{best.model} is the least bad of {n} models: {absolute}{how_bad(best, found)}"


def _absolute(row: ModelDamage, found: DamageAssessment) -> str:
    """`damage probability 20.0 % behind the detector confidence, `; empty of relative damage."""
    if row.damage is None:
        return ""
    return f"damage probability {_least(found)}{_share(row.damage)}{behind(found)}, "


def _least(found: DamageAssessment) -> str:
    """`at least `, where no attack had the size up to which everything goes unnoticed."""
    return "at least " if isinstance(found.curve, ThresholdEvasion) and found.curve.tau in found.untried else ""


def _other_side(found: DamageAssessment) -> str:
    """What the best clean model has under attack at the largest size, where that can be said."""
    row = found.of(found.best_clean or "")
    if row is None or not found.thresholds:
        return ""
    eps = found.thresholds[-1]
    share = f"{bound_text(found, eps)}{_share(shares_at(row, found)[eps])}"
    return f", whose {share_name(found)} is {share} at {_size(found, eps)}"


def _undecided(found: DamageAssessment) -> str:
    best = found.models[0]
    if found.distances.too_few:
        return f"No model is named yet, {best.verdict}"
    open_ones = [pair for pair in found.pairs if pair.undecided and best.model in (pair.lower, pair.higher)]
    names = [best.model, *undecided_with(best.model, found.pairs)]
    if conflicts := list(dict.fromkeys(text for pair in open_ones for text in pair.conflicts)):
        return f"Undecided between {listed(names)}: {conflicts[0].rstrip('.')}"
    rows = [row for row in found.models if row.model in names][:_MODELS]
    if len(names) == 2 and (said := _open_trade_off(rows, found)):
        return said
    return f"Undecided between {listed(names)}: {_side_by_side(rows, found)}{_to_decide(open_ones, found)}"


def _open_trade_off(rows: Sequence[ModelDamage], found: DamageAssessment) -> str:
    """Of two models that damage does not tell apart: one is better under attack, the other clean; else empty."""
    hardy = next((row for row in rows if row.clean_loss is not None and row.clean_loss.low > 0), None)
    clean = next((row for row in rows if row.model == found.best_clean), None)
    if hardy is None or clean is None:
        return ""
    tried = [eps for eps in found.thresholds if eps not in found.untried]
    for eps in () if found.targeted else reversed(tried):
        held, other = (found.distances.by_model[row.model] > eps for row in (hardy, clean))
        gain = share_difference(int((held & ~other).sum()), int((other & ~held).sum()), len(held), level=found.level)
        if gain.low > 0:
            shares = (row.robust_accuracy[eps] for row in (hardy, clean))
            damage = " against ".join(_share(row.damage) for row in (hardy, clean) if row.damage is not None)
            beside = f" (damage probability {_least(found)}{damage})" if damage else ""
            return (
                f"A trade-off that damage does not decide{beside}: {hardy.model} is better under attack "
                f"(robust accuracy at {found.size_text(eps)} {' against '.join(map(_share, shares))}), "
                f"{clean.model} on clean inputs ({_clean_pair(clean, hardy)})"
            )
    return ""


def _to_decide(pairs: Sequence[Pair], found: DamageAssessment) -> str:
    return f"; {what_would_decide(pairs[0], found.samples_left)}" if len(pairs) == 1 else ""


def _side_by_side(rows: Sequence[ModelDamage], found: DamageAssessment) -> str:
    """`robust accuracy at 8/255 20.0 % and 22.0 %, clean accuracy 80.0 % and 78.0 %`; damage, too, if it is absolute
    or nothing else says how the models fare under attack."""
    damage = [row.ranked_by for row in rows if row.ranked_by is not None]
    parts = []
    if damage and not (found.relative and found.thresholds):
        shown = [f"{one.value:.3f}" if found.relative else _share(one) for one in damage]
        parts.append(f"{damage_name(relative=found.relative)} {_least(found)}{listed(shown)}")
    parts += [
        f"{share_name(found)} at {_size(found, eps)} {bound_text(found, eps)}"
        f"{_each(shares_at(row, found)[eps] for row in rows)}"
        for eps in found.thresholds
    ]
    clean = [row.clean_accuracy for row in rows if row.clean_accuracy is not None]
    parts += [f"clean accuracy {_each(clean)}"] if len(clean) == len(rows) else []
    return ", ".join(parts) or "no difference that these samples show"


def how_bad(row: ModelDamage, found: DamageAssessment) -> str:
    """`robust accuracy 95.4 % at 0.1, 46.6 % at 0.2; clean accuracy 97.4 %, 0.2 points below plain`."""
    clean = _on_clean(row, found)
    return "; ".join([_under_attack(row, found), *([clean] if clean else [])])


def _under_attack(row: ModelDamage, found: DamageAssessment) -> str:
    if found.thresholds:
        shares = shares_at(row, found)
        at = [f"{bound_text(found, eps)}{_share(shares[eps])} at {_size(found, eps)}" for eps in found.thresholds]
        return f"{share_name(found)} {', '.join(at)}"
    if row.mean_size is None:
        return "no attack broke a sample that was correct"
    return f"mean adversarial distance {row.mean_size.value:.3g} ({found.distances.norm})"


def _size(found: DamageAssessment, eps: float) -> str:
    return found.size_text(eps) + (" (no attack had this size)" if eps in found.untried else "")


def _on_clean(row: ModelDamage, found: DamageAssessment) -> str:
    if row.clean_accuracy is None:
        return ""
    best = None if found.best_clean is None else found.of(found.best_clean)
    gap = 0.0 if best is None or best.clean_accuracy is None else best.clean_accuracy.value - row.clean_accuracy.value
    text = f"clean accuracy {_share(row.clean_accuracy)}"
    if len(found.models) == 1:
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
