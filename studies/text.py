"""Numbers and tables as plain text."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

import numpy as np

from advrisk.core.estimate import Estimate

_WIDTH = 118
NOTHING = "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as they need be; the first to the left, the others to the right."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    lines = []
    for row in (head, *rows):
        first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        lines.append("  " + "   ".join([f"{first.strip():<{widths[0]}}", *others]).rstrip())
    return lines


def wrapped(sentences: Iterable[str]) -> list[str]:
    """Each sentence on lines of its own."""
    return [
        line
        for sentence in sentences
        for line in wrap(sentence, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    ]


def p_text(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "< 1e-4"


def size_text(estimate: Estimate) -> str:
    return band_text(estimate.value, estimate.low, estimate.high)


def band_text(value: float, low: float, high: float) -> str:
    return f"{value:.3g} [{low:.3g}, {high:.3g}]" if np.isfinite(value) else NOTHING


def number_text(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"
