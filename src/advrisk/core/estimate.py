"""The one shape in which a number leaves the program."""

import math
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from advrisk.core.errors import RiskError
from advrisk.core.numbers import percent_text
from advrisk.core.tables import ESTIMATE, Columns, Row, Tabular


@dataclass(frozen=True, slots=True)
class Estimate(Tabular):
    """A value with its interval, the interval's level, the sample size and the method."""

    value: float
    low: float
    high: float
    level: float
    n: int
    method: str

    columns: ClassVar[Columns] = ESTIMATE

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise RiskError(f"an interval must hold its value: {self.low} <= {self.value} <= {self.high} is false")
        if not 0 < self.level < 1:
            raise RiskError(f"level must lie between 0 and 1, found {self.level}")

    def __str__(self) -> str:
        return f"{self.value:.3f} [{limit_text(self.low)}, {limit_text(self.high)}]"

    def in_percent(self) -> str:
        """A share: `33.3 % [4.3, 77.7]`."""
        return f"{percent_text(self.value, 1)} [{100 * self.low:.1f}, {100 * self.high:.1f}]"

    def rows(self) -> list[Row]:
        """One row."""
        return [asdict(self)]


def limit_text(limit: float) -> str:
    """An end of an interval; from too few samples, nothing may be known of it."""
    return f"{limit:.3f}" if math.isfinite(limit) else "unknown"


def estimate_columns(found: Estimate | None, prefix: str = "") -> Row:
    """The fields of an estimate as columns of a row, all None where there is none; `prefix` goes before their names."""
    return {f"{prefix}{name}": getattr(found, name) if found else None for name in ESTIMATE}


NUMBERS: Columns = {"quantity": "text", "model": "text", "of": "text", "eps": "number", **ESTIMATE}


@dataclass(frozen=True)
class NamedEstimate:
    """An estimate and what it is of: for gate, evidence, MLflow, JSON and CSV."""

    quantity: str
    model: str  # empty: the whole run
    estimate: Estimate
    of: str | None = None  # beside the model: a detector, a norm, another model, or a scenario, its loss and a branch
    eps: float | None = None
    # The rest is for evidence, where the traits of the quantity do not say it.
    text: str = ""  # what it is of, in words
    note: str = ""
    unit: Literal["", "share", "number"] = ""
    loss: str = ""  # of a risk: risks under several losses are not alike
    than: str = ""  # of a difference: the model that it is taken from

    @property
    def name(self) -> str:
        """In words and dots: `broken.plain.linf.0.1`."""
        size = None if self.eps is None else f"{self.eps:g}"
        return ".".join(part for part in (self.quantity, self.model, self.of, size) if part)

    def row(self) -> Row:
        """As a row with the columns `NUMBERS`."""
        about = {"quantity": self.quantity, "model": self.model or None, "of": self.of, "eps": self.eps}
        return about | estimate_columns(self.estimate)
