"""The sections of `studies.indicators` on robustness: beside the risks, and where attacks were blind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advrisk.assess.indicators.words import loss_interval, loss_text
from advrisk.core.names import counted
from studies.indicators_findings import Attack, Findings
from studies.indicators_orders import Agreement, agreement, rank_correlation, risk_ranks
from studies.indicators_sections import SHARE, named_pairs, rank_text
from studies.orders import ranks
from studies.text import NOTHING, size_text, table, wrapped

GAP = 0.05  # of the samples, before a model is said to look stronger than it is
FLAGS = ("zero-gradients", "not-increasing", "black-box-beats-white-box", "still-gaining")


@dataclass(frozen=True)
class Column:
    """One robustness number of every model that has it."""

    name: str
    danger: Mapping[str, float]  # more is worse
    text: Mapping[str, str]

    @property
    def ranks(self) -> dict[str, int]:
        """1 for the most robust."""
        return ranks({model: -value for model, value in self.danger.items()})

    def cell(self, model: str) -> str:
        return f"{self.text[model]} ({self.ranks[model]})" if model in self.text else NOTHING


def columns(found: Findings) -> list[Column]:
    """The mean distance, ρ1, ρ2 at every size, and what else is stored, such as CLEVER."""
    sizes = {model: one.mean_distance.estimate for model, one in found.robustness.items() if one.mean_distance}
    paper = {model: one.rho_1 for model, one in found.robustness.items() if one.rho_1}
    made = [
        Column(name, {m: -one.value for m, one in own.items()}, {m: size_text(one) for m, one in own.items()})
        for name, own in (("mean distance", sizes), ("ρ1", paper))
    ]
    for eps, of in found.within.items():
        texts = {model: loss_interval(one, SHARE) for model, one in of.items()}
        made.append(Column(f"ρ2 at {eps:g}", {model: one.value for model, one in of.items()}, texts))
    for name, shown in _measures(found).items():  # sizes: more is better
        own = {model: of_model[name] for model, of_model in found.found.measures.items() if name in of_model}
        label = f"{shown} (n = {min(one.n for one in own.values())})"
        made.append(
            Column(label, {m: -one.value for m, one in own.items()}, {m: size_text(one) for m, one in own.items()})
        )
    return [one for one in made if one.danger]


def _measures(found: Findings) -> dict[str, str]:
    """Names of measures that were taken of all models at as many samples; without parameters where that is clear."""
    taken: dict[str, list[int]] = {}
    for own in found.found.measures.values():
        for name, one in own.items():
            taken.setdefault(name, []).append(one.n)
    names = sorted(name for name, n in taken.items() if len(n) == len(found.models) and len(set(n)) == 1)
    short = {name: name.partition("@")[0].partition(",")[0] for name in names}
    return short if len(set(short.values())) == len(names) else {name: name for name in names}


def robustness(found: Findings) -> list[str]:
    """The robustness numbers, and how far their order is that of the risks."""
    numbers = columns(found)
    if not numbers:
        return ["No attack of this run has a norm, so there are no robustness numbers."]
    risk_places = [risk_ranks(one) for one in found.ranked]
    rows = [
        [model, *(one.cell(model) for one in numbers), *(str(rank[model]) for rank in risk_places)]
        for model in found.models
    ]
    sentence = (
        "Robustness numbers with their ranks in brackets (1: most robust), and the ranks by risk. Mean "
        "distance: to the nearest success, over samples that were correct and were broken. ρ1: the same with samples "
        "that were wrong already at 0, as the paper has it. ρ2: share of samples wrong under the strongest attack "
        "within a size. Other numbers are means over n samples."
    )
    head = ["model", *(one.name for one in numbers), *found.found.scenarios]
    return [
        *wrapped([sentence]),
        *table(head, rows),
        "",
        *wrapped(_orders(found, numbers)),
        "",
        *single(found, numbers),
    ]


def _orders(found: Findings, numbers: Sequence[Column]) -> list[str]:
    sentences = []
    for column in numbers:
        for one in found.ranked:
            risk = {each.model: each.risk.value for each in one.models}
            agreed = agreement(one.pairs, column.danger)
            tied = f", {agreed.tied} tied" if agreed.tied else ""
            sentences.append(
                f"{column.name} and {one.scenario.name}: {rank_text(rank_correlation(column.danger, risk))}. Of the "
                f"{counted(agreed.n, 'pair')} decided by risk: {agreed.same} in the same order{tied}, "
                f"{len(agreed.opposite)} in the opposite one{named_pairs(agreed.opposite)}."
            )
    return sentences


def single(found: Findings, numbers: Sequence[Column]) -> list[str]:
    """Robustness numbers beside each indicator of nature: a cause, or one of its corruptions."""
    one = found.uniform
    paths = [path for path in one.branches if path and path.count(".") < 2]
    rows = []
    for path in paths:
        compared = one.branches[path]
        risk = {model: estimate.value for model, estimate in compared.estimates.items()}
        decided = sum(not pair.undecided for pair in compared.pairs)
        rows.append(
            [
                path,
                str(decided),
                *(_beside(column, risk, agreement(compared.pairs, column.danger)) for column in numbers),
            ]
        )
    sentence = (
        "Each indicator by itself, all levels alike: pairs of models that it decides; for each robustness number "
        "Kendall's tau, and in brackets how many of these pairs have the opposite order by it."
    )
    return [*wrapped([sentence]), *table(["indicator", "decided", *(column.name for column in numbers)], rows)]


def _beside(column: Column, risk: Mapping[str, float], agreed: Agreement) -> str:
    rank = rank_correlation(column.danger, risk)
    return NOTHING if rank is None else f"{rank.tau:.2f} ({len(agreed.opposite)})"


def masked(found: Findings) -> list[str]:
    """What each attack at the largest size does, and which models look stronger than they are."""
    if not found.attacks:
        return ["No attack of this run has a size."]
    eps = max(found.within)
    rows = [
        [model, *(_wrong(found, one, model) for one in found.attacks), loss_text(found.within[eps][model].value, SHARE)]
        for model in found.models
    ]
    sentence = f"Wrong under each attack within {eps:g}, and under the strongest of all within it (ρ2):"
    lines = [sentence, *table(["model", *map(short, found.attacks), "strongest"], rows), ""]
    return [*lines, *wrapped([*(looks(found) or ["No model looks stronger than it is."]), *_flagged(found)])]


def looks(found: Findings) -> list[str]:
    """Models that attacks on their cross-entropy make look stronger than all arms together do."""
    told = []
    for model, (seen, other, truth) in hidden(found).items():
        beside = f", {short(other)} alone {loss_text(found.wrong[other.arm][model].value, SHARE)}" if other else ""
        told.append(
            f"{model}: the best attack on its cross-entropy leaves {loss_text(seen, SHARE)} wrong{beside}, all arms "
            f"together {loss_text(truth, SHARE)}."
        )
    return told


def hidden(found: Findings) -> dict[str, tuple[float, Attack | None, float]]:
    """Model -> share wrong under the best attack on its cross-entropy, the best other attack, and all arms' share.

    Only models with a gap between the first and the last, all at the largest size.
    """
    climbing = [attack for attack in found.attacks if attack.climbs_cross_entropy]
    others = [attack for attack in found.attacks if not attack.climbs_cross_entropy]
    gaps = {}
    for model in found.models if climbing else ():
        own = {attack: found.wrong[attack.arm][model].value for attack in found.attacks}
        seen, truth = max(own[attack] for attack in climbing), found.within[max(found.within)][model].value
        if truth - seen >= GAP:
            gaps[model] = seen, max(others, key=own.__getitem__, default=None), truth
    return gaps


def short(attack: Attack) -> str:
    """`pgd ace`, `square margin`, `transfer`."""
    return attack.family if attack.family == "transfer" else f"{attack.family} {attack.objective or ''}".strip()


def _flagged(found: Findings) -> list[str]:
    sentences = []
    for flag in FLAGS:
        of: dict[str, list[str]] = {}
        for row in found.flags:
            if row["flag"] == flag:
                of.setdefault(row["model"], []).append(row["arm"])
        told = "; ".join(f"{model} ({counted(len(arms), 'arm')})" for model, arms in of.items())
        sentences.append(f"Flag `{flag}`: {told or 'no model'}.")
    return sentences


def _wrong(found: Findings, attack: Attack, model: str) -> str:
    return loss_text(found.wrong[attack.arm][model].value, SHARE)
