"""What a report tells of a run: the finding of each question that was asked, or why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from advrisk.assess.protocol import Finding
from advrisk.core.estimate import NUMBERS
from advrisk.core.sections import Unanswered, why_not
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger.stopping import Stopping
from advrisk.ledger.views import ALL, View
from advrisk.study import assessments

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Findings(Tabular):
    """Everything a run answers."""

    answers: Mapping[str, Finding | Unanswered] = field(default_factory=dict)  # in the order of the page
    flags: Sequence[dict[str, Any]] = ()
    models: Sequence[str] = ()  # of the whole run: the n-th has the n-th colour in every figure
    unfinished: str = ""  # how far a run is that is not done
    scenarios_stated: bool = False  # by the study: they lead, or it is said why they have no answer
    by_damage: bool = False  # damage was asked for, and leads where scenarios are stated, too
    view: View = ALL  # the models and samples that all this is about
    asked: Mapping[str, str] = field(default_factory=dict)  # what was asked in place of the study's question, in words
    arms: Sequence[str] | None = None  # names and patterns of those asked for; None: all that count
    stopping: Stopping | None = None  # looks that were taken at it, and where it rests if it stopped early

    columns: ClassVar[Columns] = NUMBERS

    def rows(self) -> list[Row]:
        """The quantities of every question that has an answer, each with its interval."""
        return [number.row() for one in self.answered for number in one.quantities]

    @property
    def answered(self) -> list[Finding]:
        """Those that have an answer."""
        return [one for one in self.answers.values() if isinstance(one, Finding)]

    @property
    def brought(self) -> dict[str, Finding | Unanswered]:
        """Those of assessments that packages bring."""
        return {name: one for name, one in self.answers.items() if name not in assessments.built_in}

    def result(self, kind: type[Result]) -> Result | None:
        """The result of this class; None where there is none, or nobody asked."""
        return next((one.result for one in self.answered if isinstance(one.result, kind)), None)

    def answer(self, name: str, kind: type[Result]) -> Result | Unanswered | None:
        """The result of a question, of this class; why there is none; or None where nobody asked."""
        held = self.answers.get(name)
        return held if isinstance(held, Unanswered) else self.result(kind)

    def why_not(self, name: str) -> str:
        """Why a question has no answer; empty where it has one, or nobody asked."""
        return why_not(self.answers.get(name))
