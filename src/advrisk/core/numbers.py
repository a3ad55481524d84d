"""Numbers as people write them: 8/255 is a number, and a share is told in per cent."""

import math
import re
from collections.abc import Mapping
from types import MappingProxyType

_DENOMINATORS = (*range(3, 101), 127, 128, 255, 256, 1000, 65535)  # of sizes that are no short decimals
_SMALL = 0.3  # 17/255 is written more often than 1/15, and 1/3 more often than 85/255
_WHOLE = 1000  # sizes above it are shown as numbers
_FRACTION = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*")


def parse_number(value: object) -> float:
    """Read a number or a fraction; anything else, and anything not finite, is a ValueError."""
    if isinstance(value, bool):
        raise ValueError(f"a number is needed, found {value!r}")
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            raise ValueError("a finite number is needed, found one past 1e308") from None
        return _finite(number)
    raise ValueError(f"a number or a fraction such as 8/255 is needed, found {value!r}")


def parse_share(value: object) -> float:
    """Read a share: a number from 0 to 1, or per cent as in `90 %`; anything else is a ValueError."""
    share = _share_or_more(value)
    if not 0 <= share <= 1:
        hint = f"; did you mean {share:g} %?" if 1 < share <= 100 else ""
        raise ValueError(f"a share from 0 to 1 or per cent is needed, found {value!r}{hint}")
    return share


def parse_rate(value: object) -> float:
    """Read a share above 0 and below 1, or per cent as in `10 %`; anything else is a ValueError."""
    rate = _share_or_more(value)
    if not 0 < rate < 1:
        bare = "%" not in str(value)
        hint = f"; did you mean {rate:g} % ({rate / 100:g})?" if bare and 1 <= rate < 100 else ""
        raise ValueError(f"a number between 0 and 1, both excluded, or per cent is needed, found {value!r}{hint}")
    return rate


def _share_or_more(value: object) -> float:
    if isinstance(value, str) and value.strip().endswith("%"):
        return parse_number(value.strip().removesuffix("%").strip()) / 100
    return parse_number(value)


def percent_text(share: float, digits: int = 0) -> str:
    """`34 %`: the one form of a share in every sentence, table and page."""
    return f"{100 * share:.{digits}f} %"


def short_text(count: float) -> str:
    """1234567 as 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}"
    return f"{count:.0f}"


def level_text(level: float) -> str:
    """`95 %`, `99.43 %`: how sure something is, in the one form of every sentence; never rounded up to certainty."""
    for digits in range(4, 18):
        if (text := f"{100 * level:.{digits}g}") != "100" or level == 1:
            break
    return f"{text} %"


def size_text(size: float, written: Mapping[float, str] = MappingProxyType({})) -> str:
    """A size as the study writes it, or else as people do: 8/255 stays 8/255, whatever number of digits a float has."""
    if size in written:
        return written[size]
    if float(short := f"{size:.6g}") == size or not 0 < size < _WHOLE:
        return short
    steps = round(2 * 255 * size) / 2  # of 8 bits, also half ones
    if size < _SMALL and steps and math.isclose(steps / 255, size, rel_tol=1e-12):
        return f"{steps:g}/255"
    for below in _DENOMINATORS:
        above = round(size * below)
        if above and math.isclose(above / below, size, rel_tol=1e-12):
            return f"{above}/{below}"
    return short


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(f"a finite number is needed, found {number!r}")
    return number


def _parse_text(text: str) -> float:
    if match := _FRACTION.fullmatch(text):
        above, below = float(match[1]), float(match[2])
        if below == 0:
            raise ValueError(f"{text!r} divides by zero")
        return _finite(above / below)
    try:
        value = float(text)  # YAML reads 1e-3 as text
    except ValueError:
        raise ValueError(f"a number or a fraction such as 8/255 is needed, found {text!r}") from None
    return parse_number(value)
