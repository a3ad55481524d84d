"""What tells two models apart, as a number for machines: the same for every question that compares models."""

from collections.abc import Iterable, Iterator

from advrisk.core.estimate import NamedEstimate
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
