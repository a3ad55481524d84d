"""The questions that advrisk answers itself: what each is called, and how its result is shown and measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.assess.attacks import sections as attacks
from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.certificate import sections as certificate
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.search import sections as search
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section
from advrisk.ledger.searches import SearchRecord


def _none(_: Any) -> Iterable[NamedEstimate]:
    return ()


@dataclass(frozen=True)
class Question:
    """How the result of a question is shown: `sections` takes it and the models of the run, in the order of colours."""

    title: str
    result: type
    sections: Callable[[Any, Sequence[str]], Iterable[Section]]
    quantities: Callable[[Any], Iterable[NamedEstimate]] = _none
    several: bool = False  # a finding holds a sequence of such results, and `sections` takes that


# By name, in the order of the page.
QUESTIONS: Mapping[str, Question] = {
    "search": Question(search.TITLE, SearchRecord, search.sections, several=True),
    "certificate": Question(certificate.TITLE, CertificateAssessment, certificate.sections, certificate.quantities),
    "attacks": Question(attacks.TITLE, ArmComparison, attacks.sections),
}
