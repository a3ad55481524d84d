"""Results of requirements, one by one and all together."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, get_args

from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.core.tables import ESTIMATE, Columns, Row, Tabular

Verdict = Literal["pass", "fail", "undecided"]
Origin = Literal["study", "given"]


@dataclass(frozen=True)
class RequirementResult:
    """The result of one requirement of one model."""

    requirement: str
    verdict: Verdict
    origin: Origin  # from the study, or from the call
    estimate: Estimate | None  # of the quantity, or of the difference of two models; None: see `reason`
    limit: float | None  # None: a yes or no
    reason: str
    settle: str = ""  # what would decide it, if undecided
    more_samples: int | None = None  # that would probably decide it; None: unknown
    cautions: tuple[str, ...] = ()  # caveats on the verdict


class OneVerdict(Protocol):
    """Anything with a verdict."""

    @property
    def verdict(self) -> Verdict: ...


class Judged(Tabular):
    """Several verdicts and their sum: `fail` if any fails, else `undecided` if any is, else `pass`."""

    __slots__ = ()
    results: tuple[OneVerdict, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict on all together."""
        verdicts = [one.verdict for one in self.results]
        return "fail" if "fail" in verdicts else "undecided" if "undecided" in verdicts else "pass"

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
    def counts(self) -> dict[Verdict, int]:
        """Verdict -> how often it occurs."""
        verdicts = [one.verdict for one in self.results]
        return {verdict: verdicts.count(verdict) for verdict in get_args(Verdict)}


@dataclass(frozen=True)
class GateResult(Judged):
    """The results of all requirements: the gate passes if all pass, and fails if any fails."""

    columns: ClassVar[Columns] = {
        **dict.fromkeys(("requirement", "verdict", "origin"), "text"),
        **ESTIMATE,
        "limit": "number",
        "reason": "text",
        "settle": "text",
        "more_samples": "count",
    }

    name: str  # of the run
    results: tuple[RequirementResult, ...]
    notes: tuple[str, ...] = ()

    in_json: ClassVar[InJson] = {"verdict": "verdict", "counts": "counts"}

    def rows(self) -> list[Row]:
        """A row for each requirement."""
        names = ("requirement", "verdict", "origin", "limit", "reason", "settle", "more_samples")
        return [
            {name: getattr(one, name) for name in names} | ({} if one.estimate is None else one.estimate.as_dict())
            for one in self.results
        ]
