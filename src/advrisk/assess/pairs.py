"""What tells two models apart, and what would: the same for every question that compares models."""

from collections.abc import Iterable, Iterator

from advrisk.core.estimate import NamedEstimate
from advrisk.core.names import counted
from advrisk.risk.decision import Pair


def pair_quantities(name: str, what: str, pairs: Iterable[Pair], *, where: str = "") -> Iterator[NamedEstimate]:
    """How much more of it the higher model has than the lower one, and whether that is decided."""
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
    """`about 120 more samples would probably decide`, where the data set may have them."""
    if left is None or n <= left:
        return f"about {n:,} more samples would probably decide"
    if left == 0:
        return "these samples do not decide, and the data set has no more"
    return f"the data set has {counted(left, 'more sample')}, probably too few to decide"
