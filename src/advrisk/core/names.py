"""Words for people: the nearest known name, and nouns that agree with their number."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A clause that offers the nearest known name, or lists what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "there is none yet"


def counted(n: int, noun: str) -> str:
    """`1 sample`, `3 samples`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
