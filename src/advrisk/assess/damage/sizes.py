"""Which sizes are shown beside damage, and notes on those that no attack had."""

from collections.abc import Iterable, Mapping, Sequence

from advrisk.core.numbers import size_text
from advrisk.ledger import Ledger
from advrisk.risk.evasion import Evasion, ThresholdEvasion
from advrisk.risk.queries import TriedAttack, was_tried

_FEW_SIZES = 4  # of a study, all of which are shown
_ATTACKS = """
    SELECT DISTINCT eps, keep FROM arms
    WHERE kind = 'attack' AND norm = $norm AND list_contains($arms, arm) ORDER BY ALL
"""


def on_untried(
    beyond: Sequence[float],
    known: Sequence[float],
    tried: Sequence[float],
    attacks: Sequence[TriedAttack],
    written: Mapping[float, str],
) -> tuple[str, ...]:
    """Notes on sizes that no attack had for its eps; of those beyond all of them nothing is known."""
    names = {eps: size_text(eps, written) for eps in (*beyond, *known, *tried)}
    between = [names[eps] for eps in known if not was_tried(eps, attacks)]
    notes = []
    if beyond:
        notes.append(
            f"Left out: {', '.join(names[eps] for eps in beyond)}. No attack was allowed so large a size (the largest "
            f"eps is {names[tried[-1]]}), so what holds there is unknown."
        )
    if between:
        notes.append(
            f"No attack had an eps of {', '.join(between)}: robust accuracy there rests on what attacks at other sizes "
            "found on the way back, and may be far too high."
        )
    return tuple(notes)


def on_threshold(
    evasion: Evasion | None, attacks: Sequence[TriedAttack], tried: Sequence[float], written: Mapping[float, str]
) -> tuple[str, ...]:
    """A note on a size up to which everything goes undetected, and which no attack had for its eps."""
    if not (isinstance(evasion, ThresholdEvasion) and tried) or was_tried(evasion.tau, attacks):
        return ()
    shown, largest = size_text(evasion.tau, written), size_text(tried[-1], written)
    if evasion.tau > tried[-1]:
        return (
            f"No attack was allowed a size of {shown} (the largest eps is {largest}): what goes undetected up to there "
            "was not tried, and damage may be far too low.",
        )
    return (
        f"No attack had an eps of {shown}: damage within it rests on what attacks at other sizes found on the way "
        "back, and may be far too low.",
    )


def on_unmeasured(left_out: Sequence[float], random: Iterable[str], written: Mapping[float, str]) -> tuple[str, ...]:
    """A note on sizes at which queries to models that answer at random were not measured."""
    if not left_out:
        return ()
    names = ", ".join(size_text(eps, written) for eps in left_out)
    return (
        f"Left out: {names}. No attack had that eps, and how often a query to {', '.join(random)} errs is known only "
        "at the sizes of attacks. Add attacks with that eps, or assess the other models alone (`--model`).",
    )


def usual_thresholds(sizes: Sequence[float]) -> Sequence[float]:
    """All of a few sizes, else the smallest, a middle one and the largest."""
    return sizes if len(sizes) <= _FEW_SIZES else [sizes[0], sizes[len(sizes) // 2], sizes[-1]]


def tried_attacks(ledger: Ledger, norm: str, arms: Sequence[str]) -> tuple[TriedAttack, ...]:
    """The eps and `keep` of the named attacks in a norm."""
    rows = ledger.query(_ATTACKS, {"norm": norm, "arms": list(arms)}).to_pylist()
    return tuple((row["eps"], row["keep"]) for row in rows)


def untried(size: float, attacks: Iterable[TriedAttack], shown: str) -> str:
    """Why a size was not tried by these attacks; empty where it was. `shown` is the size as the user writes it."""
    if was_tried(size, attacks):
        return ""
    return f"no attack had an eps of {shown}, and none looked for the smallest change: little was tried there"
