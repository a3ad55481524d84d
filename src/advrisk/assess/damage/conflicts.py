"""Sentences on numbers that contradict relative damage: which two disagree, and what would decide."""

from advrisk.core.numbers import percent_text, size_text
from advrisk.risk.conflicts import Conflict

MEASURE = "add an attack that measures distances (`preset: minimal-distance`)"


def conflict_text(conflict: Conflict) -> str:
    """Which numbers disagree."""
    if conflict.kind == "ties":
        return _on_ties(conflict)
    if conflict.kind == "opposed":
        advice = MEASURE if conflict.stated.fixed_eps else "say which sizes matter (`--evasion SIZE`)"
        lower, higher = _shown(conflict)
        return f"{_favours(conflict)}, {_size(conflict)} favours {conflict.higher} ({higher} against {lower}); {advice}"
    if conflict.kind == "unmeasured":
        return (
            f"{_favours(conflict)}, but no robust accuracy in this norm backs it; add an attack in this norm that "
            "measures distances (`preset: minimal-distance`)"
        )
    lower, higher = _shown(conflict)
    return (
        f"{_favours(conflict)}, but {_size(conflict)} does not separate them ({lower} against {higher}), and attacks "
        f"at a fixed eps do not measure distances; {MEASURE}"
    )


def _on_ties(conflict: Conflict) -> str:
    below, above = conflict.tied
    return (
        f"the order of {conflict.lower} and {conflict.higher} depends on how equal distances are counted: relative "
        f"damage {below.greater:.3f} and {above.greater:.3f} if an equal distance is not greater, "
        f"{below.half:.3f} and {above.half:.3f} if it counts half, "
        f"{below.not_less:.3f} and {above.not_less:.3f} if it is greater"
    )


def _favours(conflict: Conflict) -> str:
    below, above = conflict.tied
    return f"relative damage favours {conflict.lower} ({below.greater:.3f} against {above.greater:.3f})"


def _size(conflict: Conflict) -> str:
    """The number that was compared: `robust accuracy at 8/255`."""
    assert conflict.eps is not None
    share = "attack success rate" if conflict.stated.targeted else "robust accuracy"
    size = size_text(conflict.eps, conflict.stated.written)
    if conflict.eps in conflict.stated.sizes:
        return f"{share} at {size}"
    meaning = "half of the largest eps" if conflict.stated.fixed_eps else "a size within the measured distances"
    return f"{share} at {size}, {meaning},"


def _shown(conflict: Conflict) -> tuple[str, str]:
    assert conflict.shares is not None
    return percent_text(conflict.shares[0], 1), percent_text(conflict.shares[1], 1)
