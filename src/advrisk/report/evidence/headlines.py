"""The number of a topic that leads: the worst of the least bad model, with its interval, then the range over others.

A range over models is always said as such: it is no interval.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from advrisk.core.names import counted, cut_words, one_line
from advrisk.core.numbers import size_text
from advrisk.core.values import number_text
from advrisk.report.evidence.numbers import SHARE, SIZE

_End = Literal["high", "low"]
HIGH: _End = "high"
LOW: _End = "low"
_WORD = 60  # characters of a name
_VERDICTS = {"fail": "fails", "undecided": "is undecided", "pass": "passes"}  # the worst first

# Which end of a quantity is bad. Of a topic, the first of these that the run has numbers of leads.
BAD: Mapping[str, _End] = {
    "clean_accuracy": LOW,
    "robust_accuracy": LOW,
    "broken": HIGH,
    "damage": HIGH,
    "corruption_risk": HIGH,
    "risk": HIGH,
    "stratum_risk": HIGH,
    "auroc": LOW,
    "survival": LOW,
    "calibration_wrong": HIGH,
    "calibration_broken_by_worst": HIGH,
    "unnoticed_by_people": HIGH,
}
_WITH_NOTE = ("calibration_wrong", "calibration_broken_by_worst")  # on which terms

_Number = Mapping[str, Any]


def headline(topic: str, numbers: Sequence[_Number], ship: str) -> str:
    """What a clause is told of a topic, in a line."""
    if not numbers:
        return ""
    if topic == "gate":
        return _of_gate(numbers)
    if topic == "comparison":
        return _of_comparison(numbers, ship)
    for quantity in BAD:
        if some := [one for one in numbers if one["quantity"] == quantity]:
            return _of_models([one for one in some if one["loss"] == some[0]["loss"]], ship)
    return _plain(numbers, ship)


def value_text(number: _Number) -> str:
    """The value, as people write it."""
    estimate = number["estimate"]
    if estimate is None:
        exact = number["exact"]
        if number["unit"] == SIZE and isinstance(exact, float):
            return size_text(exact)
        if isinstance(exact, str):
            return exact
        return f"{exact:,}" if isinstance(exact, int) else number_text(exact, "magnitude")
    return _one(estimate["value"], number["unit"], sign=" %")


def interval_text(number: _Number) -> str:
    """`[4.9, 9.6]`; nothing where a number is exact. None, for JSON knows no infinity, is one."""
    estimate = number["estimate"]
    if estimate is None:
        return ""
    low = "-infinite" if estimate["low"] is None else _one(estimate["low"], number["unit"])
    high = "infinite" if estimate["high"] is None else _one(estimate["high"], number["unit"])
    return f"[{low}, {high}]"


def _of_models(some: Sequence[_Number], ship: str) -> str:
    """`b, the least bad model: robust accuracy at linf 0.3: 38.2 % [34.0, 42.6]; over the 3 other models: … to …`."""
    own = [one for one in some if one["model"] == ship]
    worst = _worst(own or some, BAD[some[0]["quantity"]])
    n = len({one["model"] for one in some})
    role = ", the least bad model" if own else f", the worst of {n} models" if n > 1 else ""
    note = f" ({worst['note']})" if worst["quantity"] in _WITH_NOTE and worst["note"] else ""
    told = f"{_name(worst['model'])}{role}: {_name(worst['what'])}: {_with_interval(worst)}{note}"
    return f"{told}{_over(some, worst)}"


def _of_comparison(numbers: Sequence[_Number], ship: str) -> str:
    """How far the nearest other model is from the least bad one; else the pair that differs most."""
    pairs = [one for one in numbers if one["than"]]
    if own := [one for one in pairs if one["than"] == ship]:
        nearest = _worst([one for one in own if one["what"] == own[0]["what"]], LOW)
        return f"{_of_pair(nearest)}{_over(own, nearest)}"
    if not pairs:
        return _plain(numbers, ship)
    n = sum(one["note"] == "decided" for one in pairs)
    return f"{n} of {counted(len(pairs), 'pair')} of models decided; {_of_pair(_worst(pairs, HIGH))}"


def _of_pair(pair: _Number) -> str:
    return f"{_name(pair['model'])}: {_name(pair['what'])}: {_with_interval(pair)} ({pair['note']})"


def _of_gate(numbers: Sequence[_Number]) -> str:
    """How many requirements fail, and the first of the worst."""
    verdicts = [str(one["exact"]) for one in numbers]
    worst = next(name for name in (*_VERDICTS, verdicts[0]) if name in verdicts)
    first = numbers[verdicts.index(worst)]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in _VERDICTS if name in verdicts)
    return f"of {counted(len(numbers), 'requirement')} {counts}; {_name(first['what'])} {_VERDICTS.get(worst, worst)}"


def _plain(numbers: Sequence[_Number], ship: str) -> str:
    """A topic of which no end is bad: the first number of the least bad model, else over all models."""
    first = next((one for one in numbers if ship and one["model"] == ship), numbers[0])
    model = f"{_name(first['model'])}: " if first["model"] else ""
    return f"{model}{_name(first['what'])}: {_with_interval(first)}{_over(numbers, first)}"


def _over(numbers: Sequence[_Number], told: _Number) -> str:
    """The range of the same number over the other models, by value."""
    alike = (one for one in numbers if one["what"] == told["what"])
    others = [one for one in alike if one is not told and not isinstance(_place(one), str)]
    if not others:
        return ""
    ends = dict.fromkeys(value_text(end(others, key=_place)) for end in (min, max))
    models = "the other model" if len(others) == 1 else f"the {len(others)} other models"
    return f"; over {models}: {' to '.join(ends)}"


def _worst(some: Sequence[_Number], bad: _End) -> _Number:
    """The highest or lowest value; of equal ones the last, which is that of the largest size."""
    return max(reversed(some), key=lambda one: float(_place(one)) * (1 if bad == HIGH else -1))


def _place(number: _Number) -> float | str:
    estimate = number["estimate"]
    value = number["exact"] if estimate is None else estimate["value"]
    return math.inf if value is None else value


def _with_interval(number: _Number) -> str:
    return f"{value_text(number)} {interval_text(number)}".rstrip()


def _name(text: str) -> str:
    return cut_words(one_line(text), _WORD)


def _one(value: float | None, unit: str, *, sign: str = "") -> str:
    if value is None:
        return "infinite"
    return f"{100 * value:.1f}{sign}" if unit == SHARE else number_text(value, "magnitude")
