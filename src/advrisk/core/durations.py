"""Durations as people write them: `90m`, `2h`, `1h30m`, `45s`."""

import math
import re
from datetime import timedelta

_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_NUMBER = r"\d+(?:\.\d+)?"
_DURATION = re.compile("".join(rf"(?:(?P<{unit}>{_NUMBER})\s*{unit})?\s*" for unit in _UNITS))
_WANTED = "a duration such as 90m, 2h, 1h30m or 45s is needed"


def parse_duration(value: object) -> float:
    """Read a duration in seconds; anything else is a ValueError.

    A number without a unit is refused: it may mean hours, minutes or seconds.
    """
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())) and any(match.groups()):
        seconds = sum(_UNITS[unit] * float(number) for unit, number in match.groupdict().items() if number)
    else:
        raise ValueError(f"{_WANTED}, found {value!r}{_hint(value)}")
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{_WANTED}, found {value!r}")
    return seconds


def duration_text(seconds: float) -> str:
    """`1h30m`: seconds in the form that `parse_duration` reads."""
    if seconds < 60:
        return f"{seconds:g}s"
    whole = round(seconds)
    parts = [(whole // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s")]
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def rounded_text(seconds: float) -> str:
    """3725 as 1 h 02 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"


def _hint(value: object) -> str:
    number = str(value).strip()
    return f"; write {number}m for minutes" if re.fullmatch(_NUMBER, number) else ""
