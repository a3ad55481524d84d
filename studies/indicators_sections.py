"""The sections of `studies.indicators` on risks: each takes what is known of a run and gives lines of text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from advrisk.assess.indicators.words import loss_interval, loss_text
from advrisk.core.names import counted
from advrisk.core.numbers import percent_text
from advrisk.risk.indicators.comparison import ScenarioResult
from studies.indicators_findings import Findings
from studies.indicators_orders import Rank, risk_correlation, risk_ranks, turned
from studies.text import NOTHING, p_text, table, wrapped

SHARE = (0.0, 1.0)
SHOWN = 6  # pairs that are named
LEAVES = 8  # contributors that are shown


def models(found: Findings) -> list[str]:
    """How long each was trained, and what it is worth without any perturbation."""
    trained = {row["model"]: row for row in found.run.models()}
    clean = found.wrong["clean"]
    rows = [[model, _seconds(trained[model]["train_s"]), loss_interval(clean[model], SHARE)] for model in found.models]
    n = len(found.ranked[0].samples)
    sentence = f"{found.name}: {counted(len(rows), 'model')}, {counted(n, 'sample')}. Wrong without any perturbation:"
    return [*wrapped([sentence]), *table(["model", "trained in", "clean error"], rows)]


def risks(found: Findings) -> list[str]:
    """Every scenario under the first loss."""
    ranks = [risk_ranks(one) for one in found.ranked]
    head = ["model", *(cell for one in found.ranked for cell in (one.scenario.name, "rank"))]
    rows = [
        [
            model,
            *(cell for one, rank in zip(found.ranked, ranks, strict=True) for cell in _risk_and_rank(one, rank, model)),
        ]
        for model in found.models
    ]
    told = [sentence for one in found.ranked for sentence in decided(one)]
    told += [compared_orders(*pair, by="scenario") for pair in combinations(found.ranked, 2)]
    return [
        f"Risk under the loss `{found.loss}`, with intervals of {found.found.level:.0%}:",
        *table(head, rows),
        "",
        *wrapped(told),
    ]


def decided(one: ScenarioResult) -> list[str]:
    """The ranking of a scenario in words."""
    name, best, worst = one.scenario.name, one.models[0], one.models[-1]
    if len(one.models) == 1:
        return [f"{name}: there is one model only."]
    alike = [pair for pair in one.pairs if pair.undecided and best.model in (pair.lower, pair.higher)]
    others = [pair.higher if pair.lower == best.model else pair.lower for pair in alike]
    undecided = sum(pair.undecided for pair in one.pairs)
    sentences = [
        f"{name}: least is {best.model} ({loss_text(best.risk.value, one.bounds)}), most {worst.model} "
        f"({loss_text(worst.risk.value, one.bounds)}).",
        f"{name}: not told apart from {best.model}: {', '.join(others) or 'none'}. Undecided: {undecided} of "
        f"{len(one.pairs)} pairs.",
    ]
    if alike:
        nearest = alike[0]
        sentences.append(f"{name}: {_more(nearest.more_samples)} {nearest.lower} and {nearest.higher}.")
    return sentences


def compared_orders(first: ScenarioResult, second: ScenarioResult, *, by: str) -> str:
    """How far two orders of the models agree."""
    name, other = (one.scenario.name if by == "scenario" else one.loss for one in (first, second))
    pairs = turned(first, second)
    return (
        f"{name} and {other}: {rank_text(risk_correlation(first, second))}. Decided in both, the other way round: "
        f"{counted(len(pairs), 'pair')}{named_pairs(pairs)}."
    )


def losses(found: Findings) -> list[str]:
    """Each scenario under every loss."""
    lines: list[str] = []
    for name in found.found.scenarios:
        results = [found.found.of(name, loss) for loss in found.found.losses]
        rows = _with_ranks(results)
        told = [compared_orders(results[0], one, by="loss") for one in results[1:]]
        lines += [f"{name}: mean loss, and in brackets its rank:", *table(["model", *found.found.losses], rows)]
        lines += [*wrapped(told), ""]
    return lines[:-1]


def drivers(found: Findings) -> list[str]:
    """What the risk is made of."""
    lines: list[str] = []
    for one in found.ranked:
        leaves = mean_contributions(one)
        whole = sum(leaves.values())
        shown = sorted(leaves, key=lambda path: -leaves[path])[:LEAVES]
        rows = [_driver(one, path, leaves[path], whole) for path in shown]
        head = ["branch", "weight", "least risk given it", "most", "contributes", "of the risk"]
        first = Counter(each.contributors[0].path for each in one.models)
        largest = "; ".join(f"{path} for {n}" for path, n in first.most_common())
        lines += [f"{one.scenario.name}: the largest contributors, on average over the models:", *table(head, rows)]
        lines += [*wrapped([f"The largest contributor is: {largest} of {len(one.models)} models."]), ""]
    return lines[:-1]


def what_ifs(found: Findings) -> list[str]:
    """Other weights."""
    lines: list[str] = []
    for name in dict.fromkeys(question.scenario for question, _ in found.answers):
        asked = [(question, after) for question, after in found.answers if question.scenario == name]
        results = [found.found.of(name), *(after for _, after in asked)]
        head = ["model", "as stated", *(question.words for question, _ in asked)]
        mean = ["(mean of the models)", *(loss_text(_mean_risk(each), each.bounds) for each in results)]
        rows = [*_with_ranks(results), mean]
        told = [_changed(question.words, question.changes, results[0], after) for question, after in asked]
        lines += [f"{name}, what if? Risk, and in brackets its rank:", *table(head, rows), *wrapped(told), ""]
    return lines[:-1]


def rank_text(found: Rank | None) -> str:
    return (
        "one of them is the same for all"
        if found is None
        else f"Kendall's tau {found.tau:.2f} (p {p_text(found.p_value)})"
    )


def named_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """The first of them, that with less risk before the other."""
    shown = ", ".join(f"{lower} < {higher}" for lower, higher in pairs[:SHOWN])
    return f" ({shown}{', …' if len(pairs) > SHOWN else ''})" if pairs else ""


def _changed(words: str, changes: Mapping[str, object], before: ScenarioResult, after: ScenarioResult) -> str:
    weights = ", ".join(f"{path} = {weight}" for path, weight in changes.items())
    pairs = turned(before, after)
    return (
        f"{words} ({weights}): least is {_least(after)}, before {_least(before)}. Decided in both, the other way "
        f"round: {counted(len(pairs), 'pair')}{named_pairs(pairs)}."
    )


def _least(one: ScenarioResult) -> str:
    alike = sum(pair.undecided and one.models[0].model in (pair.lower, pair.higher) for pair in one.pairs)
    return f"{one.models[0].model} ({f'undecided against {alike}' if alike else 'decided'})"


def mean_contributions(one: ScenarioResult) -> dict[str, float]:
    """Leaf -> its contribution, on average over the models."""
    paths = [leaf.path for leaf in one.models[0].contributors]
    return {path: sum(each.tree.at(path).contribution.value for each in one.models) / len(one.models) for path in paths}


def _driver(one: ScenarioResult, path: str, contribution: float, whole: float) -> list[str]:
    given = one.branches[path].estimates
    least, most = (function(given, key=lambda model: given[model].value) for function in (min, max))
    return [
        path,
        percent_text(one.models[0].tree.at(path).weight, 1),
        f"{least} {loss_text(given[least].value, one.bounds)}",
        f"{most} {loss_text(given[most].value, one.bounds)}",
        loss_text(contribution, one.bounds),
        percent_text(contribution / whole) if whole else NOTHING,
    ]


def _mean_risk(one: ScenarioResult) -> float:
    return sum(each.risk.value for each in one.models) / len(one.models)


def _risk_and_rank(one: ScenarioResult, rank: Mapping[str, int], model: str) -> tuple[str, str]:
    return loss_interval(one.of(model).risk, one.bounds), str(rank[model])


def _with_ranks(results: Sequence[ScenarioResult]) -> list[list[str]]:
    """A row for each model, in the order of the first result: its risk in each of them, with its rank."""
    ranks = [risk_ranks(one) for one in results]
    return [
        [
            row.model,
            *(
                f"{loss_text(one.of(row.model).risk.value, one.bounds)} ({rank[row.model]})"
                for one, rank in zip(results, ranks, strict=True)
            ),
        ]
        for row in results[0].models
    ]


def _more(n: int | None) -> str:
    return (
        "no number of samples is seen to decide between"
        if n is None
        else f"about {n:,} samples more would decide between"
    )


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f} s"
