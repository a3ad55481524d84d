"""Requirements held against estimates: pass, fail or undecided, decided by the interval; and what would settle it."""

from advrisk.assess.gate.estimates import GateEstimate, counted_rows, pair_estimate, share_estimate
from advrisk.assess.gate.records import GateResult, Held, Verdict
from advrisk.assess.gate.verdict import decide, held

__all__ = [
    "GateEstimate",
    "GateResult",
    "Held",
    "Verdict",
    "counted_rows",
    "decide",
    "held",
    "pair_estimate",
    "share_estimate",
]
