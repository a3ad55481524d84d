"""Requirements held against estimates: pass, fail or undecided, decided by the interval; and what would settle it."""

from advrisk.assess.gate.measured import Measured, counted_rows, measured_pair, measured_share
from advrisk.assess.gate.records import GateResult, Held, Verdict
from advrisk.assess.gate.verdict import decide, held

__all__ = [
    "GateResult",
    "Held",
    "Measured",
    "Verdict",
    "counted_rows",
    "decide",
    "held",
    "measured_pair",
    "measured_share",
]
