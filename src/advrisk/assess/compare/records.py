"""Results of comparing a new run with an old one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from advrisk.assess.gate.records import Judged, Verdict
from advrisk.core.estimate import Estimate
from advrisk.core.plain import InJson
from advrisk.core.tables import ESTIMATE, Columns, Row

Word = Literal["identical", "better", "not worse", "worse", "undecided"]
WORDS: Mapping[Verdict, Word] = {"pass": "not worse", "fail": "worse", "undecided": "undecided"}
DEFAULT_MARGIN = 0.02  # every compared number is a share, a probability or a loss from 0 to 1


@dataclass(frozen=True)
class Compared:
    """One number of an old and a new model, on the same samples and under the same arms.

    What was to be compared and could not be has no estimates; it is undecided, and `reason` says why.
    """

    old: str  # the model
    new: str
    quantity: str
    old_value: Estimate | None
    new_value: Estimate | None
    worse_by: Estimate | None  # how much worse the new one is, paired; below 0: better
    margin: float
    verdict: Verdict
    reason: str
    p: float | None = None  # one-sided, of "worse by the margin or more"; only of shares
    settle: str = ""
    more_samples: int | None = None
    cautions: tuple[str, ...] = ()
    identical: bool = False  # the two models have the same digest
    detector: str | None = None  # what the number depends on beside the model

    in_json: ClassVar[InJson] = {"verdict": None, "word": "verdict"}

    @property
    def word(self) -> Word:
        """The verdict in words; `better` if it passes and the whole interval is below 0."""
        if self.verdict == "pass" and self.identical:
            return "identical"
        better = self.verdict == "pass" and self.worse_by is not None and self.worse_by.high < 0
        return "better" if better else WORDS[self.verdict]

    @property
    def label(self) -> str:
        """`trades: robust accuracy at 0.1`."""
        return f"{self.models}: {self.quantity}"

    @property
    def models(self) -> str:
        """`plain -> trades`, or the one name of both."""
        return self.new if self.old == self.new else f"{self.old} -> {self.new}"


@dataclass(frozen=True)
class RunComparison(Judged):
    """Everything that two runs can be compared by: not worse, if nothing is shown to be."""

    columns: ClassVar[Columns] = {
        **dict.fromkeys(("old", "new", "quantity"), "text"),
        **dict.fromkeys(("old_value", "new_value"), "number"),
        **ESTIMATE,  # of how much worse the new one is
        "margin": "number",
        "p": "number",
        **dict.fromkeys(("verdict", "reason", "settle"), "text"),
        "more_samples": "count",
    }

    old: str  # names of the runs
    new: str
    margin: float
    level: float
    n_samples: int  # that both hold
    arms: Mapping[str, Sequence[str]]  # `old -> new` -> the attacks that both hold
    results: tuple[Compared, ...]
    notes: tuple[str, ...] = ()
    margin_is_default: bool = False
    improved: tuple[Compared, ...] = ()  # what is better, at a level shared among all numbers

    @property
    def word(self) -> Word:
        """The verdict in words: `better` if a number improved, and none is worse even within the margin."""
        if self.verdict != "pass":
            return WORDS[self.verdict]
        if self.results and all(one.word == "identical" for one in self.results):
            return "identical"
        worsened = any(one.worse_by is not None and one.worse_by.low > 0 for one in self.results if not one.identical)
        return "better" if self.improved and not worsened else "not worse"

    @property
    def margin_text(self) -> str:
        """`2 %`, or `2 % (default)`."""
        return margin_text(self.margin) + (" (default)" if self.margin_is_default else "")

    def rows(self) -> list[Row]:
        """A row for each number of each pair of models."""
        names = ("old", "new", "quantity", "margin", "p", "reason", "settle", "more_samples")
        return [
            {name: getattr(one, name) for name in names}
            | {"old_value": _value(one.old_value), "new_value": _value(one.new_value), "verdict": one.word}
            | ({} if one.worse_by is None else one.worse_by.as_dict())
            for one in self.results
        ]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        words = [one.word for one in self.results]
        counts = {word: words.count(word) for word in get_args(Word)}
        return super().as_dict() | {
            "verdict": self.word,
            "improved": [one.label for one in self.improved],
            "counts": counts,
        }


def margin_text(margin: float) -> str:
    """`2 %`, `0.5 %`."""
    return f"{100 * margin:g} %"


def _value(found: Estimate | None) -> float | None:
    return None if found is None else found.value
