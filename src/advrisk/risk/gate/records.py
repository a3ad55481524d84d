"""What came of requirements, one by one and all together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from advrisk.core.estimate import Estimate
from advrisk.core.tables import ESTIMATE, Columns, Row, Tabular

Verdict = Literal["pass", "fail", "undecided"]
Origin = Literal["study", "given"]


@dataclass(frozen=True)
class Held:
    """One requirement of one model, and what came of it."""

    requirement: str
    verdict: Verdict
    origin: Origin  # the study asks for it, or whoever holds the gate
    estimate: Estimate | None  # of the quantity; of the difference, where two models are compared. None: `reason` says
    limit: float | None  # None: a yes or no
    reason: str  # in words
    settle: str = ""  # what would settle it, where it is undecided
    more_samples: int | None = None  # that would probably; None: none is seen to
    cautions: tuple[str, ...] = ()  # what to know beside the verdict

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        estimate = None if self.estimate is None else self.estimate.as_dict()
        return {**vars(self), "estimate": estimate, "cautions": list(self.cautions)}


@dataclass(frozen=True)
class GateResult(Tabular):
    """All requirements: the gate passes if all of them do, and fails if any fails."""

    columns: ClassVar[Columns] = {
        **dict.fromkeys(("requirement", "verdict", "origin"), "text"),
        **ESTIMATE,
        "limit": "number",
        "reason": "text",
        "settle": "text",
        "more_samples": "count",
    }

    name: str  # of the run
    results: tuple[Held, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Of the whole gate."""
        return whole_verdict([one.verdict for one in self.results])

    @property
    def passed(self) -> bool:
        return self.verdict == "pass"

    @property
    def failed(self) -> bool:
        return self.verdict == "fail"

    @property
    def undecided(self) -> bool:
        return self.verdict == "undecided"

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many requirements pass, fail and are undecided."""
        return verdict_counts([one.verdict for one in self.results])

    def rows(self) -> list[Row]:
        """A row for each requirement."""
        names = ("requirement", "verdict", "origin", "limit", "reason", "settle", "more_samples")
        return [
            {name: getattr(one, name) for name in names} | ({} if one.estimate is None else one.estimate.as_dict())
            for one in self.results
        ]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "counts": dict(self.counts),
            "results": [one.as_dict() for one in self.results],
            "notes": list(self.notes),
        }


def whole_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """`fail` if any fails, else `undecided` if any is, else `pass`."""
    return "fail" if "fail" in verdicts else "undecided" if "undecided" in verdicts else "pass"


def verdict_counts(verdicts: Sequence[Verdict]) -> dict[Verdict, int]:
    return {"pass": verdicts.count("pass"), "fail": verdicts.count("fail"), "undecided": verdicts.count("undecided")}
