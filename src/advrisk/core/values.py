"""How a value is written, by the kind of its column: in tables always, in sentences by the same functions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from advrisk.core.estimate import Estimate
from advrisk.core.numbers import percent_text, size_text
from advrisk.core.sections import Cell, Column, Kind, Value

NOTHING = "–"
_SMALLEST_P = 1e-12  # below it, rounding decides


def value_text(value: Value, column: Column) -> str:
    """A value on one line: `33.3 % [4.3, 77.7], worst of 3`."""
    first, *others = value_lines(value, column)
    return "".join([first, *(f" {line}" if line.startswith("[") else f", {line}" for line in others)])


def value_lines(value: Value, column: Column) -> tuple[str, ...]:
    """A value, its interval if it is an estimate, and what stands below it."""
    if isinstance(value, Cell):
        own = column if value.kind is None else replace(column, kind=value.kind)
        return *value_lines(value.value, own), *value.beside
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


def estimate_text(estimate: Estimate | None, kind: Kind) -> str:
    """An estimate in a sentence: `33.3 % [4.3, 77.7]`."""
    return value_text(estimate, Column("", kind))


def number_text(number: float | None, kind: Kind) -> str:
    """A number of a kind; what is not finite is named."""
    if number is None or math.isnan(number):
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


def _risk(share: float) -> str:
    size = abs(share)
    return percent_text(share, 1 if size >= 0.01 or size == 0 else 2 if size >= 0.001 else 3)


def _amount(amount: float) -> str:
    return f"{amount:,.0f}" if 100 <= abs(amount) < 1e15 else f"{amount:,.3g}"


def _p_value(p: float) -> str:
    """`0.0123`, `3e-07`, `< 1e-12`."""
    if p < _SMALLEST_P:
        return f"< {_SMALLEST_P:.0e}"
    return f"{p:.4f}" if p >= 0.001 else f"{p:.1e}"


_FORMATS: Mapping[Kind, Callable[[float], str]] = {
    "text": "{:g}".format,
    "share": lambda share: percent_text(share, 1),
    "risk": _risk,
    "weight": lambda share: f"{100 * share:.3g} %",
    "number": "{:.3f}".format,
    "magnitude": _to_three,
    "precise": "{:.4g}".format,
    "distance": size_text,
    "count": "{:,.0f}".format,
    "amount": _amount,
    "seconds": _to_three,
    "p-value": _p_value,
    "flag": lambda flag: "yes" if flag else "no",
}
