"""The questions that advrisk answers itself: what each is called, and how its result is shown and measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.assess.attacks import sections as attacks
from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.certificate import sections as certificate
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.compare import sections as compare
from advrisk.assess.compare.records import RunComparison
from advrisk.assess.convergence import sections as convergence
from advrisk.assess.damage import sections as damage
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.detection import sections as detection
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.failures import sections as failures
from advrisk.assess.failures.modes import FailureModes
from advrisk.assess.gate import sections as gate
from advrisk.assess.gate.records import GateResult
from advrisk.assess.indicators import sections as indicators
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.protocol import Finding
from advrisk.assess.search import sections as search
from advrisk.assess.survival import sections as survival
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section, without_twins
from advrisk.core.tables import Tabular
from advrisk.ledger.searches import SearchRecord
from advrisk.risk.convergence import Convergence


def _none(_: Any) -> Iterable[NamedEstimate]:
    return ()


@dataclass(frozen=True)
class Question:
    """How the result of a question is shown: `sections` takes it and the models of the run, in the order of colours."""

    title: str
    result: type[Tabular]
    sections: Callable[[Any, Sequence[str]], Iterable[Section]]
    quantities: Callable[[Any], Iterable[NamedEstimate]] = _none
    several: bool = False  # it has several results, and `sections` takes the sequence of them

    def finding(self, name: str, result: Any, models: Sequence[str]) -> Finding:
        """What is said of a result; `models` are all of the run, in the order of colours."""
        sections = without_twins(self.sections(result, models))
        return Finding(name, self.title, result, sections, tuple(self.quantities(result)))

    def of_one(self, result: Any) -> Iterable[Section]:
        """What is shown of one result."""
        return without_twins(self.sections((result,) if self.several else result, ()))


# By name, in the order of the page.
QUESTIONS: Mapping[str, Question] = {
    "gate": Question(gate.TITLE, GateResult, gate.sections),
    "damage": Question(damage.TITLE, DamageAssessment, damage.sections, damage.quantities),
    "convergence": Question(convergence.TITLE, Convergence, convergence.sections),
    "detection": Question(detection.TITLE, DetectionAssessment, detection.sections, detection.quantities),
    "indicators": Question(indicators.TITLE, IndicatorAssessment, indicators.sections, indicators.quantities),
    "failures": Question(failures.TITLE, FailureModes, failures.sections, several=True),
    "survival": Question(survival.TITLE, SurvivalAssessment, survival.sections, survival.quantities),
    "search": Question(search.TITLE, SearchRecord, search.sections, several=True),
    "certificate": Question(certificate.TITLE, CertificateAssessment, certificate.sections, certificate.quantities),
    "attacks": Question(attacks.TITLE, ArmComparison, attacks.sections),
}
# Of two runs, so no part of the report of one.
COMPARISON = Question(compare.TITLE, RunComparison, compare.sections)
