"""The one shape in which a number leaves the program."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from advrisk.core.errors import RiskError


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval, the interval's level, the sample size and the method."""

    value: float
    low: float
    high: float
    level: float
    n: int
    method: str

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise RiskError(f"an interval must hold its value: {self.low} <= {self.value} <= {self.high} is false")
        if not 0 < self.level < 1:
            raise RiskError(f"level must lie between 0 and 1, found {self.level}")

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON, which knows no infinity: that becomes None."""
        fields = asdict(self)
        return {
            name: None if isinstance(value, float) and math.isinf(value) else value for name, value in fields.items()
        }
