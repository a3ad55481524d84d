"""What a run says of the claims that are made for key risk indicators, one line each."""

from itertools import combinations

from advrisk.assess.indicators.words import loss_text
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.risk.indicators.comparison import ScenarioResult
from studies.indicators_findings import Findings
from studies.indicators_orders import agreement, risk_correlation, risk_ranks, turned
from studies.indicators_robustness import GAP, columns, hidden
from studies.indicators_sections import SHARE, mean_contributions


def claims(found: Findings) -> list[str]:
    """As items of a list; those that the run says nothing of are left out."""
    if len(found.models) < 2:
        return ["- There is one model only, and so nothing to compare."]
    made = [
        _deployments(found.ranked),
        _damages(found),
        _drivers(found),
        *_robustness(found),
        _hidden(found),
        _undecided(found),
    ]
    return [f"- {line}" for line in made if line]


def _deployments(ranked: list[ScenarioResult]) -> str:
    if len(ranked) < 2:
        return ""
    best = ", ".join(f"{one.models[0].model} in `{one.scenario.name}`" for one in ranked)
    told = ", ".join(
        f"{len(turned(one, other))} between `{one.scenario.name}` and `{other.scenario.name}`{_tau(one, other)}"
        for one, other in combinations(ranked, 2)
    )
    return (
        f"**Does the order depend on the deployment?** Least risk: {best}. Pairs that the samples decide in both, the "
        f"other way round: {told}."
    )


def _damages(found: Findings) -> str:
    if len(found.found.losses) < 2:
        return ""
    told = []
    for loss in found.found.losses[1:]:
        pairs = [turned(one, found.found.of(one.scenario.name, loss)) for one in found.ranked]
        told.append(f"{sum(map(len, pairs))} under `{loss}`")
    n = sum(len(one.pairs) for one in found.ranked)
    return (
        f"**And on what is called damage?** Of {n} pairs in all scenarios, decided the other way round than under "
        f"`{found.loss}`: {', '.join(told)}."
    )


def _drivers(found: Findings) -> str:
    told = []
    for one in found.ranked:
        of = mean_contributions(one)
        most, whole = max(of, key=of.__getitem__), sum(of.values())
        weight = one.models[0].tree.at(most).weight
        if whole:
            told.append(
                f"in `{one.scenario.name}` {most}, with {percent_text(weight, 1)} of the weight, makes "
                f"{percent_text(of[most] / whole)} of the risk"
            )
    return f"**What drives the risk?** On average over the models, {'; '.join(told)}." if told else ""


def _robustness(found: Findings) -> list[str]:
    lines = []
    for column in columns(found):
        agreed = {one.scenario.name: agreement(one.pairs, column.danger) for one in found.ranked}
        told = ", ".join(f"`{name}` {each.same} of {each.n}" for name, each in agreed.items())
        leader = min(column.ranks, key=column.ranks.__getitem__)
        places = ", ".join(str(risk_ranks(one)[leader]) for one in found.ranked)
        lines.append(
            f"**Does {column.name} tell of the risk?** Pairs decided by risk that it puts into the same order: {told}."
            f" The most robust by it, {leader}, has by risk the {'rank' if len(agreed) == 1 else 'ranks'} {places}."
        )
    return lines


def _hidden(found: Findings) -> str:
    told = ", ".join(
        f"{model} ({loss_text(seen, SHARE)} to {loss_text(truth, SHARE)})"
        for model, (seen, _, truth) in hidden(found).items()
    )
    if not told:
        return ""
    return (
        "**Do attacks with gradients tell the truth?** From the best attack on their own cross-entropy to all arms at "
        f"the same size, the share wrong rises by {percent_text(GAP)} of the samples or more for "
        f"{counted(len(hidden(found)), 'model')}: {told}."
    )


def _undecided(found: Findings) -> str:
    told = ", ".join(
        f"{sum(pair.undecided for pair in one.pairs)} of {len(one.pairs)} in `{one.scenario.name}`"
        for one in found.ranked
    )
    return f"**Is the ranking complete?** Pairs that these samples do not decide: {told}."


def _tau(first: ScenarioResult, second: ScenarioResult) -> str:
    rank = risk_correlation(first, second)
    return "" if rank is None else f" (tau {rank.tau:.2f})"
