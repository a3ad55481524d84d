"""What came of requirements, one by one and all together."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, get_args

from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
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


class OneVerdict(Protocol):
    """Anything with a verdict of its own."""

    @property
    def verdict(self) -> Verdict: ...


class Judged(Tabular):
    """Several verdicts, and what they come to: `fail` if any fails, else `undecided` if any is, else `pass`."""

    __slots__ = ()
    results: tuple[OneVerdict, ...]

    @property
    def verdict(self) -> Verdict:
        """Of the whole."""
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
        """How many of the verdicts pass, fail and are undecided."""
        verdicts = [one.verdict for one in self.results]
        return {verdict: verdicts.count(verdict) for verdict in get_args(Verdict)}


@dataclass(frozen=True)
class GateResult(Judged):
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

    in_json: ClassVar[InJson] = {"verdict": "verdict", "counts": "counts"}

    def rows(self) -> list[Row]:
        """A row for each requirement."""
        names = ("requirement", "verdict", "origin", "limit", "reason", "settle", "more_samples")
        return [
            {name: getattr(one, name) for name in names} | ({} if one.estimate is None else one.estimate.as_dict())
            for one in self.results
        ]
