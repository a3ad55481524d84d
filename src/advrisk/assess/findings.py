"""The content of a report: the finding of each question, or why there is none."""

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
    """The findings of all questions on a run."""

    answers: Mapping[str, Finding | Unanswered] = field(default_factory=dict)  # in the order of the page
    flags: Sequence[dict[str, Any]] = ()
    models: Sequence[str] = ()  # of the whole run: the n-th has the n-th colour in every figure
    unfinished: str = ""  # the progress of an unfinished run
    scenarios_stated: bool = False  # whether the study has scenarios, which come first
    by_damage: bool = False  # whether damage was requested, and comes before stated scenarios
    view: View = ALL  # the selected models and samples
    asked: Mapping[str, str] = field(default_factory=dict)  # option -> its requested value, if not the study's
    arms: Sequence[str] | None = None  # requested names and patterns; None: all that count
    stopping: Stopping | None = None  # interim analyses, and where the run stopped

    columns: ClassVar[Columns] = NUMBERS

    def rows(self) -> list[Row]:
        """The quantities of every question that has an answer, each with its interval."""
        return [number.row() for one in self.answered for number in one.quantities]

    @property
    def answered(self) -> list[Finding]:
        """The findings with an answer."""
        return [one for one in self.answers.values() if isinstance(one, Finding)]

    @property
    def brought(self) -> dict[str, Finding | Unanswered]:
        """The findings of assessments from packages."""
        return {name: one for name, one in self.answers.items() if name not in assessments.built_in}

    def result(self, kind: type[Result]) -> Result | None:
        """The result of this class; None if there is none."""
        return next((one.result for one in self.answered if isinstance(one.result, kind)), None)

    def answer(self, name: str, kind: type[Result]) -> Result | Unanswered | None:
        """The result of a question, of this class; why there is none; or None if the question was not asked."""
        answer = self.answers.get(name)
        return answer if isinstance(answer, Unanswered) else self.result(kind)

    def why_not(self, name: str) -> str:
        """Why a question has no answer; empty if it has one or was not asked."""
        return why_not(self.answers.get(name))
