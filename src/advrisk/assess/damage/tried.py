"""Which attacks were tried in a norm, and why a size was not."""

from collections.abc import Iterable, Sequence

from advrisk.ledger import Ledger
from advrisk.risk.tried import TriedAttack, was_tried

_ATTACKS = """
    SELECT DISTINCT eps, keep FROM arms
    WHERE kind = 'attack' AND norm = $norm AND list_contains($arms, arm) ORDER BY ALL
"""


def tried_attacks(ledger: Ledger, norm: str, arms: Sequence[str]) -> tuple[TriedAttack, ...]:
    """The eps and `keep` of the named attacks in a norm."""
    rows = ledger.query(_ATTACKS, {"norm": norm, "arms": list(arms)}).to_pylist()
    return tuple((row["eps"], row["keep"]) for row in rows)


def untried(size: float, attacks: Iterable[TriedAttack], shown: str) -> str:
    """Why a size was not tried by these attacks; empty where it was. `shown` is the size as the user writes it."""
    if was_tried(size, attacks):
        return ""
    return f"no attack had an eps of {shown}, and none looked for the smallest change: little was tried there"
