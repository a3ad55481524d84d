"""The verdict on one requirement: the interval decides, not the point.

`x <= c` passes if the whole interval is at most c, and fails if all of it is above. Intervals here have two sides, each
of which is missed with a probability of at most (1 - level) / 2; so a requirement that is not met passes at most that
often. A gate passes only if all of its requirements do, so the same holds for the gate without any correction: to pass
wrongly, the worst of them must. Wrong fails do add up.
"""

from advrisk.assess.gate.estimates import GateEstimate
from advrisk.assess.gate.records import Origin, RequirementResult, Verdict
from advrisk.core.estimate import Estimate
from advrisk.core.names import counted
from advrisk.risk.decision import samples_needed
from advrisk.study import Requirement

_MOST = 10**9  # more samples than any run has


def decide(estimate: Estimate, op: str, limit: float) -> Verdict:
    """Whether the whole interval is on one side of the limit."""
    if op == "==":
        exact = estimate.low == estimate.high == limit
        return "pass" if exact else "fail" if not estimate.low <= limit <= estimate.high else "undecided"
    if op in (">", ">="):
        below = decide(estimate, "<" if op == ">=" else "<=", limit)
        return {"pass": "fail", "fail": "pass", "undecided": "undecided"}[below]  # type: ignore[return-value]
    strict = op == "<"
    if estimate.high < limit or (estimate.high == limit and not strict):
        return "pass"
    return "fail" if estimate.low > limit or (estimate.low == limit and strict) else "undecided"


def check_requirement(
    requirement: Requirement,
    measured: GateEstimate,
    *,
    origin: Origin,
    cautions: tuple[str, ...] = (),
    strict: str = "",
) -> RequirementResult:
    """Check a requirement against an estimate.

    `cautions` are notes on a pass. `strict` is the reason why a pass does not count, or empty.
    """
    op, limit = (requirement.op, requirement.limit) if requirement.op else ("==", 1.0)
    text = str(requirement)

    def undecided(reason: str, settle: str = "", notes: tuple[str, ...] = measured.notes) -> RequirementResult:
        return RequirementResult(text, "undecided", origin, measured.estimate, limit, reason, settle, None, notes)

    if measured.estimate is None or measured.pending:
        settle = "finish the run: the same command resumes it" if measured.pending else ""
        return undecided(measured.pending or measured.why_not, settle)
    if measured.disputed:
        return undecided(measured.disputed)
    verdict = decide(measured.estimate, op, limit)
    if verdict == "pass" and measured.n_left_out:
        return undecided(measured.on_unknown, f"a verdict on them ({AGAIN})")
    if verdict == "pass" and measured.untried:
        return undecided(measured.untried, measured.on_untried or UNTRIED)
    if verdict == "pass" and measured.caveats and not requirement.with_caveats:
        reason, *others = measured.caveats
        return undecided(reason.removesuffix("."), _ALLOW, (*others, *measured.notes))
    if verdict == "pass" and strict:
        return undecided(strict, notes=(*cautions, *measured.caveats, *measured.notes))
    reason = _in_words(measured.estimate, verdict, op, requirement)
    settle, more = settling(measured, op, limit) if verdict == "undecided" else ("", None)
    beside = (*measured.caveats, *(text for text in (measured.on_unknown, measured.untried) if text), *measured.notes)
    notes = (*cautions, *beside) if verdict == "pass" else beside
    return RequirementResult(text, verdict, origin, measured.estimate, limit, reason, settle, more, notes)


AGAIN = "`advrisk run … --retry-errors`, or the same command to resume"
_ALLOW = "do what the caveat asks for, or let it pass with `with caveats` behind the requirement"
UNTRIED = "an attack with that eps, or one that keeps the smallest success (`keep: smallest`)"


def _in_words(estimate: Estimate, verdict: Verdict, op: str, requirement: Requirement) -> str:
    if requirement.op is None:
        return "it was granted" if verdict == "pass" else "it was not granted"
    if estimate.method == "count":
        return f"{estimate.value:,.0f} were counted"
    what = "interval of the difference" if requirement.right else "interval"
    limit = (
        requirement.limit_text if requirement.right is None or requirement.limit >= 0 else f"-{requirement.limit_text}"
    )
    if verdict == "undecided":
        return f"{limit} lies within the {what}"
    side = _SIDES[op] if verdict == "pass" else _SIDES[_OTHER[op]]
    return f"the whole {what} is {side} {limit}"


_SIDES = {"<=": "at most", "<": "below", ">=": "at least", ">": "above"}
_OTHER = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}


def settling(measured: GateEstimate, op: str, limit: float) -> tuple[str, int | None]:
    """What would probably decide a requirement, and the number of samples, if samples would."""
    estimate = measured.of_judged
    assert estimate is not None
    if measured.n_unknown and decide(estimate, op, limit) != "undecided":
        return f"a verdict on the samples that have none ({AGAIN})", None
    if measured.obstacle:
        return f"more samples alone may not settle it: {measured.obstacle}", None
    if estimate.value == limit:
        return "the value is the limit itself, so no number of samples is likely to settle it", None
    settles = measured.settles
    if settles is None:
        return "the number of samples that would settle it is unknown", None
    n = measured.n_samples or estimate.n
    more = samples_needed(lambda n_more: settles(n_more, limit), n, most=max(_MOST, n))
    if more is None:
        return (
            f"more samples alone will not settle it: {measured.on_floor or 'the value is too near to the limit'}",
            None,
        )
    return f"about {more:,} more samples would probably settle it", more


def within_data(settle: str, more: int | None, left: int | None) -> str:
    """What would decide, limited by the samples that the data set has left; `left` is None if unknown."""
    if more is None or left is None or more <= left:
        return settle
    if left == 0:
        return "these samples do not settle it, and the data set has no more"
    return f"the data set has {counted(left, 'more sample')}, probably too few to settle it"
