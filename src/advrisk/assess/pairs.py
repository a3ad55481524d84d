"""Differences of two models and what would decide them, shared by all questions that compare models."""

from collections.abc import Iterable, Iterator

from advrisk.core.estimate import NamedEstimate
from advrisk.core.names import counted
from advrisk.risk.decision import Pair


def pair_quantities(name: str, what: str, pairs: Iterable[Pair], *, where: str = "") -> Iterator[NamedEstimate]:
    """The difference of each pair, and whether it is decided."""
    for pair in pairs:
        yield NamedEstimate(
            name,
            pair.higher,
            pair.difference,
            of=f"{where}{pair.lower}",
            text=f"{what}: how much more than {pair.lower}",
            note="undecided" if pair.undecided else "decided",
            than=pair.lower,
        )


def samples_that_decide(n: int, left: int | None = None) -> str:
    """`about 120 more samples would probably decide`, or that the data set has too few."""
    if left is None or n <= left:
        return f"about {n:,} more samples would probably decide"
    if left == 0:
        return "these samples do not decide, and the data set has no more"
    return f"the data set has {counted(left, 'more sample')}, probably too few to decide"
