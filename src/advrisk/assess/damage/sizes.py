"""The sizes that are shown with damage, and notes on sizes that no attack had."""

from collections.abc import Iterable, Mapping, Sequence

from advrisk.core.numbers import size_text
from advrisk.ledger import Ledger
from advrisk.risk.evasion import Evasion, ThresholdEvasion
from advrisk.risk.queries import TriedAttack, was_tried

_FEW_SIZES = 4  # a study with at most so many shows all
_ATTACKS = """
    SELECT DISTINCT eps, keep FROM arms
    WHERE kind = 'attack' AND norm = $norm AND list_contains($arms, arm) ORDER BY ALL
"""


def on_untried(
    beyond: Sequence[float],
    thresholds: Sequence[float],
    tried: Sequence[float],
    attacks: Sequence[TriedAttack],
    written: Mapping[float, str],
) -> tuple[str, ...]:
    """Notes on sizes that no attack had as eps; sizes above every eps are left out."""
    names = {eps: size_text(eps, written) for eps in (*beyond, *thresholds, *tried)}
    between = [names[eps] for eps in thresholds if not was_tried(eps, attacks)]
    notes = []
    if beyond:
        notes.append(
            f"Left out: {', '.join(names[eps] for eps in beyond)}. No attack had so large an eps (the largest is "
            f"{names[tried[-1]]}), so robust accuracy there is unknown."
        )
    if between:
        notes.append(
            f"No attack had an eps of {', '.join(between)}: robust accuracy there comes from successes at other sizes, "
            "walked back, and may be far too high."
        )
    return tuple(notes)


def on_threshold(
    evasion: Evasion | None, attacks: Sequence[TriedAttack], tried: Sequence[float], written: Mapping[float, str]
) -> tuple[str, ...]:
    """A note on the size up to which everything goes undetected, if no attack had it as eps."""
    if not (isinstance(evasion, ThresholdEvasion) and tried) or was_tried(evasion.tau, attacks):
        return ()
    shown, largest = size_text(evasion.tau, written), size_text(tried[-1], written)
    if evasion.tau > tried[-1]:
        return (
            f"No attack had an eps of {shown} (the largest is {largest}): sizes up to {shown} were not tried, and "
            "damage may be far too low.",
        )
    return (
        f"No attack had an eps of {shown}: damage within it comes from successes at other sizes, walked back, and may "
        "be far too low.",
    )


def on_unmeasured(left_out: Sequence[float], random: Iterable[str], written: Mapping[float, str]) -> tuple[str, ...]:
    """A note on sizes at which no attack measured queries to models that answer at random."""
    if not left_out:
        return ()
    names = ", ".join(size_text(eps, written) for eps in left_out)
    return (
        f"Left out: {names}. No attack had that eps; error rates of queries to {', '.join(random)} are measured only "
        "at the sizes of attacks. Add attacks with that eps, or assess the other models alone (`--model`).",
    )


def usual_thresholds(sizes: Sequence[float]) -> Sequence[float]:
    """All sizes if they are few, else the smallest, a middle one and the largest."""
    return sizes if len(sizes) <= _FEW_SIZES else [sizes[0], sizes[len(sizes) // 2], sizes[-1]]


def tried_attacks(ledger: Ledger, norm: str, arms: Sequence[str]) -> tuple[TriedAttack, ...]:
    """The eps and `keep` of the named attacks in a norm."""
    rows = ledger.query(_ATTACKS, {"norm": norm, "arms": list(arms)}).to_pylist()
    return tuple((row["eps"], row["keep"]) for row in rows)


def untried(size: float, attacks: Iterable[TriedAttack], shown: str) -> str:
    """Why a size was not tried by these attacks; empty where it was. `shown` is the size as the user writes it."""
    if was_tried(size, attacks):
        return ""
    return f"no attack had an eps of {shown}, and none minimised the distance: little was tried there"
