"""Numbers that contradict relative damage, in words: which two disagree, and what would settle it."""

from advrisk.core.numbers import percent_text, size_text
from advrisk.risk.conflicts import Conflict

MEASURE = "add an attack that measures distances (`preset: minimal-distance`)"


def conflict_text(found: Conflict) -> str:
    """Which numbers disagree."""
    if found.kind == "ties":
        return _on_ties(found)
    if found.kind == "opposed":
        advice = MEASURE if found.stated.fixed_eps else "say which sizes matter (`--evasion SIZE`)"
        lower, higher = _shown(found)
        return f"{_favours(found)}, {_size(found)} favours {found.higher} ({higher} against {lower}); {advice}"
    if found.kind == "unmeasured":
        return (
            f"{_favours(found)}, but no robust accuracy in this norm backs it; add an attack in this norm that "
            "measures distances (`preset: minimal-distance`)"
        )
    lower, higher = _shown(found)
    return (
        f"{_favours(found)}, but {_size(found)} does not tell them apart ({lower} against {higher}), and attacks at a "
        f"fixed eps do not measure distances; {MEASURE}"
    )


def _on_ties(found: Conflict) -> str:
    below, above = found.tied
    return (
        f"the order of {found.lower} and {found.higher} depends on how equal distances are counted: relative damage "
        f"{below.greater:.3f} and {above.greater:.3f} if an equal distance is not greater, "
        f"{below.half:.3f} and {above.half:.3f} if it counts half, "
        f"{below.not_less:.3f} and {above.not_less:.3f} if it is greater"
    )


def _favours(found: Conflict) -> str:
    below, above = found.tied
    return f"relative damage favours {found.lower} ({below.greater:.3f} against {above.greater:.3f})"


def _size(found: Conflict) -> str:
    """The number that was compared: `robust accuracy at 8/255`."""
    assert found.eps is not None
    share = "attack success rate" if found.stated.targeted else "robust accuracy"
    size = size_text(found.eps, found.stated.written)
    if found.eps in found.stated.sizes:
        return f"{share} at {size}"
    meaning = "half of the largest eps" if found.stated.fixed_eps else "a size within the measured distances"
    return f"{share} at {size}, {meaning},"


def _shown(found: Conflict) -> tuple[str, str]:
    assert found.shares is not None
    return percent_text(found.shares[0], 1), percent_text(found.shares[1], 1)
