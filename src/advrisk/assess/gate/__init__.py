"""Requirements checked against estimates: pass, fail or undecided, decided by the interval; and what would decide."""

from advrisk.assess.gate.estimates import GateEstimate, counted_rows, pair_estimate, share_estimate
from advrisk.assess.gate.records import GateResult, RequirementResult, Verdict
from advrisk.assess.gate.verdict import check_requirement, decide

__all__ = [
    "GateEstimate",
    "GateResult",
    "RequirementResult",
    "Verdict",
    "check_requirement",
    "counted_rows",
    "decide",
    "pair_estimate",
    "share_estimate",
]
