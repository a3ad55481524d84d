"""How a value is written, by the kind of its column: the one place where a number becomes text."""

import math
from collections.abc import Callable, Mapping

from advrisk.core.estimate import Estimate
from advrisk.core.numbers import percent_text, size_text
from advrisk.core.sections import Column, Kind, Value

NOTHING = "–"


def value_text(value: Value, column: Column) -> str:
    """A value on one line: `33.3 % [4.3, 77.7]`."""
    return " ".join(value_lines(value, column))


def value_lines(value: Value, column: Column) -> tuple[str, ...]:
    """A value, and its interval if it is an estimate."""
    if value is None:
        return (NOTHING,)
    if isinstance(value, Estimate):
        low, high = (_bare(limit, column.kind) for limit in (value.low, value.high))
        return number_text(value.value, column.kind), f"[{low}, {high}]"
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    return (number_text(value, column.kind),)


def number_text(number: float, kind: Kind) -> str:
    """A number of a kind; what is not finite is named."""
    if math.isnan(number):
        return NOTHING
    if math.isinf(number):
        return "unlimited" if number > 0 else "unknown"
    return _FORMATS[kind](number)


def _bare(limit: float, kind: Kind) -> str:
    """An end of an interval, which needs no unit; from too few samples, nothing may be known of it."""
    return number_text(limit, kind).removesuffix(" %") if math.isfinite(limit) else "unknown"


def _to_three(number: float) -> str:
    """Three digits, without an exponent where people read none."""
    if number and not 1e-4 <= abs(number) < 1e6:
        return f"{number:.3g}"
    digits = max(0, 2 - math.floor(math.log10(abs(number)))) if number else 0
    return f"{number:,.{digits}f}"


def _p_value(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


_FORMATS: Mapping[Kind, Callable[[float], str]] = {
    "text": "{:g}".format,
    "share": lambda share: percent_text(share, 1),
    "number": "{:.3f}".format,
    "distance": size_text,
    "count": "{:,.0f}".format,
    "seconds": _to_three,
    "p-value": _p_value,
    "flag": lambda flag: "yes" if flag else "no",
}
