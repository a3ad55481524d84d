"""The questions that advrisk answers itself: what each is called, and how its result is shown and measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advrisk.assess.attacks import sections as attacks
from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.failures import sections as failures
from advrisk.assess.failures.modes import FailureModes
from advrisk.assess.indicators import sections as indicators
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.core.estimate import NamedEstimate
from advrisk.core.sections import Section


def _none(_: Any) -> Iterable[NamedEstimate]:
    return ()


@dataclass(frozen=True)
class Question:
    """How the result of a question is shown: `sections` takes it and the models of the run, in the order of colours."""

    title: str
    result: type
    sections: Callable[[Any, Sequence[str]], Iterable[Section]]
    quantities: Callable[[Any], Iterable[NamedEstimate]] = _none
    several: bool = False  # it has several results, and `sections` takes the sequence of them

    def of_one(self, result: Any) -> Iterable[Section]:
        """What is shown of one result."""
        return self.sections((result,) if self.several else result, ())


# By name, in the order of the page.
QUESTIONS: Mapping[str, Question] = {
    "indicators": Question(indicators.TITLE, IndicatorAssessment, indicators.sections, indicators.quantities),
    "failures": Question(failures.TITLE, FailureModes, failures.sections, several=True),
    "attacks": Question(attacks.TITLE, ArmComparison, attacks.sections),
}
