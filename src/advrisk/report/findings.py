"""What a report tells of a run: one assessment for each kind of question, or why there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.built_in import QUESTIONS
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.failures.modes import FailureModes
from advrisk.assess.gate.records import GateResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import NUMBERS
from advrisk.core.sections import Unanswered
from advrisk.core.tables import Columns, Row, Tabular
from advrisk.ledger.searches import SearchRecord
from advrisk.ledger.stopping import Stopping
from advrisk.ledger.views import ALL, View
from advrisk.risk.convergence import Convergence


@dataclass(frozen=True, kw_only=True)
class Findings(Tabular):
    """Everything a run answers: for each question its result, why there is none, or None where nobody asked."""

    damage: DamageAssessment | Unanswered
    convergence: Convergence | None = None
    attacks: ArmComparison | None = None
    flags: Sequence[dict[str, Any]] = ()
    detection: DetectionAssessment | Unanswered | None = None
    indicators: IndicatorAssessment | Unanswered | None = None
    failures: Sequence[FailureModes] | Unanswered = ()
    survival: SurvivalAssessment | Unanswered | None = None
    search: Sequence[SearchRecord] | Unanswered = ()
    certificate: CertificateAssessment | Unanswered | None = None
    gate: GateResult | Unanswered | None = None
    further: Mapping[str, Finding | Unanswered] = field(default_factory=dict)  # by registered assessments
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
        """The numbers that lead, of all kinds of questions, each with its interval."""
        return [number.row() for one in self.answered for number in one.quantities]

    @cached_property
    def built_in(self) -> Mapping[str, Finding | Unanswered]:
        """Each built-in question that was asked, in the order of the page."""
        made: dict[str, Finding | Unanswered] = {}
        for name, question in QUESTIONS.items():
            match getattr(self, name):
                case None | () | []:
                    continue
                case Unanswered() as why:
                    made[name] = why
                case result:
                    made[name] = question.finding(name, result, self.models)
        return made

    @cached_property
    def answers(self) -> Mapping[str, Finding | Unanswered]:
        """Every question that was asked, in the order of the page."""
        return {**self.built_in, **self.further}

    @property
    def answered(self) -> list[Finding]:
        """Those that have an answer."""
        return [one for one in self.answers.values() if isinstance(one, Finding)]
