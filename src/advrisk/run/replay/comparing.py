"""A recorded row beside its replay: the same bit by bit, the same but for rounding, or another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from advrisk.ledger.tables import TABLES
from advrisk.run.identity.comparing import FINE

Likeness = Literal["equal", "rounded", "other"]

# What a replay need not give again: names of runs, seconds of a clock, and words of messages.
_LEFT_OUT = ("run", "first_s", "spent_s", "message")
_LATER = ("near_l0", "near_l1", "near_l2", "near_linf", "draws", "n_confirm")  # null in rows of earlier versions
_COLUMNS = [field for field in TABLES["outcomes"] if field.name not in _LEFT_OUT]
_CLOSE = 1e-3  # relative, of distances, sizes and confidences
_TINY = 1e-6


@dataclass(frozen=True)
class Difference:
    """A row that its replay does not give."""

    model: str
    arm: str
    sample: str
    repeat: int
    recorded: str
    replayed: str
    certain: bool  # of a clean row: no path of an attack explains it
    outcome_differs: bool
    columns: tuple[str, ...]

    def __str__(self) -> str:
        which = f" (repeat {self.repeat})" if self.repeat else ""
        return (
            f"sample {self.sample}, {self.arm} against {self.model}{which}: recorded {self.recorded}, replayed "
            f"{self.replayed}; other values: {', '.join(self.columns)}"
        )


def likeness(row: Mapping[str, Any], again: Mapping[str, Any]) -> tuple[Likeness, tuple[str, ...]]:
    """How alike a row and its replay are, and the columns that rounding does not explain."""
    equal, other = True, []
    for field in _COLUMNS:
        one, two = row[field.name], again[field.name]
        if one == two or (one is None and field.name in _LATER):
            continue
        equal = False
        if not (pa.types.is_floating(field.type) and _close(one, two)):
            other.append(field.name)
    if row.get("logits") is not None and row["logits"] != again.get("logits"):
        equal = False
        if not _close_logits(row, again):
            other.append("logits")
    return ("equal" if equal else "other" if other else "rounded"), tuple(other)


def difference(row: Mapping[str, Any], again: Mapping[str, Any], columns: Sequence[str]) -> Difference:
    """What a reader needs to know of a row that is not given again."""
    return Difference(
        model=row["model"],
        arm=row["arm"],
        sample=row["sample"],
        repeat=row["repeat"] or 0,
        recorded=_words(row),
        replayed=_words(again),
        certain=row["kind"] == "clean",
        outcome_differs=row["outcome"] != again["outcome"],
        columns=tuple(columns),
    )


def _words(row: Mapping[str, Any]) -> str:
    """The outcome, and the class or the distance that stands beside it."""
    said = "" if row["prediction"] is None else f", class {row['prediction']}"
    distance = row.get(f"d_{row['norm']}") if row["norm"] else None
    return f"{row['outcome']}{said}" + ("" if distance is None else f", {row['norm']} {distance:.6g}")


def _close(one: float | None, two: float | None) -> bool:
    return one is not None and two is not None and bool(np.isclose(one, two, rtol=_CLOSE, atol=_TINY))


def _close_logits(row: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    one, two = (np.array(of["logits"] or (), float) for of in (row, again))
    if len(one) != len(two) or row["classes"] != again.get("classes"):
        return False
    return bool(np.abs(one - two).max(initial=0.0) <= FINE * max(np.ptp(one), _TINY))
