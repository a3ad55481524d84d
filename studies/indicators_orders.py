"""Orders of models by different risks and robustness numbers, and how far they agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advrisk.risk.decision import Pair
from advrisk.risk.indicators.comparison import ScenarioResult
from studies.orders import ranks


@dataclass(frozen=True)
class Rank:
    """How two orders of the same models agree: Kendall's tau-b (1: the same, -1: reversed), and how often an order by
    chance would agree or disagree as much."""

    tau: float
    p_value: float
    n: int


@dataclass(frozen=True)
class Agreement:
    """Of the pairs of models that samples tell apart by risk, how many another number puts into the same order."""

    same: int
    opposite: tuple[tuple[str, str], ...]  # less risk first
    tied: int

    @property
    def n(self) -> int:
        return self.same + len(self.opposite) + self.tied


def risk_ranks(found: ScenarioResult) -> dict[str, int]:
    """1 for the least risk; equal risks share the better rank."""
    return ranks({one.model: -one.risk.value for one in found.models})


def rank_correlation(first: Mapping[str, float], second: Mapping[str, float]) -> Rank | None:
    """Of two numbers of the same models; None where one of them is the same for all."""
    from scipy.stats import kendalltau

    models = [model for model in first if model in second]
    a, b = ([values[model] for model in models] for values in (first, second))
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    found = kendalltau(a, b)
    return Rank(float(found.statistic), float(found.pvalue), len(models))


def risk_correlation(first: ScenarioResult, second: ScenarioResult) -> Rank | None:
    """Of the risks of the same models."""
    return rank_correlation(*({one.model: one.risk.value for one in each.models} for each in (first, second)))


def agreement(pairs: Sequence[Pair], danger: Mapping[str, float]) -> Agreement:
    """The decided pairs of a scenario or of one branch held against another number, of which more is worse."""
    decided = [pair for pair in pairs if not pair.undecided and {pair.lower, pair.higher} <= set(danger)]
    differences = {(pair.lower, pair.higher): danger[pair.higher] - danger[pair.lower] for pair in decided}
    return Agreement(
        same=sum(each > 0 for each in differences.values()),
        opposite=tuple(pair for pair, each in differences.items() if each < 0),
        tied=sum(each == 0 for each in differences.values()),
    )


def turned(first: ScenarioResult, second: ScenarioResult) -> list[tuple[str, str]]:
    """Pairs that samples decide in both, the other way round in the second: less risk in the first comes first."""
    before, after = (
        {(pair.lower, pair.higher) for pair in found.pairs if not pair.undecided} for found in (first, second)
    )
    return [pair for pair in ((one.lower, one.higher) for one in first.pairs) if pair in before and pair[::-1] in after]
