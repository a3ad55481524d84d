"""Whether attacks tried a size: one rule for tables, headlines, gates and comparisons of runs."""

import math
from collections.abc import Iterable, Sequence

from advrisk.ledger import Ledger

Attack = tuple[float | None, str | None]  # its eps and `keep`

_ATTACKS = """
    SELECT DISTINCT eps, keep FROM arms
    WHERE kind = 'attack' AND norm = $norm AND list_contains($arms, arm) ORDER BY ALL
"""


def tried_attacks(ledger: Ledger, norm: str, arms: Sequence[str]) -> tuple[Attack, ...]:
    """The eps and `keep` of the named attacks in a norm."""
    rows = ledger.query(_ATTACKS, {"norm": norm, "arms": list(arms)}).to_pylist()
    return tuple((row["eps"], row["keep"]) for row in rows)


def was_tried(size: float, attacks: Iterable[Attack]) -> bool:
    """Whether an attack had this eps or none, or looked for the smallest change at least so far.

    An attack that may go as far as its eps does so, and says little of sizes in between.
    """
    return size == 0 or any(
        eps is None or math.isclose(eps, size, rel_tol=1e-9) or (keep == "smallest" and eps >= size)
        for eps, keep in attacks
    )


def untried(size: float, attacks: Iterable[Attack], shown: str) -> str:
    """Why a size was not tried by these attacks; empty where it was. `shown` is the size as the user writes it."""
    if was_tried(size, attacks):
        return ""
    return f"no attack had an eps of {shown}, and none looked for the smallest change: little was tried there"
